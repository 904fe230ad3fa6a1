"""The memories of a context block that need no question: what always holds, and the rest by score.

A memory that another one contradicts is left out; the newer one names it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ..memory.records import DEFAULT_CATEGORY, Memory
from ..memory.scoring import HOT, Scoring, score_of
from ..store.memory_rows import fetch
from ..store.memory_table import SELECT, from_row
from ..store.selecting import Filters, at_rows, teach_score, where
from .context_items import Shown

# Memories of these actors are the agent's own; those of other actors are quoted.
_OWN_VOICE: Final = frozenset({"", "assistant"})
_ALWAYS: Final = 100
_HOT: Final = 10
# The tokens of the shortest item, and the characters of a token at most.
_LEAST_TOKENS: Final = 6
_CHARS_PER_TOKEN: Final = 4
_REPLACED_CHARS: Final = 40
_LONGEST_CHAIN: Final = 8
_LIVING: Final = "superseded_by IS NULL"


class ScoredMemories(msgspec.Struct, frozen=True):
    """The memories by their score, pinned ones first; `complete` if these are all there are."""

    memories: tuple[Memory, ...]
    complete: bool


def standing(db: sqlite3.Connection, filters: Filters, now: float) -> list[Memory]:
    """The standing memories, the most important first, then the newest."""
    condition, arguments = where(msgspec.structs.replace(filters, standing=True), now)
    found = db.execute(
        f"{SELECT} WHERE {condition} AND {_LIVING}"
        " ORDER BY pinned DESC, importance DESC, created_at DESC LIMIT ?",
        (*arguments, _ALWAYS),
    )
    return [from_row(row) for row in found]


def by_score(
    db: sqlite3.Connection, filters: Filters, scoring: Scoring, now: float, max_tokens: int
) -> ScoredMemories:
    """As many memories as fill a block, by score; archived ones, which score less, by age."""
    teach_score(db, now, scoring)
    condition, arguments = where(filters, now)
    order = {
        "archived_at IS NULL": (
            "pinned DESC, score(importance, created_at, access_count, pinned) DESC, row DESC"
        ),
        "archived_at IS NOT NULL": "created_at DESC, row DESC",
    }
    rows: list[int] = []
    room, limit = max_tokens, max_tokens // _LEAST_TOKENS + 1
    for archived, by in order.items():
        found = db.execute(
            f"SELECT row, length(text) + length(outcome) FROM memories"
            f" WHERE {condition} AND {_LIVING} AND {archived} ORDER BY {by} LIMIT ?",
            (*arguments, limit - len(rows)),
        )
        for row, chars in found:
            if room < 0:
                return ScoredMemories(_loaded(db, rows), complete=False)
            rows.append(row)
            room -= _LEAST_TOKENS + chars // _CHARS_PER_TOKEN
    return ScoredMemories(_loaded(db, rows), complete=len(rows) < limit)


def is_hot(memory: Memory, scoring: Scoring, now: float) -> bool:
    """Whether a memory is hot, pinned ones among them."""
    return score_of(memory, now, scoring) >= HOT


def always(
    standing: Sequence[Memory], ranked: ScoredMemories, scoring: Scoring, now: float
) -> list[Memory]:
    """The standing memories, and the first that are pinned or hot."""
    known = {memory.id for memory in standing}
    hot = (one for one in ranked.memories[: 2 * _ALWAYS] if one.id not in known)
    first = [one for one in hot if one.pinned or is_hot(one, scoring, now)]
    pinned = sum(memory.pinned for memory in first)
    return [*standing, *first[: max(_HOT, pinned)]]


def current(db: sqlite3.Connection, memory: Memory, now: float) -> Memory:
    """The newest memory that replaces this one; itself if there is none to show."""
    latest = memory
    for _ in range(_LONGEST_CHAIN):
        newer = fetch(db, latest.superseded_by)
        if newer is None or newer.merged_into is not None or newer.expired(now):
            break
        latest = newer
    return latest


def replaced(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """The beginning of the newest statement that each of these memories contradicts."""
    found = db.execute(
        "SELECT superseded_by, text FROM memories WHERE superseded_by IS NOT NULL"
        " AND superseded_by IN (SELECT value FROM json_each(?)) AND merged_into IS NULL"
        " ORDER BY created_at, row",
        (msgspec.json.encode([*ids]).decode(),),
    )
    return {key: _beginning(text) for key, text in found}


def shown(memory: Memory, agent: str, replaces: str, **more: Any) -> Shown:
    """A memory as an item of the block."""
    text = f"{memory.text} → {memory.outcome}" if memory.outcome else memory.text
    filed = "" if memory.category == DEFAULT_CATEGORY else memory.category
    return Shown(
        f"(superseded) {text}" if memory.superseded_by is not None else text,
        memory.actor or memory.source or filed,
        memory.created_at,
        memory.id,
        quoted=memory.actor not in {*_OWN_VOICE, agent} or bool(memory.source),
        replaces=replaces,
        **more,
    )


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _REPLACED_CHARS else f"{line[:_REPLACED_CHARS]}…"


def _loaded(db: sqlite3.Connection, rows: Sequence[int]) -> tuple[Memory, ...]:
    memories = at_rows(db, rows)
    return tuple(memories[row] for row in rows)
