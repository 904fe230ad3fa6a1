"""Memories: storing, reading, changing and forgetting them, and the references in texts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidInput
from ..language.secrets import secrets_of
from ..memory import checks
from ..memory.metadata import extract
from ..memory.records import Memory
from ..memory.scoring import score_of, tier_of
from ..shapes import memory as shapes
from ..shapes.common import MemoryId, Order
from ..shapes.recall import RecallQuery
from ..store import memories, supersession
from ..store.conversations import PATH
from ..store.duplicates import known_word_for_word
from ..store.selecting import Filters, page, urls
from ..store.transaction import Transaction
from . import forgetting
from .merging import joined
from .operation import Operation
from .remembering import changed, remembered
from .scope import Scope
from .views import memory_fields, memory_view, secret_warning

# The characters in which secrets are searched without a thread.
_SEARCHED_AT_ONCE: Final = 4_000
_SAME: Final = tuple(
    field.name
    for field in msgspec.structs.fields(shapes.Narrowing)
    if field.name not in {"category", "since", "until", "include", "min_importance", "group"}
)


@Operation("GET", "/api/memory")
async def index(scope: Scope, query: shapes.ListQuery) -> shapes.MemoryPage:
    """List memories."""
    filters = filters_of(
        scope,
        query,
        types=query.type,
        events=query.event,
        tags=query.tag,
        url=query.url,
        archived=query.archived,
        merged_into=query.merged_into,
    )
    return await listed(
        scope, filters, query.limit, query.offset, order=query.order, reverse=query.reverse
    )


async def listed(
    scope: Scope,
    filters: Filters,
    limit: int,
    offset: int,
    *,
    order: Order = "newest",
    reverse: bool = False,
) -> shapes.MemoryPage:
    """A page of the memories that pass the filters."""
    limit = scope.page_limit(limit)
    found, total = await scope.read(
        lambda db: page(
            db,
            filters,
            order=order,
            reverse=reverse,
            limit=limit,
            offset=offset,
            now=scope.now,
            scoring=scope.settings.scoring,
        ),
        timed=True,
    )
    return shapes.MemoryPage([memory_view(scope, memory) for memory in found], total)


@Operation("POST", "/api/memory", role="write", statuses=(201,), tool="remember")
async def add(scope: Scope, body: shapes.StoreBody) -> shapes.StoredMemory:
    """Store a memory; it is on the disk before the answer leaves.

    If its text is known word for word, that memory is strengthened instead.
    """
    return (await _store(scope, [remembered(scope, body)], force=body.force))[0]


@Operation("POST", "/api/memory/batch", role="write", statuses=(201,))
async def add_batch(scope: Scope, body: shapes.Batch) -> shapes.Stored:
    """Store several memories, all or nothing."""
    most = scope.settings.limits.max_batch
    if not 0 < len(body.memories) <= most:
        raise InvalidInput(
            f"send 1 to {most} memories in a batch (got {len(body.memories)})", field="memories"
        )

    def checked() -> list[Memory]:
        return [remembered(scope, one, f"memories[{at}].") for at, one in enumerate(body.memories)]

    # References are searched in up to a megabyte of text: other callers are served meanwhile.
    new = await asyncio.to_thread(checked)
    return shapes.Stored(await _store(scope, new, force=body.force))


async def _store(scope: Scope, new: Sequence[Memory], *, force: bool) -> list[shapes.StoredMemory]:
    def store(tx: Transaction, memory: Memory) -> tuple[supersession.Inserted, bool]:
        known = None if force else known_word_for_word(tx.db, memory)
        if known is None:
            return supersession.insert(tx, memory), False
        return supersession.Inserted(memories.strengthen(tx, known, memory)), True

    stored = await scope.write(lambda tx: [store(tx, memory) for memory in new], create=True)
    warnings = await _warnings([inserted.memory for inserted, _ in stored])
    return [
        shapes.StoredMemory(
            **memory_fields(inserted.memory, scope.now, scope.settings.scoring),
            stored=not is_known,
            known=inserted.memory.id if is_known else UNSET,
            supersedes=[older.id for older in inserted.superseded] or UNSET,
            warning=UNSET if is_known else warning,
        )
        for (inserted, is_known), warning in zip(stored, warnings, strict=True)
    ]


async def _warnings(stored: Sequence[Memory]) -> list[str | UnsetType]:
    def find() -> list[str | UnsetType]:
        return [secret_warning(secrets_of(memory)) for memory in stored]

    # The search takes a millisecond for every few kilobytes: other callers are served meanwhile.
    few = sum(len(memory.text) for memory in stored) < _SEARCHED_AT_ONCE
    return find() if few else await asyncio.to_thread(find)


@Operation("GET", "/api/memory/{id}")
async def get(scope: Scope, id: MemoryId) -> shapes.MemoryView:  # noqa: A002 - the part of the path
    """Read a memory."""
    memory = await scope.read(lambda db: memories.find_living(db, id, scope.now))
    return memory_view(scope, memory)


@Operation("PUT", "/api/memory/{id}", role="write")
async def update(scope: Scope, id: MemoryId, body: shapes.MemoryChanges) -> shapes.Updated:  # noqa: A002
    """Change fields of a memory."""

    def apply(tx: Transaction) -> Memory:
        old = memories.find(tx.db, id)
        new = changed(scope, old, body)
        if new != old:
            new = memories.replace(tx, old, new)
        if body.merged_into is not msgspec.UNSET:
            new = joined(tx, new, body.merged_into)
        return new

    memory = await scope.write(apply)
    view = shapes.Updated(**memory_fields(memory, scope.now, scope.settings.scoring))
    if body.text is not msgspec.UNSET or body.content is not msgspec.UNSET:
        [view.warning] = await _warnings([memory])
    return view


@Operation("DELETE", "/api/memory/{id}", role="write", tool="forget")
async def remove(scope: Scope, id: MemoryId) -> shapes.Deleted:  # noqa: A002
    """Forget a memory for good."""

    def apply(tx: Transaction) -> tuple[Memory, shapes.Deleted]:
        memory = memories.find(tx.db, id)
        key, back = memories.forget(tx, id)
        return memory, shapes.Deleted(key, unmerged=back or msgspec.UNSET)

    async with scope.store() as store:
        memory, deleted = await store.write(apply)
        if memory.group:
            await forgetting.forget_in_episodes(scope, store, [memory.text])
        return deleted


@Operation("POST", "/api/memory/{id}/reinforce", role="write")
async def reinforce(scope: Scope, id: MemoryId) -> shapes.Reinforced:  # noqa: A002
    """Count one use of a memory."""
    return await _used(scope, id, memories.reinforce)


@Operation("DELETE", "/api/memory/{id}/reinforce", role="write")
async def unreinforce(scope: Scope, id: MemoryId) -> shapes.Reinforced:  # noqa: A002
    """Take back one use that this device has counted."""
    return await _used(scope, id, memories.unreinforce)


async def _used(
    scope: Scope, key: str, change: Callable[[Transaction, Sequence[str]], None]
) -> shapes.Reinforced:
    def apply(tx: Transaction) -> shapes.Reinforced:
        found = memories.find_living(tx.db, key, scope.now).id
        change(tx, [found])
        memory = memories.find(tx.db, found)
        value = score_of(memory, scope.now, scope.settings.scoring)
        return shapes.Reinforced(found, memory.access_count, round(value, 6), tier_of(value))

    return await scope.write(apply)


@Operation("POST", "/api/metadata", agent=False)
async def references(_scope: Scope, body: shapes.TextBody) -> shapes.MetadataFound:
    """Extract URLs, commands and paths from a text. Nothing is stored."""
    found = extract(body.text)
    counts = shapes.MetadataCounts(len(found.urls), len(found.commands), len(found.paths))
    return shapes.MetadataFound(found, counts)


@Operation("GET", "/api/metadata/urls")
async def list_urls(scope: Scope, query: shapes.UrlQuery) -> shapes.UrlPage:
    """List the URLs that memories mention, with those memories, best first."""
    limit, scoring = scope.page_limit(query.limit), scope.settings.scoring
    found, total = await scope.read(
        lambda db: urls(db, limit=limit, offset=query.offset, now=scope.now, scoring=scoring),
        timed=True,
    )
    views = [
        shapes.UrlView(url, count, [memory_view(scope, memory) for memory in memories])
        for url, count, memories in found
    ]
    return shapes.UrlPage(views, total)


def filters_of(scope: Scope, asked: shapes.ListQuery | RecallQuery, **more: Any) -> Filters:
    """The store's filters for a listing or a question, with `more` that only one of them has.

    Raises:
        InvalidInput: a category, a time or an importance is invalid.
    """
    least = asked.min_importance
    return Filters(
        **{name: getattr(asked, name) for name in _SAME},
        category=scope.category(asked.category),
        group=asked.group and asked.group.removeprefix(PATH),
        since=_time(asked.since, "since"),
        until=_time(asked.until, "until"),
        min_importance=None
        if least is None
        else checks.check_importance(least, field="min_importance"),
        merged="merged" in asked.include,
        expired="expired" in asked.include,
        **more,
    )


def _time(given: str | float | None, field: str) -> float | None:
    return None if given is None else checks.check_time(given, field=field)
