"""The cost of models: the daily budget, and the counts since the start."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ..config.settings import Llm
from ..schemas.status import DayLimits, PurposeUsage, Spent

FILE: Final = "llm-usage.json"
_MOST_DAYS: Final = 31
_LATEST: Final = 256
_UNDER_WAY: Final = ", and running requests may need the rest"

Write = Callable[[Path, bytes], object]


class Budget:
    """The cost of each day in the device's time zone, and whether the limit is reached.

    Counts survive a restart once `save` has returned. If the clock is set back, the counts of that
    day are used again, so that no day has two budgets. `write` replaces a file durably; `now`
    returns seconds since the epoch.
    """

    def __init__(
        self, path: Path, write: Write, now: Callable[[], float], settings: Callable[[], Llm]
    ) -> None:
        self._path = path
        self._write = write
        self._now = now
        self._settings = settings
        self._days: dict[str, Spent] = {}
        self._reserved = 0

    def load(self) -> None:
        """Read the counts, or raise what keeps them from being read: then they begin at zero."""
        with suppress(FileNotFoundError):
            self._days = msgspec.json.decode(self._path.read_bytes(), type=dict[str, Spent])

    @property
    def day(self) -> str:
        """Today's date in the device's time zone, as `2026-02-28`."""
        return time.strftime("%Y-%m-%d", time.localtime(self._now()))

    @property
    def today(self) -> Spent:
        return self._days.get(self.day, Spent())

    @property
    def limits(self) -> DayLimits:
        settings = self._settings()
        return DayLimits(settings.daily_tokens, settings.daily_cost)

    def why_spent(self) -> str | None:
        """The limit that is reached, in words; None if there is room.

        Running requests count with their maximum tokens; in dollars at the latest known price of a
        token, or not at all before a price is known.
        """
        limits, today = self.limits, self.today
        latest = (self._days[day] for day in sorted(self._days, reverse=True))
        price = next((day.cost / day.tokens for day in latest if day.cost and day.tokens), 0.0)
        if limits.tokens and today.tokens + self._reserved >= limits.tokens:
            text = f"{today.tokens:,} of {limits.tokens:,} tokens"
            return text if today.tokens >= limits.tokens else f"{text}{_UNDER_WAY}"
        if limits.cost and today.cost + self._reserved * price >= limits.cost:
            text = f"{_money(today.cost)} of {_money(limits.cost)} dollars"
            return text if today.cost >= limits.cost else f"{text}{_UNDER_WAY}"
        return None

    def reserve(self, tokens: int) -> None:
        """Reserve tokens for a request under way, until `charge`."""
        self._reserved += tokens

    def charge(self, reserved: int, tokens: int, cost: float | None) -> None:
        """Count the cost of a request; `cost` is None if the price is unknown."""
        self._reserved -= reserved
        if not tokens and not cost:
            return
        day = self._days.setdefault(self.day, Spent())
        day.calls += 1
        day.tokens += tokens
        day.cost += cost or 0.0
        day.unpriced += cost is None
        for old in sorted(self._days)[:-_MOST_DAYS]:
            del self._days[old]

    def save(self) -> None:
        """Write the counts to disk. If that raises, the file is unchanged. Blocking."""
        self._write(self._path, msgspec.json.encode(self._days))


def _money(dollars: float) -> str:
    return f"{dollars:.2f}" if dollars >= 0.1 else f"{dollars:.2g}"


class UsageCounts:
    """Questions and their cost since the start, by purpose."""

    def __init__(self) -> None:
        self._purposes: dict[str, PurposeUsage] = {}
        # The seconds of the latest answers of each purpose.
        self._seconds: dict[str, deque[float]] = {}
        self._cleared: Counter[str] = Counter()

    def called(self, purpose: str, cleared: dict[str, int]) -> None:
        self._of(purpose).calls += 1
        self._cleared.update(cleared)

    def answered(self, purpose: str, seconds: float | None, *, repaired: bool) -> None:
        """Count an answer; `seconds` is None if it came from the cache."""
        counts = self._of(purpose)
        counts.repaired += repaired
        if seconds is None:
            counts.cached += 1
        else:
            latest = self._seconds.setdefault(purpose, deque(maxlen=_LATEST))
            latest.append(seconds)

    def failed(self, purpose: str, code: str) -> None:
        counts = self._of(purpose)
        counts.errors += 1
        counts.last_error = code

    def charged(self, purpose: str, tokens_in: int, tokens_out: int, cost: float | None) -> None:
        counts = self._of(purpose)
        counts.tokens_in += tokens_in
        counts.tokens_out += tokens_out
        counts.cost += cost or 0.0

    def purposes(self) -> dict[str, PurposeUsage]:
        usage = {}
        for name, counts in self._purposes.items():
            ranked = sorted(self._seconds.get(name, ()))
            usage[name] = msgspec.structs.replace(
                counts,
                cost=round(counts.cost, 6),
                p50_seconds=_percentile(ranked, 0.5),
                p95_seconds=_percentile(ranked, 0.95),
            )
        return usage

    def cleared(self) -> dict[str, int]:
        return dict(self._cleared)

    def _of(self, purpose: str) -> PurposeUsage:
        return self._purposes.setdefault(purpose, PurposeUsage())


def _percentile(ranked: list[float], share: float) -> float:
    return round(ranked[max(0, math.ceil(share * len(ranked)) - 1)], 4) if ranked else 0.0
