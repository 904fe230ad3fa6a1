"""One agent's rows on a remote: the SQL that writes, orders and reads them.

Each row has a place in the agent's order (`seq`), so that one integer is the position of a device.
A row is only replaced if the remote still has the version that its writer has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from . import schema
from .clock import COUNTER_BITS
from .failures import RowTooLarge, SchemaMissing
from .ports import Cursor, Remote, SqlStatement, pages, rows_of, whole
from .row_format import COLUMNS, Columns, Pending, Received, RowFormat, Unreadable, Value

# The most that one push carries, in rows and in bytes of JSON; one row alone may be larger.
MOST_ROWS: Final = 2000
MOST_BYTES: Final = 1_000_000
TOMBSTONE_SECONDS: Final = 90 * 86_400

_HEADS: Final = "SELECT agent_id, seq, epoch FROM replica_clock"
_HEAD_OF: Final = f"{_HEADS} WHERE agent_id = ?"
# The most SELECTs that SQLite takes as one statement.
_MOST_TERMS: Final = 500
_PAGE: Final = "SELECT {} FROM rows WHERE agent_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq"
_ADVANCE: Final = """
    INSERT INTO replica_clock (agent_id, seq, epoch) VALUES (?1, ?2, lower(hex(randomblob(8))))
    ON CONFLICT (agent_id) DO UPDATE SET seq = seq + ?2 RETURNING seq, epoch
"""
# After the rows that are there, if somebody has removed the order alone.
_BEGIN: Final = """
    INSERT INTO replica_clock (agent_id, seq, epoch)
    SELECT ?1, coalesce(max(seq), 0), lower(hex(randomblob(8))) FROM rows WHERE agent_id = ?1
    ON CONFLICT (agent_id) DO NOTHING
"""
# ?2: [[kind, id, seen, version, device, data, clocks], …], ?3: how many.
_WRITE: Final = """
    INSERT INTO rows (agent_id, kind, id, seq, version, device, data, clocks)
    SELECT ?1, j.value->>0, j.value->>1, c.seq - ?3 + 1 + j.key, j.value->>3, j.value->>4,
        j.value->>5, j.value->>6
    FROM json_each(?2) AS j CROSS JOIN replica_clock AS c
    LEFT JOIN rows AS r ON r.agent_id = ?1 AND r.kind = j.value->>0 AND r.id = j.value->>1
    WHERE c.agent_id = ?1 AND r.version IS j.value->>2
    ON CONFLICT (agent_id, kind, id) DO UPDATE SET seq = excluded.seq, version = excluded.version,
        device = excluded.device, data = excluded.data, clocks = excluded.clocks
"""
# ?2: [[kind, id, version], …]. Rows not listed are as they were pushed.
_STANDING: Final = """
    SELECT j.key, r.kind, r.id, r.version, r.data, r.clocks FROM json_each(?2) AS j
    LEFT JOIN rows AS r ON r.agent_id = ?1 AND r.kind = j.value->>0 AND r.id = j.value->>1
    WHERE r.version IS NOT j.value->>2
"""
# The epoch is the first number in its column. ?4: before this epoch.
_OLDER: Final = """
    SELECT kind, id, version, data, clocks FROM rows
    WHERE agent_id = ?1 AND kind = 'sealed' AND id > ?2
    AND CAST(substr(clocks, length('{"epoch":') + 1) AS INTEGER) < ?4 ORDER BY id LIMIT ?3
"""
# ?2: [[kind, id, version, data, clocks], …]. Their places in the order stay: nothing has changed.
# For an UPDATE, SQLite reads the whole list once for each row of the agent.
_RESEAL: Final = """
    INSERT INTO rows (agent_id, kind, id, seq, version, device, data, clocks)
    SELECT r.agent_id, r.kind, r.id, r.seq, r.version, r.device, j.value->>3, j.value->>4
    FROM json_each(?2) AS j CROSS JOIN rows AS r
    WHERE r.agent_id = ?1 AND r.kind = j.value->>0 AND r.id = j.value->>1
    AND r.version = j.value->>2
    ON CONFLICT (agent_id, kind, id) DO UPDATE SET data = excluded.data, clocks = excluded.clocks
"""
_MOST_OLDER: Final = 500
_MOST_ERASED: Final = 2000
_LISTED: Final = (
    "SELECT id, version, seq, data IS NULL FROM rows WHERE agent_id = ?1 AND kind = ?4 AND id > ?2"
    " ORDER BY id LIMIT ?3"
)
_MOST_LISTED: Final = 5000
# Records the position of the device before the device itself does. If the remote has less than
# ?5, it was set back, and nothing is written.
_SIGN: Final = """
    INSERT INTO replica_devices (agent_id, device_id, name, first_at, last_at, seen, release)
    SELECT ?1, ?2, ?3, ?4, ?4, c.seq, ?6 FROM replica_clock AS c
    WHERE c.agent_id = ?1 AND (?5 = 0 OR EXISTS (SELECT 1 FROM replica_devices
        WHERE agent_id = ?1 AND device_id = ?2 AND seen >= ?5))
    ON CONFLICT (agent_id, device_id) DO UPDATE SET name = excluded.name,
        last_at = excluded.last_at, seen = max(seen, excluded.seen), release = excluded.release
    RETURNING retired_at
"""
_PRUNE: Final = """
    DELETE FROM rows INDEXED BY rows_deleted WHERE agent_id = ?1 AND data IS NULL
    AND CASE WHEN json_valid(clocks) THEN clocks->>'$.at[0]' END
        < (min(?2, CAST(strftime('%s', 'now') AS INTEGER)) - ?3) * 1000 * ?4
"""


class Device(msgspec.Struct, frozen=True):
    """This device and its release, as other devices see it."""

    id: str
    name: str
    release: str = ""


class DeviceRecord(msgspec.Struct, frozen=True):
    """One device of an agent. Times are seconds since the epoch."""

    id: str
    name: str
    first_at: int
    last_at: int
    retired_at: int | None
    behind: int | None  # number of rows of other devices that it lacks; None: it was retired
    release: str | None  # that it ran at its last contact; None: it does not say it


class Page(msgspec.Struct, frozen=True):
    """The rows of a part of the order, up to and including `until`."""

    rows: tuple[Received, ...]
    unreadable: tuple[Unreadable, ...]
    until: int


class ListedRow(msgspec.Struct, frozen=True, array_like=True):
    """A row as a remote lists it: its name, version and place there, and whether it was deleted."""

    id: str
    version: str
    seq: int
    deleted: bool


class Batch(msgspec.Struct, frozen=True):
    """Rows with distinct keys, and what a remote is given of each, sealed in this epoch."""

    rows: Sequence[Pending] = ()
    columns: Sequence[Columns] = ()
    epoch: int = 0

    def first(self, count: int) -> Batch:
        """The first rows of it."""
        return Batch(self.rows[:count], self.columns[:count], self.epoch)


class Pushed(msgspec.Struct, frozen=True):
    """The result of a push."""

    head: Cursor  # where the order ends after it
    complete: bool  # whether every row was taken
    signed: bool  # False: the remote was set back, or is another one


class SharedKeys(Protocol):
    """The keys of a sealed replica, which the owner's devices share through the remote."""

    async def publish(self, remote: Remote) -> None:
        """Give the remote the keys that it lacks, each encrypted for a device.

        From then on it takes only sealed rows. `KeyMissing`: its rows are sealed with other keys.
        """

    async def learn(self, remote: Remote) -> None:
        """Take the keys of a later epoch; `KeyMissing` if there are none for this device."""

    async def switched(self, agent: str) -> None:
        """Note that the remote has nothing unsealed of an agent that is to be taken in."""


class Replica:
    """One agent's rows on a remote. Every method raises `SyncError`.

    Agents of one database share `heads`. Rows are written as they are, or else in `form`, with the
    `keys` that belong to it; None: they are not sealed.
    """

    def __init__(
        self,
        remote: Remote,
        agent: str,
        heads: Heads | None = None,
        *,
        form: RowFormat | None = None,
        keys: SharedKeys | None = None,
    ) -> None:
        self.remote = remote
        self.agent = agent
        self.form = form or RowFormat(agent)
        self.keys = keys
        self._heads = heads or Heads(remote)

    async def prepare(self, now: float, *, is_missing: bool = False) -> None:
        await schema.prepare(self.remote, now, is_missing=is_missing)

    async def publish_keys(self) -> None:
        """Publish the keys, if it is sealed: see `SharedKeys`."""
        if self.keys is not None:
            await self.keys.publish(self.remote)

    async def head(self) -> Cursor:
        """The end of the order: one row read. A token that allows reading is enough."""
        return _end(await self._ask(_HEAD_OF))

    async def shared_head(self, max_age: float) -> tuple[Cursor, float]:
        """The end of the order and its age, from one query for all agents that share `heads`."""
        return await self._heads.head(self.form.agent, max_age)

    async def begin(self) -> Cursor:
        """Create the agent's order, if it has none."""
        return await self._then_head(_BEGIN)

    async def renew(self, epoch: str) -> Cursor:
        """Replace the epoch `epoch`, so that every device offers all its rows again."""
        return await self._then_head(
            "UPDATE replica_clock SET epoch = lower(hex(randomblob(8)))"
            " WHERE agent_id = ?1 AND epoch = ?2",
            epoch,
        )

    async def page(self, after: int, until: int) -> Page:
        """The rows after `after` up to `until`, or fewer if an answer cannot carry them."""
        while True:
            try:
                received = await self._received(after, until)
            except RowTooLarge:
                if until - after == 1:
                    return await self._without(until)
                until = after + (until - after) // 2
            else:
                rows = tuple(row for row in received if isinstance(row, Received))
                unreadable = tuple(row for row in received if isinstance(row, Unreadable))
                return Page(rows, unreadable, until)

    async def batch(self, rows: Sequence[Pending]) -> Batch:
        """What is written of some rows; their form accepts their sizes.

        Sealing takes about 25 µs a row, outside the event loop.
        """
        form, epoch = self.form, self.form.epoch
        if not epoch:
            return Batch(rows, [*map(form.columns, rows)])
        return Batch(rows, await asyncio.to_thread(lambda: [*map(form.columns, rows)]), epoch)

    async def push(self, batch: Batch, device: Device, cursor: int, now: float) -> Pushed:
        """Write each row over the version that was seen, in one transaction.

        A repeated push changes nothing but the end of the order. `cursor` is this device's position
        in the order.
        """
        if batch.epoch != self.form.epoch:
            # A device was retired since it was sealed, and could read it.
            batch = await self.batch(batch.rows)
        count = len(batch.rows)
        listed = [(*row[:4], device.id, *row[4:]) for row in batch.columns]
        advanced, written, signed = await self.remote.batch(
            [
                SqlStatement(_ADVANCE, (self.form.agent, count)),
                SqlStatement(_WRITE, (self.form.agent, _json(listed), count)),
                self._signature(device, cursor, now),
            ]
        )
        [(seq, epoch)] = advanced.rows
        return Pushed(Cursor(str(epoch), whole(seq)), written.affected == count, bool(signed.rows))

    async def current_versions(
        self, rows: Sequence[Pending]
    ) -> list[tuple[Pending, Received | Unreadable | None]]:
        """The remote's versions of rows that were pushed and not taken; None: it has none.

        `RowTooLarge`: ask for fewer.
        """
        keys = _json([(*self.form.key(*r.row.key), self.form.version(r.version)) for r in rows])
        return [
            (rows[whole(key)], None if line[0] is None else self.form.received(line))
            for key, *line in await self._ask(_STANDING, keys)
        ]

    async def heartbeat(self, device: Device, cursor: int, now: float) -> tuple[bool, bool]:
        """Record the contact of this device.

        Returns whether the remote still has its earlier record, and whether it was retired.
        """
        [result] = await self.remote.batch([self._signature(device, cursor, now)])
        return bool(result.rows), any(row[0] is not None for row in result.rows)

    async def devices(self, device: str, cursor: int) -> list[DeviceRecord]:
        """Every device that ever replicated, latest contact first.

        `cursor` is the position of this device, which it knows better than its last record here.
        """
        rows = await self._ask(
            "SELECT d.device_id, d.name, d.first_at, d.last_at, d.retired_at,"
            " CASE WHEN d.retired_at IS NULL THEN (SELECT count(*) FROM rows AS r"
            " WHERE r.agent_id = ?1 AND r.device <> d.device_id AND r.seq >"
            " CASE WHEN d.device_id = ?2 THEN ?3 ELSE d.seen END) END, d.release"
            " FROM replica_devices AS d WHERE d.agent_id = ?1 ORDER BY d.last_at DESC, d.device_id",
            device,
            cursor,
        )
        fields = DeviceRecord.__struct_fields__
        records = (
            msgspec.convert(dict(zip(fields, row, strict=True)), DeviceRecord) for row in rows
        )
        reveal = self.form.reveal
        return [msgspec.structs.replace(each, name=reveal(each.id, each.name)) for each in records]

    async def away(self, now: float) -> list[str]:
        """The names of devices in use that were absent for so long that tombstones may go."""
        rows = await self._ask(
            "SELECT device_id, name FROM replica_devices"
            " WHERE agent_id = ?1 AND retired_at IS NULL AND last_at < ?2 ORDER BY last_at",
            int(now) - TOMBSTONE_SECONDS,
        )
        return [self.form.reveal(str(device), str(name)) for device, name in rows]

    async def retire(self, device: str, now: float | None) -> bool:
        """Retire a device from all agents of the database, or, without a time, reinstate it.

        Returns whether that changed anything. Every device notices with its next poll.
        """
        changed = "device_id = ?1 AND retired_at IS NOT ?2"
        agents = f"SELECT agent_id FROM replica_devices WHERE {changed}"
        arguments = (device, None if now is None else int(now))
        _, result = await self.remote.batch(
            [
                SqlStatement(
                    f"UPDATE replica_clock SET seq = seq + 1 WHERE agent_id IN ({agents})",
                    arguments,
                ),
                SqlStatement(
                    f"UPDATE replica_devices SET retired_at = ?2 WHERE {changed}", arguments
                ),
            ]
        )
        return result.affected > 0

    async def knows(self, device: Device) -> bool:
        """Whether a device was ever in contact, as far as the remote has not been set back."""
        sql = "SELECT 1 FROM replica_devices WHERE agent_id = ? AND device_id = ?"
        return bool(await self._ask(sql, device.id))

    async def is_retired(self, device: Device) -> bool:
        """Whether a device was retired, and not reinstated since."""
        sql = "SELECT 1 FROM replica_devices WHERE agent_id = ? AND device_id = ? AND retired_at"
        return bool(await self._ask(sql, device.id))

    async def listed(self, kind: str) -> AsyncIterator[ListedRow]:
        """Every row of a kind, as it is named there, without its content."""
        async for rows in pages(self.remote, _LISTED, self.form.agent, kind, limit=_MOST_LISTED):
            for key, version, seq, deleted in rows:
                yield ListedRow(str(key), str(version), whole(seq), bool(deleted))

    async def prune(self, now: float) -> int:
        """Remove tombstones older than 90 days, by this clock and by the remote's; count them."""
        args = (self.form.agent, int(now), TOMBSTONE_SECONDS, 1 << COUNTER_BITS)
        [result] = await self.remote.batch([SqlStatement(_PRUNE, args)])
        return result.affected

    async def reseal(self) -> int:
        """Seal the rows of earlier epochs with the key of this one; count them.

        An interrupted call is continued by the next.
        """
        done, form = 0, self.form
        if form.epoch <= 1:
            return done
        older = pages(self.remote, _OLDER, form.agent, form.epoch, limit=_MOST_OLDER, id_at=1)
        with suppress(RowTooLarge):
            async for lines in older:
                rows = [row for row in map(form.received, lines) if isinstance(row, Received)]
                columns = [form.columns(Pending(row.row, row.version, None)) for row in rows]
                written = _json([(kind, key, *rest) for kind, key, _, *rest in columns])
                [sealed] = await self.remote.batch([SqlStatement(_RESEAL, (form.agent, written))])
                done += sealed.affected
        return done

    async def is_any_unsealed(self) -> bool:
        """Whether the database has plain rows of any agent, which the question does not name."""
        # The names of sealed agents begin with '=', of which a shared database has many.
        some = "SELECT 1 FROM replica_clock WHERE agent_id"
        return bool(await rows_of(self.remote, f"{some} < '=' UNION ALL {some} >= '>' LIMIT 1"))

    async def erase(self) -> None:
        """Remove everything of the agent, its order last; an interrupted call is repeated."""
        some = (
            "DELETE FROM rows WHERE agent_id = ?1"
            " AND seq < ?2 + (SELECT min(seq) FROM rows WHERE agent_id = ?1)"
        )
        deletion = SqlStatement(some, (self.form.agent, _MOST_ERASED))
        while (await self.remote.batch([deletion]))[0].affected:
            continue
        await self.remote.batch(
            [
                SqlStatement(f"DELETE FROM {table} WHERE agent_id = ?1", (self.form.agent,))
                for table in ("replica_devices", "replica_clock")
            ]
        )

    async def has_rows(self) -> bool:
        """Whether any row was not deleted."""
        sql = "SELECT 1 FROM rows WHERE agent_id = ?1 AND data IS NOT NULL LIMIT 1"
        return bool(await self._ask(sql))

    def _signature(self, device: Device, cursor: int, now: float) -> SqlStatement:
        name = self.form.conceal(device.id, device.name)
        args = (self.form.agent, device.id, name, int(now), cursor, device.release)
        return SqlStatement(_SIGN, args)

    async def _received(self, after: int, until: int) -> list[Received | Unreadable]:
        lines = await self._ask(_PAGE.format(self.form.page), after, until)
        listed = list(map(self.form.listed, lines))
        if None not in listed:
            return [row for row in listed if row is not None]
        # Something is damaged: the whole rows say what.
        lines = await self._ask(_PAGE.format(COLUMNS), after, until)
        return list(map(self.form.received, lines))

    async def _without(self, seq: int) -> Page:
        """The page of one row that is too large for an answer."""
        # Without its version, by which a row is sent again that was damaged.
        sql = "SELECT kind, id, NULL FROM rows WHERE agent_id = ?1 AND seq = ?2"
        reason = "it is too large to be received"
        rows = await self._ask(sql, seq)
        return Page((), tuple(self.form.unreadable(line, reason) for line in rows), seq)

    async def _ask(self, sql: str, *args: Value) -> tuple[tuple[Value, ...], ...]:
        return await rows_of(self.remote, sql, self.form.agent, *args)

    async def _then_head(self, sql: str, *args: Value) -> Cursor:
        change = SqlStatement(sql, (self.form.agent, *args))
        _, end = await self.remote.batch([change, SqlStatement(_HEAD_OF, (self.form.agent,))])
        return _end(end.rows)


class Heads:
    """The ends of the orders of the agents that use a remote, from one query for all of them."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._lock = asyncio.Lock()
        self._at = float("-inf")
        self._heads: dict[str, Cursor] = {}
        self._agents: set[str] = set()

    async def head(self, agent: str, max_age: float) -> tuple[Cursor, float]:
        """An agent's end of the order, and its age, at most `max_age` seconds.

        The query includes every agent that was named here, until `leave`: each costs one row.
        """
        clock = asyncio.get_running_loop().time
        self._agents.add(agent)
        async with self._lock:
            if agent not in self._heads or clock() - self._at >= max_age:
                begun, agents = clock(), sorted(self._agents)
                heads = dict.fromkeys(agents, Cursor())
                for start in range(0, len(agents), _MOST_TERMS):
                    part = agents[start : start + _MOST_TERMS]
                    # With IN (…) each agent would cost three rows.
                    heads |= await self._ask(" UNION ALL ".join([_HEAD_OF] * len(part)), *part)
                self._heads, self._at = heads, begun
            return self._heads[agent], clock() - self._at

    def leave(self, agent: str) -> None:
        self._agents.discard(agent)

    async def all(self) -> Mapping[str, Cursor]:
        """The end of the order of every agent in the database: one row read for each."""
        return await self._ask(_HEADS)

    async def _ask(self, sql: str, *agents: str) -> dict[str, Cursor]:
        try:
            rows = await rows_of(self._remote, sql, *agents)
        except SchemaMissing:
            return {}
        return {str(name): Cursor(str(epoch), whole(seq)) for name, seq, epoch in rows}


def _end(rows: Sequence[Sequence[Value]]) -> Cursor:
    """The end of an order from its row, if there is one."""
    return Cursor(str(rows[0][2]), whole(rows[0][1])) if rows else Cursor()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
