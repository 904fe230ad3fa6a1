"""The ranking formulas of two earlier systems, with their published numbers.

The formulas are unchanged; their inputs differ where the originals are wrong:

- Tiny Claw uses the time since a memory was last *used*. If it was never used, we use the time
since it was created, so that it is neither always first nor always last.
- Two systems rank full-text matches in the wrong order. SQLite's BM25 is negative, with the
lowest value for the best match. ScalyClaw maps its absolute value to 1 for the smallest and
0.5 for the largest, profClaw to 1 / (1 + size): in both the best match scores lowest. We
negate it once and divide by the best; see `shares_of_best`.
- ScalyClaw's 1 − distance can be negative, since the distance of its vectors can be up to 2; here
such a match is below every threshold.
- A time in the future counts as now, so that a clock that was set back does no harm.
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
        days_since_access: since it was last used, else created.
        access_count: the number of uses.
        importance: 0 to 1.
        decay: per day; the published value is 0.05, also in `scalyclaw`.
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
        semantic: how well it matches, 0 to 1; values below `threshold` are no match.
        days_since_update: since its text last changed.
        importance: 0 to 1. The system's own scale is 1 to 10, divided by 10, so that the minimum
            is 0.1; see `scalyclaw_importance`.
        threshold: 0, as published, admits everything.
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
    """Scores as fractions of the best, 0 to 1, in the same order; a higher score is better.

    All 0 if the best is not above 0. SQLite's `bm25` must be negated first.
    """
    best = max(scores, default=0.0)
    if best <= 0.0:
        return [0.0] * len(scores)
    return [max(0.0, score / best) for score in scores]


def _faded(days: float, decay: float) -> float:
    return math.exp(-decay * max(0.0, days))
