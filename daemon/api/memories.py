"""`/api/memory`: storing, reading, changing and forgetting memories."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from ..errors import InvalidInput
from ..memory import checks
from ..memory.records import Memory, Tier, Type
from ..memory.scoring import score_of, tier_of
from ..store import memories
from ..store.selecting import Filters, Order, page
from ..store.transaction import Transaction
from .calls import Call, Reply, Route
from .json_body import convert
from .merging import joined
from .remembering import Changes, Limits, NewMemory, changed, remembered
from .views import MemoryView, memory_view

Limit = Annotated[int, Meta(ge=1)]
Offset = Annotated[int, Meta(ge=0, le=10_000_000)]


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    """Several memories that are stored together or not at all."""

    memories: list[NewMemory]


class ListQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which memories to list. `include` takes `merged` and `expired`; `url` any part of a URL."""

    limit: Limit = 50
    offset: Offset = 0
    order: Order = "newest"
    type: tuple[Type, ...] = ()
    event: tuple[str, ...] = ()
    category: str | None = None
    tag: tuple[str, ...] = ()
    url: str | None = None
    actor: str | None = None
    group: str | None = None
    source: str | None = None
    archived: bool | None = None
    tier: Tier | None = None
    since: str | None = None
    until: str | None = None
    min_importance: float | None = None
    include: tuple[Literal["merged", "expired"], ...] = ()


class Page(msgspec.Struct):
    """A page of memories, and how many pass the filters in all."""

    results: list[MemoryView]
    total: int


class Stored(msgspec.Struct):
    """The memories of a batch, in its order."""

    results: list[MemoryView]


class Updated(MemoryView, kw_only=True):
    """The memory as it is now."""

    updated: bool = True


class Deleted(msgspec.Struct):
    """The memory is forgotten. `unmerged` names those that were merged into it, and are back."""

    id: str
    deleted: bool = True
    unmerged: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class Reinforced(msgspec.Struct):
    """One more use is counted."""

    id: str
    access_count: int
    score: float
    tier: Tier


def limits_of(call: Call) -> Limits:
    """What one memory may be, by the configuration."""
    return Limits(call.settings.limits.max_text_bytes, call.settings.tree.max_depth)


def capped(call: Call, limit: int) -> int:
    """`limit`, if the configuration allows it.

    Raises:
        InvalidInput: it is beyond `limits.max_list`.
    """
    most = call.settings.limits.max_list
    if limit > most:
        raise InvalidInput(f"ask for at most {most} at once (got {limit})", field="limit")
    return limit


def filters_of(query: ListQuery, max_depth: int) -> Filters:
    """The store's filters for a list query."""
    return Filters(
        types=query.type,
        events=query.event,
        category=None
        if query.category is None
        else checks.check_category(query.category, max_depth),
        tags=query.tag,
        url=query.url,
        actor=query.actor,
        group=query.group,
        source=query.source,
        archived=query.archived,
        tier=query.tier,
        since=None if query.since is None else checks.check_time(query.since, field="since"),
        until=None if query.until is None else checks.check_time(query.until, field="until"),
        min_importance=None
        if query.min_importance is None
        else checks.check_importance(query.min_importance, field="min_importance"),
        merged="merged" in query.include,
        expired="expired" in query.include,
    )


async def index(call: Call) -> Reply:
    """Memories by what is known of them."""
    query = call.query(ListQuery)
    limit = capped(call, query.limit)
    filters = filters_of(query, call.settings.tree.max_depth)
    async with call.store() as store:
        scoring = store.rules.scoring

        def read(db: sqlite3.Connection) -> tuple[list[Memory], int]:
            return page(
                db,
                filters,
                order=query.order,
                limit=limit,
                offset=query.offset,
                now=call.now,
                scoring=scoring,
            )

        found, total = await store.read(read)
    return Reply(Page([memory_view(memory, call.now, scoring) for memory in found], total))


async def add(call: Call) -> Reply:
    """Store one memory; it is on the disk before the answer leaves."""
    body = await call.body(NewMemory)
    memory = remembered(body, now=call.now, limits=limits_of(call), writer=call.peer.name)
    async with call.store(create=True) as store:
        stored = await store.write(lambda tx: memories.insert(tx, memory))
        return Reply(memory_view(stored, call.now, store.rules.scoring), status=201)


async def add_batch(call: Call) -> Reply:
    """Store several memories in one commit."""
    body = await call.json()
    if isinstance(body, dict) and isinstance(body.get("memories"), list):
        most = call.settings.limits.max_batch
        if not 0 < len(body["memories"]) <= most:
            raise InvalidInput(
                f"send 1 to {most} memories in a batch (got {len(body['memories'])})",
                field="memories",
            )
    batch = convert(body, Batch)
    limits = limits_of(call)
    new = [
        remembered(
            one, now=call.now, limits=limits, writer=call.peer.name, at=f"memories[{number}]."
        )
        for number, one in enumerate(batch.memories)
    ]
    async with call.store(create=True) as store:
        stored = await store.write(lambda tx: [memories.insert(tx, memory) for memory in new])
        scoring = store.rules.scoring
    return Reply(Stored([memory_view(one, call.now, scoring) for one in stored]), status=201)


async def show(call: Call) -> Reply:
    """One memory."""
    async with call.store() as store:
        memory = await store.read(lambda db: memories.find_living(db, call.params["id"], call.now))
        return Reply(memory_view(memory, call.now, store.rules.scoring))


async def update(call: Call) -> Reply:
    """Change what is named of a memory."""
    changes = await call.body(Changes)
    limits = limits_of(call)

    def apply(tx: Transaction) -> Memory:
        old = memories.find(tx.db, call.params["id"])
        new = changed(old, changes, now=call.now, limits=limits)
        if new != old:
            new = memories.replace(tx, old, new)
        if changes.merged_into is not msgspec.UNSET:
            new = joined(tx, new, changes.merged_into)
        return new

    async with call.store() as store:
        memory = await store.write(apply)
        view = memory_view(memory, call.now, store.rules.scoring)
    return Reply(msgspec.convert(msgspec.structs.asdict(view), Updated))


async def remove(call: Call) -> Reply:
    """Forget a memory for good."""

    def apply(tx: Transaction) -> Deleted:
        key, back = memories.forget(tx, call.params["id"])
        return Deleted(key, unmerged=back or msgspec.UNSET)

    async with call.store() as store:
        return Reply(await store.write(apply))


async def reinforce(call: Call) -> Reply:
    """Count one use of a memory."""

    def apply(tx: Transaction) -> Reinforced:
        key = memories.find_living(tx.db, call.params["id"], call.now).id
        memories.reinforce(tx, [key])
        memory = memories.find(tx.db, key)
        value = score_of(memory, call.now, scoring)
        return Reinforced(key, memory.access_count, round(value, 6), tier_of(value))

    async with call.store() as store:
        scoring = store.rules.scoring
        return Reply(await store.write(apply))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/memory",
        handler=index,
        summary="List memories",
        query=ListQuery,
        answer=Page,
    ),
    Route(
        method="POST",
        path="/api/memory",
        handler=add,
        summary="Store a memory",
        role="write",
        body=NewMemory,
        answer=MemoryView,
        status=201,
    ),
    Route(
        method="POST",
        path="/api/memory/batch",
        handler=add_batch,
        summary="Store up to 500 memories, all or nothing",
        role="write",
        body=Batch,
        answer=Stored,
        status=201,
    ),
    Route(
        method="GET",
        path="/api/memory/{id}",
        handler=show,
        summary="Read a memory",
        answer=MemoryView,
    ),
    Route(
        method="PUT",
        path="/api/memory/{id}",
        handler=update,
        summary="Change a memory",
        role="write",
        body=Changes,
        answer=Updated,
    ),
    Route(
        method="DELETE",
        path="/api/memory/{id}",
        handler=remove,
        summary="Forget a memory",
        role="write",
        answer=Deleted,
    ),
    Route(
        method="POST",
        path="/api/memory/{id}/reinforce",
        handler=reinforce,
        summary="Count one use of a memory",
        role="write",
        answer=Reinforced,
    ),
)
