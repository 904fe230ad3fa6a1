"""Stores what was found in a text, unless it is already known."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..language.cues import NEUTRAL, ONGOING, signals_of
from ..language.extraction import Observation
from ..language.secrets import without_secrets
from ..language.standing import is_standing_statement
from ..memory.metadata import extract, merge
from ..memory.records import (
    DEFAULT_EVENT,
    ENTITIES,
    EXTRACTED,
    OBSERVED,
    Distilled,
    Memory,
    Metadata,
    outranks,
)
from ..memory.scoring import default_importance
from ..store import memories, supersession
from ..store.duplicates import said_already
from ..store.memory_rows import fetch, rewrite
from ..store.memory_table import index_new
from ..store.transaction import Transaction

# EvoClaw's: decisions and results matter more than other facts.
_DECIDED: Final = 0.7


class Kept(msgspec.Struct, frozen=True):
    """The stored memories, and the already known ones.

    Attributes:
        stored: the new memories.
        known: the existing memories that say the same as the others.
        superseded: for the id of a stored memory, those that it replaces.
    """

    stored: tuple[Memory, ...] = ()
    known: tuple[Memory, ...] = ()
    superseded: Mapping[str, tuple[Memory, ...]] = {}


def keep(tx: Transaction, found: Sequence[Memory]) -> Kept:
    """Store the new memories, which may replace others; count the known ones as used.

    Secrets are removed first. A memory is known if it would be merged with an existing one. This
    is decided in the transaction: nothing is stored twice, even by concurrent callers.
    """
    stored: list[Memory] = []
    known: list[Memory] = []
    superseded: dict[str, tuple[Memory, ...]] = {}
    for memory in map(without_secrets, found):
        index_new(tx)
        same = said_already(tx.db, memory)
        if same is None:
            inserted = supersession.insert(tx, memory)
            stored.append(inserted.memory)
            superseded[memory.id] = inserted.superseded
        else:
            if outranks(memory, same):
                same = msgspec.structs.replace(same, source=memory.source)
                rewrite(tx, same, why="stated")
            known.append(same)
    if known:
        memories.reinforce(tx, list(dict.fromkeys(memory.id for memory in known)))
    return Kept(tuple(stored), tuple(known), superseded)


def supersede(tx: Transaction, key: str, newer: Memory) -> Memory | None:
    """Mark a memory as superseded, unless it is gone or outranks the newer one; return it."""
    older = fetch(tx.db, key)
    if older is None or older.id == newer.id or older.superseded_by or outranks(older, newer):
        return None
    rewrite(tx, msgspec.structs.replace(older, superseded_by=newer.id), why="superseded")
    tx.tell("memory.superseded", id=key, by=newer.id, category=older.category)
    return older


def memory_of(distilled: Distilled, category: str, *, now: float, writer: str) -> Memory:
    """A distilled fact as a memory, with all its details."""
    event, importance = event_of(distilled)
    given = Metadata(distilled.urls, distilled.commands, distilled.paths)
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
        standing=is_standing_statement(distilled.fact),
        source=EXTRACTED,
        metadata=merge(given, extract(distilled.fact)),
        data=data or None,
        created_at=now,
        updated_at=now,
        writer=writer,
    )


def event_of(distilled: Distilled) -> tuple[str, float]:
    """The event and importance of a fact, by its wording."""
    signals = signals_of(distilled.fact)
    if "correction" in signals:
        return "correction", default_importance("correction")
    if "preference" in signals:
        return "preference_learned", default_importance("preference_learned")
    if "solution" in signals:
        return "task_solution", default_importance("task_solution")
    if "decision" in signals or distilled.outcome in {"positive", "negative"}:
        return DEFAULT_EVENT, _DECIDED
    return DEFAULT_EVENT, default_importance(DEFAULT_EVENT)


def memory_from(
    observation: Observation, conversation: str, category: str, *, now: float, writer: str
) -> Memory:
    """An observation from a conversation as a memory.

    Its entities are in its data, which the store indexes.
    """
    named = msgspec.to_builtins(observation.entities)
    entities = [{key: value for key, value in one.items() if value} for one in named]
    return Memory(
        id=secrets.token_hex(8),
        text=observation.text,
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
        data={ENTITIES: entities} if entities else None,
        created_at=now if observation.at is None else observation.at,
        updated_at=now,
        writer=writer,
    )
