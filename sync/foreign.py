"""The content of EvoClaw's own tables, as plain values to import. Nothing is written.

Its skill has `cold_memories` and `critical_state`, whose names our views have elsewhere; its
service had `cold_memory`, and its own synchronisation `warm_memory` and `core_memory`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .ports import Remote, pages, rows_of
from .row_format import Value

# Its first release had no agents.
NAMELESS: Final = "default"
_MOST_ROWS: Final = 500
_CRITICAL: Final = "critical_state"
_COMMON: Final = ("category", "importance", "created_at", "access_count")
# The columns that are read of each table of memories.
_TABLES: Final = {
    "cold_memories": ("text", *_COMMON),
    "cold_memory": ("content", "distilled_summary", *_COMMON),
    "warm_memory": ("content", "event_type", "timestamp"),
    "core_memory": ("content", "memory_type", "created_at"),
}


class Foreign(msgspec.Struct, frozen=True):
    """The content of the tables."""

    agents: list[str]
    memories: list[dict[str, Value]]  # of one agent: `table`, `id`, and the other columns
    critical: dict[str, Any] | None  # its hot state and tree, if it has any


async def read(remote: Remote, agent: str) -> Foreign:
    """Everything that EvoClaw's tables hold of an agent."""
    tables = await _tables(remote)
    agents: set[str] = set()
    memories: list[dict[str, Value]] = []
    for table, columns in tables.items():
        if "agent_id" in columns:
            rows = await rows_of(remote, f"SELECT DISTINCT agent_id FROM {table}")
            agents.update(name for (name,) in rows if isinstance(name, str) and name)
        else:
            agents.add(NAMELESS)
        if table != _CRITICAL and ("agent_id" in columns or agent == NAMELESS):
            memories += await _memories(remote, table, columns, agent)
    return Foreign(sorted(agents), memories, await _critical(remote, tables, agent))


async def has_own_archive(remote: Remote) -> bool:
    """Whether `cold_memories` is EvoClaw's table, and not our view."""
    return {"agent_id", "text"} <= (await _tables(remote)).get("cold_memories", set())


async def _tables(remote: Remote) -> dict[str, set[str]]:
    """The columns of each existing table, without our views of these names."""
    names = ", ".join(f"'{name}'" for name in (*_TABLES, _CRITICAL))
    rows = await rows_of(
        remote,
        "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c"
        f" WHERE m.type = 'table' AND m.name IN ({names})",
    )
    tables: dict[str, set[str]] = {}
    for table, column in rows:
        tables.setdefault(str(table), set()).add(str(column))
    needed = {name: {"id"} for name in _TABLES} | {_CRITICAL: {"agent_id", "data"}}
    return {name: tables[name] for name in needed if needed[name] <= tables.get(name, set())}


async def _memories(
    remote: Remote, table: str, columns: set[str], agent: str
) -> list[dict[str, Value]]:
    wanted = [name for name in _TABLES[table] if name in columns]
    own = "agent_id = ?1" if "agent_id" in columns else "?1 = ?1"
    sql = (
        f"SELECT {', '.join(('id', *wanted))} FROM {table} WHERE {own} AND id > ?2"
        " AND typeof(id) = 'text' ORDER BY id LIMIT ?3"
    )
    return [
        {"table": table, **dict(zip(("id", *wanted), row, strict=True))}
        async for rows in pages(remote, sql, agent, limit=_MOST_ROWS)
        for row in rows
    ]


async def _critical(
    remote: Remote, tables: dict[str, set[str]], agent: str
) -> dict[str, Any] | None:
    if _CRITICAL not in tables:
        return None
    rows = await rows_of(remote, f"SELECT data FROM {_CRITICAL} WHERE agent_id = ?1", agent)
    try:
        state = msgspec.json.decode(str(rows[0][0])) if rows else None
    except (msgspec.DecodeError, RecursionError):
        return None
    return state if isinstance(state, dict) else None
