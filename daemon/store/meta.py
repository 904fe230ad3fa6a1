"""Notes of the daemon in an agent's database: JSON values by key, in the table `meta`.

But for the clock no note is essential, so damage is not an error: an unreadable note counts as
missing.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final, TypeVar

import msgspec

from ..errors import StoreDamaged
from .transaction import ClockState, Transaction

T = TypeVar("T")
# The key of `ClockState`.
CLOCK: Final = "clock"
# Of the main database: `meta` of an attached one would be found if it were missing here.
_READ: Final = "SELECT CAST(value AS BLOB) FROM main.meta WHERE key = ?"


def read(db: sqlite3.Connection, key: str, kind: type[T]) -> T | None:
    """The value of a note; None if it is missing or not a valid `kind`."""
    row = db.execute(_READ, (key,)).fetchone()
    return None if row is None else _decoded(row[0], kind)


def clock_state(db: sqlite3.Connection) -> ClockState:
    """The clock, and this device's counts that are not in its row yet.

    `StoreDamaged` if they are not what was written: stamps might be issued twice.
    """
    row = db.execute(_READ, (CLOCK,)).fetchone()
    clock_state = ClockState() if row is None else _decoded(row[0], ClockState)
    if clock_state is None:
        raise StoreDamaged("cannot trust the clock: it is not what was written")
    return clock_state


def read_clock(db: sqlite3.Connection) -> tuple[int, int]:
    """The highest stamp issued or seen, and the last one issued by this device."""
    result = clock_state(db)
    return result.clock, result.issued


def latest(db: sqlite3.Connection, prefix: str, number: int, kind: type[T]) -> dict[str, T]:
    """The last notes, at most `number`, whose keys begin with `prefix`, in order of the keys.

    By the rest of the key. An unreadable note counts towards `number` and is left out.
    """
    rows = db.execute(
        "SELECT substr(key, ?), CAST(value AS BLOB) FROM meta WHERE key >= ? AND key < ?"
        " ORDER BY key DESC LIMIT ?",
        (len(prefix) + 1, prefix, f"{prefix}~", number),
    ).fetchall()
    result = {rest: _decoded(content, kind) for rest, content in reversed(rows)}
    return {rest: value for rest, value in result.items() if value is not None}


def write(tx: Transaction, key: str, value: Any) -> None:
    """Write a note, replacing the old value."""
    text = msgspec.json.encode(value).decode()
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, text))


def _decoded(content: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None
