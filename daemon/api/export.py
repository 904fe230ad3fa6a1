"""`/api/export`: everything that is remembered, as lines of JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from ..memory.records import Memory
from ..store import exporting
from ..store.agent_store import AgentStore
from ..store.exporting import Page
from .calls import Answer, Call, Route
from .streaming import streamed
from .views import MemoryView, memory_fields

_TYPE: Final = "application/x-ndjson"


class MemoryLine(MemoryView, kw_only=True, tag_field="kind", tag="memory"):
    """A memory in an export."""


async def export(call: Call) -> Answer:
    """Send one JSON object a line: the memories, the hot state, categories, pairs and merges."""
    return await streamed(call, _TYPE, _lines(call))


async def _lines(call: Call) -> AsyncGenerator[bytes, None]:
    async with call.store() as store:
        rules = store.rules

        def view(memory: Memory) -> MemoryLine:
            return MemoryLine(**memory_fields(memory, call.now, rules.scoring))

        async for lines in _pages(store, lambda db, after: exporting.memories(db, after, view), 0):
            yield lines
        yield await store.read(lambda db: exporting.state(db, call.now, rules))
        async for lines in _pages(store, exporting.pairs, ""):
            yield lines
        async for lines in _pages(store, exporting.merges, 0):
            yield lines


async def _pages(
    store: AgentStore, read: Callable[[sqlite3.Connection, Any], Page], first: Any
) -> AsyncGenerator[bytes, None]:
    after = first
    while after is not None:
        page = await store.read(lambda db, after=after: read(db, after))  # type: ignore[misc]
        after = page.after
        yield page.lines


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/export",
        handler=export,
        summary="Everything that is remembered, one JSON object a line",
        types=(_TYPE,),
    ),
)
