"""How often each device has used a memory.

Each device counts its own uses and nobody else writes that count, so that the counts of several
devices are merged by taking each at its latest. `memories.access_count` is their sum, and what
the memory brought along from elsewhere.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from .transaction import Transaction

KIND: Final = "use"


def count(tx: Transaction, memory: str, clock: int) -> None:
    """Count one use of a memory on this device; its sum is the caller's to raise."""
    [number] = tx.db.execute(
        "INSERT INTO uses VALUES (?1, ?2, 1, ?3, ?4) ON CONFLICT DO UPDATE SET"
        " count = count + 1, last_at = max(last_at, excluded.last_at), clock = excluded.clock"
        " RETURNING count",
        (memory, tx.device, tx.now, clock),
    ).fetchone()
    if number == 1:
        tx.alive(KIND, key_of(memory, tx.device))
    tx.changed(KIND, key_of(memory, tx.device), clock)


def take(tx: Transaction, memory: str, device: str, count: int, last_at: float, clock: int) -> None:
    """Note what another device has counted by now, and let the memory's sum follow."""
    before = _counted(tx, memory, device)
    tx.db.execute(
        "INSERT OR REPLACE INTO uses VALUES (?, ?, ?, ?, ?)",
        (memory, device, count, last_at, clock),
    )
    tx.db.execute(
        "UPDATE memories SET access_count = access_count + ?,"
        " last_accessed_at = max(coalesce(last_accessed_at, 0), ?) WHERE id = ?",
        (count - before, last_at, memory),
    )


def drop(tx: Transaction, memory: str, device: str) -> None:
    """Take away what a device has counted, and from the memory's sum as well."""
    tx.db.execute(
        "UPDATE memories SET access_count = access_count - ? WHERE id = ?",
        (_counted(tx, memory, device), memory),
    )
    tx.db.execute("DELETE FROM uses WHERE id = ? AND device = ?", (memory, device))


def forget(tx: Transaction, memory: str) -> None:
    """Forget all uses of a memory that nothing can bring back, on every device."""
    rows = tx.db.execute("DELETE FROM uses WHERE id = ? RETURNING device", (memory,)).fetchall()
    for (device,) in rows:
        tx.deleted(KIND, key_of(memory, device))


def total(db: sqlite3.Connection, memory: str) -> int:
    """The uses of a memory that devices have counted."""
    row = db.execute("SELECT coalesce(sum(count), 0) FROM uses WHERE id = ?", (memory,)).fetchone()
    return int(row[0])


def _counted(tx: Transaction, memory: str, device: str) -> int:
    row = tx.db.execute(
        "SELECT count FROM uses WHERE id = ? AND device = ?", (memory, device)
    ).fetchone()
    return 0 if row is None else int(row[0])


def latest(db: sqlite3.Connection, memory: str) -> float | None:
    """When a device has used a memory last; None: none has."""
    row = db.execute("SELECT max(last_at) FROM uses WHERE id = ?", (memory,)).fetchone()
    return None if row[0] is None else float(row[0])


def key_of(memory: str, device: str) -> str:
    """What one device's count of one memory is called elsewhere."""
    return f"{memory}/{device}"


def parts_of(key: str) -> tuple[str, str]:
    """Memory and device of a `key_of`."""
    memory, _, device = key.rpartition("/")
    return memory, device
