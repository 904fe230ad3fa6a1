"""The counters that `metrics.json` shows: one row for each device, and the sum of all.

The counts of a commit go into `meta` beside the clock: nearly every commit counts something, and a
row costs several pages. Each consolidation moves them into this device's row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..memory.scoring import DAY
from . import meta, rows
from .rows import Kind
from .transaction import ClockState, Transaction

KIND: Final = Kind(name="metrics", history=False)


def totals(db: sqlite3.Connection, now: float) -> dict[str, float]:
    """Every counter by name: the sum over all devices, or the latest of times (`last_…`).

    A time in the future is ignored: a sum of times, as EvoClaw makes them, or a wrong clock.
    """
    totals: dict[str, float] = {}
    devices = [_numbers(msgspec.json.decode(data)) for _, data in rows.live_rows(db, KIND)]
    for counters in (meta.clock_state(db).counted, *devices):
        for name, value in counters.items():
            known = totals.get(name, 0.0)
            if not name.startswith("last_"):
                totals[name] = known + value
            elif value <= now + DAY:
                totals[name] = max(known, value)
    return totals


def note_clock_state(tx: Transaction, *, moved: bool = False) -> None:
    """Write the clock and the transaction's counts, added to those before unless these `moved`."""
    before = tx.cache.clock_state or meta.clock_state(tx.db)
    counted = {} if moved else _added(before.counted, tx.counted)
    changes = before.changes + tx.has_changed
    tx.cache.clock_state = ClockState(tx.clock.last, tx.clock.issued, counted, changes)
    meta.write(tx, meta.CLOCK, tx.cache.clock_state)


def move_note(tx: Transaction) -> None:
    """Add the noted counts to this device's row, which is replicated."""
    counted = meta.clock_state(tx.db).counted
    if not counted:
        return
    row = rows.load(tx.db, KIND, tx.device)
    data = row.data if row is not None else {}
    data = data | _added(_numbers(data), counted)
    # Counters of one day are dropped once another day is counted.
    last = max(map(_day, counted))
    current = {name: value for name, value in data.items() if not last or _day(name) in {"", last}}
    rows.write(tx, KIND, tx.device, current)
    note_clock_state(tx, moved=True)


def import_rows(tx: Transaction, values: Mapping[str, float]) -> None:
    """Take over counters from elsewhere, if nothing was counted yet."""
    if not totals(tx.db, tx.now):
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
