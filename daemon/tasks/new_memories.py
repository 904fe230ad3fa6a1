"""New memories from a text: their fields, their category, and storing what is not known yet."""

from __future__ import annotations

import datetime as dt
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Rules
from ..language.cues import NEUTRAL, ONGOING, Signal, signals_of
from ..language.dates import with_days
from ..language.extraction.extraction import Observation
from ..language.secrets import without_secrets
from ..language.standing import is_standing_statement
from ..language.vocabulary import not_topics
from ..memory.metadata import extract, merge
from ..memory.records import (
    DEFAULT_CATEGORY,
    DEFAULT_EVENT,
    ENTITIES,
    EXTRACTED,
    OBSERVED,
    SPOKEN_CONTEXT,
    Distilled,
    Memory,
    Metadata,
    outranks,
)
from ..memory.scoring import default_importance
from ..memory.similarity import words
from ..memory.tree_nodes import ROOT, Tree
from ..memory.vectors import MOST_NEAR, Nearness, nearer_than_rest
from ..recall.recall import Request, recall
from ..recall.sources import MEMORIES
from ..store.agent_store import AgentStore
from ..store.database.transaction import Transaction
from ..store.records import memories, merging, similar, tree_rows, uses
from ..store.records.memory_rows import fetch, index_new, rewrite
from ..store.records.selecting import at_rows
from ..store.records.similar import find_equivalent, holds_again

# The points of a category for its name, the names above it, the words of its description, and each
# similar memory in it.
_NAME: Final = 1.0
_ABOVE: Final = 0.3
_DESCRIBED: Final = 0.3
_MOST_DESCRIBED: Final = 3
_LIKE: Final = 0.5
# One word of a description is not enough, two similar memories are.
_ENOUGH: Final = 0.55
_NEIGHBOURS: Final = 8
# A category with this share of the nearness of the nearest is right in nine of ten cases.
_MOST: Final = 0.6
# The minimum share and number of common words of a similar memory.
_LEAST_SHARE: Final = 0.25
_LEAST_WORDS: Final = 2
_KIN_LETTERS: Final = 5
_LONGEST: Final = 1_000
# Asks how near the items of a memory are to a text; None without an encoder that answers.
AskNear: TypeAlias = Callable[[AgentStore, str], Awaitable[Nearness | None]]
# Default categories, which are never proposed.
_CATCH_ALL: Final = frozenset({ROOT, DEFAULT_CATEGORY, "conversations"})


def category_for(
    db: sqlite3.Connection,
    text: str,
    now: float,
    rules: Rules = Rules(),  # noqa: B008 - frozen
) -> str | None:
    """The category whose name, description and memories fit `text` best; None if none fits."""
    tree = tree_rows.load(db)
    stems = frozenset(_stem(word) for word in words(text[:_LONGEST]) if _tells(word))
    if not tree or not stems:
        return None
    worth = by_name(tree, stems)
    for category, gained in _by_likeness(db, text[:_LONGEST], now, rules).items():
        if category in tree:
            worth[category] = worth.get(category, 0.0) + gained
    fitting = [path for path, value in worth.items() if value >= _ENOUGH]
    return max(fitting, key=lambda path: (worth[path], path.count("/"), path), default=None)


async def categories_for(
    store: AgentStore, texts: Sequence[str], now: float, near: AskNear | None
) -> list[str | None]:
    """The category of each text; of those that fit none by their words, by their meaning."""
    rules = store.rules
    categories = await store.read(lambda db: [category_for(db, text, now, rules) for text in texts])
    for at, category in enumerate(categories):
        nearness = await near(store, texts[at]) if near and category is None else None
        if nearness is not None:
            categories[at] = await store.read(partial(category_by_meaning, nearness=nearness))
    return categories


def category_by_meaning(db: sqlite3.Connection, nearness: Nearness) -> str | None:
    """The category of most of the nearest memories, measured by how near they are."""
    tree = tree_rows.load(db)
    shares = nearer_than_rest(dict(nearness.nearest(MOST_NEAR)))
    keys = [key for key in shares if MEMORIES.has(key)][:_NEIGHBOURS]
    points: dict[str, float] = {}
    for row, memory in at_rows(db, MEMORIES.rows(keys)).items():
        share = shares[MEMORIES.key(row)]
        points[memory.category] = points.get(memory.category, 0.0) + share
    best = max(points, key=points.__getitem__, default=ROOT)
    is_most = points.get(best, 0.0) > _MOST * sum(points.values())
    return best if is_most and best in tree and best not in _CATCH_ALL else None


def by_name(tree: Tree, stems: Collection[str]) -> dict[str, float]:
    """The points of each category for words in its path and description."""
    points: dict[str, float] = {}
    for path, node in tree.items():
        above, _, name = path.rpartition("/")
        own = _parts(name)
        worth = _NAME * sum(_meets(part, stems) for part in own) / (len(own) or 1)
        worth += _ABOVE * sum(_meets(part, stems) for part in _parts(above))
        described = _parts(node.desc) - own - _parts(above)
        worth += _DESCRIBED * min(_MOST_DESCRIBED, sum(_meets(item, stems) for item in described))
        if worth and path not in _CATCH_ALL:
            points[path] = worth
    return points


def _by_likeness(
    db: sqlite3.Connection, text: str, now: float, rules: Rules
) -> Mapping[str, float]:
    request = Request(
        text=text,
        sources=frozenset({MEMORIES.name}),
        limit=_NEIGHBOURS,
        min_relevance=0.0,
        weights=rules.recall.weights,
        scoring=rules.scoring,
        now=now,
        local=dt.UTC,
    )
    answer = recall(db, request, rules.recall)
    telling = len(answer.query.telling) or 1
    points: dict[str, float] = {}
    for hit in answer.hits:
        share = len(hit.words) / telling
        category = hit.memory.category
        if share >= _LEAST_SHARE and len(hit.words) >= _LEAST_WORDS and category not in _CATCH_ALL:
            points[category] = points.get(category, 0.0) + _LIKE * min(1.0, 2 * share)
    return points


def _parts(path: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in words(path.replace("_", " ")) if _tells(word))


def _tells(word: str) -> bool:
    return len(word) > 1 and word not in not_topics()


def _meets(part: str, stems: Collection[str]) -> float:
    if part in stems:
        return 1.0
    if len(part) < _KIN_LETTERS or not part.isascii():
        return 0.0
    return 0.7 if any(word.startswith(part[:_KIN_LETTERS]) for word in stems) else 0.0


def _stem(word: str) -> str:
    plural = len(word) > 3 and word.isascii() and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word


# EvoClaw's: decisions and results matter more than other facts.
_DECIDED: Final = 0.7
_EVENTS: Final[Mapping[Signal, str]] = {
    "correction": "correction", "preference": "preference_learned", "solution": "task_solution"
}  # fmt: skip


class StoredMemories(msgspec.Struct, frozen=True):
    """The stored memories, and the already known ones."""

    stored: tuple[Memory, ...] = ()
    known: tuple[Memory, ...] = ()  # the existing memories that say the same as the others
    # For the id of a stored memory, those that it replaces.
    superseded: Mapping[str, tuple[Memory, ...]] = {}


def store_memories(tx: Transaction, memories_in: Sequence[Memory]) -> StoredMemories:
    """Store the new memories, which may replace others, and strengthen the known ones.

    Secrets are removed first. A memory is known if it would be merged with an existing one, unless
    that was superseded since another conversation. This is decided in the transaction: nothing is
    stored twice, even by concurrent callers.
    """
    stored: list[Memory] = []
    known: list[Memory] = []
    superseded: dict[str, tuple[Memory, ...]] = {}
    for memory in map(without_secrets, memories_in):
        index_new(tx)
        same = find_equivalent(tx.db, memory)
        if same is None or (memory.group != same.group and holds_again(tx.db, same, memory)):
            inserted = similar.insert(tx, memory)
            stored.append(inserted.memory)
            superseded[memory.id] = inserted.superseded
        else:
            if outranks(memory, same):
                same = msgspec.structs.replace(same, source=memory.source, actor=memory.actor)
                rewrite(tx, same, why="stated")
            known.append(same)
            successor = merging.successor(tx.db, same.id)
            if successor is None or successor.superseded_by is not None:
                uses.reinforce(tx, [same.id])
            else:
                memories.strengthen(tx, successor, memory)
    return StoredMemories(tuple(stored), tuple(known), superseded)


def supersede(tx: Transaction, key: str, newer: Memory) -> Memory | None:
    """Mark a memory as superseded, unless it is gone or outranks the newer one; return it."""
    older = fetch(tx.db, key)
    if older is None or older.id == newer.id or older.merged_into or older.superseded_by:
        return None
    if outranks(older, newer):
        return None
    merging.mark_superseded(tx, older, newer)
    return older


def memory_of(
    distilled: Distilled,
    category: str,
    *,
    source: str = "",
    actor: str = "",
    now: float,
    writer: str,
) -> Memory:
    """A distilled fact as a memory, with all its details."""
    event, importance = event_of(distilled)
    references = Metadata(distilled.urls, distilled.commands, distilled.paths)
    rest = {"people": distilled.people, "actions": distilled.actions}
    data: dict[str, object] = {name: list(values) for name, values in rest.items() if values}
    if distilled.emotion != NEUTRAL:
        data["emotion"] = distilled.emotion
    return Memory(
        id=secrets.token_hex(8),
        text=distilled.fact,
        event=event,
        outcome="" if distilled.outcome == ONGOING else distilled.outcome,
        category=category,
        tags=distilled.topics,
        importance=importance,
        standing=is_standing_statement(distilled.fact, source),
        source=source or EXTRACTED,
        actor=actor,
        metadata=merge(references, extract(distilled.fact)),
        data=data or None,
        created_at=now,
        updated_at=now,
        writer=writer,
    )


def event_of(distilled: Distilled) -> tuple[str, float]:
    """The event and importance of a fact, by its wording."""
    signals = signals_of(distilled.fact)
    for signal, event in _EVENTS.items():
        if signal in signals:
            return event, default_importance(event)
    if "decision" in signals or distilled.outcome in {"positive", "negative"}:
        return DEFAULT_EVENT, _DECIDED
    return DEFAULT_EVENT, default_importance(DEFAULT_EVENT)


def memory_from(
    observation: Observation,
    conversation: str,
    category: str,
    *,
    now: float,
    zone: dt.tzinfo,
    writer: str,
) -> Memory:
    """An observation from a conversation as a memory, with the dates of relative days.

    Its entities are in its data, which the store indexes.
    """
    told_at = now if observation.at is None else observation.at
    named = msgspec.to_builtins(observation.entities)
    entities = [{key: value for key, value in item.items() if value} for item in named]
    data: dict[str, object] = {ENTITIES: entities} if entities else {}
    if observation.beside:
        data[SPOKEN_CONTEXT] = observation.beside
    return Memory(
        id=secrets.token_hex(8),
        text=with_days(observation.text, told_at, zone),
        type=observation.type,
        event=observation.event,
        subject=observation.subject,
        category=category,
        tags=observation.tags,
        importance=observation.importance,
        # What an agent says of itself is not a statement about its owner.
        standing=observation.source != OBSERVED and is_standing_statement(observation.text),
        source=observation.source,
        actor=observation.actor,
        group=conversation,
        metadata=extract(observation.text),
        data=data or None,
        created_at=told_at,
        updated_at=now,
        writer=writer,
    )
