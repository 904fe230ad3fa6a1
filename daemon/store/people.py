"""Who said something that is stored, found by the words of a question.

A person is called by the first word of the name, or, in a script without blanks, by its first two
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

    Every name that stands in it whole, and of those with a first word in it the first and the
    last, so that the caller can tell whether that word is the name of one person alone.
    """
    # No name has half of a surrogate pair, which SQLite would refuse.
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
    """Note that somebody of this name said something."""
    for called, words in _calls(name):
        tx.db.execute("INSERT OR IGNORE INTO people VALUES (?, ?, ?)", (called, name, words))


def drop(tx: Transaction, name: str) -> None:
    """Forget the name, unless something is left that its person said."""
    found = tx.db.execute("SELECT 1 FROM memories WHERE actor = ? AND actor <> '' LIMIT 1", (name,))
    if found.fetchone() is None:
        for called, _ in _calls(name):
            tx.db.execute("DELETE FROM people WHERE called = ? AND name = ?", (called, name))


def _calls(name: str) -> list[tuple[str, str]]:
    """What a name is called by, and how it stands in a text as `named_in` searches it."""
    calls = []
    words = [fold(word) for word in NAME_WORD.findall(name)]
    if words:
        calls.append((words[0], f" {' '.join(words)} "))
    if is_unspaced(name):
        calls.append((name[:_BEGINNING], name))
    return calls
