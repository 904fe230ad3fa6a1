"""The ranking formulas of two earlier systems, with their published numbers.

The formulas are theirs; what is fed into them differs where theirs goes wrong:

- Tiny Claw takes the time since a memory was last *used*. One that was never used has no such
  time; we count from when it was made, so that it neither leads for ever nor comes last.
- Two systems rank backwards by full text. SQLite's BM25 is negative, the best match the lowest.
  ScalyClaw takes its size and gives 1 to the smallest and 0.5 to the largest, profClaw takes
  1 / (1 + size): with either the best match gets the smallest share. We turn the rank round once,
  where it is read, and divide by the best: `shares_of_best` puts no worse match above a better.
- ScalyClaw's 1 − distance falls below 0, as its vectors' distance can be up to 2; such a match is
  below any threshold here.
- A time in the future counts as now: a clock that was set back makes nothing younger than new.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

FADING_PER_DAY: Final = 0.05
GAIN_PER_USE: Final = 0.02
SCALYCLAW_THRESHOLD: Final = 0.5


class Parts(msgspec.Struct, frozen=True):
    """A relevance and what made it: each part between 0 and 1, before its weight."""

    relevance: float
    match: float
    recency: float
    importance: float


def tinyclaw(
    fts: float,
    days_since_access: float,
    access_count: int,
    importance: float,
    decay: float = FADING_PER_DAY,
) -> Parts:
    """0.4 × full-text share + 0.3 × recency + 0.3 × importance.

    Args:
        fts: the share of the best match's score, 0 to 1; see `shares_of_best`.
        days_since_access: since it was last used, or made if it never was.
        access_count: how often it was used.
        importance: 0 to 1.
        decay: per day; the published number is 0.05, in `scalyclaw` too.
    """
    recency = tinyclaw_recency(days_since_access, access_count, decay)
    relevance = 0.4 * fts + 0.3 * recency + 0.3 * importance
    return Parts(relevance, fts, recency, importance)


def tinyclaw_recency(
    days_since_access: float, access_count: int, decay: float = FADING_PER_DAY
) -> float:
    """min(1, exp(−decay × days) × (1 + 0.02 × uses))."""
    return min(1.0, _faded(days_since_access, decay) * (1.0 + GAIN_PER_USE * access_count))


def scalyclaw(
    semantic: float,
    days_since_update: float,
    importance: float,
    *,
    threshold: float = SCALYCLAW_THRESHOLD,
    decay: float = FADING_PER_DAY,
) -> Parts | None:
    """0.6 × match + 0.2 × exp(−decay × days) + 0.2 × importance; None below the threshold.

    Args:
        semantic: how well it matches, 0 to 1; what is below `threshold` is no match at all.
        days_since_update: since its text last changed.
        importance: 0 to 1. The system's own scale is 1 to 10, clamped, and then divided by 10,
            so that nothing counts less than 0.1; see `scalyclaw_importance`.
        threshold: 0 lets everything through, as the published numbers do.
        decay: per day.
    """
    if semantic < threshold:
        return None
    recency = _faded(days_since_update, decay)
    counted = scalyclaw_importance(importance) / 10.0
    return Parts(0.6 * semantic + 0.2 * recency + 0.2 * counted, semantic, recency, counted)


def scalyclaw_importance(importance: float) -> float:
    """Our importance, 0 to 1, on that system's scale of 1 to 10."""
    return min(max(importance * 10.0, 1.0), 10.0)


def shares_of_best(scores: Sequence[float]) -> list[float]:
    """Scores of which more is better, as shares of the best, 0 to 1, in the same order.

    All 0 if the best is not above 0. SQLite's `bm25` must be negated before it comes here.
    """
    best = max(scores, default=0.0)
    if best <= 0.0:
        return [0.0] * len(scores)
    return [max(0.0, score / best) for score in scores]


def _faded(days: float, decay: float) -> float:
    return math.exp(-decay * max(0.0, days))
