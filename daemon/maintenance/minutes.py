"""What happened in each of the last 120 minutes, in memory alone."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

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
