"""ScalyClaw's tools over our operations; importance is 1 to 10, and times are text."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..errors import NotFound, ThermoclineError
from ..language.names import mentions
from ..maintenance.schedule import last_run, record
from ..memory.records import CONSOLIDATED, ENTITIES, TYPES
from ..recall.sources import MEMORIES
from ..schemas import scalyclaw as schemas
from ..schemas.memory import ListQuery, MemoryView, NewMemory
from ..schemas.recall import GivenWeights, HitView, RecallBody
from ..schemas.tiers import Graph
from . import memories
from . import recall as recalling
from .operation import Run, Scope
from .tiers import show_graph
from .views import hit_view, view_of

_NEWEST: Final = 20
_REFLECT: Final = "reflect"
# The scheduled job that does the same.
_MERGING: Final = "merging"
_HOUR: Final = 3_600.0


async def store(scope: Scope, arguments: schemas.ScalyStore) -> schemas.ScalyStored:
    """Store a memory, unless one says the same; the entities are what the graph is made of."""
    named = mentions(arguments.content) if arguments.entities is UNSET else arguments.entities
    new = NewMemory(
        content=arguments.content,
        type=arguments.type,
        subject=arguments.subject,
        tags=[*arguments.tags],
        importance=arguments.importance,
        source=arguments.source,
        ttl=arguments.ttl,
        data={ENTITIES: msgspec.to_builtins(named)} if named else UNSET,
    )
    result = await memories.store_unless_known(scope, memories.remembered(scope, new))
    same = result.memory
    if not result.is_known:
        return schemas.ScalyStored(stored=True, id=same.id)
    return schemas.ScalyStored(
        stored=False, duplicate=True, existing_id=same.id, existing_subject=same.subject
    )


async def search(scope: Scope, arguments: schemas.ScalySearch) -> schemas.ScalyResults:
    """Search, ranked by ScalyClaw's formula."""
    weights = msgspec.structs.asdict(arguments.weights)
    body = RecallBody(
        query=arguments.query,
        types=(TYPES[arguments.type],) if arguments.type else (),
        tags=arguments.tags,
        limit=arguments.top_k,
        preset="scalyclaw",
        weights=GivenWeights(**{k: value for k, value in weights.items() if value is not UNSET}),
    )
    recalled = await recalling.answered(scope, body, (MEMORIES.name,))
    return schemas.ScalyResults(
        [_shown(hit_view(scope, hit, recalled.now)) for hit in recalled.answer.hits]
    )


async def recall(scope: Scope, arguments: schemas.ScalyRecall) -> schemas.ScalyResults:
    """One memory, or the newest."""
    if arguments.id:
        try:
            return schemas.ScalyResults([_shown(await memories.get(scope, arguments.id))])
        except NotFound:
            return schemas.ScalyResults([])
    query = ListQuery(
        limit=_NEWEST,
        type=(TYPES[arguments.type],) if arguments.type else (),
        tag=arguments.tags,
        include=("merged",) if arguments.include_consolidated else (),
    )
    return schemas.ScalyResults(
        [_shown(memory) for memory in (await memories.index(scope, query)).results]
    )


async def update(scope: Scope, arguments: schemas.ScalyUpdate) -> schemas.ScalyUpdated:
    """Change a memory; a mistake is part of the answer."""
    changes: dict[str, Any] = {
        "subject": arguments.subject,
        "content": arguments.content,
        "tags": arguments.tags,
        # As a fraction, since an integer alone may be meant either way.
        "importance": UNSET if arguments.importance is UNSET else arguments.importance / 10,
    }
    try:
        memory = await memories.update(scope, arguments.id, NewMemory(**changes))
    except ThermoclineError as error:
        if error.status >= 500:
            raise
        return schemas.ScalyUpdated(error=error.message)
    return schemas.ScalyUpdated(updated=True, id=memory.id)


async def delete(scope: Scope, arguments: schemas.ScalyDelete) -> schemas.ScalyDeleted:
    """Forget a memory."""
    try:
        return schemas.ScalyDeleted(
            deleted=True, id=(await memories.remove(scope, arguments.id)).id
        )
    except NotFound:
        return schemas.ScalyDeleted(deleted=False, id=arguments.id)


async def reflect(scope: Scope, arguments: schemas.ScalyReflect) -> schemas.ScalyReflected:
    """Merge what says the same, unless that was done within the last hour."""
    async with scope.store(create=True) as agent:
        ago = scope.now - await agent.read(_reflected_at)
        if ago < _HOUR and not arguments.force:
            why = f"done {round(ago / 60)} minutes ago: 'force' does it again"
            return schemas.ScalyReflected(
                consolidated=0, clusters=0, new_memory_ids=[], message=why
            )
        before = await agent.read(_merged)
        run = partial(scope.daemon.upkeep.run, agent, _REFLECT, ("merge",))
        await record(agent, (_REFLECT,), run)
        after = await agent.read(_merged)
    grown = {into: all_ - before.get(into, frozenset()) for into, all_ in after.items()}
    new = {into: ids for into, ids in grown.items() if ids}
    targets = [await memories.get(scope, into) for into in new if into not in before]
    # Those that a model has made from several.
    created = [memory.id for memory in targets if memory.source == CONSOLIDATED]
    count = sum(map(len, new.values()))
    message = f"{count} merged into {len(new)}" if count else "nothing says the same"
    return schemas.ScalyReflected(
        consolidated=count, clusters=len(new), new_memory_ids=created, message=message
    )


async def graph(scope: Scope, arguments: schemas.ScalyGraph) -> schemas.ScalyGraphFound:
    """What is around an entity."""
    answer: Graph = await show_graph(scope, arguments.entity, arguments.depth)
    return msgspec.convert(msgspec.to_builtins(answer), schemas.ScalyGraphFound)


def _reflected_at(db: sqlite3.Connection) -> float:
    """When the memories were last merged, by request or by schedule."""
    runs = (last_run(db, job) for job in (_REFLECT, _MERGING))
    return max((run.done for run in runs if run is not None and run.at is not None), default=0.0)


def _merged(db: sqlite3.Connection) -> dict[str, frozenset[str]]:
    merged: dict[str, set[str]] = {}
    rows = db.execute("SELECT merged_into, id FROM memories WHERE merged_into IS NOT NULL")
    for into, key in rows:
        merged.setdefault(into, set()).add(key)
    return {into: frozenset(keys) for into, keys in merged.items()}


def _shown(memory: MemoryView) -> schemas.ScalyMemory:
    return view_of(
        schemas.ScalyMemory,
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
