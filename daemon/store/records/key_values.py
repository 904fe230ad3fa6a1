"""Key–value pairs: small named facts that are replaced, not remembered."""

from __future__ import annotations

import sqlite3
from typing import Final

from ...memory.records import Pair
from ..database.record_kind import Projection, RecordKind, is_text
from ..database.transaction import Transaction

PAIRS: Final = RecordKind(
    "pair",
    Pair,
    missing="no value is stored under '{}'",
    field="key",
    checks={"key": is_text},
    projection=Projection(
        table="pairs",
        index="pair_fts",
        columns=("created_at", "updated_at", "length"),
        texts=("key", "value"),
        told_at="updated_at",
    ),
    liveness_fields=("value",),
)


def page(db: sqlite3.Connection, prefix: str, limit: int, offset: int) -> tuple[list[Pair], int]:
    """The pairs whose key begins with `prefix`, ordered by key, and their number."""
    where, last = "t.key >= :prefix AND t.key < :last", f"{prefix}\U0010ffff"
    return PAIRS.page(db, where, "t.key", limit, offset, prefix=prefix, last=last)


def put(tx: Transaction, key: str, value: str) -> Pair:
    """Store `value` under `key`, replacing the old value; an equal one is not written again."""
    known = PAIRS.find(tx.db, key)
    if known is not None and known.value == value:
        return known
    tx.emit("kv.set", key=key)
    return PAIRS.put(tx, Pair(key, value, known.created_at if known else tx.now, tx.now))


def delete(tx: Transaction, key: str) -> None:
    """Remove the pair; `NotFound` if it does not exist."""
    PAIRS.delete(tx, key)
    tx.emit("kv.deleted", key=key)
