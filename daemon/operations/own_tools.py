"""Our tools for models: `recall`, `remember`, `context` and `forget`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..language.secrets import secrets_of
from ..memory.records import Memory
from ..recall.context_formats import age_of
from ..shapes import tools as shapes
from ..shapes.context import ContextQuery
from ..shapes.graph import FoundEntity
from ..shapes.memory import NewMemory
from ..shapes.recall import RecallBody, Recalled
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
from .views import secret_warning

# A whole file would not fit into a model's window.
_TOKENS: Final = 4_000
_CHARS: Final = 2_000


async def find(scope: Scope, asked: shapes.RecallArguments) -> shapes.RecalledItems:
    """Search everything, as one list."""
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
    items = _items(answer, scope.now)
    # The order of the memories says more than the relevance alone; but current ones go before
    # superseded ones.
    best = sorted(items[: len(answer.results)], key=lambda one: one.outdated)
    others = items[len(answer.results) :]
    others.sort(key=lambda one: one.relevance, reverse=True)
    results = _merged(best, others)[: asked.limit]
    for one in results:
        one.text = _shortened(one.text)
    return shapes.RecalledItems(results=results, why=answer.why, doubt=answer.doubt)


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


def _items(answer: Recalled, now: float) -> list[shapes.RecalledItem]:
    def item(
        key: str, text: str, source: str, relevance: float, at: float | None = None, **more: Any
    ) -> shapes.RecalledItem:
        age = "" if at is None else age_of(at, now)
        share = round(relevance, 3)
        return shapes.RecalledItem(
            id=key, text=text, source=source, relevance=share, age=age, **more
        )

    found = [
        item(
            one.id,
            f"{one.text} → {one.outcome}" if one.outcome else one.text,
            " of ".join(filter(None, ("memory", one.actor or one.source))),
            one.relevance,
            one.created_at,
            category=one.category,
            outdated=one.superseded_by is not None,
        )
        for one in answer.results
    ]
    found += [
        item(one.id, f"{one.key}: {one.value}", "pair", one.relevance) for one in answer.key_values
    ]
    found += [
        item(one.id, one.text, f"{one.source} in {one.path}", one.relevance, one.created_at)
        for one in answer.entries
    ]
    for entity in answer.entities:
        key = entity.memories[0] if entity.memories else ""
        source = f"{entity.mention_count} memories"
        found.append(item(key, _known_of(entity), source, entity.relevance, entity.last_seen))
    for one in answer.experiences:
        text = f"{one.intent} → {one.solution}" if isinstance(one.solution, str) else one.intent
        found.append(item(one.id, text, "experience", one.relevance or 0.0, one.last_used_at))
    for chunk in answer.chunks:
        source = f"file {chunk.path}, lines {chunk.start_line}-{chunk.end_line}"
        found.append(item(chunk.id, chunk.text, source, chunk.score))
    return found


def _shortened(text: str) -> str:
    if len(text) <= _CHARS:
        return text
    return f"{text[:_CHARS]} … [cut: {len(text)} characters in all]"


def _known_of(entity: FoundEntity) -> str:
    related = ", ".join(f"{one.relation} {one.target}" for one in entity.relations[:5])
    return f"{entity.name} ({entity.type}{f': {related}' if related else ''})"


def _merged(
    first: Sequence[shapes.RecalledItem], others: Sequence[shapes.RecalledItem]
) -> list[shapes.RecalledItem]:
    """Merge two lists, keeping their orders; the more relevant of the two heads goes first."""
    waiting, found = [*others], []
    for one in first:
        while waiting and waiting[0].relevance > one.relevance:
            found.append(waiting.pop(0))
        found.append(one)
    return [*found, *waiting]


RUN: Final[Mapping[str, Run]] = {
    "recall": find,
    "remember": keep,
    "context": describe,
    "forget": forget,
}
