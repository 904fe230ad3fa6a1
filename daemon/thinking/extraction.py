"""Extracts memories from the buffered turns of conversations."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..config.settings import Rules
from ..errors import TooLarge
from ..language.comparison import judge
from ..language.distilling import without
from ..language.extraction import Observation
from ..language.secrets import clear
from ..language.vocabulary import not_topics
from ..memory.metadata import extract, merge
from ..memory.records import Json, Memory
from ..recall.query import match_expression, parse
from ..shapes.common import Way
from ..shapes.recall import Expense
from ..store import conversations, hot_rows
from ..store.agent_store import AgentStore
from ..store.conversations import Conversation, Heard
from ..store.transaction import Transaction
from .filing import category_for
from .keeping import Kept, keep, memory_from, supersede
from .model_or_rules import AskOptions, ModelOrRules
from .observation import UnreadTurns, is_worth_asking, is_worth_reading, observe

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
    """The result of reading some turns.

    Attributes:
        conversation: the id of the conversation.
        turns: the number of turns that were read.
        kept: the memories that were stored, and those that were already known.
        way: whether a model or the rules found them.
        why: why a model that was asked did not, or "".
        spent: the cost of the question, which may be about several conversations.
    """

    conversation: str
    turns: int
    kept: Kept
    way: Way
    why: str = ""
    spent: Expense | None = None


async def extract_next(
    store: AgentStore,
    waiting: Sequence[Conversation],
    model: ModelOrRules,
    options: AskOptions,
    zone: dt.tzinfo,
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
    if is_worth_asking(talks, model, options):
        turns = [turn for talk in talks for turn in talk.turns]
        known = await store.read(partial(_known, turns=turns, now=now))
    today = dt.datetime.fromtimestamp(max(talk.turns[-1].at for talk in talks), zone).date()
    thought = await observe(talks, list(known), model, options, today)
    done: list[Extracted] = []
    for talk, found in zip(talks, thought.value, strict=True):
        kept = await _keep(store, talk, found, known | talk.earlier, now)
        if kept is not None:
            spent = None if done else thought.spent
            key, turns = talk.conversation.id, talk.turns
            done.append(Extracted(key, len(turns), kept, thought.way, thought.why, spent))
    return done


async def _keep(
    store: AgentStore,
    talk: UnreadTurns,
    found: Sequence[Observation],
    known: Mapping[str, str],
    now: float,
) -> Kept | None:
    """Store what was found in a conversation; None if another caller read it meanwhile."""
    key, writer = talk.conversation.id, talk.conversation.writer
    made = [
        memory_from(one, key, one.category or CATEGORY, now=now, writer=writer) for one in found
    ]
    wanted = await store.read(
        partial(_filed, found=_with_references(made, found, talk.turns), now=now, rules=store.rules)
    )
    corrected = {
        memory.id: known[one.corrects]
        for memory, one in zip(made, found, strict=True)
        if one.corrects in known
    }
    told = [one.profile for one in found if one.profile]
    return await store.write(
        partial(_stored, key=key, turns=talk.turns, wanted=wanted, told=told, corrected=corrected)
    )


def _unread(db: sqlite3.Connection, waiting: Sequence[Conversation]) -> list[UnreadTurns]:
    """The next turns of each conversation that fit into one question."""
    found: list[UnreadTurns] = []
    left = _BATCH_CHARS
    for one in waiting:
        turns = conversations.unread(db, one.id, left) if left > 0 else []
        if turns:
            found.append(UnreadTurns(one, turns, _earlier(db, one.id)))
            left -= sum(len(turn.text) for turn in turns)
    return found


def _earlier(db: sqlite3.Connection, key: str) -> dict[str, str]:
    """The texts of the latest memories of a conversation, oldest first, with their ids."""
    rows = db.execute(
        "SELECT text, id FROM memories WHERE grp = ? AND position IS NULL"
        " AND superseded_by IS NULL AND merged_into IS NULL"
        " ORDER BY created_at DESC, row DESC LIMIT ?",
        (key, _EARLIER),
    )
    return dict(rows.fetchall()[::-1])


def _update_owner(tx: Transaction, told: Sequence[Mapping[str, str]]) -> None:
    if not told:
        return
    state = hot_rows.load(tx.db)
    known = {"owner_profile": state.owner_profile, "identity": state.identity}
    found: dict[str, dict[str, Json]] = {section: {} for section in known}
    held = state.owner_profile.get("preferences", [])
    wishes = list(held) if isinstance(held, list) else None
    for name, value in ((name, clear(value).text) for one in told for name, value in one.items()):
        section = "identity" if name == "agent_name" else "owner_profile"
        if name == "preference" and wishes is not None:
            wishes = [old for old in wishes if _agrees(old, value)] + [value]
            found[section]["preferences"] = wishes[-_PREFERENCES:]
        # "I'm Ada" does not replace the known "Ada Lovelace".
        elif name != "preference" and not str(known[section].get(name, "")).startswith(value):
            found[section][name] = value
    for section, values in found.items():
        # A very small hot state may have no room.
        with suppress(TooLarge):
            if values:
                hot_rows.update(tx, section, values)


def _agrees(older: Json, newer: str) -> bool:
    return not isinstance(older, str) or judge(older, newer).relation == "unrelated"


def _known(db: sqlite3.Connection, turns: Sequence[Heard], now: float) -> dict[str, str]:
    asked = [turn.text[:_ASKED_CHARS] for turn in turns if is_worth_reading(turn)]
    found: dict[str, str] = {}
    for text in asked[-_ASKED_TURNS:]:
        found |= _with_words(db, text, now)
    return dict(list(found.items())[:_KNOWN])


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


def _filed(
    db: sqlite3.Connection, found: Sequence[Memory], now: float, rules: Rules
) -> list[Memory]:
    return [
        replace(memory, category=category_for(db, memory.text, now, rules) or memory.category)
        for memory in found
    ]


def _with_references(
    made: Sequence[Memory], found: Sequence[Observation], turns: Sequence[Heard]
) -> list[Memory]:
    """The memories; references of a turn in none of its memories are added to the first."""
    texts = {turn.position: turn.text for turn in turns}
    places = [one.position for one in found]
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
    key: str,
    turns: Sequence[Heard],
    wanted: Sequence[Memory],
    told: Sequence[Mapping[str, str]],
    corrected: Mapping[str, str],
) -> Kept | None:
    if not conversations.were_read(tx, key, turns):
        return None
    kept = keep(tx, wanted)
    _update_owner(tx, told)
    superseded = dict(kept.superseded)
    for memory in kept.stored:
        older = supersede(tx, corrected[memory.id], memory) if memory.id in corrected else None
        if older is not None:
            superseded[memory.id] = (*superseded[memory.id], older)
    tx.tell("conversation.read", conversation=key, turns=len(turns), stored=len(kept.stored))
    return replace(kept, superseded=superseded)
