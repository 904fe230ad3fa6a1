"""The counters that `metrics.json` shows: one row for each device, and the sum of all."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from ..memory.scoring import DAY
from . import rows
from .kind import Kind
from .transaction import Transaction

KIND = Kind(name="metrics", history=False)


def totals(db: sqlite3.Connection, now: float) -> dict[str, float]:
    """Every counter by name: the sum of all devices', of moments (`last_…`) the latest.

    A moment in the future is a sum of moments, as EvoClaw makes them, or of a wrong clock.
    """
    found: dict[str, float] = {}
    for _, data in rows.live_rows(db, KIND):
        for name, value in _numbers(msgspec.json.decode(data)).items():
            known = found.get(name, 0.0)
            if not name.startswith("last_"):
                found[name] = known + value
            elif value <= now + DAY:
                found[name] = max(known, value)
    return found


def settle(tx: Transaction) -> None:
    """Add what the transaction has counted, as one change of this device's row."""
    if not tx.counted and not tx.moments:
        return
    row = rows.load(tx.db, KIND, tx.device)
    data = dict(row.data) if row is not None else {}
    numbers = _numbers(data)
    for name, value in tx.counted.items():
        data[name] = numbers.get(name, 0.0) + value
    for name in tx.moments:
        data[name] = tx.now
    # Counters of one day go once those of another are counted.
    days = {_day(name) for name in tx.counted} - {""}
    for name in [name for name in data if days and _day(name) not in {"", *days}]:
        del data[name]
    rows.write(tx, KIND, tx.device, data)


def adopt(tx: Transaction, values: dict[str, float]) -> None:
    """Take over counters from elsewhere, where nothing was counted yet."""
    if totals(tx.db, tx.now):
        return
    for name, value in values.items():
        tx.counted[name] = tx.counted.get(name, 0.0) + value


def _day(name: str) -> str:
    """The day that a counter is of; empty: of all time."""
    return name.partition("@")[2]


def _numbers(data: dict[str, Any]) -> dict[str, float]:
    """What is a number; another release may count in other ways."""
    return {n: float(v) for n, v in data.items() if isinstance(v, int | float)}
