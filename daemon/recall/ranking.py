"""Ordering candidates by how well they match, how young and how important they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from ..memory.scoring import DAY
from .fulltext import Candidate

# Tiny Claw's constants: a memory fades by 5 % a day since its last use, each use adds 2 %.
_FADING_PER_DAY: Final = 0.05
_GAIN_PER_USE: Final = 0.02


class Weights(msgspec.Struct, frozen=True):
    """What each part counts, relative to the others."""

    match: float = 0.6
    recency: float = 0.2
    importance: float = 0.2


class Ranked(msgspec.Struct, frozen=True):
    """A candidate with its relevance, 0 to 1, and the parts that make it, each 0 to 1."""

    row: int
    relevance: float
    match: float
    recency: float
    importance: float


def rank(candidates: Sequence[Candidate], weights: Weights, now: float) -> list[Ranked]:
    """The candidates, the most relevant first; of equals, the newer."""
    best = max((candidate.match for candidate in candidates), default=0.0) or 1.0
    total = (weights.match + weights.recency + weights.importance) or 1.0
    ranked: list[Ranked] = []
    for candidate in candidates:
        match = max(0.0, candidate.match / best)
        recency = _recency(candidate, now)
        relevance = (
            weights.match * match
            + weights.recency * recency
            + weights.importance * candidate.importance
        ) / total
        ranked.append(Ranked(candidate.row, relevance, match, recency, candidate.importance))
    ranked.sort(key=lambda found: (-found.relevance, -found.row))
    return ranked


def _recency(candidate: Candidate, now: float) -> float:
    used = max(candidate.created_at, candidate.last_accessed_at or 0.0)
    days = max(0.0, now - used) / DAY
    gained = 1.0 + _GAIN_PER_USE * candidate.access_count
    return min(1.0, math.exp(-_FADING_PER_DAY * days) * gained)
