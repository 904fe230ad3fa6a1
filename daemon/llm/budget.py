"""What may be spent on models in a day, in tokens and in money."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from ..config.settings import Llm

FILE: Final = "llm-usage.json"
_MOST_DAYS: Final = 31
_UNDER_WAY: Final = ", and what is under way may cost the rest"

Write = Callable[[Path, bytes], object]


class DayLimits(msgspec.Struct, frozen=True):
    """The most for a day, as status shows it; 0 for no limit. The cost is in US dollars."""

    tokens: int = 0
    cost: float = 0.0


class Spent(msgspec.Struct):
    """What one day has cost.

    Attributes:
        unpriced: calls of models whose price is not known, and not in `cost`.
    """

    tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    unpriced: int = 0


class Budget:
    """Counts what is spent, by the device's own days, and says when it is enough.

    What was counted survives a restart once `save` has returned. A clock that is set back finds
    the count of that day again, so that no day has two budgets.

    Args:
        path: where the counts are kept.
        write: replaces a file durably.
        now: seconds since the epoch.
        settings: gives the limits in force.
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

    def load(self) -> Path | None:
        """Read the counts. Blocking.

        Returns:
            Where a damaged file was set aside, in whose place the counts begin anew; else None.

        Raises:
            OSError: it cannot be read, or not be set aside; it counts as none all the same.
        """
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            self._days = msgspec.json.decode(content, type=dict[str, Spent])
        except (msgspec.MsgspecError, RecursionError):
            stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._now()))
            aside = self._path.with_name(f"{self._path.name}.corrupt-{stamp}")
            self._write(aside, content)
            self.save()
            return aside
        return None

    @property
    def day(self) -> str:
        """Today, where the device is, as `2026-02-28`."""
        return time.strftime("%Y-%m-%d", time.localtime(self._now()))

    @property
    def today(self) -> Spent:
        """What today has cost so far."""
        return self._days.get(self.day, Spent())

    @property
    def limits(self) -> DayLimits:
        """What today may cost."""
        settings = self._settings()
        return DayLimits(settings.daily_tokens, settings.daily_cost)

    def why_spent(self) -> str | None:
        """Which limit is reached, in words; None while there is room.

        Requests under way count with what they may still cost: in dollars by what a token has
        cost of late, and with nothing before the first price is known.
        """
        limits, today = self.limits, self.today
        reserved = self._reserved * self._price()
        if limits.tokens and today.tokens + self._reserved >= limits.tokens:
            text = f"{today.tokens:,} of {limits.tokens:,} tokens"
            return text if today.tokens >= limits.tokens else f"{text}{_UNDER_WAY}"
        if limits.cost and today.cost + reserved >= limits.cost:
            text = f"{_money(today.cost)} of {_money(limits.cost)} dollars"
            return text if today.cost >= limits.cost else f"{text}{_UNDER_WAY}"
        return None

    def reserve(self, tokens: int) -> None:
        """Keep room for a request under way; `settle` gives it back."""
        self._reserved += tokens

    def settle(self, reserved: int, tokens: int, cost: float | None) -> None:
        """Count what a request has really cost; `cost` None where the price is not known."""
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
        """Write the counts down. Blocking.

        Raises:
            OSError: the disk refused; what was there before is there still.
        """
        self._write(self._path, msgspec.json.encode(self._days))

    def _price(self) -> float:
        """Of a token, in dollars, on the last day that has cost anything."""
        latest = (self._days[day] for day in sorted(self._days, reverse=True))
        return next((day.cost / day.tokens for day in latest if day.cost and day.tokens), 0.0)


def _money(dollars: float) -> str:
    """Cents, and of less than ten of them two digits: a model's answer may cost a hundredth."""
    return f"{dollars:.2f}" if dollars >= 0.1 else f"{dollars:.2g}"
