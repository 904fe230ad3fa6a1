"""Key–value pairs: small named facts that are replaced, not remembered."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from ..errors import NotFound
from .transaction import Transaction

KIND: Final = "kv"


class Pair(msgspec.Struct, frozen=True):
    """One pair; times in seconds since the epoch."""

    key: str
    value: str
    created_at: float
    updated_at: float


_SELECT = "SELECT key, value, created_at, updated_at FROM kv"


def get(db: sqlite3.Connection, key: str) -> Pair:
    """The pair with this key.

    Raises:
        NotFound: there is none.
    """
    found = db.execute(f"{_SELECT} WHERE key = ?", (key,)).fetchone()
    if found is None:
        raise NotFound(f"no value is stored under '{key}'", field="key")
    return Pair(*found)


def page(db: sqlite3.Connection, prefix: str, limit: int, offset: int) -> tuple[list[Pair], int]:
    """The pairs whose key begins with `prefix`, in the order of their keys, and how many."""
    bounds = (prefix, f"{prefix}\U0010ffff")
    where = "WHERE key >= ? AND key < ?"
    rows = db.execute(f"{_SELECT} {where} ORDER BY key LIMIT ? OFFSET ?", (*bounds, limit, offset))
    total = db.execute(f"SELECT count(*) FROM kv {where}", bounds).fetchone()[0]
    return [Pair(*row) for row in rows], int(total)


def put(tx: Transaction, key: str, value: str, *, created_at: float | None = None) -> Pair:
    """Store `value` under `key`, in place of what was there."""
    clock = tx.version()
    tx.db.execute(
        "INSERT INTO kv VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " value = excluded.value, updated_at = excluded.updated_at,"
        " clock = excluded.clock, device = excluded.device",
        (key, value, created_at or tx.now, tx.now, clock, tx.device),
    )
    tx.alive(KIND, key)
    tx.changed(KIND, key, clock)
    tx.faces.add("kv")
    tx.tell("kv.set", key=key)
    return get(tx.db, key)


def delete(tx: Transaction, key: str) -> None:
    """Remove the pair.

    Raises:
        NotFound: there is none.
    """
    get(tx.db, key)
    tx.db.execute("DELETE FROM kv WHERE key = ?", (key,))
    tx.deleted(KIND, key)
    tx.faces.add("kv")
    tx.tell("kv.deleted", key=key)
