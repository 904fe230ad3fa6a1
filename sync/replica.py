"""One agent's rows on a remote: what a replicator can ask of it and tell it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from . import foreign, schema, statements
from .failures import Refused
from .remote import Remote, Statement, Value
from .rows import STATEMENT, Row
from .statements import CRITICAL_VERSION, DISPLACED
from .values import integer, whole, whole_in

P = TypeVar("P")
# The most that one batch may carry; one row alone may be longer.
MOST_ROWS: Final = 500
MOST_BYTES: Final = 1_000_000
# Of rows that have no place in the order: beyond so many, the whole of it is damaged.
_MOST_DISPLACED: Final = 2000
# Above every version before it, also where another tool has replaced the row and its version.
_NEXT_CRITICAL: Final = (
    f"(SELECT coalesce(max({whole_in('seq', 0)}), 0) FROM replica_clock WHERE agent_id = ?1) +"
    f" coalesce((SELECT max({whole_in('version', 0)}, 0) FROM critical_state"
    " WHERE agent_id = ?1), 0) + 1"
)
_SEEN: Final = whole_in("seen", 0)
_IN_USE: Final = "typeof(retired_at) <> 'integer'"


class Poll(msgspec.Struct, frozen=True):
    """Whether there is anything new. `epoch` is empty where the agent has no rows yet."""

    seq: int = 0
    epoch: str = ""
    pruned: int = 0


class Look(msgspec.Struct, frozen=True):
    """What other tools and people have done, which the agent's order does not show.

    Attributes:
        foreign: whether another tool has written statements, or taken rows their place.
        critical: the version of the critical state; 0: there is none, -1: another tool wrote it.
        retired: when this device was retired, in seconds since the epoch.
    """

    foreign: bool
    critical: int
    retired: int | None


class Page(msgspec.Struct, Generic[P], frozen=True):
    """Received rows.

    Attributes:
        rows: those that are as they were sent.
        damaged: how many are not, and were left out.
        last: the place of the last row, to go on from; None: there was none.
        full: whether there may be more.
        unread: kind and id of the damaged ones.
    """

    rows: tuple[Row, ...]
    damaged: int
    last: P | None
    full: bool
    unread: tuple[tuple[str, str], ...] = ()


class Device(msgspec.Struct, frozen=True):
    """One device of an agent. Times are seconds since the epoch."""

    id: str
    name: str
    first_at: int
    last_at: int
    seen: int
    retired_at: int | None


class Replica:
    """The remote copy of one agent's rows.

    Every method raises `SyncError` where the remote cannot be reached or refuses. Missing tables
    are made on the way.
    """

    def __init__(self, remote: Remote, agent: str) -> None:
        self._remote = remote
        self._agent = agent

    async def prepare(self, now: float) -> None:
        """Bring the remote's tables up to date."""
        await schema.prepare(self._remote, now)

    async def poll(self) -> Poll:
        """One row read, whatever there is."""
        [row] = await self._rows(
            "SELECT seq, epoch, pruned FROM replica_clock WHERE agent_id = ?1"
            " UNION ALL SELECT 0, '', 0 LIMIT 1"
        )
        return Poll(seq=whole(row[0]), epoch=str(row[1]), pruned=whole(row[2]))

    async def look(self, device: str) -> Look:
        """What `poll` does not show."""
        [row] = await self._rows(
            "SELECT EXISTS (SELECT 1 FROM cold_memories WHERE agent_id = ?1 AND seq IS NULL)"
            f" OR EXISTS (SELECT 1 FROM cold_memories WHERE agent_id = ?1 AND {DISPLACED})"
            f" OR EXISTS (SELECT 1 FROM objects WHERE agent_id = ?1 AND {DISPLACED}),"
            f" (SELECT {CRITICAL_VERSION} FROM critical_state WHERE agent_id = ?1),"
            " (SELECT retired_at FROM replica_devices WHERE agent_id = ?1 AND device_id = ?2)",
            device,
        )
        return Look(
            foreign=bool(row[0]),
            critical=whole(row[1]),
            retired=integer(row[2]),
        )

    def left_by_others(self) -> AsyncIterator[list[Row]]:
        """The statements in tables that other tools had before there was this one."""
        return foreign.statements(self._remote, self._agent)

    async def begin(self) -> Poll:
        """Give the agent its place in the remote, if it has none."""
        await self._remote.batch([statements.advance(self._agent)])
        return await self.poll()

    async def renew(self, epoch: str) -> Poll:
        """Give the remote another epoch in the place of `epoch`, so that every device notices."""
        await self._remote.batch(
            [
                Statement(
                    "UPDATE replica_clock SET epoch = lower(hex(randomblob(8)))"
                    " WHERE agent_id = ?1 AND epoch = ?2",
                    (self._agent, epoch),
                )
            ]
        )
        return await self.poll()

    async def push(self, rows: Sequence[Row]) -> int:
        """Write rows where they are newer, in one transaction; return its place in the order."""
        *_, place = await self._remote.batch(
            [
                statements.advance(self._agent),
                *statements.put(self._agent, rows),
                Statement("SELECT seq FROM replica_clock WHERE agent_id = ?1", (self._agent,)),
            ]
        )
        return whole(place.rows[0][0])

    async def adopt(self) -> None:
        """Give what other tools wrote a place in the order, so that every device receives it."""
        await self._remote.batch([statements.advance(self._agent), *statements.adopt(self._agent)])

    async def displaced(self) -> tuple[tuple[str, str], ...]:
        """Kind and id of rows that no page holds, since their id or their place is none.

        The remote reads all rows for it. A row without a name gets one that no other has.

        Raises:
            Refused: "damaged", where there are thousands of them.
        """
        [result] = await self._remote.batch([statements.displaced(self._agent, _MOST_DISPLACED)])
        if len(result.rows) == _MOST_DISPLACED:
            raise Refused("damaged", "cannot read the replica: its rows have lost their order")
        return tuple(
            (str(kind), str(key).removeprefix(f"{self._agent}:") if named else f"({number})")
            for number, (kind, key, named) in enumerate(result.rows)
        )

    async def statements(self, after: tuple[int, str], limit: int) -> Page[tuple[int, str]]:
        """The statements behind a place, at most `limit`.

        Raises:
            TooLarge: so many are beyond what one answer may carry: ask for fewer.
        """
        [result] = await self._remote.batch(
            [statements.statements_after(self._agent, *after, limit)]
        )
        rows = [statements.statement_of(self._agent, line) for line in result.rows]
        names = [(STATEMENT, str(line[0]).removeprefix(f"{self._agent}:")) for line in result.rows]
        end = result.rows[-1] if result.rows else None
        return _page(rows, names, None if end is None else (whole(end[13]), str(end[0])), limit)

    async def objects(self, after: tuple[int, str, str], limit: int) -> Page[tuple[int, str, str]]:
        """The rows of the other kinds behind a place, at most `limit`; as for `statements`."""
        [result] = await self._remote.batch([statements.objects_after(self._agent, after, limit)])
        rows = [statements.object_of(line) for line in result.rows]
        names = [(str(line[0]), str(line[1])) for line in result.rows]
        end = result.rows[-1] if result.rows else None
        last = None if end is None else (whole(end[6]), str(end[0]), str(end[1]))
        return _page(rows, names, last, limit)

    async def of_kinds(self, kinds: frozenset[str]) -> list[Row]:
        """All rows of some kinds other than statements, deletions included; damaged ones not."""
        marks = ", ".join(f"?{number}" for number in range(2, len(kinds) + 2))
        rows = await self._rows(
            "SELECT kind, id, data, clock, device, digest, seq FROM objects"
            f" WHERE agent_id = ?1 AND kind IN ({marks}) ORDER BY seq, kind, id",
            *sorted(kinds),
        )
        found = [statements.object_of(line) for line in rows]
        return [row for row in found if row is not None]

    async def critical(self) -> tuple[str, int] | None:
        """The critical state, and its version: -1 where another tool wrote it."""
        rows = await self._rows(
            f"SELECT data, {CRITICAL_VERSION} FROM critical_state WHERE agent_id = ?1"
        )
        return (str(rows[0][0]), whole(rows[0][1])) if rows else None

    async def put_critical(self, data: str, known: int, device: str, now: float) -> int | None:
        """Replace the critical state if it is still of version `known`; 0: if there is none.

        Returns:
            The new version; None: it is another by now.
        """
        if known == 0:
            sql = (
                "INSERT INTO critical_state (agent_id, data, updated_at, device, version)"
                f" VALUES (?1, ?2, ?3, ?4, {_NEXT_CRITICAL}) ON CONFLICT DO NOTHING"
                " RETURNING version"
            )
            args: tuple[Value, ...] = (data, int(now), device)
        else:
            sql = (
                "UPDATE critical_state SET data = ?2, updated_at = ?3, device = ?4,"
                f" version = {_NEXT_CRITICAL}"
                f" WHERE agent_id = ?1 AND {CRITICAL_VERSION} = ?5 RETURNING version"
            )
            args = (data, int(now), device, known)
        rows = await self._rows(sql, *args)
        return whole(rows[0][0]) if rows else None

    async def sign(self, device: str, name: str, seen: int, now: float) -> None:
        """Note that this device was here, and how far it has received everything."""
        await self._remote.batch(
            [
                Statement(
                    "INSERT INTO replica_devices"
                    " (agent_id, device_id, name, first_at, last_at, seen)"
                    " VALUES (?1, ?2, ?3, ?4, ?4, ?5) ON CONFLICT DO UPDATE SET"
                    " name = excluded.name,"
                    f" last_at = max({whole_in('last_at', 0)}, excluded.last_at),"
                    " seen = excluded.seen",
                    (self._agent, device, name, int(now), seen),
                )
            ]
        )

    async def devices(self) -> list[Device]:
        """Every device that was ever here, the latest contact first."""
        rows = await self._rows(
            "SELECT device_id, name, first_at, last_at, seen, retired_at FROM replica_devices"
            " WHERE agent_id = ?1 ORDER BY last_at DESC, device_id"
        )
        return [
            Device(
                id=str(row[0]),
                name=str(row[1]),
                first_at=whole(row[2]),
                last_at=whole(row[3]),
                seen=whole(row[4]),
                retired_at=integer(row[5]),
            )
            for row in rows
        ]

    async def behind(self, device: str, seen: int) -> dict[str, int]:
        """How many rows of others each device in use has not received, by its id.

        Args:
            device: this device.
            seen: how far it has come, which it knows better than its last note here.
        """
        unseen = (
            "{t}.agent_id = d.agent_id AND {t}.seq > d.seen AND typeof({t}.seq) = 'integer'"
            " AND NOT ({own})"
        )
        cold = unseen.format(t="c", own="c.device IS d.device_id AND c.place_device IS d.device_id")
        rest = unseen.format(t="o", own="o.device = d.device_id")
        rows = await self._rows(
            f"SELECT device_id, (SELECT count(*) FROM cold_memories AS c WHERE {cold})"
            f" + (SELECT count(*) FROM objects AS o WHERE {rest}) FROM"
            f" (SELECT agent_id, device_id, CASE WHEN device_id = ?2 THEN max({_SEEN}, ?3)"
            f" ELSE {_SEEN} END AS seen FROM replica_devices"
            f" WHERE agent_id = ?1 AND {_IN_USE}) AS d",
            device,
            seen,
        )
        return {str(key): whole(number) for key, number in rows}

    async def retire(self, device: str, now: float | None) -> bool:
        """Count a device no longer, or, without a time, again; False: there is no such device."""
        [result] = await self._remote.batch(
            [
                Statement(
                    "UPDATE replica_devices SET retired_at = ?3"
                    " WHERE agent_id = ?1 AND device_id = ?2",
                    (self._agent, device, None if now is None else int(now)),
                )
            ]
        )
        return result.affected == 1

    async def prune(self) -> int:
        """Remove the traces of deletions that every device in use knows; return up to where."""
        known = f"(SELECT min({_SEEN}) FROM replica_devices WHERE agent_id = ?1 AND {_IN_USE})"
        *_, result = await self._remote.batch(
            [
                Statement(
                    f"UPDATE replica_clock SET pruned = max({whole_in('pruned', 0)},"
                    f" coalesce({known}, 0)) WHERE agent_id = ?1",
                    (self._agent,),
                ),
                Statement(
                    "DELETE FROM objects WHERE agent_id = ?1 AND data IS NULL"
                    " AND seq <= (SELECT pruned FROM replica_clock WHERE agent_id = ?1)",
                    (self._agent,),
                ),
                Statement("SELECT pruned FROM replica_clock WHERE agent_id = ?1", (self._agent,)),
            ]
        )
        return whole(result.rows[0][0]) if result.rows else 0

    async def counts(self) -> dict[str, int]:
        """How many rows of each kind there are, deletions left out."""
        rows = await self._rows(
            "SELECT 'memory', count(*) FROM cold_memories WHERE agent_id = ?1 UNION ALL"
            " SELECT kind, count(*) FROM objects WHERE agent_id = ?1 AND data IS NOT NULL"
            " GROUP BY kind"
        )
        return {str(kind): whole(number) for kind, number in rows if number}

    async def search(self, words: Sequence[str], limit: int) -> list[Row]:
        """Statements that hold some of `words`, those with the most of them first."""
        hits = " + ".join(f"(instr(lower(text), ?{n}) > 0)" for n in range(3, len(words) + 3))
        result = await self._remote.batch(
            [
                Statement(
                    f"SELECT {', '.join(statements.STATEMENT_COLUMNS)}"
                    f" FROM (SELECT *, {hits or '1'} AS hits FROM cold_memories"
                    " WHERE agent_id = ?1) WHERE hits > 0"
                    " ORDER BY hits DESC, importance DESC, created_at DESC LIMIT ?2",
                    (self._agent, limit, *words),
                )
            ]
        )
        found = [statements.statement_of(self._agent, line) for line in result[0].rows]
        return [row for row in found if row is not None]

    async def matching(self, words: Sequence[str], until: int, limit: int) -> list[str]:
        """The ids of statements that hold some of `words`, those with the most of them first.

        This looks at each statement that was made up to `until`, in seconds since the epoch.
        """
        hits = " + ".join(f"(instr(lower(text), ?{n}) > 0)" for n in range(4, len(words) + 4))
        rows = await self._rows(
            f"SELECT id FROM (SELECT id, importance, created_at, {hits or '0'} AS hits"
            " FROM cold_memories WHERE agent_id = ?1 AND created_at <= ?2) WHERE hits > 0"
            " ORDER BY hits DESC, importance DESC, created_at DESC LIMIT ?3",
            until,
            limit,
            *words,
        )
        return [str(row[0]).removeprefix(f"{self._agent}:") for row in rows]

    async def fetch(self, ids: Sequence[str]) -> list[Row]:
        """The statements with these ids, as far as they are there and as they were sent.

        Raises:
            TooLarge: so many are beyond what one answer may carry: ask for fewer.
        """
        [result] = await self._remote.batch([statements.statements_at(self._agent, ids)])
        found = [statements.statement_of(self._agent, line) for line in result.rows]
        return [row for row in found if row is not None and row.data is not None]

    async def _rows(self, sql: str, *args: Value) -> tuple[tuple[Value, ...], ...]:
        [result] = await self._remote.batch([Statement(sql, (self._agent, *args))])
        return result.rows


def _page(
    rows: Sequence[Row | None], names: Sequence[tuple[str, str]], last: P | None, limit: int
) -> Page[P]:
    unread = tuple(name for row, name in zip(rows, names, strict=True) if row is None)
    return Page(
        rows=tuple(row for row in rows if row is not None),
        damaged=len(unread),
        last=last,
        full=len(rows) == limit,
        unread=unread,
    )
