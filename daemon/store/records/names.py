"""The names that a question may use: of people who said something, and of what was introduced.

A person is called by the first word of the name or, in a script without blanks, by its first two
characters. A name is introduced by what it is: of "our son Toby" there is a row of (concept, name)
for each concept that "son" means. Both tables are derived from the memories.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ...language.meaning import is_word, roles_in
from ...memory.indexing import fold, index_words, is_unspaced
from ..database.connection import column, scalar, to_json
from ..database.transaction import Transaction

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
    return column(
        db,
        "WITH calls(call) AS MATERIALIZED (SELECT DISTINCT called FROM people"
        " WHERE called IN (SELECT value FROM json_each(?1)))"
        " SELECT name FROM calls JOIN people ON called = call WHERE instr(?2, words)"
        " UNION SELECT (SELECT min(name) FROM people WHERE called = call) FROM calls"
        " UNION SELECT (SELECT max(name) FROM people WHERE called = call) FROM calls",
        to_json(sorted(calls)),
        f" {' '.join(words)} \n{plain}",
    )


def add_person(tx: Transaction, name: str) -> None:
    """Add a name."""
    for called, words in _calls(name):
        tx.db.execute("INSERT OR IGNORE INTO people VALUES (?, ?, ?)", (called, name, words))


def drop_person(tx: Transaction, name: str) -> None:
    """Remove a name, unless a memory of that person is left."""
    if not scalar(tx.db, "SELECT 1 FROM memories WHERE actor = ? AND actor <> '' LIMIT 1", name):
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


# A class of which there are more is no answer to who somebody is.
_MOST_NAMES: Final = 6


def names_of(
    db: sqlite3.Connection, codes: Iterable[str], within: tuple[str, Sequence[Any]] = ("true", ())
) -> dict[str, tuple[str, ...]]:
    """The names introduced by each of some concepts; none of a concept with too many names.

    `within` is the condition on the memories that may introduce them, and its arguments.
    """
    condition, arguments = within
    inside = (
        "" if condition == "true" else f" AND row IN (SELECT row FROM memories WHERE {condition})"
    )
    rows = db.execute(
        "SELECT code, json_group_array(DISTINCT name) FROM introductions"
        f" WHERE code IN (SELECT value FROM json_each(?)){inside} GROUP BY code"
        f" HAVING count(DISTINCT name) <= {_MOST_NAMES}",
        (to_json([*codes]), *arguments),
    )
    return {code: tuple(msgspec.json.decode(names)) for code, names in rows}


class NamingMemory(msgspec.Struct, frozen=True):
    """A memory whose text has a name."""

    id: str
    created_at: float
    text: str
    spelling: str  # how it writes the name


_MOST_NAMING: Final = 500


def memories_with(db: sqlite3.Connection, name: str, now: float) -> list[NamingMemory]:
    """The newest live memories whose text has a name, at most 500, oldest first.

    Words are compared without case and accents. What is written without a capital letter is no
    name, except in a script that has none.
    """
    words = index_words(name)
    if not words:
        return []
    rows = db.execute(
        "SELECT id, created_at, text FROM memories WHERE row IN (SELECT rowid FROM memory_fts"
        " WHERE memory_fts MATCH ? ORDER BY rowid DESC LIMIT ?) AND merged_into IS NULL"
        " AND (expires_at IS NULL OR expires_at > ?) ORDER BY created_at, id",
        (f'text : "{" ".join(words)}"', _MOST_NAMING, now),
    )
    naming = [NamingMemory(key, at, text, _spelling(text, name)) for key, at, text in rows]
    return [memory for memory in naming if memory.spelling]


def _spelling(text: str, name: str) -> str:
    """How `text` writes `name`, or "" if it has it only as an ordinary word."""
    if is_unspaced(name) or name.lower() == name.upper():
        return name if name in text and any(map(str.isalpha, name)) else ""
    wanted = [fold(word) for word in NAME_WORD.findall(name)]
    if len(wanted) == 1 and is_word(wanted[0]):
        return ""
    matches = list(NAME_WORD.finditer(text))
    for at in range(len(matches) - len(wanted) + 1):
        run = matches[at : at + len(wanted)]
        spelling = text[run[0].start() : run[-1].end()]
        if [fold(match.group()) for match in run] == wanted and spelling != spelling.lower():
            return spelling
    return ""


def most_introduced(db: sqlite3.Connection, limit: int) -> list[str]:
    """The names that most memories introduce, folded."""
    order = "count(DISTINCT row) DESC, max(row) DESC, name"
    return column(
        db, f"SELECT name FROM introductions GROUP BY name ORDER BY {order} LIMIT ?", limit
    )


def add_introduced(tx: Transaction, row: int, text: str) -> None:
    """Add what a memory introduces."""
    entries = [(code, name, row) for code, name in roles_in(text)]
    if entries:
        tx.db.executemany("INSERT OR IGNORE INTO introductions VALUES (?, ?, ?)", entries)


def remove_introduced(tx: Transaction, row: int) -> None:
    """Remove what a memory introduced."""
    tx.db.execute("DELETE FROM introductions WHERE row = ?", (row,))


def clear(tx: Transaction) -> None:
    """Remove all people, and all that was introduced."""
    tx.db.execute("DELETE FROM people")
    tx.db.execute("DELETE FROM introductions")
