"""One agent's rows on a remote, to be read and nothing else.

A token that allows reading is enough, and so is whatever tables there are: ours, or those alone
that EvoClaw has made, its first release included. Nothing is made, changed or taken note of.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from . import foreign, schema, statements
from .remote import Remote, Statement, Value
from .replica import Device, Page, Poll, Replica
from .rows import STATEMENT, Row
from .values import whole

Tables: TypeAlias = Mapping[str, frozenset[str]]

# Before it had agents, EvoClaw's table had no column for them.
_NAMELESS: Final = "default"
_STATEMENTS: Final = "cold_memories"
_OURS: Final = ("replica_clock", "objects", "replica_devices", "schema_version")
_HOLD_AGENTS: Final = (_STATEMENTS, "critical_state", "replica_clock", *foreign.TABLES)
_LOOK: Final = Statement(
    "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c"
    " WHERE m.type = 'table' AND m.name IN ("
    + ", ".join(f"'{name}'" for name in (*_HOLD_AGENTS, *_OURS))
    + ")"
)


class Extent(msgspec.Struct, frozen=True):
    """How much there is, at one moment.

    Attributes:
        poll: the agent's place in the order at that moment.
        counts: how many rows of each kind, deletions left out, as far as they can be read.
        rows: how many in all, the traces of deletions included.
    """

    poll: Poll
    counts: dict[str, int]
    rows: int


class Source:
    """Reads one agent's rows. Every method raises `SyncError`.

    Args:
        remote: where.
        agent: whose.
        tables: what `look` has found there.
    """

    def __init__(self, remote: Remote, agent: str, tables: Tables) -> None:
        self._remote = remote
        self._agent = agent
        self._tables = tables
        self._replica = Replica(remote, agent)

    async def extent(self) -> Extent:
        """How much there is. The remote reads all rows for it."""
        asked = []
        if "replica_clock" in self._tables:
            asked.append("SELECT seq, epoch, pruned FROM replica_clock WHERE agent_id = ?1")
        if _STATEMENTS in self._tables:
            asked.append(
                f"SELECT '{STATEMENT}', count(*), count(*) FROM {_STATEMENTS} WHERE {self._own}"
            )
        if "objects" in self._tables:
            asked.append(
                f"SELECT kind, sum(data IS NOT NULL OR {statements.UNSOUND_OBJECT}), count(*)"
                " FROM objects WHERE agent_id = ?1 GROUP BY kind"
            )
        found = await self._remote.batch([Statement(sql, (self._agent,)) for sql in asked])
        poll = Poll()
        if "replica_clock" in self._tables:
            [clock, *found] = found
            poll = _poll(clock.rows)
        counts: dict[str, int] = {}
        rows = 0
        for kind, living, number in (line for result in found for line in result.rows):
            counts[str(kind)] = counts.get(str(kind), 0) + whole(living)
            rows += whole(number)
        return Extent(poll, {kind: count for kind, count in counts.items() if count}, rows)

    async def size(self) -> int:
        """The characters of all texts and records. The remote reads all rows for it."""
        asked = []
        if columns := self._tables.get(_STATEMENTS):
            record = "coalesce(length(record), 0)" if "record" in columns else "0"
            asked.append(
                f"SELECT total(length(text) + {record}) FROM {_STATEMENTS} WHERE {self._own}"
            )
        if "objects" in self._tables:
            asked.append("SELECT total(length(data)) FROM objects WHERE agent_id = ?1")
        found = await self._remote.batch([Statement(sql, (self._agent,)) for sql in asked])
        return sum(whole(result.rows[0][0]) for result in found)

    async def poll(self) -> Poll:
        """The agent's place in the order. One row is read."""
        if "replica_clock" not in self._tables:
            return Poll()
        return await self._replica.poll()

    async def statements(self, after: tuple[int, str], limit: int) -> Page[tuple[int, str]]:
        """The statements behind a place, at most `limit`; those without a place are `foreign`.

        Raises:
            TooLarge: so many are beyond what one answer may carry: ask for fewer.
        """
        if "seq" not in self._tables.get(_STATEMENTS, ()):
            return Page((), 0, None, full=False)
        return await self._replica.statements(after, limit)

    async def objects(self, after: tuple[int, str, str], limit: int) -> Page[tuple[int, str, str]]:
        """The rows of the other kinds behind a place, at most `limit`; as for `statements`."""
        if "objects" not in self._tables:
            return Page((), 0, None, full=False)
        return await self._replica.objects(after, limit)

    async def foreign(self, after: str, limit: int) -> Page[str]:
        """The statements behind an id that other tools wrote, and no device has received yet."""
        columns = self._tables.get(_STATEMENTS)
        if columns is None:
            return Page((), 0, None, full=False)
        names = ", ".join(
            name if name in columns else f"NULL AS {name}" for name in statements.STATEMENT_COLUMNS
        )
        unplaced = "seq IS NULL" if "seq" in columns else "true"
        sql = (
            f"SELECT {names} FROM {_STATEMENTS} WHERE {self._own} AND {unplaced} AND id > ?2"
            " AND typeof(id) = 'text' ORDER BY id LIMIT ?3"
        )
        lines = await self._rows(sql, after, limit)
        found = [statements.statement_of(self._agent, line) for line in lines]
        unread = tuple(
            (STATEMENT, str(line[0])) for line, row in zip(lines, found, strict=True) if not row
        )
        return Page(
            rows=tuple(row for row in found if row is not None),
            damaged=len(unread),
            last=str(lines[-1][0]) if lines else None,
            full=len(lines) == limit,
            unread=unread,
        )

    async def displaced(self) -> tuple[tuple[str, str], ...]:
        """Kind and id of rows that no page holds; as for `Replica`."""
        if "seq" not in self._tables.get(_STATEMENTS, ()) or "objects" not in self._tables:
            return ()
        return await self._replica.displaced()

    async def again(self, names: Sequence[tuple[str, str]]) -> list[Row]:
        """Rows by their kind and id, as far as they are there and as they were sent."""
        ids = [key for kind, key in names if kind == STATEMENT]
        others = [name for name in names if name[0] != STATEMENT]
        found = await self._replica.fetch(ids) if ids else []
        if others:
            [result] = await self._remote.batch([statements.objects_at(self._agent, others)])
            rows = (statements.object_of(line) for line in result.rows)
            found += [row for row in rows if row is not None]
        return found

    def left_by_others(self) -> AsyncIterator[list[Row]]:
        """The statements in tables that other tools had before there was this one."""
        return foreign.statements(self._remote, self._agent)

    async def critical(self) -> tuple[str, int] | None:
        """The critical state, and its version: -1 where another tool wrote it."""
        columns = self._tables.get("critical_state")
        if columns is None:
            return None
        version = statements.CRITICAL_VERSION if "version" in columns else "-1"
        rows = await self._rows(f"SELECT data, {version} FROM critical_state WHERE agent_id = ?1")
        return (str(rows[0][0]), whole(rows[0][1])) if rows else None

    async def devices(self) -> list[Device]:
        """Every device that was ever here, the latest contact first."""
        return await self._replica.devices() if "replica_devices" in self._tables else []

    @property
    def _own(self) -> str:
        named = "agent_id" in self._tables.get(_STATEMENTS, ())
        return "agent_id = ?1" if named else f"?1 = '{_NAMELESS}'"

    async def _rows(self, sql: str, *args: Value) -> tuple[tuple[Value, ...], ...]:
        [result] = await self._remote.batch([Statement(sql, (self._agent, *args))])
        return result.rows


async def look(remote: Remote) -> Tables:
    """The tables of a remote that this release can read, with their columns.

    Raises:
        SyncError: it cannot be reached, or refuses; or a later release made its tables.
    """
    [result] = await remote.batch([_LOOK])
    found: dict[str, set[str]] = {}
    for table, column in result.rows:
        found.setdefault(str(table), set()).add(str(column))
    if "schema_version" in found:
        [version] = await remote.batch([Statement("SELECT max(version) FROM schema_version")])
        schema.refuse_newer(whole(version.rows[0][0]))
    return {table: frozenset(columns) for table, columns in found.items()}


async def agents(remote: Remote, tables: Tables) -> list[str]:
    """The agents that a remote holds anything of."""
    found: set[str] = set()
    for table in _HOLD_AGENTS:
        columns = tables.get(table, frozenset())
        if "agent_id" in columns:
            sql = f"SELECT DISTINCT agent_id FROM {table}"
        elif table == _STATEMENTS and columns:
            sql = f"SELECT '{_NAMELESS}' FROM {table} LIMIT 1"
        else:
            continue
        [result] = await remote.batch([Statement(sql)])
        found.update(str(row[0]) for row in result.rows if row[0] is not None)
    return sorted(found)


def _poll(rows: tuple[tuple[Value, ...], ...]) -> Poll:
    if not rows:
        return Poll()
    seq, epoch, pruned = rows[0]
    return Poll(seq=whole(seq), epoch=str(epoch), pruned=whole(pruned))
