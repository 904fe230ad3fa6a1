"""The people who said something that is stored, found by the words of a question.

A person is called by the first word of the name or, in a script without blanks, by its first two
characters. The table is derived from the actors of memories.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from typing import Final

import msgspec

from ..memory.indexing import fold, is_unspaced
from .transaction import Transaction

NAME_WORD: Final = re.compile(r"[^\W_]+")
_BEGINNING: Final = 2


def named_in(db: sqlite3.Connection, text: str) -> list[str]:
    """The names that may be meant in `text`.

    Every name that is completely in it, and for each first word in it the first and the last name
    with that word, so that the caller can tell whether it is unique.
    """
    # No name has a lone surrogate, which SQLite would refuse.
    plain = unicodedata.normalize("NFKC", text.encode(errors="replace").decode())
    words = [fold(word) for word in NAME_WORD.findall(plain)]
    calls = set(words)
    if not plain.isascii():
        calls |= {plain[at : at + _BEGINNING] for at in range(len(plain) - 1)}
    found = db.execute(
        "WITH asked(call) AS MATERIALIZED (SELECT DISTINCT called FROM people"
        " WHERE called IN (SELECT value FROM json_each(?1)))"
        " SELECT name FROM asked JOIN people ON called = call WHERE instr(?2, words)"
        " UNION SELECT (SELECT min(name) FROM people WHERE called = call) FROM asked"
        " UNION SELECT (SELECT max(name) FROM people WHERE called = call) FROM asked",
        (msgspec.json.encode(sorted(calls)).decode(), f" {' '.join(words)} \n{plain}"),
    )
    return [name for (name,) in found]


def add(tx: Transaction, name: str) -> None:
    """Add a name."""
    for called, words in _calls(name):
        tx.db.execute("INSERT OR IGNORE INTO people VALUES (?, ?, ?)", (called, name, words))


def drop(tx: Transaction, name: str) -> None:
    """Remove a name, unless a memory of that person is left."""
    found = tx.db.execute("SELECT 1 FROM memories WHERE actor = ? AND actor <> '' LIMIT 1", (name,))
    if found.fetchone() is None:
        for called, _ in _calls(name):
            tx.db.execute("DELETE FROM people WHERE called = ? AND name = ?", (called, name))


def _calls(name: str) -> list[tuple[str, str]]:
    """The words by which a name is called, and its form for the search in `named_in`."""
    calls = []
    words = [fold(word) for word in NAME_WORD.findall(name)]
    if words:
        calls.append((words[0], f" {' '.join(words)} "))
    if is_unspaced(name):
        calls.append((name[:_BEGINNING], name))
    return calls
