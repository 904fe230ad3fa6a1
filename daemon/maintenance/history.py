"""An agent's numbers over time: sizes and counters by day with their trend, and the last minutes.

A day is a row of the agent's database; what happened in each of the last 120 minutes is in memory
alone.
"""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Final, Literal, TypeAlias

import msgspec

from ..config.settings import Rules
from ..memory.hot import document_size
from ..schemas.stats import Compared, Day, Trend
from ..store import documents, hot_rows, meta, tree_rows
from ..store.limits import warm_bytes
from ..store.transaction import Transaction

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
    by_name = meta.latest(db, _PREFIX, days, Day)
    return [day for name, day in by_name.items() if day.day.isoformat() == name]


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

# The last minutes.
MINUTES: Final = 120
Name: TypeAlias = Literal["stores", "recalls", "p50_ms", "p99_ms", "outbox", "sync_ms"]
# What the whole daemon has is kept under this name, which no agent can have.
_DAEMON: Final = ""
# Times are counted in steps of 5 percent: some 200 steps from a microsecond to an hour.
_STEP: Final = math.log(1.05)


class MinuteSeries:
    """Numbers by minute, 6 KB for an agent that was used in the last two hours."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._rings: dict[str, _Series] = {}

    def count_store(self, agent: str) -> None:
        self._ring(agent).add("stores")

    def note_recall(self, agent: str, ms: float) -> None:
        self._ring(agent).note_recall(ms)

    def note(self, agent: str, name: Name, value: float) -> None:
        """A number as it is now; the last one of a minute is kept."""
        self._ring(agent).set(name, value)

    def note_memory(self, size: int) -> None:
        self._ring(_DAEMON).set("memory", size)

    def forget_idle(self) -> None:
        """Drop agents without a number in the last two hours."""
        oldest = self._minute() - MINUTES
        for agent in [agent for agent, ring in self._rings.items() if ring.last <= oldest]:
            del self._rings[agent]

    def first(self) -> float:
        """When the oldest minute began; the newest is the current one."""
        return (self._minute() - MINUTES + 1) * 60.0

    def of(self, agent: str, name: Name) -> Sequence[float | None]:
        """A number of an agent by minute, the oldest first; None: not known."""
        return self._ring(agent).values(name) if agent in self._rings else [None] * MINUTES

    def memory(self) -> Sequence[float | None]:
        return self._ring(_DAEMON).values("memory")

    def _minute(self) -> int:
        return int(self._now() // 60)

    def _ring(self, agent: str) -> _Series:
        minute = self._minute()
        ring = self._rings.get(agent)
        if ring is None:
            ring = self._rings[agent] = _Series(minute)
        ring.begin(minute)
        return ring


class _Series:
    """One agent's minutes; minute m is at place m % MINUTES, and NaN is a number not known."""

    __slots__ = ("_columns", "_times", "last")

    def __init__(self, minute: int) -> None:
        self.last = minute
        self._columns: dict[str, array[float]] = defaultdict(
            lambda: array("d", [math.nan]) * MINUTES
        )
        # The answers of the current minute, by time.
        self._times: Counter[int] = Counter()

    def begin(self, minute: int) -> None:
        """Go on to this minute. After the clock was set back the last one goes on until then."""
        # Set back by more, it would go on for hours.
        if self.last - MINUTES < minute <= self.last:
            return
        self._close()
        self._times.clear()
        for passed in range(min(minute - self.last, MINUTES) if minute > self.last else MINUTES):
            for column in self._columns.values():
                column[(minute - passed) % MINUTES] = math.nan
        self.last = minute

    def add(self, name: str) -> None:
        known = self._columns[name][self.last % MINUTES]
        self.set(name, 1 if math.isnan(known) else known + 1)

    def set(self, name: str, value: float) -> None:
        self._columns[name][self.last % MINUTES] = value

    def note_recall(self, ms: float) -> None:
        self.add("recalls")
        self._times[math.ceil(math.log(max(ms, 1e-3)) / _STEP)] += 1

    def values(self, name: str) -> list[float | None]:
        self._close()
        column, after = self._columns[name], self.last % MINUTES + 1
        ordered = [*column[after:], *column[:after]]
        return [None if math.isnan(value) else value for value in ordered]

    def _close(self) -> None:
        if self._times:
            self.set("p50_ms", _percentile(self._times, 0.5))
            self.set("p99_ms", _percentile(self._times, 0.99))


def _percentile(times: Counter[int], share: float) -> float:
    """The time within which this share was answered, at most 5 percent too long."""
    left = math.ceil(share * times.total())
    for step in sorted(times):
        left -= times[step]
        if left <= 0:
            break
    return round(math.exp(step * _STEP), 3)
