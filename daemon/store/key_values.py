"""Key–value pairs: small named facts that are replaced, not remembered."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from thermocline.sync import Fields, Row

from ..errors import NotFound
from ..memory.checks import check_text, check_time
from ..memory.records import Pair
from . import rows
from .kind import Kind
from .transaction import Transaction


def get(db: sqlite3.Connection, key: str) -> Pair:
    """The pair with this key.

    Raises:
        NotFound: there is none.
    """
    row = rows.load(db, KIND, key)
    if row is None:
        raise NotFound(f"no value is stored under '{key}'", field="key")
    return _pair(key, row.data)


def page(db: sqlite3.Connection, prefix: str, limit: int, offset: int) -> tuple[list[Pair], int]:
    """The pairs whose key begins with `prefix`, in the order of their keys, and how many."""
    where = "FROM rows WHERE kind = 'pair' AND live AND id >= ? AND id < ?"
    bounds = (prefix, f"{prefix}\U0010ffff")
    found = db.execute(
        f"SELECT id, data {where} ORDER BY id LIMIT ? OFFSET ?", (*bounds, limit, offset)
    )
    total = db.execute(f"SELECT count(*) {where}", bounds).fetchone()[0]
    return [_pair(key, msgspec.json.decode(data)) for key, data in found], int(total)


def newest(db: sqlite3.Connection, limit: int) -> list[Pair]:
    """The pairs that were changed last, the latest first."""
    found = db.execute(
        "SELECT id, data FROM rows WHERE kind = 'pair' AND live"
        " ORDER BY data ->> 'updated_at' DESC LIMIT ?",
        (limit,),
    )
    return [_pair(key, msgspec.json.decode(data)) for key, data in found]


def put(tx: Transaction, key: str, value: str, *, created_at: float | None = None) -> Pair:
    """Store `value` under `key`, in place of what was there."""
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
        NotFound: there is none.
    """
    get(tx.db, key)
    rows.write(tx, KIND, key, None)
    tx.tell("kv.deleted", key=key)


def _pair(key: str, data: Fields) -> Pair:
    fields: Fields = {name: data[name] for name in _FIELDS if name in data}
    return msgspec.convert(fields | {"key": key}, Pair)


def _check(row: Row) -> None:
    pair = _pair(row.id, row.data)
    check_text(pair.key, _ANY_SIZE, field="key")
    check_time(pair.created_at, field="created_at")
    check_time(pair.updated_at, field="updated_at")


_FIELDS: Final = ("value", "created_at", "updated_at")
# What came is not cut: other devices may be allowed longer texts.
_ANY_SIZE: Final = 1 << 62
KIND: Final = Kind(name="pair", fields=frozenset(_FIELDS), vital=("value",), check=_check)
