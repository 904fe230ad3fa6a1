"""One agent's rows on a remote: the SQL that writes, orders and reads them.

Each row has a place in the agent's order (`seq`), so that one integer is the position of a device.
A row is only replaced if the remote still has the version that its writer has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from . import schema
from .clock import COUNTER_BITS, TOO_HIGH
from .failures import RowTooLarge, SchemaMissing
from .local import Pending, Received
from .remote import Remote, SqlStatement, Value, rows_of, whole
from .rows import decode_row, digest

# The most that one push carries, in rows and in bytes of JSON; one row alone may be larger.
MOST_ROWS: Final = 1000
MOST_BYTES: Final = 1_000_000
TOMBSTONE_SECONDS: Final = 90 * 86_400

_POLL: Final = "SELECT agent_id, seq, epoch FROM replica_clock"
_PAGE: Final = (
    "SELECT seq, kind, id, version, data, clocks FROM rows"
    " WHERE agent_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq"
)
_ADVANCE: Final = """
    INSERT INTO replica_clock (agent_id, seq, epoch) VALUES (?1, ?2, lower(hex(randomblob(8))))
    ON CONFLICT (agent_id) DO UPDATE SET seq = seq + ?2 RETURNING seq, epoch
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
# Records the position of the device before the device itself does. If the remote has less than
# ?5, it was set back, and nothing is written.
_SIGN: Final = """
    INSERT INTO replica_devices (agent_id, device_id, name, first_at, last_at, seen)
    SELECT ?1, ?2, ?3, ?4, ?4, c.seq FROM replica_clock AS c
    WHERE c.agent_id = ?1 AND (?5 = 0 OR EXISTS (SELECT 1 FROM replica_devices
        WHERE agent_id = ?1 AND device_id = ?2 AND seen >= ?5))
    ON CONFLICT (agent_id, device_id) DO UPDATE SET name = excluded.name,
        last_at = excluded.last_at, seen = max(seen, excluded.seen)
    RETURNING retired_at
"""
_PRUNE: Final = """
    DELETE FROM rows WHERE agent_id = ?1 AND data IS NULL
    AND CASE WHEN json_valid(clocks) THEN clocks->>'$.at[0]' END
        < (min(?2, CAST(strftime('%s', 'now') AS INTEGER)) - ?3) * 1000 * ?4
"""


class Device(msgspec.Struct, frozen=True):
    """This device, as other devices see it."""

    id: str
    name: str


class DeviceRecord(msgspec.Struct, frozen=True):
    """One device of an agent. Times are seconds since the epoch.

    Attributes:
        behind: number of rows of other devices that it lacks; None: it was retired.
    """

    id: str
    name: str
    first_at: int
    last_at: int
    retired_at: int | None
    behind: int | None


class Poll(msgspec.Struct, frozen=True):
    """The end of an agent's order. `epoch` is empty if the agent has no rows yet."""

    seq: int = 0
    epoch: str = ""


class Unreadable(msgspec.Struct, frozen=True):
    """A row on the remote that is invalid, or too large for an answer.

    Attributes:
        version: the version on the remote, if known.
        reason: what is wrong with it.
    """

    kind: str
    id: str
    version: str | None
    reason: str


class Page(msgspec.Struct, frozen=True):
    """The rows of a part of the order, up to and including `until`."""

    rows: tuple[Received, ...]
    unreadable: tuple[Unreadable, ...]
    until: int


class Pushed(msgspec.Struct, frozen=True):
    """The result of a push.

    Attributes:
        poll: where the order ends after it.
        complete: whether every row was taken.
        signed: False: the remote was set back, or is another one.
    """

    poll: Poll
    complete: bool
    signed: bool


class Replica:
    """One agent's rows on a remote. Every method raises `SyncError`.

    Agents of one database share `polls`.
    """

    def __init__(self, remote: Remote, agent: str, polls: Polls | None = None) -> None:
        self.remote = remote
        self.agent = agent
        self._polls = polls or Polls(remote)

    async def prepare(self, now: float) -> None:
        """Create the missing tables of the remote."""
        await schema.prepare(self.remote, now)

    async def poll(self) -> Poll:
        """The end of the order: one row read. A token that allows reading is enough."""
        rows = await self._ask(f"{_POLL} WHERE agent_id = ?1")
        return Poll(whole(rows[0][1]), str(rows[0][2])) if rows else Poll()

    async def shared_poll(self, max_age: float) -> Poll:
        """The end of the order at most `max_age` seconds ago, from one query for all agents."""
        return (await self._polls.look(max_age)).get(self.agent, Poll())

    async def begin(self) -> Poll:
        """Create the agent's order, if it has none."""
        await self._ask(_ADVANCE, 0)
        return await self.poll()

    async def renew(self, epoch: str) -> Poll:
        """Replace the epoch `epoch`, so that every device offers all its rows again."""
        await self._ask(
            "UPDATE replica_clock SET epoch = lower(hex(randomblob(8)))"
            " WHERE agent_id = ?1 AND epoch = ?2",
            epoch,
        )
        return await self.poll()

    async def page(self, after: int, until: int) -> Page:
        """The rows after `after` up to `until`, or fewer if an answer cannot carry them."""
        while True:
            try:
                found = await self._ask(_PAGE, after, until)
            except RowTooLarge:
                if until - after == 1:
                    return await self._without(until)
                until = after + (until - after) // 2
            else:
                return _page([line[1:] for line in found], until)

    async def push(
        self, rows: Sequence[Pending], device: Device, cursor: int, now: float
    ) -> Pushed:
        """Write each row over the version that was seen, in one transaction.

        A repeated push changes nothing but the end of the order. The rows have distinct keys, and
        `size_of` accepts them; `cursor` is this device's position in the order.
        """
        listed = [
            (*one.row.key, one.seen, one.version, device.id, *one.row.encoded()) for one in rows
        ]
        advanced, written, signed = await self.remote.batch(
            [
                SqlStatement(_ADVANCE, (self.agent, len(rows))),
                SqlStatement(_WRITE, (self.agent, _json(listed), len(rows))),
                self._signature(device, cursor, now),
            ]
        )
        [(seq, epoch)] = advanced.rows
        return Pushed(
            Poll(whole(seq), str(epoch)), written.affected == len(rows), bool(signed.rows)
        )

    async def standing(
        self, rows: Sequence[Pending]
    ) -> list[tuple[Pending, Received | Unreadable | None]]:
        """The remote's versions of rows that were pushed and not taken; None: it has none.

        Raises:
            RowTooLarge: ask for fewer.
        """
        asked = _json([(*one.row.key, one.version) for one in rows])
        return [
            (rows[whole(key)], None if line[0] is None else _received(line))
            for key, *line in await self._ask(_STANDING, asked)
        ]

    async def sign(self, device: Device, cursor: int, now: float) -> tuple[bool, bool]:
        """Record the contact of this device.

        Returns:
            Whether the remote still has its earlier record, and whether it was retired.
        """
        [result] = await self.remote.batch([self._signature(device, cursor, now)])
        return bool(result.rows), any(row[0] is not None for row in result.rows)

    async def devices(self, device: str, cursor: int) -> list[DeviceRecord]:
        """Every device that ever replicated, latest contact first.

        Args:
            device: this one.
            cursor: its position, which it knows better than its last record here.
        """
        rows = await self._ask(
            "SELECT d.device_id, d.name, d.first_at, d.last_at, d.retired_at,"
            " CASE WHEN d.retired_at IS NULL THEN (SELECT count(*) FROM rows AS r"
            " WHERE r.agent_id = ?1 AND r.device <> d.device_id AND r.seq >"
            " CASE WHEN d.device_id = ?2 THEN ?3 ELSE d.seen END) END"
            " FROM replica_devices AS d WHERE d.agent_id = ?1 ORDER BY d.last_at DESC, d.device_id",
            device,
            cursor,
        )
        fields = DeviceRecord.__struct_fields__
        return [msgspec.convert(dict(zip(fields, row, strict=True)), DeviceRecord) for row in rows]

    async def away(self, now: float) -> list[str]:
        """The names of devices in use that were absent for so long that tombstones may go."""
        rows = await self._ask(
            "SELECT name FROM replica_devices"
            " WHERE agent_id = ?1 AND retired_at IS NULL AND last_at < ?2 ORDER BY last_at",
            int(now) - TOMBSTONE_SECONDS,
        )
        return [str(name) for (name,) in rows]

    async def retire(self, device: str, now: float | None) -> bool:
        """Retire a device, or, without a time, reinstate it; False: no such device.

        Every device notices with its next poll.
        """
        changed, _ = await self.remote.batch(
            [
                SqlStatement(
                    "UPDATE replica_devices SET retired_at = ?3"
                    " WHERE agent_id = ?1 AND device_id = ?2",
                    (self.agent, device, None if now is None else int(now)),
                ),
                SqlStatement(_ADVANCE, (self.agent, 1)),
            ]
        )
        return changed.affected == 1

    async def prune(self, now: float) -> int:
        """Remove tombstones older than 90 days, by this clock and by the remote's; count them."""
        [result] = await self.remote.batch(
            [SqlStatement(_PRUNE, (self.agent, int(now), TOMBSTONE_SECONDS, 1 << COUNTER_BITS))]
        )
        return result.affected

    async def counts(self) -> dict[str, int]:
        """The number of rows of each kind, without deleted ones."""
        rows = await self._ask(
            "SELECT kind, count(*) FROM rows WHERE agent_id = ?1 AND data IS NOT NULL GROUP BY kind"
        )
        return {str(kind): whole(number) for kind, number in rows}

    def _signature(self, device: Device, cursor: int, now: float) -> SqlStatement:
        return SqlStatement(_SIGN, (self.agent, device.id, device.name, int(now), cursor))

    async def _without(self, seq: int) -> Page:
        """The page of one row that is too large for an answer."""
        sql = "SELECT kind, id, version FROM rows WHERE agent_id = ?1 AND seq = ?2"
        reason = "it is too large to be received"
        rows = await self._ask(sql, seq)
        return Page((), tuple(Unreadable(str(k), str(i), str(v), reason) for k, i, v in rows), seq)

    async def _ask(self, sql: str, *args: Value) -> tuple[tuple[Value, ...], ...]:
        return await rows_of(self.remote, sql, self.agent, *args)


class Polls:
    """The ends of the orders of all agents of one remote, from one query for all of them."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._lock = asyncio.Lock()
        self._at = float("-inf")
        self._found: dict[str, Poll] = {}

    async def look(self, max_age: float = 0.0) -> Mapping[str, Poll]:
        """The poll of each agent in the database, not older than `max_age` seconds.

        Raises:
            SyncError: the remote does not answer.
        """
        clock = asyncio.get_running_loop().time
        async with self._lock:
            if clock() - self._at >= max_age:
                begun = clock()
                rows: tuple[tuple[Value, ...], ...] = ()
                with suppress(SchemaMissing):
                    rows = await rows_of(self._remote, _POLL)
                self._found = {str(name): Poll(whole(seq), str(ep)) for name, seq, ep in rows}
                self._at = begun
            return self._found


def size_of(one: Pending) -> int:
    """The bytes that a row takes in a push, with the name of a device.

    Raises:
        ValueError: it cannot be sent as it is; the message says why.
    """
    if "\0" in one.row.kind or "\0" in one.row.id:
        raise ValueError("its name holds a NUL character")
    try:
        written = (*one.row.key, one.seen, one.version, *one.row.encoded())
        return 70 + len(msgspec.json.encode(written))
    except (ValueError, TypeError, RecursionError):
        raise ValueError("it cannot be written as JSON") from None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _page(lines: Sequence[Sequence[Value]], until: int) -> Page:
    found = [_received(line) for line in lines]
    rows = tuple(one for one in found if isinstance(one, Received))
    return Page(rows, tuple(one for one in found if isinstance(one, Unreadable)), until)


def _received(line: Sequence[Value]) -> Received | Unreadable:
    """A row as received: kind, id, version, data, clocks. Any program may have written it."""
    kind, key, version, data, clocks = line
    reason = "it has columns of the wrong type"
    if (
        isinstance(kind, str)
        and isinstance(key, str)
        and isinstance(version, str)
        and isinstance(data, str | None)
        and isinstance(clocks, str)
    ):
        try:
            row = decode_row(kind, key, data, clocks)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            reason = "its data or its clocks are invalid"
        else:
            seen = [row.clocks.at, *row.clocks.fields.values(), row.clocks.deleted or row.clocks.at]
            if not all(0 <= stamp < TOO_HIGH for stamp, _ in seen):
                reason = "its clock is beyond the year 2200"
            elif version != digest(data, clocks):
                reason = "it is damaged: its digest differs"
            else:
                return Received(row, version)
    return Unreadable(str(kind), str(key), None if version is None else str(version), reason)
