"""Our tools for models: `recall`, `remember`, `context` and `forget`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import UNSET

from ..language.secrets import secrets_of
from ..memory.records import Memory
from ..recall.context_items import age_of
from ..shapes import tools as shapes
from ..shapes.context import ContextQuery
from ..shapes.memory import NewMemory
from ..shapes.recall import NOT_SURE, RecallBody, RecallResult
from ..store import memories, supersession
from ..store.duplicates import said_already
from ..store.memory_table import index_new
from ..store.transaction import Transaction
from . import context as blocks
from . import memories as remembering
from . import recall as recalling
from .operation import Run
from .remembering import remembered
from .scope import Scope
from .views import secret_warning, view_of

# A whole file would not fit into a model's window.
_TOKENS: Final = 4_000
_CHARS: Final = 2_000


async def find(scope: Scope, asked: shapes.RecallArguments) -> shapes.RecalledItems:
    """Search everything."""
    body = RecallBody(
        query=asked.query,
        limit=asked.limit,
        max_tokens=_TOKENS,
        category=asked.category or None,
        actor=asked.actor or None,
        types=(asked.type,) if asked.type else (),
        since=asked.since or None,
        until=asked.until or None,
    )
    answer = await recalling.ask(scope, body)
    return shapes.RecalledItems(
        confidence=answer.confidence,
        note=NOT_SURE if answer.confidence == "unsure" else UNSET,
        results=[_item(result, scope.now) for result in answer.results],
        why=answer.why,
    )


async def keep(scope: Scope, asked: shapes.RememberArguments) -> shapes.Remembered:
    """Store a statement, unless it is known; what it contradicts is superseded."""
    fields = {name: getattr(asked, name) for name in asked.__struct_fields__}
    kept = await keep_new(scope, remembered(scope, NewMemory(**fields)))
    same, memory = kept.known, kept.memory
    return shapes.Remembered(
        id=memory.id,
        stored=same is None,
        category=memory.category,
        merged_with=UNSET if same is None else shapes.KnownMemory(same.id, same.text),
        supersedes=[one.id for one in kept.superseded] or UNSET,
        contradicts=[shapes.KnownMemory(one.id, one.text) for one in kept.superseded] or UNSET,
        warning=UNSET if same is not None else secret_warning(secrets_of(memory)),
    )


class KeptMemory(msgspec.Struct, frozen=True):
    """The memory that now holds a statement: the `known` one, or a new one.

    `superseded` are those that the new one contradicts.
    """

    memory: Memory
    known: Memory | None
    superseded: tuple[Memory, ...] = ()


async def keep_new(scope: Scope, memory: Memory) -> KeptMemory:
    """Store a memory unless one says the same already, which then counts as used.

    This is decided in the transaction: nothing is stored twice, even by concurrent callers.
    """
    async with scope.store(create=True) as store:

        def apply(tx: Transaction) -> KeptMemory:
            index_new(tx)
            same = said_already(tx.db, memory)
            if same is not None:
                memories.reinforce(tx, [same.id])
                return KeptMemory(same, same)
            new = supersession.insert(tx, memory, file_alike=True)
            return KeptMemory(new.memory, None, new.superseded)

        return await store.write(apply)


async def describe(scope: Scope, asked: shapes.ContextArguments) -> shapes.ContextText:
    """The context block as text."""
    block = await blocks.ask(scope, ContextQuery(query=asked.query, max_tokens=asked.max_tokens))
    return shapes.ContextText(block.text or "")


async def forget(scope: Scope, asked: shapes.ForgetArguments) -> shapes.ForgottenMemory:
    """Forget one memory."""
    done = await remembering.remove(scope, asked.id)
    return shapes.ForgottenMemory(done.id, done.deleted, [*(done.unmerged or ())])


def _item(result: RecallResult, now: float) -> shapes.RecalledItem:
    at = result.updated_at if isinstance(result.updated_at, float) else result.created_at
    text = f"{result.text} → {result.outcome}" if result.outcome else result.text
    if len(text) > _CHARS:
        text = f"{text[:_CHARS]} … [cut: {len(text)} characters in all]"
    return view_of(shapes.RecalledItem, result, text=text, age=age_of(at, now))


RUN: Final[Mapping[str, Run]] = {
    "recall": find,
    "remember": keep,
    "context": describe,
    "forget": forget,
}
