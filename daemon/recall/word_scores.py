"""Scores the words of a question in each candidate: BM25, and its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import msgspec

from ..memory.stemming import terms_of
from .pool import DISTANCES, Pool
from .postings import Posting, Postings, weight_of
from .query import is_lone, little

# BM25: the saturation of a word's count, and how much the length of a text counts.
# (Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009.)
_K1: Final = 1.2
_B: Final = 0.3
# The share of a match that counts for its neighbours at each distance; the best one counts.
_LENT: Final = {1: 0.8, 2: 0.7, 3: 0.5, 4: 0.3}
_LENT_AT: Final = {distance: _LENT[abs(distance)] for distance in DISTANCES}
# The first terms of a long text say what it is about.
_FIRST: Final = 12
# What the words of grammar of a question weigh together at most, as a share of its topics.
_MOST_GRAMMAR: Final = 0.3


class WordScores:
    """The scores of the query's words for each entry of a pool.

    Attributes:
        own: BM25 of each entry's own words and of what means the same.
        terms: the terms of each entry, in order.
        met: as in `Signals`.
        total: the weight of the whole question.
    """

    def __init__(self, postings: Postings, pool: Pool) -> None:
        self._pool = pool
        entries = pool.entries
        size = len(entries)
        self.terms = [entry.terms.split() for entry in entries]
        sought = {posting.word.term for posting in postings.words}
        if lone := {*filter(is_lone, sought)}:
            # It matches every pair that begins with it.
            self.terms = [
                [term[0] if term[0] in lone else term for term in terms] for terms in self.terms
            ]
        self._counts: dict[str, dict[int, int]] = {term: {} for term in sought}
        for at, terms in enumerate(self.terms):
            for term in filter(sought.__contains__, terms):
                counts = self._counts[term]
                counts[at] = counts.get(at, 0) + 1
        share = _K1 * _B / postings.mean_length
        self._norms = [_K1 * (1 - _B) + share * len(terms) for terms in self.terms]
        self.own, self._lent, self._first = [0.0] * size, [0.0] * size, [0.0] * size
        self.met: list[dict[str, str]] = [{} for _ in entries]
        has_neighbours = bool(pool.places)
        near: dict[int, list[tuple[int, float]]] = {}
        self.total = postings.total
        for posting in postings.words:
            if posting.word.is_grammar:
                continue
            term = posting.word.term
            for at in self._counts[term] if posting.weight else ():
                if len(self.terms[at]) > 2 * _FIRST and term in self.terms[at][:_FIRST]:
                    self._first[at] += posting.weight
            scores = self._scores(posting)
            for at, score in scores.items():
                self.own[at] += score
            if has_neighbours:
                self._lend(scores, near)
        self._add_grammar([posting for posting in postings.words if posting.word.is_grammar])
        self.total = self.total or 1.0

    def _add_grammar(self, postings: Sequence[Posting]) -> None:
        """Add the words of grammar, which together weigh little beside a topic.

        How many texts have them is estimated from the candidates.
        """
        size, topics = len(self.own), self.total
        weights = [
            posting.word.share * weight_of(len(self._counts[posting.word.term]), size)
            for posting in postings
        ]
        self.total += sum(weights)
        most = _MOST_GRAMMAR * topics
        scale = min(1.0, most / sum(weights)) if topics and sum(weights) else 1.0
        for posting, weight in zip(postings, weights, strict=True):
            weighted = msgspec.structs.replace(posting, weight=scale * weight)
            for at, score in self._scores(weighted).items():
                self.own[at] += score

    def _scores(self, posting: Posting) -> dict[int, float]:
        """What a word adds to each entry that has it, or else what means the same."""
        counts = self._counts[posting.word.term]
        norms, weight, text = self._norms, posting.weight, posting.word.text
        scores = {at: weight * times / (times + norms[at]) for at, times in counts.items()}
        if not posting.word.is_grammar:
            for at in counts:
                self.met[at][text] = ""
        if posting.also:
            for at, entry in enumerate(self._pool.entries):
                if at not in counts:
                    for other in posting.also:
                        label = other.label
                        if label in entry.codes if label else entry.key in other.keys:
                            scores[at] = other.weight / (1 + norms[at])
                            self.met[at][text] = label
                            break
        return scores

    def _lend(self, scores: Mapping[int, float], near: dict[int, list[tuple[int, float]]]) -> None:
        """Add the best score of a word among the neighbours where it exceeds the entry's own."""
        best: dict[int, float] = {}
        for at, score in scores.items():
            around = near.get(at)
            if around is None:
                around = near[at] = [
                    (place, _LENT_AT[distance]) for distance, place in self._pool.around(at)
                ]
            for place, share in around:
                if score * share > best.get(place, 0.0):
                    best[place] = score * share
        for at, score in best.items():
            self._lent[at] += max(0.0, score - scores.get(at, 0.0))

    def columns(self) -> dict[str, list[float]]:
        """The signals of the words, by their names in `WEIGHTS`."""
        # A word that is there once in a text of mean length counts as one.
        scale = (1 + _K1) / self.total
        columns = {
            "words": [scale * own for own in self.own],
            "first": [early / self.total for early in self._first],
        }
        if any(self._lent):
            columns["neighbours"] = [scale * lent for lent in self._lent]
            columns["answer"] = [scale * own for own in self._asked_before()]
        return columns

    def _asked_before(self) -> list[float]:
        """For each entry, the score of the question right before it."""
        scores = [0.0] * len(self.own)
        if not any(entry.is_question for entry in self._pool.entries):
            return scores
        for at in range(len(scores)):
            before = self._pool.beside(at, -1)
            if before >= 0 and self._pool.entries[before].is_question:
                scores[at] = self.own[before]
        return scores


@cache
def little_terms() -> frozenset[str]:
    """The terms of words that say nothing about a topic."""
    return frozenset(terms_of(" ".join(little())))
