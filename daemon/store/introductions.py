"""The names that memories introduce by what they are, as derived rows of (concept, name).

Of "our son Toby" there is one for each concept that "son" means.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

import msgspec

from ..language.roles import roles_in
from .transaction import Transaction

TABLE: Final = (
    """
    CREATE TABLE introductions (
        code TEXT NOT NULL,
        name TEXT NOT NULL,
        row INTEGER NOT NULL,
        PRIMARY KEY (code, name, row)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX introductions_by_row ON introductions(row)",
)
# A class of which there are more is no answer to who somebody is.
_MOST_NAMES: Final = 6


def names_of(db: sqlite3.Connection, codes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The names introduced by each of some concepts; none of a concept with too many names."""
    rows = db.execute(
        "SELECT code, json_group_array(DISTINCT name) FROM introductions"
        " WHERE code IN (SELECT value FROM json_each(?)) GROUP BY code"
        f" HAVING count(DISTINCT name) <= {_MOST_NAMES}",
        (msgspec.json.encode([*codes]).decode(),),
    )
    return {code: tuple(msgspec.json.decode(names)) for code, names in rows}


def add(tx: Transaction, row: int, text: str) -> None:
    """Add what a memory introduces."""
    entries = [(code, name, row) for code, name in roles_in(text)]
    if entries:
        tx.db.executemany("INSERT OR IGNORE INTO introductions VALUES (?, ?, ?)", entries)


def remove(tx: Transaction, row: int) -> None:
    """Remove what a memory introduced."""
    tx.db.execute("DELETE FROM introductions WHERE row = ?", (row,))


def clear(tx: Transaction) -> None:
    """Remove all."""
    tx.db.execute("DELETE FROM introductions")
