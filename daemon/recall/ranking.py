"""Ordering candidates by how well they match, how young and how important they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Weights
from ..memory.scoring import DAY, Scoring, aged, score
from ..memory.tree_nodes import is_within
from ..shapes.recall import Preset
from .pool import Pool
from .presets import FADING_PER_DAY, PUBLISHED, Parts, scalyclaw, tinyclaw
from .signals import Signals
from .sources import SOURCES, Candidate
from .tree_search import TreeHit

# The fraction of its relevance that a superseded memory keeps.
_SUPERSEDED: Final = 0.6
# Candidates below this fraction of the best score are dropped.
_LEAST_SHARE: Final = 0.05
_SURE: Final = 0.2


class Ranked(msgspec.Struct, frozen=True):
    """A candidate with its relevance and the parts of it, each 0 to 1.

    `at` is its index in the pool.
    """

    at: int
    relevance: float
    match: float
    recency: float
    importance: float


def rank(
    pool: Pool,
    signals: Signals,
    weights: Weights,
    now: float,
    decay: float = FADING_PER_DAY,
    limit: int = 100,
) -> list[Ranked]:
    """The best `limit` candidates of each source, best first; among equals newest first.

    Ordered by the weighted sum of signals, recency and importance. Recency counts only for facts,
    which may be outdated, not for turns, which record what was said. The relevance is a separate
    estimate, comparable between questions, and need not be in the same order.
    """
    entries = pool.entries
    recencies = [_recency(entry, now, decay) for entry in entries]
    scores = [
        weights.match * score
        + weights.importance * entry.importance
        + (0.0 if entry.is_turn else weights.recency * recency)
        for score, entry, recency in zip(signals.scores, entries, recencies, strict=True)
    ]
    least = _LEAST_SHARE * max(scores, default=0.0)
    best = max((0.0, *signals.scores)) or 1.0
    order = [
        (score, entry.created_at, entry.key, at)
        for at, (score, entry) in enumerate(zip(scores, entries, strict=True))
        if score >= least
    ]
    order.sort(reverse=True)
    ranked: list[Ranked] = []
    left = [limit] * len(SOURCES)
    for _, _, _, at in order:
        entry = entries[at]
        source = entry.source
        if not left[source.number]:
            if not any(left):
                break
            continue
        left[source.number] -= 1
        relevance = signals.relevance(at) * source.weight
        if entry.superseded:
            relevance *= _SUPERSEDED
        match = max(0.0, signals.scores[at] / best)
        ranked.append(Ranked(at, relevance, match, recencies[at], entry.importance))
    return ranked


def rank_as(
    pool: Pool,
    signals: Signals,
    preset: Preset,
    now: float,
    decay: float = FADING_PER_DAY,
    weights: Weights | None = None,
) -> list[Ranked]:
    """All matches in the order of a published formula; BM25 as a fraction of the best."""
    judge, weights = _JUDGES[preset], weights or PUBLISHED[preset]
    ranked: list[Ranked] = []
    for at, entry in enumerate(pool.entries):
        if signals.bm25[at] > 0:
            parts = judge(entry, signals.bm25[at], now, decay, weights)
            relevance = parts.relevance * entry.source.weight
            ranked.append(Ranked(at, relevance, parts.match, parts.recency, parts.importance))
    entries = pool.entries
    ranked.sort(key=lambda one: (-one.relevance, -entries[one.at].created_at, -entries[one.at].key))
    return ranked


def rank_by_tree(
    pool: Pool,
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
    for at, entry in enumerate(pool.entries):
        path = next((p for p in paths if is_within(entry.category, p.path)), None)
        if path is not None:
            worth = score(entry.importance, entry.created_at, entry.access_count, now, scoring)
            found = Ranked(
                at, path.relevance, path.share, _recency(entry, now, decay), entry.importance
            )
            judged.append((worth, found))
    judged.sort(key=lambda pair: (-pair[1].relevance, -pair[0], -pool.entries[pair[1].at].key))
    return [found for _, found in judged]


def is_sure(relevance: float) -> bool:
    """Whether a result of this relevance most likely answers."""
    return relevance >= _SURE


def _tinyclaw(entry: Candidate, match: float, now: float, decay: float, weights: Weights) -> Parts:
    used = max(entry.created_at, entry.last_accessed_at or 0.0)
    days = max(0.0, now - used) / DAY
    return tinyclaw(match, days, entry.access_count, aged(entry.importance, days), decay, weights)


def _scalyclaw(entry: Candidate, match: float, now: float, decay: float, weights: Weights) -> Parts:
    days = max(0.0, now - entry.updated_at) / DAY
    return scalyclaw(match, days, entry.importance, decay, weights)


_Judge: TypeAlias = Callable[[Candidate, float, float, float, Weights], Parts]
_JUDGES: Final[Mapping[Preset, _Judge]] = {"tinyclaw": _tinyclaw, "scalyclaw": _scalyclaw}


def _recency(entry: Candidate, now: float, decay: float) -> float:
    used = max(entry.created_at, entry.last_accessed_at or 0.0)
    return math.exp(-decay * max(0.0, now - used) / DAY)
