"""Orders candidates by their relevance, and judges which of them surely answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from heapq import nlargest
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Weights
from ..language.meaning import CHANGE
from ..language.thesaurus import FIRST_CODE
from ..language.vocabulary import words
from ..memory.scoring import DAY, Scoring, aged, score
from ..memory.stemming import terms_of
from ..memory.tree_nodes import is_within
from ..shapes.recall import Preset
from .pool import Pool
from .presets import FADING_PER_DAY, PUBLISHED, Parts, scalyclaw, tinyclaw
from .signals import Signals, little_terms
from .sources import MEMORIES, Candidate
from .tree_search import TreeHit

# Results below this share of the best are dropped.
_LEAST_SHARE: Final = 0.05
# A newer memory that replaces another comes before it by at least this much; relevances are
# rounded to as many places, and among equals the newest is first.
_STEP: Final = 0.001
_PLACES: Final = 3
# The best statements that something may have replaced, and their least share of the best match.
_BEST: Final = 3
_LEAST_REPLACED: Final = 0.7
# The least share of the topics of the shorter of two statements that both have.
_LEAST_SHARED: Final = 0.3
_FIRST: Final = chr(FIRST_CODE)
_GROWTH: Final = 1.5
# An answer is sure from this relevance on: measured, so that four of five first results that are
# sure are right (`tests/benchmarks/recall_quality.py`).
_SURE: Final = 0.45


class Ranked(msgspec.Struct, frozen=True):
    """A candidate with its relevance and the parts of it, each 0 to 1.

    Attributes:
        at: its index in the pool.
        relevance: what it is ordered by.
        sure: whether it most likely answers.
    """

    at: int
    relevance: float
    match: float
    recency: float
    importance: float
    sure: bool = False


def rank(
    pool: Pool,
    signals: Signals,
    weights: Weights,
    now: float,
    *,
    once: bool = False,
    decay: float = FADING_PER_DAY,
) -> list[Ranked]:
    """The candidates, most relevant first; among equals the newest first.

    A memory that was replaced comes after the one that replaces it; with `once`, which asks for
    what used to be true, before it.
    """
    whole = weights.match + weights.recency + weights.importance
    matches = _matches(pool, signals, once=once)
    best = max(matches.values(), default=0.0)
    ranked: list[Ranked] = []
    for at, match in matches.items():
        if match <= 0.0 or match < _LEAST_SHARE * best:
            continue
        entry = pool.entries[at]
        recency = _recency(entry, now, decay)
        relevance = match
        if weights.recency or weights.importance:
            relevance = weights.match * match + weights.recency * recency
            relevance = (relevance + weights.importance * entry.importance) / whole
        relevance = round(relevance, _PLACES)
        ranked.append(
            Ranked(at, relevance, match, recency, entry.importance, is_sure(signals, at, match))
        )
    return _ordered(pool, ranked)


def match_of(pool: Pool, signals: Signals, at: int) -> float:
    """The sum of an entry's signals as a value from 0 to 1; .78 for one that has all words."""
    return 1 - math.exp(-_GROWTH * max(0.0, signals.relevance[at]) * pool.entries[at].source.weight)


def is_sure(signals: Signals, at: int, match: float) -> bool:
    """Whether an entry with this match most likely answers.

    One word of several is met by chance too often, however rare it is.
    """
    met = signals.met[at]
    return match >= _SURE and (len(met) > 1 or (signals.words == 1 and "" in met.values()))


def _matches(pool: Pool, signals: Signals, *, once: bool) -> dict[int, float]:
    """The match of each entry, 0 to 1, with replaced memories beside what replaced them."""
    entries = pool.entries
    matches = {at: match_of(pool, signals, at) for at in range(len(entries))}
    places = {entry.key: at for at, entry in enumerate(entries) if entry.source is MEMORIES}
    replaced = [
        (at, newer)
        for at, entry in enumerate(entries)
        if entry.superseded_by is not None
        and (newer := places.get(MEMORIES.key(entry.superseded_by))) is not None
    ]
    if not signals.dated:
        replaced += _perhaps_replaced(pool, signals, matches, once=once)
    # From the oldest on: what replaced it may itself have been replaced.
    for at, newer in sorted(replaced, key=lambda pair: entries[pair[0]].created_at):
        higher = max(matches[at], matches[newer])
        first, second = (at, newer) if once else (newer, at)
        matches[first] = higher
        matches[second] = min(matches[second], max(0.0, higher - _STEP))
    return matches


def _perhaps_replaced(
    pool: Pool, signals: Signals, matches: Mapping[int, float], *, once: bool
) -> list[tuple[int, int]]:
    """Pairs of statements of which the newer tells of a change of the same thing.

    One of each pair is among the best: the older, or with `once` the newer. Only the order follows
    from it, neither is marked. That both share a word of the question is not enough: "the dentist's
    appointment moved" changes no answer to who the dentist is.
    """
    entries = pool.entries
    lone = [at for at in matches if entries[at].source is MEMORIES and not entries[at].is_turn]
    changes = [at for at in lone if CHANGE in entries[at].codes and not entries[at].superseded_by]
    best = nlargest(_BEST, lone, key=matches.__getitem__) if changes else []
    best = [at for at in best if matches[at] >= _LEAST_REPLACED * matches[best[0]]]
    topics = {at: _topics(entries[at]) for at in lone} if best else {}
    spread = Counter(chain.from_iterable(topics.values()))
    pairs: list[tuple[int, int]] = []
    for at in best:
        if once and at not in changes:
            continue
        place = _place(entries[at])
        others = [
            other
            for other in (lone if once else changes)
            if (_place(entries[other]) < place if once else _place(entries[other]) > place)
            and not topics[at].isdisjoint(topics[other])
        ]
        others = [
            other
            for other in others
            if _is_of_same(
                *((other, at) if once else (at, other)), entries, topics, spread, signals.asked
            )
        ]
        if others and once:
            pairs.append((max(others, key=matches.__getitem__), at))
        elif others:
            pairs.append((at, max(others, key=lambda other: _place(entries[other]))))
    return pairs


def _place(entry: Candidate) -> tuple[float, int]:
    """Its place in time; of the same moment, in the order of storing."""
    return entry.created_at, entry.key


def _is_of_same(
    older: int,
    newer: int,
    entries: Sequence[Candidate],
    topics: Mapping[int, frozenset[str]],
    spread: Mapping[str, int],
    asked: Collection[str],
) -> bool:
    """Whether two statements share enough: a good part of either's topics, rare ones above all.

    A single topic must be beyond the question, or both must have a value. `spread` is the number
    of statements that have each topic.
    """
    shared = topics[older] & topics[newer]
    values = _has_value(entries[older]) and _has_value(entries[newer])
    if len(shared) == 1 and shared.issubset(asked) and not values:
        return False

    # The newer often names what it replaces: "Chloé moved to Halifax".
    if any(spread[topic] == 2 for topic in shared.difference(asked) if topic < _FIRST):
        return True

    def weight(of: Collection[str]) -> float:
        return sum(math.log1p(len(topics) / spread[topic]) for topic in of)

    least = min(weight(topics[older]), weight(topics[newer]))
    return weight(shared) >= _LEAST_SHARED * least


def _topics(entry: Candidate) -> frozenset[str]:
    """The terms with a topic of a statement, and the codes of its concepts without classes."""
    concepts = (code for code in entry.codes if code >= _FIRST and not ord(code) & 1)
    named = (term for term in entry.terms.split() if not term[0].isdigit())
    return frozenset((*concepts, *named)) - _little()


def _has_value(entry: Candidate) -> bool:
    return any(term[0].isdigit() or term in _numbers() for term in entry.terms.split())


@cache
def _little() -> frozenset[str]:
    return little_terms() | _numbers()


@cache
def _numbers() -> frozenset[str]:
    return frozenset(terms_of(" ".join(words("numbers"))))


def _ordered(pool: Pool, ranked: list[Ranked]) -> list[Ranked]:
    entries = pool.entries
    ranked.sort(key=lambda one: (-one.relevance, -entries[one.at].created_at, -entries[one.at].key))
    return ranked


def rank_as(
    pool: Pool,
    signals: Signals,
    preset: Preset,
    now: float,
    decay: float = FADING_PER_DAY,
    weights: Weights | None = None,
    scores: Mapping[int, float] | None = None,
) -> list[Ranked]:
    """All matches in the order of a published formula; BM25 as a fraction of the best.

    `scores` are those of candidates with another formula, by their index in the pool.
    """
    judge, weights = _JUDGES[preset], weights or PUBLISHED[preset]
    ranked: list[Ranked] = []
    for at, entry in enumerate(pool.entries):
        if signals.bm25[at] > 0:
            parts = judge(entry, signals.bm25[at], now, decay, weights)
            relevance = (scores or {}).get(at, parts.relevance * entry.source.weight)
            sure = is_sure(signals, at, match_of(pool, signals, at))
            ranked.append(Ranked(at, relevance, parts.match, parts.recency, parts.importance, sure))
    return _ordered(pool, ranked)


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
    for at, entry in enumerate(pool.entries):
        path = next((p for p in paths if is_within(entry.category, p.path)), None)
        if path is not None:
            worth = score(entry.importance, entry.created_at, entry.access_count, now, scoring)
            recency = _recency(entry, now, decay)
            sure = is_sure(signals, at, match_of(pool, signals, at))
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


def _recency(entry: Candidate, now: float, decay: float) -> float:
    used = max(entry.created_at, entry.last_accessed_at or 0.0)
    return math.exp(-decay * max(0.0, now - used) / DAY)
