"""An agent's sizes and counters by day, with their trend. A day is a row of its database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Final

import msgspec

from ..config.settings import Rules
from ..memory.hot import document_size
from ..schemas.stats import Compared, Day, Trend
from ..store.database import meta
from ..store.database.transaction import Transaction
from ..store.limits import warm_bytes
from ..store.records import documents, hot_rows, tree_rows

_PREFIX: Final = "day/"
# Two years, so that a month can be compared with that of the year before.
_KEPT_DAYS: Final = 731
_WEEK: Final = timedelta(days=7)


class Sizes(msgspec.Struct, frozen=True):
    """The sizes of a memory; `tree_nodes` counts the root."""

    hot_bytes: int
    warm_count: int
    warm_bytes: int
    tree_nodes: int
    cold_count: int


def record(tx: Transaction, zone: tzinfo) -> None:
    """Record the current numbers under today's date."""
    today = datetime.fromtimestamp(tx.now, zone).date()
    meta.write(tx, _key(today), _measured(tx, today))
    first = today - timedelta(days=min(_KEPT_DAYS, today.toordinal() - 1))
    tx.db.execute("DELETE FROM meta WHERE key >= ? AND key < ?", (_PREFIX, _key(first)))


def load(db: sqlite3.Connection, days: int) -> list[Day]:
    """The last recorded days, oldest first."""
    return [*meta.latest(db, _PREFIX, days, Day).values()]


def trend(days: Sequence[Day]) -> Trend | None:
    """The last seven days compared with the week before; None without records."""
    if not days:
        return None
    last = days[-1].day
    numbers = {}
    for name, measure in _MEASURES.items():
        now, before = measure(days, name, last), measure(days, name, last - _WEEK)
        if now is not None:
            delta = None if before is None else round(now - before, 2)
            numbers[name] = Compared(now, before, delta)
    recorded = sum(last - _WEEK < day.day for day in days)
    return Trend(last.isoformat(), recorded, numbers)


def sizes(db: sqlite3.Connection, now: float, rules: Rules) -> Sizes:
    """The present sizes of a memory."""
    warm, cold = tree_rows.totals(db)
    hot = document_size(hot_rows.document(db, now, rules))
    return Sizes(hot, warm, warm_bytes(db), len(tree_rows.load(db)) + 1, cold)


def _measured(tx: Transaction, today: date) -> Day:
    counters = documents.metrics_document(tx.db, tx.now)
    return Day(
        day=today,
        timestamp=tx.now,
        **msgspec.structs.asdict(sizes(tx.db, tx.now, tx.rules)),
        evicted=counters["total_evicted"],
        stored=counters["total_stored"],
        retrieved=counters["retrieval_count"],
        consolidations=counters["consolidation_count"],
        context_tokens_saved=counters["context_tokens_saved"],
    )


def _key(day: date) -> str:
    return f"{_PREFIX}{day.isoformat()}"


def _level(days: Sequence[Day], name: str, last: date) -> float | None:
    """The average of a size in the week that ends with `last`."""
    week = [day for day in days if last - _WEEK < day.day <= last]
    values: list[int] = [getattr(day, name) for day in week]
    return round(sum(values) / len(values), 2) if values else None


def _growth(days: Sequence[Day], name: str, last: date) -> float | None:
    """The daily growth of a counter in the week that ends with `last`."""
    dated = [(day.day, int(getattr(day, name))) for day in days]
    week = [(day, value) for day, value in dated if last - _WEEK <= day <= last]
    if len(week) < 2:
        return None
    (first, before), (end, after) = week[0], week[-1]
    return round(max(0, after - before) / (end - first).days, 2)


# The function that computes each number of the week that ends with a day.
_MEASURES: Final = dict.fromkeys(
    ("hot_bytes", "warm_count", "warm_bytes", "tree_nodes", "cold_count"), _level
) | dict.fromkeys(
    ("evicted", "stored", "retrieved", "consolidations", "context_tokens_saved"), _growth
)
