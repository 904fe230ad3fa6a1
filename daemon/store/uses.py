"""How often each device has used a memory.

Each device counts its own uses, in a few hundred rows that nobody else writes, so that the counts
of several devices never conflict. `memories.access_count` is derived: what the memory brought
along from elsewhere, what all devices counted, and the same of those that are merged into it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from thermocline.sync import Row

from ..memory.checks import check_time
from . import rows
from .kind import Kind
from .transaction import Transaction

BUCKETS: Final = 256
# By memory: how many uses, and when the last one was.
Counts: TypeAlias = Mapping[str, tuple[int, float]]


class Uses(msgspec.Struct, frozen=True):
    """What a row says: uses and last use by memory."""

    counts: dict[str, tuple[int, float]]


def count(tx: Transaction, used: Mapping[str, int]) -> None:
    """Count uses on this device: how many, by memory. Each row is written once."""
    buckets: dict[str, list[str]] = {}
    for key in used:
        buckets.setdefault(f"{_bucket(key)}/{tx.device}", []).append(key)
    for name, keys in buckets.items():
        row = rows.load(tx.db, KIND, name)
        counts = {} if row is None else dict(_counts(row))
        for key in keys:
            counts[key] = (counts.get(key, (0, 0.0))[0] + used[key], tx.now)
        rows.write(tx, KIND, name, {"counts": {key: list(n) for key, n in counts.items()}})


def counted(tx: Transaction, key: str) -> tuple[int, float | None]:
    """The uses of a memory that all devices have counted, and the last of them."""
    if tx.are_uses is None:
        found = tx.db.execute("SELECT 1 FROM rows WHERE kind = 'uses' AND live LIMIT 1")
        tx.are_uses = found.fetchone() is not None
    if not tx.are_uses:
        return 0, None
    bucket = _bucket(key)
    if bucket not in tx.uses:
        tx.uses[bucket] = _sums(tx.db, bucket)
    return tx.uses[bucket].get(key, (0, None))


def forget(tx: Transaction, keys: frozenset[str]) -> None:
    """Take memories that nothing can bring back out of this device's counts."""
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
    """Let the counts of the memories follow."""
    tx.uses.pop(after.id.partition("/")[0], None)
    tx.are_uses = None
    old, new = _counts(before), _counts(after)
    for key in old.keys() | new.keys():
        more = new.get(key, (0, 0.0))
        if more != old.get(key, (0, 0.0)):
            _add(tx, key, more[0] - old.get(key, (0, 0.0))[0], more[1])


def _add(tx: Transaction, key: str, number: int, at: float) -> None:
    """Add to a memory's count, and to that of the memory that it is merged into."""
    passed: set[str] = set()
    above: str | None = key
    while above is not None and above not in passed:
        passed.add(above)
        found = tx.db.execute(
            "UPDATE memories SET access_count = max(0, access_count + ?), last_accessed_at ="
            " nullif(max(coalesce(last_accessed_at, 0), ?), 0) WHERE id = ? RETURNING merged_into",
            (number, at, above),
        ).fetchone()
        above = found[0] if found else None
    tx.faces.update({"warm", "tree", "hot"})


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
