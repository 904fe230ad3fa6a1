"""The ranking formulas of earlier systems, with their published numbers.

The formulas are unchanged; their inputs differ where the originals are wrong:

- Tiny Claw uses the time since a memory was last *used*. If it was never used, we use the time
since it was created, so that it is neither always first nor always last.
- Two systems rank full-text matches in the wrong order. SQLite's BM25 is negative, with the
lowest value for the best match. ScalyClaw maps its absolute value to 1 for the smallest and
0.5 for the largest, profClaw to 1 / (1 + size): in both the best match scores lowest. We
negate it once and divide by the best.
- ScalyClaw drops vectors with a distance above a threshold, and takes full-text matches if none is
left. A share of the best match is no distance: there the weights order, and drop nothing.
- A time in the future counts as now, so that a clock that was set back does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Weights
from ..memory.scoring import DAY, Scoring, aged, score
from ..memory.tree_nodes import is_within
from ..schemas.recall import Preset
from .pool import Pool
from .ranking import FADING_PER_DAY, Ranked, faded, is_sure, matches_of, recency_of
from .signals import Signals
from .sources import Candidate
from .tree_search import TreeHit

_NO_WORD: Final = re.compile(r"[^a-z0-9\s]")
GAIN_PER_USE: Final = 0.02
# ScalyClaw's least similarity of a vector; we use the cosine.
_LEAST_SIMILARITY: Final = 0.5
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
        fts: the share of the best match's score, 0 to 1.
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
    return min(1.0, faded(days_since_access, decay) * (1.0 + GAIN_PER_USE * access_count))


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
    return _weighted(weights, semantic, faded(days_since_update, decay), counted)


def scalyclaw_importance(importance: float) -> float:
    """Our importance, 0 to 1, on that system's scale of 1 to 10."""
    return min(max(importance * 10.0, 1.0), 10.0)


def _weighted(weights: Weights, match: float, recency: float, importance: float) -> Parts:
    relevance = weights.match * match + weights.recency * recency + weights.importance * importance
    return Parts(relevance, match, recency, importance)


def rank_as(
    pool: Pool,
    signals: Signals,
    preset: Preset,
    now: float,
    decay: float = FADING_PER_DAY,
    weights: Weights | None = None,
    scores: Mapping[int, float] | None = None,
    near: Mapping[int, float] | None = None,
) -> list[Ranked]:
    """All matches in the order of a published formula; BM25 as a fraction of the best.

    `scores` are those of candidates with another formula, by their index in the pool; `near` the
    cosines of the nearest by key, which match in place of the words if one is near enough.
    """
    judge, weights = _JUDGES[preset], weights or PUBLISHED[preset]
    ranked: list[Ranked] = []
    matches = matches_of(pool, signals)
    similar = {key: value for key, value in (near or {}).items() if value >= _LEAST_SIMILARITY}
    for at, entry in enumerate(pool.entries):
        match = similar.get(entry.key, 0.0) if similar else signals.bm25[at]
        if match > 0:
            parts = judge(entry, match, now, decay, weights)
            relevance = (scores or {}).get(at, parts.relevance * entry.source.weight)
            sure = is_sure(pool, signals, at, matches[at])
            ranked.append(Ranked(at, relevance, parts.match, parts.recency, parts.importance, sure))
    entries = pool.entries
    ranked.sort(
        key=lambda item: (-item.relevance, -entries[item.at].created_at, -entries[item.at].key)
    )
    return ranked


def rank_by_tree(
    pool: Pool,
    signals: Signals,
    paths: Sequence[TreeHit],
    scoring: Scoring,
    now: float,
    decay: float = FADING_PER_DAY,
) -> list[Ranked]:
    """The candidates of the categories that the query names, as EvoClaw orders them.

    The relevance is that of the category, which may exceed 1; within a category the memory's
    score decides.
    """
    judged: list[tuple[float, Ranked]] = []
    matches = matches_of(pool, signals)
    for at, entry in enumerate(pool.entries):
        path = next((p for p in paths if is_within(entry.category, p.path)), None)
        if path is not None:
            worth = score(entry.importance, entry.created_at, entry.access_count, now, scoring)
            recency = recency_of(entry, now, decay)
            sure = is_sure(pool, signals, at, matches[at])
            ranked = Ranked(at, path.relevance, path.share, recency, entry.importance, sure)
            judged.append((worth, ranked))
    judged.sort(key=lambda pair: (-pair[1].relevance, -pair[0], -pool.entries[pair[1].at].key))
    return [ranked for _, ranked in judged]


def _tinyclaw(entry: Candidate, match: float, now: float, decay: float, weights: Weights) -> Parts:
    used = max(entry.created_at, entry.last_accessed_at or 0.0)
    days = max(0.0, now - used) / DAY
    return tinyclaw(match, days, entry.access_count, aged(entry.importance, days), decay, weights)


def _scalyclaw(entry: Candidate, match: float, now: float, decay: float, weights: Weights) -> Parts:
    days = max(0.0, now - entry.updated_at) / DAY
    return scalyclaw(match, days, entry.importance, decay, weights)


_Judge: TypeAlias = Callable[[Candidate, float, float, float, Weights], Parts]
_JUDGES: Final[Mapping[Preset, _Judge]] = {"tinyclaw": _tinyclaw, "scalyclaw": _scalyclaw}
