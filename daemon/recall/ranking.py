"""Orders candidates by their relevance, and judges which of them surely answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Weights
from ..memory.scoring import DAY
from .pool import Pool
from .signals import Signals, different_words
from .sources import EPISODES, MEMORIES, Candidate
from .successors import successors
from .word_scores import little_terms

FADING_PER_DAY: Final = 0.05
# Results below this share of the best are dropped.
_LEAST_SHARE: Final = 0.05
# A newer memory that replaces another comes before it by at least this much; relevances are
# rounded to as many places, and among equals the newest is first.
_STEP: Final = 0.001
_PLACES: Final = 3
_GROWTH: Final = 1.5
# A candidate of which better ones have said more than the first share keeps the second share of its
# relevance.
_REPEATED: Final = 0.9
_YIELDS: Final = 0.8
# The number of the best candidates that are compared.
_COMPARED: Final = 16
# An answer is sure from this relevance on: measured, so that four of five first results that are
# sure are right (`tests/benchmarks/recall_quality.py`).
_SURE: Final = 0.42

# A term of the mark in place of a secret, "[password removed]".
_REMOVED: Final = " remov "

# Relevance, time of telling, key, and index in the pool.
_Place: TypeAlias = tuple[float, float, int, int]


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
) -> Iterator[Ranked]:
    """The candidates, most relevant first; among equals the newest first.

    A replaced memory comes after its replacement; with `once`, which asks for what used to be
    true, before it; so do the turns and episodes that tell it. What better candidates have said
    already yields to what says more, and what only repeats the question to a sure answer.
    """
    entries = pool.entries
    matches, by = _with_replaced(pool, signals, once=once)

    def sure(at: int) -> bool:
        return any(is_sure(pool, signals, answer, matches[at]) for answer in by.get(at, (at,)))

    least = _LEAST_SHARE * max(matches, default=0.0)
    whole = weights.match + weights.recency + weights.importance
    order: list[_Place] = []
    for at, match in enumerate(matches):
        if match <= 0.0 or match < least:
            continue
        entry, relevance = entries[at], match
        if weights.recency or weights.importance:
            relevance = weights.match * match + weights.recency * recency_of(entry, now, decay)
            relevance = (relevance + weights.importance * entry.importance) / whole
        order.append((round(relevance, _PLACES), entry.created_at, entry.key, at))
    order.sort(reverse=True)
    order[:_COMPARED] = _with_repeats(order[:_COMPARED], entries, by)
    order[:_COMPARED] = _with_repeated_questions(order[:_COMPARED], entries, signals, sure)
    order.sort(reverse=True)
    # Only the first of them are read.
    for relevance, _, _, at in order:
        entry = entries[at]
        recency = recency_of(entry, now, decay)
        yield Ranked(at, relevance, matches[at], recency, entry.importance, sure(at))


def _with_repeats(
    order: Sequence[_Place], entries: Sequence[Candidate], replacing: Mapping[int, Sequence[int]]
) -> Iterator[_Place]:
    """The best candidates, those with less relevance that add nothing to the ones before them.

    Of several memories with the same words the first answers, and the next place is worth more
    to another. What comes before something by `replacing` keeps its place.
    """
    bags = [frozenset(entries[at].terms.split()) for _, _, _, at in order]
    spread = Counter(chain.from_iterable(bags))
    worth = {term: math.log1p(len(bags) / count) for term, count in spread.items()}
    shown_terms: set[str] = set()
    for place, bag in zip(order, bags, strict=True):
        relevance, created_at, key, at = place
        repeated = math.fsum(map(worth.__getitem__, bag & shown_terms))
        whole = math.fsum(map(worth.__getitem__, bag))
        shown_terms |= bag
        if not replacing.get(at) and repeated > _REPEATED * whole:
            relevance = round(_YIELDS * relevance, _PLACES)
        yield relevance, created_at, key, at


def _with_repeated_questions(
    order: Sequence[_Place],
    entries: Sequence[Candidate],
    signals: Signals,
    sure: Callable[[int], bool],
) -> Iterator[_Place]:
    """The best candidates, those that only repeat the question behind the first sure answer."""
    questions = {at for _, _, _, at in order if _repeats_question(entries[at], signals)}
    answers = (relevance for relevance, _, _, at in order if questions and sure(at))
    most = round(max(answers, default=math.inf) - _STEP, _PLACES)
    for relevance, created_at, key, at in order:
        yield min(relevance, most) if at in questions else relevance, created_at, key, at


def _repeats_question(entry: Candidate, signals: Signals) -> bool:
    """Whether it has the words of a question, but not its answer: episodes, and equal questions."""
    query_terms, little = signals.query_terms, little_terms()
    return entry.is_question and (
        entry.source is EPISODES
        or all(term in query_terms or term in little for term in entry.terms.split())
    )


def matches_of(pool: Pool, signals: Signals) -> list[float]:
    """The sum of each entry's signals as a value from 0 to 1; .78 with all words."""
    return [
        1 - math.exp(-_GROWTH * relevance * entry.source.weight) if relevance > 0 else 0.0
        for entry, relevance in zip(pool.entries, signals.relevance, strict=True)
    ]


def is_sure(pool: Pool, signals: Signals, at: int, match: float) -> bool:
    """Whether an entry with this match most likely answers.

    One word of several is met by chance too often, however rare it is. What repeats a question is
    no answer, nor is a text from which a secret was removed an answer to a question for it.
    """
    entry = pool.entries[at]
    if _repeats_question(entry, signals):
        return False
    if signals.secret and _REMOVED in f" {entry.terms} ":
        return False
    met = signals.met[at]
    is_met = _is_several(met) or (signals.words == 1 and "" in met.values())
    return match >= _SURE and is_met and signals.decisive <= met.keys()


def _is_several(met: Mapping[str, str]) -> bool:
    """Whether more than one thing of the question is met.

    What one concept meets is one; so are a word and a phrase that has it: "drive" and "do we
    drive".
    """
    return len({by or word for word, by in met.items()}) > 1 and different_words(met) > 1


def _with_replaced(
    pool: Pool, signals: Signals, *, once: bool
) -> tuple[list[float], dict[int, tuple[int, ...]]]:
    """The match of each entry, 0 to 1, with replaced memories beside what replaced them.

    And for each of these the entries by which it may be sure: of two statements about one thing
    what is asked for is as sure as either, the other never.
    """
    entries, matches = pool.entries, matches_of(pool, signals)
    places = {entry.key: at for at, entry in enumerate(entries)}
    replaced = [
        (at, newer)
        for at, entry in enumerate(entries)
        if entry.superseded_by is not None
        and (newer := places.get(MEMORIES.key(entry.superseded_by))) is not None
    ]
    replaced += [
        (told, newer)
        for at, newer in replaced
        for told in range(len(entries))
        if told != at
        and _retells(entries[told], entries[at], entries[newer])
        # For what else it says, it is as true as before.
        and signals.met[told].keys() <= signals.met[at].keys()
    ]
    if "phrase" not in signals.columns:
        replaced += successors(pool, signals, matches, once=once)
    by: dict[int, tuple[int, ...]] = {}
    # From the oldest on: what replaced it may itself have been replaced.
    for at, newer in sorted(replaced, key=lambda pair: entries[pair[0]].created_at):
        higher = max(matches[at], matches[newer])
        first, second = (at, newer) if once else (newer, at)
        matches[first] = higher
        matches[second] = min(matches[second], max(0.0, higher - _STEP))
        by[first] = (*by.get(first, (first,)), *by.get(second, (second,)))
        by[second] = ()
    return matches, by


def _retells(entry: Candidate, older: Candidate, newer: Candidate) -> bool:
    """Whether a turn or an episode says what an older memory says, before it was replaced."""
    is_of_talk = entry.is_turn or entry.source is EPISODES
    if not is_of_talk or entry.created_at > newer.created_at:
        return False
    told, known = ({*each.terms.split()} - little_terms() for each in (entry, older))
    return len(told & known) > _REPEATED * min(len(told), len(known))


def recency_of(entry: Candidate, now: float, decay: float) -> float:
    """1 for what was used or created just now."""
    used = max(entry.created_at, entry.last_accessed_at or 0.0)
    return faded((now - used) / DAY, decay)


def faded(days: float, decay: float) -> float:
    """exp(-decay × days); a time in the future counts as now."""
    return math.exp(-decay * max(0.0, days))
