"""The uses of memories, counted by each device.

Each device counts its own uses, in a few hundred rows that only it writes, so that counts never
conflict. `memories.access_count` is derived: the count that the memory brought from elsewhere, the
counts of all devices, and the same of the memories merged into it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from thermocline.sync import Row

from ..errors import Conflict
from ..memory.checks import check_time
from . import rows
from .kind import Kind
from .transaction import Transaction

BUCKETS: Final = 256
_ADD: Final = (
    "UPDATE memories SET access_count = max(0, access_count + ?), last_accessed_at ="
    " nullif(max(coalesce(last_accessed_at, 0), ?), 0) WHERE id = ?"
)
# By memory: the number of uses, and the time of the last one.
Counts: TypeAlias = Mapping[str, tuple[int, float]]


class Uses(msgspec.Struct, frozen=True):
    """The content of a row: uses and last use by memory."""

    counts: dict[str, tuple[int, float]]


def count(tx: Transaction, used: Mapping[str, int]) -> None:
    """Count uses on this device, by memory. Each row is written once."""
    buckets: dict[str, list[str]] = {}
    for key in used:
        buckets.setdefault(f"{_bucket(key)}/{tx.device}", []).append(key)
    for name, keys in buckets.items():
        row = rows.load(tx.db, KIND, name)
        counts = {} if row is None else dict(_counts(row))
        for key in keys:
            counts[key] = (counts.get(key, (0, 0.0))[0] + used[key], tx.now)
        rows.write(tx, KIND, name, {"counts": {key: list(n) for key, n in counts.items()}})


def take_back(tx: Transaction, key: str) -> None:
    """Take back one use that this device counted; the time of the last use stays.

    Raises:
        Conflict: this device has counted no use.
    """
    name = f"{_bucket(key)}/{tx.device}"
    counts = dict(_counts(rows.load(tx.db, KIND, name)))
    number, at = counts.pop(key, (0, 0.0))
    if not number:
        raise Conflict(f"this device has counted no use of '{key}'", field="id")
    if number > 1:
        counts[key] = (number - 1, at)
    rows.write(tx, KIND, name, {"counts": {one: list(n) for one, n in counts.items()}})


def counted(tx: Transaction, key: str) -> tuple[int, float | None]:
    """The uses of a memory on all devices, and the time of the last."""
    if tx.are_uses is None:
        found = tx.db.execute("SELECT 1 FROM rows WHERE kind = 'uses' AND live LIMIT 1")
        tx.are_uses = found.fetchone() is not None
    if not tx.are_uses:
        return 0, None
    bucket = _bucket(key)
    if bucket not in tx.uses:
        tx.uses[bucket] = _sums(tx.db, bucket)
    return tx.uses[bucket].get(key, (0, None))


def are_merged(tx: Transaction) -> bool:
    """Whether any memory is merged into another."""
    if tx.are_merged is None:
        found = tx.db.execute("SELECT 1 FROM memories WHERE merged_into IS NOT NULL LIMIT 1")
        tx.are_merged = found.fetchone() is not None
    return tx.are_merged


def forget(tx: Transaction, keys: frozenset[str]) -> None:
    """Remove memories that cannot be restored from this device's counts."""
    for key in keys:
        name = f"{_bucket(key)}/{tx.device}"
        row = rows.load(tx.db, KIND, name)
        if row is not None and key in (counts := dict(_counts(row))):
            del counts[key]
            rows.write(tx, KIND, name, {"counts": {one: list(n) for one, n in counts.items()}})


def _sums(db: sqlite3.Connection, bucket: str) -> dict[str, tuple[int, float | None]]:
    sums: dict[str, tuple[int, float | None]] = {}
    found = db.execute(
        "SELECT data FROM rows WHERE kind = 'uses' AND live AND id > ? AND id < ?",
        (f"{bucket}/", f"{bucket}0"),
    )
    for (data,) in found:
        for key, (number, at) in msgspec.json.decode(data, type=Uses).counts.items():
            sum_, last = sums.get(key, (0, None))
            sums[key] = (sum_ + number, max(last or 0.0, at))
    return sums


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    """Update the counts of the memories."""
    tx.uses.pop(after.id.partition("/")[0], None)
    tx.are_uses = None
    old, new = _counts(before), _counts(after)
    none = (0, 0.0)
    more = {
        key: (new.get(key, none)[0] - old.get(key, none)[0], new.get(key, none)[1])
        for key, _ in old.items() ^ new.items()
    }
    tx.db.executemany(_ADD, [(*added, key) for key, added in more.items()])
    tx.faces.update({"warm", "tree", "hot"})
    if not are_merged(tx):
        return
    merged = tx.db.execute(
        "SELECT id, merged_into FROM memories WHERE merged_into IS NOT NULL"
        " AND id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(more)).decode(),),
    )
    for key, above in merged.fetchall():
        _add_above(tx, {key}, above, more[key])


def _add_above(
    tx: Transaction, passed: set[str], key: str | None, added: tuple[int, float]
) -> None:
    """Add to the count of the memory that a memory is merged into, and so on."""
    while key is not None and key not in passed:
        passed.add(key)
        found = tx.db.execute(f"{_ADD} RETURNING merged_into", (*added, key)).fetchone()
        key = found[0] if found else None


def _counts(row: Row | None) -> Counts:
    if row is None or not row.data:
        return {}
    return msgspec.convert(row.data, Uses).counts


def _bucket(key: str) -> str:
    return f"{zlib.crc32(key.encode()) % BUCKETS:02x}"


def _check(row: Row) -> None:
    found: dict[str, Any] = dict(_counts(row))
    for number, at in found.values():
        check_time(at, field="last_at")
        if number < 0:
            msg = "uses are counted from 0"
            raise msgspec.ValidationError(msg)


KIND: Final = Kind(
    name="uses", fields=frozenset({"counts"}), history=False, check=_check, applied=_applied
)
