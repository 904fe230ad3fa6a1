"""Finding a memory that already says the same, in all tiers.

Inside a transaction the answer holds until the commit, so storing only what is not found stores
nothing twice. The transaction's own memories must be indexed first: `index_new`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Final

from ..language.normal_form import negations
from ..language.pairing import is_duplicate
from ..memory.indexing import index_text
from ..memory.records import Memory
from ..memory.similarity import exact_key, text_digest
from ..memory.stop_words import STOP_WORDS
from . import memory_rows, merging
from .memory_table import SELECT, from_row

_MARKS: Final = ".,;:!?()[]{}*_~<>/|-"
# The first would end the quoted word; the rest are in "isn't", which may be written "is not".
_QUOTES: Final = re.compile("[\"\0]|\\S*['’]\\S*")
# The longest words are the rarest; this many identify nearly any text.
_WORDS: Final = 8
_CANDIDATES: Final = 64


def find_same(
    db: sqlite3.Connection, text: str, now: float, *, turns: bool = True
) -> Memory | None:
    """A memory with the same text except for case, blanks and closing full stops.

    It needs no index of the transaction's own memories. Archived and merged memories are included,
    expired ones are not; turns of conversations only if `turns`.
    """
    return next(_with_text(db, text, now, turns=turns), None)


def known_word_for_word(db: sqlite3.Connection, memory: Memory) -> Memory | None:
    """The memory that has the text of `memory` except for blanks, said by the same actor.

    It still holds: it is not superseded. The one that it was merged into takes its place. A turn of
    a conversation is never known.
    """
    if memory.position is not None:
        return None
    words = memory.text.split()
    for other in _with_text(db, memory.text, memory.updated_at, turns=False):
        if other.text.split() != words or other.actor != memory.actor:
            continue
        kept = merging.successor(db, other.id)
        if kept is not None and kept.superseded_by is None:
            return kept
    return None


def said_already(db: sqlite3.Connection, memory: Memory) -> Memory | None:
    """The memory that says the same as `memory`, whatever their ids.

    This includes one that would be merged with it; a turn is never a duplicate.
    """
    found = find_same(db, memory.text, memory.updated_at, turns=False)
    if found is not None:
        return found
    for other in _with_telling_words(db, memory.text):
        same = other.text.strip().lower() == memory.text.strip().lower()
        if same and other.position is None:
            return other
        if is_duplicate(other, memory):
            return other
    return None


def is_known(db: sqlite3.Connection, memory: Memory) -> bool:
    """Whether `memory` says nothing new, or was deleted under its id."""
    if memory_rows.KIND.load(db, memory.id) is not None:
        return True
    return said_already(db, memory) is not None


def _with_text(db: sqlite3.Connection, text: str, now: float, *, turns: bool) -> Iterator[Memory]:
    key = exact_key(text)
    rows = db.execute(f"{SELECT} WHERE digest = ? ORDER BY row", (text_digest(text),)).fetchall()
    for memory in map(from_row, rows):
        is_meant = turns or memory.position is None
        if is_meant and exact_key(memory.text) == key and not memory.expired(now):
            yield memory


def _with_telling_words(db: sqlite3.Connection, text: str) -> Iterator[Memory]:
    """Memories that have all the telling words of `text`, newest first."""
    telling = sorted(set(_telling(text)), key=lambda word: (-len(word), word))[:_WORDS]
    if not telling:
        return iter(())
    words = " ".join(f'"{word}"' for word in telling)
    return _matching(db, words, f"ORDER BY rowid DESC LIMIT {_CANDIDATES}")


def _matching(db: sqlite3.Connection, query: str, order: str) -> Iterator[Memory]:
    rows = db.execute(
        f"{SELECT} WHERE row IN (SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? {order})",
        (query,),
    )
    return map(from_row, rows.fetchall())


def _telling(text: str) -> Iterator[str]:
    """The words of `text` as the index splits them.

    Words that may change while the statement stays the same are left out.
    """
    for chunk in index_text(text).split():
        word = _QUOTES.sub(" ", chunk).strip()
        small = word.strip(_MARKS).lower()
        if any(map(str.isalnum, word)) and small not in STOP_WORDS and small not in negations():
            yield word
