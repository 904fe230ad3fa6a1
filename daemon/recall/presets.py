"""The ranking formulas of two earlier systems, with their published numbers.

The formulas are unchanged; their inputs differ where the originals are wrong:

- Tiny Claw uses the time since a memory was last *used*. If it was never used, we use the time
since it was created, so that it is neither always first nor always last.
- Two systems rank full-text matches in the wrong order. SQLite's BM25 is negative, with the
lowest value for the best match. ScalyClaw maps its absolute value to 1 for the smallest and
0.5 for the largest, profClaw to 1 / (1 + size): in both the best match scores lowest. We
negate it once and divide by the best; see `shares_of_best`.
- ScalyClaw drops vectors with a distance above a threshold. A share of the best match is no
distance: the weights order, and drop nothing.
- A time in the future counts as now, so that a clock that was set back does no harm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..config.settings import Weights
from ..shapes.recall import Preset

_NO_WORD: Final = re.compile(r"[^a-z0-9\s]")
FADING_PER_DAY: Final = 0.05
GAIN_PER_USE: Final = 0.02
# The weights of each.
PUBLISHED: Final[Mapping[Preset, Weights]] = {
    "tinyclaw": Weights(0.4, 0.3, 0.3),
    "scalyclaw": Weights(0.6, 0.2, 0.2),
}


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
    weights: Weights = PUBLISHED["tinyclaw"],
) -> Parts:
    """0.4 × full-text share + 0.3 × recency + 0.3 × importance.

    Args:
        fts: the share of the best match's score, 0 to 1; see `shares_of_best`.
        days_since_access: since it was last used, else created.
        access_count: the number of uses.
        importance: 0 to 1.
        decay: per day; the published value is 0.05, also in `scalyclaw`.
        weights: the published ones, or those of the caller.
    """
    recency = tinyclaw_recency(days_since_access, access_count, decay)
    return _weighted(weights, fts, recency, importance)


def tinyclaw_recency(
    days_since_access: float, access_count: int, decay: float = FADING_PER_DAY
) -> float:
    """min(1, exp(−decay × days) × (1 + 0.02 × uses))."""
    return min(1.0, _faded(days_since_access, decay) * (1.0 + GAIN_PER_USE * access_count))


def tinyclaw_pair(query: str, text: str) -> float | None:
    """Half the share of the query's words that are part of `text`; None if it has no words.

    `text` is the key of the pair, a colon and the value. As published, words are of the letters a
    to z and of digits.
    """
    words = [word for word in _NO_WORD.sub(" ", query.lower()).split() if len(word) > 1]
    if not words:
        return None
    lower = text.lower()
    return 0.5 * sum(word in lower for word in words) / len(words)


def scalyclaw(
    semantic: float,
    days_since_update: float,
    importance: float,
    decay: float = FADING_PER_DAY,
    weights: Weights = PUBLISHED["scalyclaw"],
) -> Parts:
    """0.6 × match + 0.2 × exp(−decay × days) + 0.2 × importance.

    Args:
        semantic: how well it matches, 0 to 1.
        days_since_update: since its last change.
        importance: 0 to 1. The system's own scale is 1 to 10, divided by 10, so that the minimum
            is 0.1; see `scalyclaw_importance`.
        decay: per day.
        weights: the published ones, or those of the caller.
    """
    counted = scalyclaw_importance(importance) / 10.0
    return _weighted(weights, semantic, _faded(days_since_update, decay), counted)


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


def _weighted(weights: Weights, match: float, recency: float, importance: float) -> Parts:
    relevance = weights.match * match + weights.recency * recency + weights.importance * importance
    return Parts(relevance, match, recency, importance)


def _faded(days: float, decay: float) -> float:
    return math.exp(-decay * max(0.0, days))
