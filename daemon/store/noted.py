"""What the daemon notes for itself in an agent's database: JSON, in the table `meta`, by key.

Each note is one that its owner can do without, so damage is no error: what cannot be read is as
if it had never been noted.
"""

from __future__ import annotations

import sqlite3
from typing import Any, TypeVar

import msgspec

from .transaction import Transaction

T = TypeVar("T")


def read(db: sqlite3.Connection, key: str, kind: type[T]) -> T | None:
    """What is noted; None: nothing, or what cannot be read as a `kind`."""
    row = db.execute("SELECT CAST(value AS BLOB) FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else _decoded(row[0], kind)


def latest(db: sqlite3.Connection, prefix: str, number: int, kind: type[T]) -> dict[str, T]:
    """So many of the notes whose keys begin so, those with the highest keys, in order of these.

    By what follows `prefix`; one that cannot be read takes a place and is left out.
    """
    rows = db.execute(
        "SELECT substr(key, ?), CAST(value AS BLOB) FROM meta WHERE key >= ? AND key < ?"
        " ORDER BY key DESC LIMIT ?",
        (len(prefix) + 1, prefix, f"{prefix}~", number),
    ).fetchall()
    found = {rest: _decoded(content, kind) for rest, content in reversed(rows)}
    return {rest: value for rest, value in found.items() if value is not None}


def write(tx: Transaction, key: str, value: Any) -> None:
    """Note something in the place of what was noted before."""
    text = msgspec.json.encode(value).decode()
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, text))


def _decoded(content: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None
