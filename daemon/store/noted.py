"""Notes of the daemon in an agent's database: JSON values by key, in the table `meta`.

No note is essential, so damage is not an error: an unreadable note counts as missing.
"""

from __future__ import annotations

import sqlite3
from typing import Any, TypeVar

import msgspec

from .transaction import Transaction

T = TypeVar("T")


def read(db: sqlite3.Connection, key: str, kind: type[T]) -> T | None:
    """The value of a note; None if it is missing or not a valid `kind`."""
    row = db.execute("SELECT CAST(value AS BLOB) FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else _decoded(row[0], kind)


def latest(db: sqlite3.Connection, prefix: str, number: int, kind: type[T]) -> dict[str, T]:
    """The last notes, at most `number`, whose keys begin with `prefix`, in order of the keys.

    By the rest of the key. An unreadable note counts towards `number` and is left out.
    """
    rows = db.execute(
        "SELECT substr(key, ?), CAST(value AS BLOB) FROM meta WHERE key >= ? AND key < ?"
        " ORDER BY key DESC LIMIT ?",
        (len(prefix) + 1, prefix, f"{prefix}~", number),
    ).fetchall()
    found = {rest: _decoded(content, kind) for rest, content in reversed(rows)}
    return {rest: value for rest, value in found.items() if value is not None}


def write(tx: Transaction, key: str, value: Any) -> None:
    """Write a note, replacing the old value."""
    text = msgspec.json.encode(value).decode()
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, text))


def _decoded(content: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None
