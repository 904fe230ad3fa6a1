"""Making memories of the turns that an agent's memory has buffered."""

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
from ..language.vocabulary import not_topics
from ..memory.metadata import extract, merge
from ..memory.records import Json, Memory, Metadata
from ..recall.query import match_expression, parse
from ..shapes.common import Way
from ..shapes.recall import Expense
from ..store import conversations, hot_rows
from ..store.agent_store import AgentStore
from ..store.conversations import Heard
from ..store.transaction import Transaction
from .filing import category_for
from .keeping import Kept, keep, memory_from, supersede
from .model_or_rules import AskOptions, ModelOrRules
from .observation import is_worth_reading, observe

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
        turns: how many were read.
        kept: what was stored, and what was known.
        way: how it was found; `why` says why not by a model where one was asked.
    """

    turns: int
    kept: Kept
    way: Way
    why: str = ""
    spent: Expense | None = None


async def extract_next(
    store: AgentStore,
    key: str,
    writer: str,
    model: ModelOrRules,
    options: AskOptions,
    zone: dt.tzinfo,
) -> Extracted | None:
    """Read the next turns of a conversation, and store what is worth remembering.

    The turns leave the buffer in the commit that stores it.

    Returns:
        None if no turn was unread, or another caller has read them meanwhile.

    Raises:
        ThermoclineError: the memory cannot be read or written; the turns stay in the buffer.
        InvalidInput: the endpoint is not an address.
    """
    turns = await store.read(partial(conversations.unread, key=key, most_chars=_BATCH_CHARS))
    if not turns:
        return None
    now = store.now
    known: list[str] = []
    if model.is_asked("observe", options):
        known = await store.read(partial(_known, turns=turns, now=now))
    today = dt.datetime.fromtimestamp(turns[-1].at, zone).date()
    earlier = await store.read(partial(_earlier, key=key))
    thought = await observe(turns, known, model, options, today, earlier)
    found = [
        memory_from(one, key, one.category or CATEGORY, now=now, writer=writer)
        for one in thought.value
    ]
    told = [one.profile for one in thought.value if one.profile]
    corrected = {
        memory.id: one.corrects
        for memory, one in zip(found, thought.value, strict=True)
        if one.corrects
    }
    wanted = await store.read(
        partial(_filed, found=_with_references(found, turns), now=now, rules=store.rules)
    )
    kept = await store.write(
        partial(_stored, key=key, turns=turns, wanted=wanted, told=told, corrected=corrected)
    )
    if kept is None:
        return None
    return Extracted(len(turns), kept, thought.way, thought.why, thought.spent)


def _earlier(db: sqlite3.Connection, key: str) -> list[str]:
    """What was kept of a conversation last, the oldest first."""
    rows = db.execute(
        "SELECT text FROM memories WHERE grp = ? AND superseded_by IS NULL AND merged_into IS NULL"
        " AND position IS NOT NULL ORDER BY position DESC LIMIT ?",
        (key, _EARLIER),
    )
    return [text for (text,) in rows][::-1]


def _know_owner(tx: Transaction, told: Sequence[Mapping[str, str]]) -> None:
    """Put names and standing preferences into the hot state, which is always at hand."""
    if not told:
        return
    state = hot_rows.load(tx.db)
    known = {"owner_profile": state.owner_profile, "identity": state.identity}
    found: dict[str, dict[str, Json]] = {section: {} for section in known}
    held = state.owner_profile.get("preferences", [])
    wishes = list(held) if isinstance(held, list) else None
    for name, value in (item for one in told for item in one.items()):
        section = "identity" if name == "agent_name" else "owner_profile"
        if name == "preference" and wishes is not None:
            wishes = [old for old in wishes if _agrees(old, value)] + [value]
            found[section]["preferences"] = wishes[-_PREFERENCES:]
        # "I'm Ada" says less than "Ada Lovelace", which is known.
        elif name != "preference" and not str(known[section].get(name, "")).startswith(value):
            found[section][name] = value
    for section, values in found.items():
        # In a very small hot state there may be no room.
        with suppress(TooLarge):
            if values:
                hot_rows.update(tx, section, values)


def _agrees(older: Json, newer: str) -> bool:
    return not isinstance(older, str) or judge(older, newer).relation == "unrelated"


def _known(db: sqlite3.Connection, turns: Sequence[Heard], now: float) -> list[str]:
    """Memories about the subjects of the last turns."""
    asked = [turn.text[:_ASKED_CHARS] for turn in turns if is_worth_reading(turn)]
    found: dict[str, None] = {}
    for text in asked[-_ASKED_TURNS:]:
        found.update(dict.fromkeys(_with_words(db, text, now)))
    return list(found)[:_KNOWN]


def _with_words(db: sqlite3.Connection, text: str, now: float) -> list[str]:
    """The memories that share the most words with a text, even if few."""
    telling = tuple(word for word in parse(text).words if word not in not_topics())[:_ASKED_WORDS]
    if not telling:
        return []
    rows = db.execute(
        "SELECT text FROM memories JOIN (SELECT rowid AS found, rank FROM memory_fts"
        " WHERE memory_fts MATCH ? ORDER BY rank LIMIT ?) ON row = found"
        " WHERE merged_into IS NULL AND (expires_at IS NULL OR expires_at > ?) ORDER BY rank",
        (match_expression(telling), _KNOWN_OF_EACH, now),
    )
    return [known for (known,) in rows]


def _filed(
    db: sqlite3.Connection, found: Sequence[Memory], now: float, rules: Rules
) -> list[Memory]:
    """Each in the category of the tree that fits it."""
    return [
        replace(memory, category=category_for(db, memory.text, now, rules) or memory.category)
        for memory in found
    ]


def _with_references(found: Sequence[Memory], turns: Sequence[Heard]) -> list[Memory]:
    """The references of a turn go with the first that was found in it, if they go with none."""
    texts = {turn.position: turn.text for turn in turns}
    made: list[Memory] = []
    for memory in found:
        text = texts.pop(memory.position, "") if memory.position is not None else ""
        others = [m.metadata for m in found if m is not memory and m.position == memory.position]
        rest = _without(extract(text), others)
        made.append(replace(memory, metadata=merge(memory.metadata, rest)))
    return made


def _without(references: Metadata, others: Sequence[Metadata]) -> Metadata:
    def left(name: str) -> tuple[str, ...]:
        taken = {value for other in others for value in getattr(other, name)}
        return tuple(value for value in getattr(references, name) if value not in taken)

    return Metadata(left("urls"), left("commands"), left("paths"))


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
    _know_owner(tx, told)
    for memory in kept.stored:
        if memory.id in corrected:
            supersede(tx, key, corrected[memory.id], memory)
    tx.tell("conversation.read", conversation=key, turns=len(turns), stored=len(kept.stored))
    return kept
