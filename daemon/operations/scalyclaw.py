"""ScalyClaw's tools over our operations; importance is 1 to 10, and times are text."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..errors import NotFound, ThermoclineError
from ..memory.records import CONSOLIDATED, ENTITIES, TYPES
from ..recall.sources import MEMORIES
from ..shapes import scalyclaw as shapes
from ..shapes.graph import Graph, GraphQuery
from ..shapes.memory import ListQuery, MemoryChanges, MemoryView, NewMemory
from ..shapes.recall import GivenWeights, HitView, RecallBody
from . import graph as graphs
from . import memories
from . import recall as recalling
from .operation import Run
from .own_tools import keep_new
from .remembering import remembered
from .scope import Scope
from .views import hit_view, view_of

_NEWEST: Final = 20


async def store(scope: Scope, asked: shapes.ScalyStore) -> shapes.ScalyStored:
    """Store a memory, unless one says the same; the entities are what the graph is made of."""
    named = asked.entities or []
    new = NewMemory(
        content=asked.content,
        type=asked.type,
        subject=asked.subject,
        tags=asked.tags,
        importance=asked.importance,
        source=asked.source,
        ttl=asked.ttl,
        data={ENTITIES: msgspec.to_builtins(named)} if named else UNSET,
    )
    kept = await keep_new(scope, remembered(scope, new))
    if kept.known is None:
        return shapes.ScalyStored(stored=True, id=kept.memory.id)
    same = kept.known
    return shapes.ScalyStored(
        stored=False, duplicate=True, existing_id=same.id, existing_subject=same.subject
    )


async def search(scope: Scope, asked: shapes.ScalySearch) -> shapes.ScalyResults:
    """Search, ranked by ScalyClaw's formula."""
    weights = asked.weights
    body = RecallBody(
        query=asked.query,
        types=(TYPES[asked.type],) if asked.type else (),
        tags=tuple(asked.tags),
        limit=asked.top_k,
        preset="scalyclaw",
        weights=GivenWeights(
            semantic=_given(weights.semantic),
            recency=_given(weights.recency),
            importance=_given(weights.importance),
        ),
    )
    done = await recalling.answered(scope, body, (MEMORIES.name,))
    return shapes.ScalyResults([_shown(hit_view(scope, hit, done.now)) for hit in done.answer.hits])


async def recall(scope: Scope, asked: shapes.ScalyRecall) -> shapes.ScalyResults:
    """One memory, or the newest."""
    if asked.id:
        try:
            return shapes.ScalyResults([_shown(await memories.get(scope, asked.id))])
        except NotFound:
            return shapes.ScalyResults([])
    query = ListQuery(
        limit=_NEWEST,
        type=(TYPES[asked.type],) if asked.type else (),
        tag=tuple(asked.tags),
        include=("merged",) if asked.include_consolidated else (),
    )
    return shapes.ScalyResults(
        [_shown(one) for one in (await memories.index(scope, query)).results]
    )


async def update(scope: Scope, asked: shapes.ScalyUpdate) -> shapes.ScalyUpdated:
    """Change a memory; a mistake is part of the answer."""
    changes: dict[str, Any] = {
        "subject": asked.subject,
        "content": asked.content,
        "tags": asked.tags,
        # As a fraction, since an integer alone may be meant either way.
        "importance": UNSET if asked.importance is UNSET else asked.importance / 10,
    }
    try:
        done = await memories.update(scope, asked.id, MemoryChanges(**changes))
    except ThermoclineError as error:
        if error.status >= 500:
            raise
        return shapes.ScalyUpdated(error=error.message)
    return shapes.ScalyUpdated(updated=True, id=done.id)


async def delete(scope: Scope, asked: shapes.ScalyDelete) -> shapes.ScalyDeleted:
    """Forget a memory."""
    try:
        return shapes.ScalyDeleted(deleted=True, id=(await memories.remove(scope, asked.id)).id)
    except NotFound:
        return shapes.ScalyDeleted(deleted=False, id=asked.id)


async def reflect(scope: Scope, asked: shapes.ScalyReflect) -> shapes.ScalyReflected:
    """Merge what says the same now; with `force` even if upkeep is told not to."""
    if not scope.settings.merging.enabled and not asked.force:
        why = "merging is switched off in the configuration (merging.enabled)"
        return shapes.ScalyReflected(consolidated=0, clusters=0, new_memory_ids=[], message=why)
    async with scope.store(create=True) as agent:
        before = await agent.read(_merged)
        await scope.daemon.upkeep.run(agent, "reflect", ("merge",))
        after = await agent.read(_merged)
    grown = {into: all_ - before.get(into, frozenset()) for into, all_ in after.items()}
    new = {into: one for into, one in grown.items() if one}
    made = await _made(scope, [into for into in new if into not in before])
    count = sum(map(len, new.values()))
    said = f"{count} merged into {len(new)}" if count else "nothing says the same"
    return shapes.ScalyReflected(
        consolidated=count, clusters=len(new), new_memory_ids=made, message=said
    )


async def graph(scope: Scope, asked: shapes.ScalyGraph) -> shapes.ScalyGraphFound:
    """What is around an entity."""
    found: Graph = await graphs.show(scope, GraphQuery(asked.entity, asked.depth))
    return msgspec.convert(msgspec.to_builtins(found), shapes.ScalyGraphFound)


def _merged(db: sqlite3.Connection) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    rows = db.execute("SELECT merged_into, id FROM memories WHERE merged_into IS NOT NULL")
    for into, key in rows:
        found.setdefault(into, set()).add(key)
    return {into: frozenset(keys) for into, keys in found.items()}


async def _made(scope: Scope, ids: list[str]) -> list[str]:
    """Those of the memories that a model has made from several."""
    found = [await memories.get(scope, one) for one in ids]
    return [one.id for one in found if one.source == CONSOLIDATED]


def _given(weight: Any) -> float | None:
    return None if weight is UNSET else weight


def _shown(memory: MemoryView) -> shapes.ScalyMemory:
    return view_of(
        shapes.ScalyMemory,
        memory,
        importance=min(10, max(1, round(10 * memory.importance))),
        created_at=_time(memory.created_at),
        updated_at=_time(memory.updated_at),
        ttl=None if memory.expires_at is None else _time(memory.expires_at),
        consolidated_into=memory.merged_into,
        score=memory.relevance if isinstance(memory, HitView) else UNSET,
    )


def _time(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


RUN: Final[Mapping[str, Run]] = {
    "memory_store": store,
    "memory_search": search,
    "memory_recall": recall,
    "memory_update": update,
    "memory_delete": delete,
    "memory_reflect": reflect,
    "memory_graph": graph,
}
