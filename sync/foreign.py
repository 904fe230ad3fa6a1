"""What EvoClaw's service has left in tables of its own, as statements to take over.

Its skill writes to `cold_memories`, which is ours as well; its service had `cold_memory`, and its
own synchronisation `warm_memory` and `core_memory`. They are read once, by the first device of an
agent, and left as they are.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import msgspec

from .failures import SchemaMissing
from .remote import Remote, Statement, Value
from .rows import STATEMENT, UNVERSIONED, Row, View
from .values import number, whole

# The most that one answer brings.
_MOST_ROWS: Final = 500
# Later than any moment in seconds that these tables can hold: it is in milliseconds.
_MILLISECONDS: Final = 100_000_000_000


class _Table(msgspec.Struct, frozen=True):
    """One table: its columns behind the id, and what they say."""

    name: str
    columns: str
    view: Callable[[Sequence[Value]], View]


async def statements(remote: Remote, agent: str) -> AsyncIterator[list[Row]]:
    """The statements of an agent in EvoClaw's further tables, page by page.

    Raises:
        SyncError: the remote cannot be reached, or refuses.
    """
    for table in _TABLES:
        after = ""
        while rows := await _page(remote, agent, table, after):
            after = str(rows[-1][0])
            found = [_row(line[0], table.view(line[1:])) for line in rows]
            yield [row for row in found if row.view is not None and row.view.text.strip()]


async def _page(
    remote: Remote, agent: str, table: _Table, after: str
) -> tuple[tuple[Value, ...], ...]:
    sql = (
        f"SELECT id, {table.columns} FROM {table.name}"
        " WHERE agent_id = ?1 AND id > ?2 AND typeof(id) = 'text' ORDER BY id LIMIT ?3"
    )
    try:
        [result] = await remote.batch([Statement(sql, (agent, after, _MOST_ROWS))])
    except SchemaMissing:
        return ()
    return result.rows


def _row(key: Value, view: View) -> Row:
    clock, device = UNVERSIONED
    return Row(kind=STATEMENT, id=str(key), data=None, clock=clock, device=device, view=view)


def _cold(values: Sequence[Value]) -> View:
    content, summary, category, importance, created, accesses = values
    return View(
        text=_fact(content) or str(summary or ""),
        category=str(category or "general"),
        importance=number(importance, 0.5),
        created_at=_seconds(created),
        access_count=whole(accesses),
    )


def _warm(values: Sequence[Value]) -> View:
    content, event, moment = values
    return View(_fact(content), str(event or "general"), 0.5, _seconds(moment), 0)


def _core(values: Sequence[Value]) -> View:
    content, kind, created = values
    return View(_fact(content), f"core/{kind or 'general'}", 0.9, _seconds(created), 0)


_TABLES: Final = (
    _Table(
        "cold_memory",
        "content, distilled_summary, category, importance, created_at, access_count",
        _cold,
    ),
    _Table("warm_memory", "content, event_type, timestamp", _warm),
    _Table("core_memory", "content, memory_type, created_at", _core),
)

# Their names.
TABLES: Final = tuple(table.name for table in _TABLES)


def _fact(content: Value) -> str:
    """The statement in a content, which is JSON or just text."""
    text = str(content or "")
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(found, dict):
        for name in ("fact", "text", "content", "summary"):
            if isinstance(found.get(name), str) and found[name].strip():
                return str(found[name])
    return found if isinstance(found, str) else text


def _seconds(value: Value) -> int:
    moment = whole(value)
    return moment // 1000 if moment > _MILLISECONDS else moment
