"""Extracts memories, and experiences, from the turns of conversations."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..errors import TooLarge
from ..language.comparison import judge
from ..language.extraction.distilling import without
from ..language.extraction.extraction import IMPORTANCE, Kind, Observation, extract_turns
from ..language.secrets import clear
from ..language.speech import Turn
from ..language.vocabulary import not_topics
from ..memory.experiences import Experience, ExperienceType, identity
from ..memory.metadata import extract, merge
from ..memory.records import Json, Memory
from ..recall.query import match_expression, parse
from ..schemas.common import Method
from ..schemas.recall import Expense
from ..store.agent_store import AgentStore
from ..store.database.transaction import Transaction
from ..store.records import conversations, hot_rows
from ..store.records.conversations import BufferedTurn, Conversation, IncomingTurn
from .model_or_rules import AskOptions, ModelOrRules, RuleProcess
from .new_memories import (
    AskNear,
    StoredMemories,
    categories_for,
    memory_from,
    store_memories,
    supersede,
)
from .observation import UnreadTurns, is_worth_reading, observe, options_for

_TYPES: Final[Mapping[Kind, ExperienceType]] = {
    "decision": "task_solution",
    "solution": "task_solution",
    "fact": "task_solution",
    "correction": "user_preference",
    "preference": "user_preference",
    "error_pattern": "error_recovery",
}


async def observed(
    buffered: Sequence[IncomingTurn], conversation: str, user: str, now: float, rules: RuleProcess
) -> list[Experience]:
    """The experiences in turns, by the rules for memories; weighted as in profClaw."""
    turns = [
        Turn(role=turn.role, text=turn.text, actor=turn.actor, position=place, at=turn.at)
        for place, turn in enumerate(buffered)
    ]
    chars = sum(len(turn.text) for turn in turns)
    observations = await rules.run(chars, extract_turns, turns, [])
    return [
        _experience_of(observation, buffered, conversation, user, now)
        for observation in observations
    ]


def _experience_of(
    observation: Observation,
    turns: Sequence[IncomingTurn],
    conversation: str,
    user: str,
    now: float,
) -> Experience:
    kind: Kind = observation.tags[0]  # type: ignore[assignment]
    intent, _, fix = (
        observation.text.partition(" → ") if kind == "solution" else (observation.text, "", "")
    )
    solution: dict[str, object] = {kind: fix or observation.text}
    if observation.position is not None and turns[observation.position].tools:
        solution["tools"] = list(turns[observation.position].tools)
    return Experience(
        id=identity(_TYPES[kind], user, observation.text),
        type=_TYPES[kind],
        intent=intent,
        solution=solution,
        success_score=IMPORTANCE[kind],
        tags=observation.tags,
        conversation=conversation,
        user=user,
        created_at=now,
        last_used_at=now,
    )


# EvoClaw's default category.
CATEGORY: Final = "conversations"
# The size of one question.
_BATCH_CHARS: Final = 16_000
_KNOWN: Final = 12
_EARLIER: Final = 40
_PREFERENCES: Final = 8
_KNOWN_OF_EACH: Final = 4
_ASKED_TURNS: Final = 8
_ASKED_CHARS: Final = 400
_ASKED_WORDS: Final = 12


class Extracted(msgspec.Struct, frozen=True):
    """The result of reading some turns."""

    conversation: str  # the id of the conversation
    turns: int  # the number of turns that were read
    memories: StoredMemories  # the memories that were stored, and those that were already known
    method: Method  # whether a model or the rules found them
    why: str = ""  # why a model that was asked did not, or ""
    # The cost of the question, which may be about several conversations.
    spent: Expense | None = None


async def extract_next(
    store: AgentStore,
    waiting: Sequence[Conversation],
    model: ModelOrRules,
    options: AskOptions,
    zone: dt.tzinfo,
    near: AskNear | None = None,
) -> list[Extracted]:
    """Read the next turns of some conversations together, and store what is worth remembering.

    The turns of a conversation are removed from the buffer in the commit that stores the result.

    Returns:
        The result of each; empty if no turn was unread, or another caller read them meanwhile.

    Raises:
        ThermoclineError: the memory cannot be read or written; the turns stay in the buffer.
        InvalidInput: the endpoint is not an address.
    """
    talks = await store.read(partial(_unread, waiting=waiting))
    if not talks:
        return []
    now = store.now
    known: dict[str, str] = {}
    options = options_for(talks, model, options)
    if model.is_asked("observe", options):
        turns = [turn for talk in talks for turn in talk.turns]
        known = await store.read(partial(_known, turns=turns, now=now))
    today = dt.datetime.fromtimestamp(max(talk.turns[-1].at for talk in talks), zone).date()
    thought = await observe(talks, list(known), model, options, today)
    done: list[Extracted] = []
    for talk, observations in zip(talks, thought.value, strict=True):
        stored = await _keep(store, talk, observations, known | talk.earlier, now, zone, near)
        if stored is not None:
            spent = None if done else thought.spent
            key, turns = talk.conversation.id, talk.turns
            done.append(Extracted(key, len(turns), stored, thought.method, thought.why, spent))
    return done


async def _keep(
    store: AgentStore,
    talk: UnreadTurns,
    observations: Sequence[Observation],
    known: Mapping[str, str],
    now: float,
    zone: dt.tzinfo,
    near: AskNear | None,
) -> StoredMemories | None:
    """Store what was extracted from a conversation; None if another caller read it meanwhile."""
    key, writer = talk.conversation.id, talk.conversation.writer
    made = [
        memory_from(item, key, item.category or CATEGORY, now=now, zone=zone, writer=writer)
        for item in observations
    ]
    made = _with_references(made, observations, talk.turns)
    categories = await categories_for(store, [memory.text for memory in made], now, near)
    wanted = [
        replace(memory, category=category or memory.category)
        for memory, category in zip(made, categories, strict=True)
    ]
    corrected = {
        memory.id: known[turn.corrects]
        for memory, turn in zip(made, observations, strict=True)
        if turn.corrects in known
    }
    profiles = [item.profile for item in observations if item.profile]
    return await store.write(
        partial(_stored, talk=talk, wanted=wanted, profiles=profiles, corrected=corrected)
    )


def _unread(db: sqlite3.Connection, waiting: Sequence[Conversation]) -> list[UnreadTurns]:
    """The next turns of each conversation that fit into one question."""
    unread: list[UnreadTurns] = []
    left = _BATCH_CHARS
    for conversation in waiting:
        turns = conversations.unread(db, conversation.id, left) if left > 0 else []
        if turns:
            unread.append(UnreadTurns(conversation, turns, _earlier(db, conversation.id)))
            left -= sum(len(turn.text) for turn in turns)
    return unread


def _earlier(db: sqlite3.Connection, key: str) -> dict[str, str]:
    """The texts of the latest memories of a conversation, oldest first, with their ids."""
    rows = db.execute(
        "SELECT text, id FROM memories WHERE grp = ? AND position IS NULL"
        " AND superseded_by IS NULL AND merged_into IS NULL"
        " ORDER BY created_at DESC, row DESC LIMIT ?",
        (key, _EARLIER),
    )
    return dict(rows.fetchall()[::-1])


def _update_owner(tx: Transaction, profiles: Sequence[Mapping[str, str]]) -> None:
    if not profiles:
        return
    state = hot_rows.load(tx.db)
    known = {"owner_profile": state.owner_profile, "identity": state.identity}
    updates: dict[str, dict[str, Json]] = {section: {} for section in known}
    held = state.owner_profile.get("preferences", [])
    wishes = list(held) if isinstance(held, list) else None
    for name, value in (
        (name, clear(value).text) for item in profiles for name, value in item.items()
    ):
        section = "identity" if name == "agent_name" else "owner_profile"
        if hot_rows.is_by_hand(tx.db, section, "preferences" if name == "preference" else name):
            continue
        if name == "preference" and wishes is not None:
            wishes = [
                old
                for old in wishes
                if not isinstance(old, str) or judge(old, value).relation == "unrelated"
            ]
            wishes.append(value)
            updates[section]["preferences"] = wishes[-_PREFERENCES:]
        # "I'm Ada" does not replace the known "Ada Lovelace".
        elif name != "preference" and not str(known[section].get(name, "")).startswith(value):
            updates[section][name] = value
    for section, values in updates.items():
        # A very small hot state may have no room.
        with suppress(TooLarge):
            if values:
                hot_rows.update(tx, section, values)


def _known(db: sqlite3.Connection, turns: Sequence[BufferedTurn], now: float) -> dict[str, str]:
    texts = [turn.text[:_ASKED_CHARS] for turn in turns if is_worth_reading(turn)]
    known: dict[str, str] = {}
    for text in texts[-_ASKED_TURNS:]:
        known |= _with_words(db, text, now)
    return dict(list(known.items())[:_KNOWN])


def _with_words(db: sqlite3.Connection, text: str, now: float) -> dict[str, str]:
    """The memories that share the most words with a text."""
    telling = tuple(word for word in parse(text).telling if word not in not_topics())[:_ASKED_WORDS]
    if not telling:
        return {}
    rows = db.execute(
        "SELECT text, id FROM memories JOIN (SELECT rowid AS found, rank FROM memory_fts"
        " WHERE memory_fts MATCH ? ORDER BY rank LIMIT ?) ON row = found"
        " WHERE merged_into IS NULL AND superseded_by IS NULL AND position IS NULL"
        " AND (expires_at IS NULL OR expires_at > ?) ORDER BY rank",
        (match_expression(telling), _KNOWN_OF_EACH, now),
    )
    return dict(rows.fetchall())


def _with_references(
    made: Sequence[Memory], observations: Sequence[Observation], turns: Sequence[BufferedTurn]
) -> list[Memory]:
    """The memories; references of a turn in none of its memories are added to the first."""
    texts = {turn.position: turn.text for turn in turns}
    places = [observation.position for observation in observations]
    complete: list[Memory] = []
    for memory, place in zip(made, places, strict=True):
        text = texts.pop(place, "") if place is not None else ""
        others = [
            other.metadata
            for other, beside in zip(made, places, strict=True)
            if other is not memory and beside == place
        ]
        rest = without(extract(text), others)
        complete.append(replace(memory, metadata=merge(memory.metadata, rest)))
    return complete


def _stored(
    tx: Transaction,
    talk: UnreadTurns,
    wanted: Sequence[Memory],
    profiles: Sequence[Mapping[str, str]],
    corrected: Mapping[str, str],
) -> StoredMemories | None:
    key, turns = talk.conversation.id, talk.turns
    if not conversations.mark_processed(tx, key, turns):
        return None
    # Whoever sent the turns changes the hot state with them, and an undo takes both back.
    tx.writer = talk.conversation.writer
    stored_memories = store_memories(tx, wanted)
    _update_owner(tx, profiles)
    superseded = dict(stored_memories.superseded)
    for memory in stored_memories.stored:
        older = supersede(tx, corrected[memory.id], memory) if memory.id in corrected else None
        if older is not None:
            superseded[memory.id] = (*superseded[memory.id], older)
    tx.emit(
        "conversation.read", conversation=key, turns=len(turns), stored=len(stored_memories.stored)
    )
    return replace(stored_memories, superseded=superseded)
