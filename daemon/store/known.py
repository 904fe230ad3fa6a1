"""Whether a memory already says what a new one would, anywhere in the memory, cold included."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Final

from ..memory.indexing import index_text
from ..memory.pairing import judge_pair
from ..memory.records import Memory
from ..memory.similarity import exact_key
from ..memory.stop_words import STOP_WORDS
from ..memory.vocabulary import NEGATIONS
from . import memory_rows
from .duplicates import find_same
from .memory_table import SELECT, from_row

_COMING_AND_GOING: Final = STOP_WORDS | NEGATIONS
_MARKS: Final = ".,;:!?()[]{}*_~<>/|-"
# The first would end the quoted word, and the others stand in "isn't", which may be "is not".
_QUOTES: Final = re.compile("[\"\0]|\\S*['’]\\S*")
# The longest words are the rarest; so many tell nearly all texts apart.
_WORDS: Final = 8
_CANDIDATES: Final = 64


def known(db: sqlite3.Connection, memory: Memory) -> bool:
    """Whether `memory` says nothing new, or was forgotten under its id.

    A memory with the same text but for case and blanks counts, one that was merged into another
    included, and one that would be merged with it.
    """
    if memory_rows.KIND.table.load(db, memory_rows.KIND.name, memory.id) is not None:
        return True
    return said_already(db, memory) is not None


def said_already(db: sqlite3.Connection, memory: Memory) -> Memory | None:
    """The memory that says what `memory` would, as for `known`, whatever their ids are."""
    found = find_same(db, memory.text, memory.updated_at)
    if found is not None:
        return found
    key, same = exact_key(memory.text), _same(memory.text)
    for other in _candidates(db, memory.text):
        if _same(other.text) == same or exact_key(other.text) == key:
            return other
        if judge_pair(other, memory).relation == "duplicate":
            return other
    return None


def _same(text: str) -> str:
    return text.strip().lower()


def _candidates(db: sqlite3.Connection, text: str) -> list[Memory]:
    """Memories that have all the telling words of `text`, the newest first."""
    telling = sorted(set(_telling(text)), key=lambda word: (-len(word), word))[:_WORDS]
    if not telling:
        return list(map(from_row, db.execute(f"{SELECT} WHERE text = ? LIMIT 1", (text,))))
    rows = db.execute(
        f"{SELECT} WHERE row IN (SELECT rowid FROM memory_fts WHERE memory_fts MATCH ?"
        " ORDER BY rowid DESC LIMIT ?)",
        (" ".join(f'"{word}"' for word in telling), _CANDIDATES),
    )
    return list(map(from_row, rows))


def _telling(text: str) -> Iterator[str]:
    """The words of `text` as they stand there, which the index cuts as it has cut all texts.

    Those that come and go while a statement stays the same are left out.
    """
    for chunk in index_text(text).split():
        word = _QUOTES.sub(" ", chunk).strip()
        small = word.strip(_MARKS).lower()
        if any(map(str.isalnum, word)) and small not in _COMING_AND_GOING:
            yield word
