"""Key–value pairs: small named facts that are replaced, not remembered."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from thermocline.sync import Fields, Row

from ..errors import NotFound
from ..memory.checks import check_text, check_time
from ..memory.records import Pair
from . import full_text, rows
from .kind import Kind
from .transaction import Transaction

# The full-text index of keys and values; its rows are those of the table `pairs`.
INDEX: Final = "pair_fts"


def get(db: sqlite3.Connection, key: str) -> Pair:
    """The pair with this key.

    Raises:
        NotFound: it does not exist.
    """
    row = rows.load(db, KIND, key)
    if row is None:
        raise NotFound(f"no value is stored under '{key}'", field="key")
    return _pair(key, row.data)


def page(db: sqlite3.Connection, prefix: str, limit: int, offset: int) -> tuple[list[Pair], int]:
    """The pairs whose key begins with `prefix`, ordered by key, and their number."""
    where = "FROM rows WHERE kind = 'pair' AND live AND id >= ? AND id < ?"
    bounds = (prefix, f"{prefix}\U0010ffff")
    found = db.execute(
        f"SELECT id, data {where} ORDER BY id LIMIT ? OFFSET ?", (*bounds, limit, offset)
    )
    total = db.execute(f"SELECT count(*) {where}", bounds).fetchone()[0]
    return [_pair(key, msgspec.json.decode(data)) for key, data in found], int(total)


def put(tx: Transaction, key: str, value: str, *, created_at: float | None = None) -> Pair:
    """Store `value` under `key`, replacing the old value."""
    known = rows.load(tx.db, KIND, key)
    if created_at is None:
        created_at = tx.now if known is None else _pair(key, known.data).created_at
    pair = Pair(key=key, value=value, created_at=created_at, updated_at=tx.now)
    rows.write(tx, KIND, key, {name: getattr(pair, name) for name in _FIELDS})
    tx.tell("kv.set", key=key)
    return pair


def delete(tx: Transaction, key: str) -> None:
    """Remove the pair.

    Raises:
        NotFound: it does not exist.
    """
    get(tx.db, key)
    rows.write(tx, KIND, key, None)
    tx.tell("kv.deleted", key=key)


def at_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Pair]:
    """The pairs in these rows of the full-text index."""
    # A plain join would read all pairs.
    found = db.execute(
        "SELECT row, key, data FROM pairs CROSS JOIN rows ON kind = 'pair' AND id = key"
        " WHERE row IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(numbers).decode(),),
    )
    return {row: _pair(key, msgspec.json.decode(data)) for row, key, data in found}


def _pair(key: str, data: Fields) -> Pair:
    fields: Fields = {name: data[name] for name in _FIELDS if name in data}
    return msgspec.convert(fields | {"key": key}, Pair)


def reindex(tx: Transaction) -> None:
    """Rebuild the full-text index."""
    full_text.clear(tx, INDEX)
    tx.db.execute("DELETE FROM pairs")
    for row in KIND.table.every(tx.db, KIND.name):
        _applied(tx, None, row)


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    """Update the full-text index."""
    old = _pair(before.id, before.data) if before is not None and KIND.lives(before) else None
    new = _pair(after.id, after.data) if KIND.lives(after) else None
    if new is None:
        if old is not None:
            gone = tx.db.execute("DELETE FROM pairs WHERE key = ? RETURNING row", (old.key,))
            full_text.remove(tx, INDEX, gone.fetchone()[0], _indexed(old))
        return
    row = tx.db.execute(
        "INSERT INTO pairs (key, created_at, updated_at, length) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET created_at = excluded.created_at,"
        " updated_at = excluded.updated_at, length = excluded.length RETURNING row",
        (new.key, new.created_at, new.updated_at, len(new.key) + 1 + len(new.value)),
    ).fetchone()[0]
    if old is not None and old.value == new.value:
        return
    if old is not None:
        full_text.remove(tx, INDEX, row, _indexed(old))
    full_text.add(tx, INDEX, [full_text.IndexEntry(row, _indexed(new), new.updated_at)])


def _indexed(pair: Pair) -> tuple[str, str]:
    return pair.key, pair.value


def _check(row: Row) -> None:
    pair = _pair(row.id, row.data)
    check_text(pair.key, _ANY_SIZE, field="key")
    check_time(pair.created_at, field="created_at")
    check_time(pair.updated_at, field="updated_at")


_FIELDS: Final = ("value", "created_at", "updated_at")
# Received values are not cut: other devices may allow longer texts.
_ANY_SIZE: Final = 1 << 62
KIND: Final = Kind(
    name="pair",
    fields=frozenset(_FIELDS),
    vital=("value",),
    check=_check,
    applied=_applied,
    reindex=reindex,
)
