"""Old tombstones, where no replica is followed that would say when they are of no use any more."""

from __future__ import annotations

import sqlite3

from . import memory_rows, uses_rows
from .transaction import Transaction


def older(db: sqlite3.Connection, before: float) -> int:
    """How many are of what was deleted before a time."""
    found = db.execute("SELECT count(*) FROM tombstones WHERE deleted_at < ?", (before,))
    return int(found.fetchone()[0])


def forget(tx: Transaction, before: float) -> int:
    """Drop those, with what was still to be told of them; return how many."""
    gone = tx.db.execute(
        "DELETE FROM tombstones WHERE deleted_at < ? RETURNING kind, id", (before,)
    ).fetchall()
    tx.db.executemany("DELETE FROM outbox WHERE kind = ? AND id = ?", gone)
    for kind, key in gone:
        if kind == memory_rows.KIND:
            uses_rows.forget(tx, key)
    return len(gone)
