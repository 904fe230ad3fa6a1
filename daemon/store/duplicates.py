"""Finding the memory that says a thing already, among all there are, in about a millisecond."""

from __future__ import annotations

import sqlite3
import unicodedata
from typing import Final

from ..memory.indexing import index_text
from ..memory.records import Memory
from ..memory.similarity import exact_key
from .memory_table import SELECT, from_row

# The words of so many characters tell a text from most others; the rest is compared in full.
_BEGINNING: Final = 400
# What the index takes for a part of a word, as it is told in the schema.
_IN_WORDS: Final = frozenset({"Co", "Mn", "Mc"})


def find_same(db: sqlite3.Connection, text: str, now: float) -> Memory | None:
    """A memory with the same text but for case, blanks and closing full stops.

    Archived and merged memories are looked at as well, expired ones are not. Inside the writer's
    transaction the answer holds until the commit: whoever stores only what is not found stores
    nothing twice, whoever else is at it.
    """
    key = exact_key(text)
    for memory in map(from_row, _beginning_alike(db, text)):
        if exact_key(memory.text) == key and not memory.expired(now):
            return memory
    return None


def _beginning_alike(db: sqlite3.Connection, text: str) -> sqlite3.Cursor:
    beginning = _cut(index_text(text))
    if not any(map(_in_words, beginning)):
        # The index knows no such text.
        return db.execute(f"{SELECT} WHERE text = ?", (text,))
    quoted = beginning.replace('"', '""')
    return db.execute(
        f"{SELECT} WHERE row IN (SELECT rowid FROM memory_fts WHERE memory_fts MATCH ?)"
        " ORDER BY row",
        (f'text : ^ "{quoted}"',),
    )


def _in_words(character: str) -> bool:
    """Whether every release of SQLite takes the character for a part of a word.

    By the oldest table of characters that there is: the newest ones are not known everywhere.
    """
    category = unicodedata.ucd_3_2_0.category(character)
    return category[0] in "LN" or category in _IN_WORDS


def _cut(indexed: str) -> str:
    if len(indexed) <= _BEGINNING:
        return indexed
    # A word that is cut in two would be another word.
    return indexed[: indexed.rfind(" ", 0, _BEGINNING) + 1] or indexed
