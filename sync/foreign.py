"""What EvoClaw has left in tables of its own, as plain values to import. Nothing is written.

Its skill has `cold_memories` and `critical_state`, whose names our views have elsewhere; its
service had `cold_memory`, and its own synchronisation `warm_memory` and `core_memory`. Each
function raises `SyncError` where the remote cannot be reached, or refuses.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from .failures import TooLarge
from .remote import Remote, Statement, Value, whole

# Its first release had no agents.
NAMELESS: Final = "default"
_MOST_ROWS: Final = 500
# Later than any moment in seconds that these tables can hold: it is in milliseconds.
_MILLISECONDS: Final = 100_000_000_000
_CRITICAL: Final = "critical_state"

# The columns of each table that is there.
Tables: TypeAlias = Mapping[str, frozenset[str]]


class _Table(msgspec.Struct, frozen=True):
    """The columns that are read behind the id, and what they say."""

    columns: tuple[str, ...]
    fields: Callable[[Sequence[Value]], dict[str, Any]]


async def look(remote: Remote) -> Tables:
    """Which of EvoClaw's tables are there; our views of these names are none."""
    names = ", ".join(f"'{name}'" for name in (*_TABLES, _CRITICAL))
    rows = await _rows(
        remote,
        "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c"
        f" WHERE m.type = 'table' AND m.name IN ({names})",
    )
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(str(table), set()).add(str(column))
    return {
        table: frozenset(columns)
        for table, columns in found.items()
        if "id" in columns or table == _CRITICAL
    }


async def agents(remote: Remote, tables: Tables) -> list[str]:
    """The agents that EvoClaw's tables name."""
    found: set[str] = set()
    for table, columns in tables.items():
        if "agent_id" not in columns:
            found.add(NAMELESS)
            continue
        rows = await _rows(remote, f"SELECT DISTINCT agent_id FROM {table}")
        found.update(name for (name,) in rows if isinstance(name, str) and name)
    return sorted(found)


async def memories(
    remote: Remote, tables: Tables, agent: str
) -> AsyncIterator[list[dict[str, Any]]]:
    """The memories of an agent, page by page.

    Each has `id`, `text`, `category`, `importance`, `created_at` in seconds, `access_count`, and
    `table`. Those without a text are left out; a column that is missing has its default.
    """
    for name, table in _TABLES.items():
        columns = tables.get(name)
        if columns is None or ("agent_id" not in columns and agent != NAMELESS):
            continue
        after, limit = "", _MOST_ROWS
        while True:
            chosen = ", ".join(c if c in columns else "NULL" for c in table.columns)
            own = "agent_id = ?1" if "agent_id" in columns else "?1 = ?1"
            sql = (
                f"SELECT id, {chosen} FROM {name} WHERE {own} AND id > ?2"
                " AND typeof(id) = 'text' ORDER BY id LIMIT ?3"
            )
            try:
                rows = await _rows(remote, sql, agent, after, limit)
            except TooLarge:
                if limit == 1:
                    raise
                limit //= 2
                continue
            if not rows:
                break
            after = str(rows[-1][0])
            found = [{"id": str(row[0]), "table": name} | table.fields(row[1:]) for row in rows]
            yield [one for one in found if one["text"].strip()]


async def critical(remote: Remote, tables: Tables, agent: str) -> dict[str, Any] | None:
    """The hot state and the tree of an agent as EvoClaw stored them; None: it has none."""
    if not {"agent_id", "data"} <= tables.get(_CRITICAL, frozenset()):
        return None
    rows = await _rows(remote, f"SELECT data FROM {_CRITICAL} WHERE agent_id = ?1", agent)
    found = _decoded(rows[0][0]) if rows else None
    return found if isinstance(found, dict) else None


async def _rows(remote: Remote, sql: str, *args: Value) -> tuple[tuple[Value, ...], ...]:
    [result] = await remote.batch([Statement(sql, args)])
    return result.rows


def _ours(values: Sequence[Value]) -> dict[str, Any]:
    text, category, importance, created, accesses = values
    return _memory(str(text or ""), category, importance, created, accesses)


def _cold(values: Sequence[Value]) -> dict[str, Any]:
    content, summary, category, importance, created, accesses = values
    return _memory(_fact(content) or str(summary or ""), category, importance, created, accesses)


def _warm(values: Sequence[Value]) -> dict[str, Any]:
    content, event, moment = values
    return _memory(_fact(content), event, 0.5, moment, 0)


def _core(values: Sequence[Value]) -> dict[str, Any]:
    content, kind, created = values
    return _memory(_fact(content), f"core/{kind or 'general'}", 0.9, created, 0)


def _memory(
    text: str, category: Value, importance: Value, created: Value, accesses: Value
) -> dict[str, Any]:
    moment = whole(created)
    return {
        "text": text,
        "category": str(category or "general"),
        "importance": float(importance) if isinstance(importance, int | float) else 0.5,
        "created_at": moment // 1000 if moment > _MILLISECONDS else moment,
        "access_count": max(0, whole(accesses)),
    }


_COMMON: Final = ("category", "importance", "created_at", "access_count")
_TABLES: Final = {
    "cold_memories": _Table(("text", *_COMMON), _ours),
    "cold_memory": _Table(("content", "distilled_summary", *_COMMON), _cold),
    "warm_memory": _Table(("content", "event_type", "timestamp"), _warm),
    "core_memory": _Table(("content", "memory_type", "created_at"), _core),
}


def _fact(content: Value) -> str:
    """The statement in a content, which is JSON or just text."""
    found = _decoded(content)
    if isinstance(found, dict):
        for name in ("fact", "text", "content", "summary"):
            if isinstance(found.get(name), str) and found[name].strip():
                return str(found[name])
    return found if isinstance(found, str) else str(content or "")


def _decoded(text: Value) -> Any:
    try:
        return json.loads(str(text or ""))
    except (ValueError, RecursionError):
        return None
