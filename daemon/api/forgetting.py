"""`/api/memory/forget`: forgetting all memories that fit, and counting them before."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ..errors import InvalidInput, NotFound
from ..memory import checks
from ..memory.records import Memory
from ..store import apply, key_values, memories, memory_rows, rows
from ..store.agent_store import AgentStore
from ..store.kinds import kind_of
from ..store.selecting import Filters, where
from ..store.transaction import Transaction
from .calls import Call, Reply, Route
from .views import MemoryView, memory_view

# What one transaction forgets, so that other writers get their turn in between.
_TOGETHER: Final = 200
_SHOWN: Final = 10


class ForgetWish(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which memories to forget: those that fit both, where both are given.

    `category` is one category and all below it. `query` are words that the text, the subject or
    the outcome contains, all of them and in any case. Merged and expired memories are included.
    `dry_run` only counts, and shows the newest.
    """

    category: str | None = None
    query: Annotated[str, Meta(max_length=8192)] | None = None
    dry_run: bool = False


class Forgotten(msgspec.Struct):
    """How many memories fit; `results` are the newest of them, before they are forgotten."""

    total: int
    forgotten: bool
    results: list[MemoryView] = []


async def forget(call: Call) -> Reply:
    """Forget all memories that fit."""
    wish = await call.body(ForgetWish)
    words = None if wish.query is None else wish.query.casefold().split()
    category = wish.category
    if category is not None:
        category = checks.check_category(category, call.settings.tree.max_depth)
    if words == [] or (words is None and category is None):
        raise InvalidInput(
            "say what to forget: a 'category', a 'query' or both",
            field="category" if words is None else "query",
        )

    def read(db: sqlite3.Connection) -> tuple[list[str], list[Memory]]:
        found = _fitting(db, category, words or (), call.now)
        return found, [memories.find(db, key) for key in found[: _SHOWN if wish.dry_run else 0]]

    async with call.store() as store:
        found, newest = await store.read(read)
        if not wish.dry_run:
            await forget_all(store, found)
        scoring = store.rules.scoring
    shown = [memory_view(memory, call.now, scoring) for memory in newest]
    return Reply(Forgotten(len(found), not wish.dry_run, shown))


async def forget_all(store: AgentStore, ids: Sequence[str]) -> None:
    """Forget memories by their ids; those that are gone already are passed over."""

    def apply(tx: Transaction, some: Sequence[str]) -> None:
        for key in some:
            try:
                memory = memories.find(tx.db, key)
            except NotFound:
                continue
            memories.delete(tx, memory)

    for start in range(0, len(ids), _TOGETHER):
        some = ids[start : start + _TOGETHER]
        await store.write(lambda tx, some=some: apply(tx, some))  # type: ignore[misc]


async def forget_everything(store: AgentStore) -> tuple[int, int]:
    """Forget every row; return how many memories and key-value pairs there were."""
    names = await store.read(lambda db: [row.key for row in apply.every(db) if row.data])
    kinds = [kind for kind, _ in names]
    for start in range(0, len(names), _TOGETHER):
        some = names[start : start + _TOGETHER]
        await store.write(partial(_forget_rows, names=some))
    return kinds.count(memory_rows.KIND.name), kinds.count(key_values.KIND.name)


def _forget_rows(tx: Transaction, names: Sequence[tuple[str, str]]) -> None:
    for kind, key in names:
        rows.write(tx, kind_of(kind), key, None)


def everything(db: sqlite3.Connection) -> list[str]:
    """The ids of all memories, the newest first."""
    return _fitting(db, None, (), 0.0)


def _fitting(
    db: sqlite3.Connection, category: str | None, words: Sequence[str], now: float
) -> list[str]:
    condition, arguments = where(Filters(category=category, merged=True, expired=True), now)
    sql = f"SELECT id, text, subject, outcome FROM memories WHERE {condition}"  # noqa: S608
    rows = db.execute(f"{sql} ORDER BY created_at DESC, row DESC", arguments)
    return [
        key
        for key, *texts in rows
        if not words or all(word in "\n".join(filter(None, texts)).casefold() for word in words)
    ]


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/memory/forget",
        handler=forget,
        summary="Forget all memories of a category, or that contain words",
        role="write",
        body=ForgetWish,
        answer=Forgotten,
    ),
)
