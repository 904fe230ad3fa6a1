"""Notes of the daemon in an agent's database: JSON values by key, in the table `meta`.

But for the clock no note is essential, so damage is not an error: an unreadable note counts as
missing.

Beside the clock stand the counts of `metrics.json`: nearly every commit counts something, and a
row costs several pages. Each consolidation moves them into this device's row of the kind `metrics`;
what is shown is the sum of all devices.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from ...errors import StoreDamaged
from ...memory.scoring import DAY
from . import rows
from .connection import scalar, to_json
from .rows import Kind
from .transaction import ClockState, Transaction

T = TypeVar("T")
# The key of `ClockState`.
CLOCK: Final = "clock"
# The key of the position up to which the replica was received; see `outbox`.
CURSOR: Final = "link"
# The key of the same at the end of a restore.
RESTORED: Final = "restored_at"
_STEADY: Final = "steady_clock"
# Of the main database: `meta` of an attached one would be found if it were missing here.
_READ: Final = "SELECT CAST(value AS BLOB) FROM main.meta WHERE key = ?"


def read(db: sqlite3.Connection, key: str, kind: type[T]) -> T | None:
    """The value of a note; None if it is missing or not a valid `kind`."""
    content = scalar(db, _READ, key)
    return None if content is None else _decoded(content, kind)


def has_replica(db: sqlite3.Connection) -> bool:
    """Whether there was ever contact to a replica, so that other devices may know the rows."""
    return scalar(db, _READ, CURSOR) is not None


def clock_state(db: sqlite3.Connection) -> ClockState:
    """The clock, and this device's counts that are not in its row yet.

    `StoreDamaged` if they are not what was written: stamps might be issued twice.
    """
    content = scalar(db, _READ, CLOCK)
    clock_state = ClockState() if content is None else _decoded(content, ClockState)
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


def write(tx: Transaction, key: str, content: Any) -> None:
    """Write a note, replacing the old value."""
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, to_json(content)))


class _SteadyClock(msgspec.Struct, frozen=True):
    """Since when the clock has gone on without a jump, and when that was seen last."""

    since: float
    seen: float
    has_jumped: bool = False  # whether it began with a jump, not with the first note


def clock_is_steady(db: sqlite3.Connection, now: float) -> bool:
    """Whether the clock has been about here for a day.

    Only then is anything deleted for its age: a jump by years makes everything old. The clock may
    have stood still for a month, with the device off.
    """
    known = read(db, _STEADY, _SteadyClock)
    return known is not None and _follows(known, now) and now - known.since >= DAY


def clock_has_jumped(db: sqlite3.Connection, now: float) -> bool:
    """Whether the clock is known to have jumped less than a day ago."""
    known = read(db, _STEADY, _SteadyClock)
    if known is None:
        return False
    return not _follows(known, now) or (known.has_jumped and now - known.since < DAY)


def note_steady_clock(tx: Transaction) -> None:
    """Note that the clock has come to this time; called at least daily while an agent is open."""
    known = read(tx.db, _STEADY, _SteadyClock)
    if known is None or not _follows(known, tx.now):
        known = _SteadyClock(tx.now, tx.now, has_jumped=known is not None)
    write(tx, _STEADY, msgspec.structs.replace(known, seen=tx.now))


def _follows(known: _SteadyClock, now: float) -> bool:
    return known.seen - DAY <= now <= known.seen + 31 * DAY


def _decoded(content: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


COUNTERS: Final = Kind(name="metrics", history=False)


def counter_totals(db: sqlite3.Connection, now: float) -> dict[str, float]:
    """Every counter by name: the sum over all devices, or the latest of times (`last_…`).

    A time in the future is ignored: a sum of times, as EvoClaw makes them, or a wrong clock.
    """
    sums: dict[str, float] = {}
    devices = [_numbers(msgspec.json.decode(data)) for _, data in rows.live_rows(db, COUNTERS)]
    for counters in (clock_state(db).counted, *devices):
        for name, value in counters.items():
            known = sums.get(name, 0.0)
            if not name.startswith("last_"):
                sums[name] = known + value
            elif value <= now + DAY:
                sums[name] = max(known, value)
    return sums


def note_clock_state(tx: Transaction, *, moved: bool = False) -> None:
    """Write the clock and the transaction's counts, added to those before unless these `moved`."""
    before = tx.cache.clock_state or clock_state(tx.db)
    counted = {} if moved else _added(before.counted, tx.counted)
    changes = before.changes + tx.has_changed
    tx.cache.clock_state = ClockState(tx.clock.last, tx.clock.issued, counted, changes)
    write(tx, CLOCK, tx.cache.clock_state)


def move_counts(tx: Transaction) -> None:
    """Add the noted counts to this device's row, which is replicated."""
    counted = clock_state(tx.db).counted
    if not counted:
        return
    row = rows.load(tx.db, COUNTERS, tx.device)
    data = row.data if row is not None else {}
    data = data | _added(_numbers(data), counted)
    # Counters of one day are dropped once another day is counted.
    last = max(map(_day, counted))
    current = {name: value for name, value in data.items() if not last or _day(name) in {"", last}}
    rows.write(tx, COUNTERS, tx.device, current)
    note_clock_state(tx, moved=True)


def import_counters(tx: Transaction, values: Mapping[str, float]) -> None:
    """Take over counters from elsewhere, if nothing was counted yet."""
    if not counter_totals(tx.db, tx.now):
        tx.counted = _added(tx.counted, values)


def _added(counters: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    sums = {
        name: value if name.startswith("last_") else counters.get(name, 0.0) + value
        for name, value in more.items()
    }
    return {**counters, **sums}


def _day(name: str) -> str:
    return name.partition("@")[2]


def _numbers(data: dict[str, Any]) -> dict[str, float]:
    return {n: float(v) for n, v in data.items() if isinstance(v, int | float)}
