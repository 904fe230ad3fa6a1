"""How likely a candidate answers a question, from 0 to 1 on one scale for all questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from .query import Query

# A logistic function of 1, the evidence over ln(1 + N), the coverage of the query, and
# ln(1 + the number of words known).
CALIBRATION: Final = (-6.3, 2.1, 7.6, 1.5)
_MOST_COVERAGE: Final = 1.5


class Evidence(msgspec.Struct, frozen=True):
    """What the words of a question say of each candidate.

    Attributes:
        own, around, kin, path: as in `signals`.
        weight: of the words that each has.
        asked: that of all words of the question, with the unknown ones.
        known: how many words are known.
        size: how many texts there are.
    """

    own: Sequence[float]
    around: Sequence[float]
    kin: Sequence[float]
    path: Sequence[float]
    weight: Sequence[float]
    asked: float
    known: int
    size: int


def relevance(
    query: Query, found: Evidence, columns: Mapping[str, Sequence[float]]
) -> Callable[[int], float]:
    """What tells how likely a candidate answers; `columns` are the signals."""
    constant, by_evidence, by_coverage, by_words = CALIBRATION
    constant += by_words * math.log1p(found.known)
    by_evidence /= math.log1p(found.size) or 1.0
    # A category, a person or a day alone says something where there are no other words.
    worths = {"category": 0.5, "reasoned": 1.0, "phrase": 0.9}
    if not query.topics:
        worths |= {"actor": 0.5, "day": 0.6, "date": 0.5}
    sure = [(worth, columns[name]) for name, worth in worths.items() if name in columns]

    def of(at: int) -> float:
        kin, path = found.kin[at], found.path[at]
        evidence = found.own[at] + 0.5 * found.around[at] + 0.25 * kin + 0.3 * path
        coverage = min(_MOST_COVERAGE, (found.weight[at] + 0.5 * kin + path) / found.asked)
        power = constant + by_evidence * evidence + by_coverage * coverage
        likely = 1 / (1 + math.exp(-max(-50.0, power)))
        return max(likely, *(worth * min(1.0, column[at]) for worth, column in sure), 0.0)

    return of
