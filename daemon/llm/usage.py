"""What models were used for since the start: calls, errors, tokens, cost, and how long it took."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import Final

import msgspec

_LATEST: Final = 256


class PurposeUsage(msgspec.Struct, frozen=True):
    """One purpose's numbers.

    Attributes:
        calls: questions, those answered from the cache included.
        errors: questions without a usable reply.
        repaired: replies that were of use only at the second attempt.
        cost: in US dollars, as far as prices are known.
        p50_seconds, p95_seconds: of the latest replies that were not cached; 0 without one.
        last_error: why the last question without a reply got none, in a word.
    """

    calls: int
    errors: int
    cached: int
    repaired: int
    tokens_in: int
    tokens_out: int
    cost: float
    p50_seconds: float
    p95_seconds: float
    last_error: str | None


class Usage:
    """Counts, by purpose."""

    def __init__(self) -> None:
        self._purposes: dict[str, _Counts] = {}
        self._cleared: Counter[str] = Counter()

    def called(self, purpose: str, cleared: dict[str, int]) -> None:
        """A question was asked, and so many secrets were taken out of it."""
        self._of(purpose).calls += 1
        self._cleared.update(cleared)

    def answered(self, purpose: str, seconds: float | None, *, repaired: bool) -> None:
        """A question was answered; `seconds` None from the cache."""
        counts = self._of(purpose)
        counts.repaired += repaired
        if seconds is None:
            counts.cached += 1
        else:
            counts.seconds.append(seconds)

    def failed(self, purpose: str, code: str) -> None:
        """A question got no usable reply."""
        counts = self._of(purpose)
        counts.errors += 1
        counts.last_error = code

    def took(self, purpose: str, tokens_in: int, tokens_out: int, cost: float | None) -> None:
        """A request to a model has cost this much."""
        counts = self._of(purpose)
        counts.tokens_in += tokens_in
        counts.tokens_out += tokens_out
        counts.cost += cost or 0.0

    def purposes(self) -> dict[str, PurposeUsage]:
        """The numbers of each purpose that was asked for."""
        return {name: counts.shown() for name, counts in self._purposes.items()}

    def cleared(self) -> dict[str, int]:
        """How many secrets of each kind were kept from models."""
        return dict(self._cleared)

    def _of(self, purpose: str) -> _Counts:
        return self._purposes.setdefault(purpose, _Counts())


class _Counts:
    def __init__(self) -> None:
        self.calls = self.errors = self.cached = self.repaired = 0
        self.tokens_in = self.tokens_out = 0
        self.cost = 0.0
        self.seconds: deque[float] = deque(maxlen=_LATEST)
        self.last_error: str | None = None

    def shown(self) -> PurposeUsage:
        ranked = sorted(self.seconds)
        return PurposeUsage(
            calls=self.calls,
            errors=self.errors,
            cached=self.cached,
            repaired=self.repaired,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost=round(self.cost, 6),
            p50_seconds=_percentile(ranked, 0.5),
            p95_seconds=_percentile(ranked, 0.95),
            last_error=self.last_error,
        )


def _percentile(ranked: list[float], share: float) -> float:
    """The smallest value that so large a share does not exceed."""
    return round(ranked[max(0, math.ceil(share * len(ranked)) - 1)], 4) if ranked else 0.0
