"""BM25 of the query's words, and what the words of neighbours and conversations add.

A word weighs by its idf among all texts; the length of a text counts against their mean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, compress, count
from typing import Final

from ..memory.stemming import terms_of
from ..memory.stop_words import ALSO_LEFT_OUT, STOP_WORDS
from .pool import DISTANCES, Pool
from .postings import Posting, Postings, weight_of
from .query import is_lone

K1: Final = 1.2
# How much the length of a text counts: less for a turn than for a text outside conversations.
_B_TURN: Final = 0.3
_B_LONE: Final = 0.6
# How fast further memories of one conversation or category with a word add less.
_K_GROUP: Final = 1.2
# The fraction of a match that counts for its neighbours at each distance; the best one counts.
_LENDS: Final = {1: 0.8, 2: 0.7, 3: 0.5, 4: 0.3}
# How much of an occurrence a neighbour's word counts, by the neighbour's distance.
_SHARES: Final = {-1: 0.5, 1: 0.4, -2: 0.3, 2: 0.25}
# Both by the distance of the neighbour that receives, from which the lender lies opposite.
_LENT_AT: Final = {
    distance: (_LENDS[abs(distance)], _SHARES.get(-distance, 0.0)) for distance in DISTANCES
}
# The first terms of a long text say what it is about.
_FIRST: Final = 12
# The best facts of a question lend these many of the terms that they share, to these many facts.
_TRUSTED: Final = 6
_LENT_TERMS: Final = 15
_REPEATED: Final = 60
LITTLE: Final = frozenset(terms_of(" ".join(STOP_WORDS | ALSO_LEFT_OUT)))


class WordScores:
    """The scores of the query's words, summed up for each entry of a pool.

    Attributes:
        own: BM25 of each entry's own words.
        around: what the words of the neighbours add, where they score higher than its own.
        terms: the terms of each entry.
        turns: whether each entry is a turn of a conversation.
        total: the sum of the weights of the known words.
    """

    def __init__(
        self, postings: Postings, pool: Pool, filed: Mapping[str, Mapping[str, float]]
    ) -> None:
        entries = pool.entries
        size = len(entries)
        self._pool = pool
        self.terms = [entry.terms.split() for entry in entries]
        if lone := {posting.term for posting in postings.words if is_lone(posting.term)}:
            # It matches every pair that begins with it.
            self.terms = [
                [term[0] if term[0] in lone else term for term in terms] for terms in self.terms
            ]
        self.turns = [entry.is_turn for entry in entries]
        self._norms = _norms(self.turns, self.terms, postings.mean_length)
        self._groups = [entry.group for entry in entries]
        self._categories = [None if entry.is_turn else entry.category for entry in entries]
        # What lies around each entry that lends, computed once for all words.
        self._near: dict[int, list[tuple[int, float, float]]] = {}
        self.own, self._weight, self._roots = [0.0] * size, [0.0] * size, [0.0] * size
        self._kin, self._context = [0.0] * size, [0.0] * size
        self._first, self._path = [0.0] * size, [0.0] * size
        self._group: dict[str, float] = {}
        self._category: dict[str, float] = {}
        words = [posting for posting in postings.words if posting.weight]
        self.total = sum(posting.weight for posting in words) or 1.0
        lent = [0.0] * size
        places = self._found(words)
        for posting in words:
            self._add(posting.weight, places[posting.term])
            if pool.places:
                self._lend(posting.weight, places[posting.term], lent)
        self.around = [max(0.0, best - own) for best, own in zip(lent, self.own, strict=True)]
        self._feedback = self._of_best() if len(words) > 2 else [0.0] * size
        if any(posting.kin for posting in postings.words):
            at_key = {entry.key: at for at, entry in enumerate(entries)}
            for posting in postings.words:
                for key in posting.kin.intersection(at_key):
                    self._kin[at_key[key]] += posting.kin_weight
        for at, category in enumerate(self._categories if filed else ()):
            if category is not None:
                self._path[at] = sum(filed.get(category, {}).values())

    def _found(self, words: Sequence[Posting]) -> dict[str, dict[int, int]]:
        """How often each entry has each word; also sums the words at the beginning."""
        weights = {posting.term: posting.weight for posting in words}
        found: dict[str, dict[int, int]] = {term: {} for term in weights}
        for at, terms in enumerate(self.terms):
            places = [*compress(count(), map(found.__contains__, terms))]
            if not places:
                continue
            early = 0.0
            for place in places:
                term = terms[place]
                counts = found[term]
                times = counts.get(at, 0)
                counts[at] = times + 1
                if place < _FIRST and not times:
                    early += weights[term]
            if len(terms) > 2 * _FIRST:
                self._first[at] = early
        return found

    def _of_best(self) -> list[float]:
        """What facts earn from the terms that the best facts have and most other facts lack.

        As in RM3, but against the candidates instead of all texts, which needs no look-up.
        """
        made = [0.0] * len(self.terms)
        lone = [at for at, own in enumerate(self.own) if own and not self.turns[at]]
        lone = sorted(lone, key=self.own.__getitem__, reverse=True)[:_REPEATED]
        best = lone[:_TRUSTED]
        bags = {at: set(self.terms[at]) for at in lone}
        shared = set().union(*(bags[at] for at in best)) - LITTLE
        spread = Counter(chain.from_iterable(map(shared.intersection, bags.values())))
        model: dict[str, float] = {}
        for at in best:
            terms = self.terms[at]
            for term, times in Counter(terms).items():
                if term in shared and spread[term] > 1 and len(term) > 2:
                    worth = self.own[at] * times / (len(terms) + 10)
                    worth *= weight_of(spread[term], len(lone))
                    model[term] = model.get(term, 0.0) + worth
        chosen = sorted(model, key=model.__getitem__, reverse=True)[:_LENT_TERMS]
        scale = self.total / (sum(model[term] for term in chosen) or 1.0)
        for at in lone:
            terms, bag, norm = self.terms[at], bags[at], self._norms[at]
            for term in chosen:
                if term in bag:
                    times = terms.count(term)
                    made[at] += scale * model[term] * times / (times + norm)
        return made

    def _add(self, weight: float, places: Mapping[int, int]) -> None:
        """Add one word to every entry that has it, to its conversation and its category."""
        root = math.sqrt(weight)
        own, have, roots, norms = self.own, self._weight, self._roots, self._norms
        groups, categories = self._groups, self._categories
        in_group: dict[str, int] = {}
        in_category: dict[str, int] = {}
        for at, times in places.items():
            own[at] += weight * times / (times + norms[at])
            have[at] += weight
            roots[at] += root
            if group := groups[at]:
                in_group[group] = in_group.get(group, 0) + 1
            category = categories[at]
            if category is not None:
                in_category[category] = in_category.get(category, 0) + 1
        for counts, sums in ((in_group, self._group), (in_category, self._category)):
            for name, times in counts.items():
                sums[name] = sums.get(name, 0.0) + weight * times / (times + _K_GROUP)

    def _lend(self, weight: float, places: Mapping[int, int], lent: list[float]) -> None:
        """Add one word to the entries around those that have it, in conversations."""
        near_by, norms = self._near, self._norms
        best: dict[int, float] = {}
        shared: dict[int, float] = {}
        for at, times in places.items():
            around = near_by.get(at)
            if around is None:
                around = near_by[at] = [
                    (near, *_LENT_AT[distance]) for distance, near in self._pool.around(at)
                ]
            if not around:
                # Nothing lends to it either: only its own words are around it.
                lent[at] += weight * times / (times + norms[at])
                self._context[at] += weight / (1 + norms[at])
                continue
            norm = norms[at]
            own = weight * times / (times + norm)
            if own > best.get(at, 0.0):
                best[at] = own
            shared[at] = shared.get(at, 0.0) + 1.0
            score = weight / (1 + norm)
            for near, lends, share in around:
                of_it = score * lends
                if of_it > best.get(near, 0.0):
                    best[near] = of_it
                if share:
                    shared[near] = shared.get(near, 0.0) + share
        for at, score in best.items():
            lent[at] += score
        for at, share in shared.items():
            self._context[at] += weight * share / (share + norms[at])

    def columns(self) -> dict[str, list[float]]:
        """The signals of the words, by their names in `signals.WEIGHTS`."""
        turns, none = self.turns, [0.0] * len(self.turns)
        talk = any(turns)
        # An entry outside of conversations is a conversation by itself.
        groups = [
            self._group.get(name, 0.0) if name else weight / (1 + _K_GROUP)
            for name, weight in zip(self._groups, self._weight, strict=True)
        ]
        filed = [
            0.0 if name is None else self._category.get(name, 0.0) for name in self._categories
        ]
        parts = {
            "own": self.own,
            "turn_own": [own * turn for own, turn in zip(self.own, turns, strict=True)]
            if talk
            else none,
            "around": self.around,
            # Only its own words are around a fact.
            "context": [value * turn for value, turn in zip(self._context, turns, strict=True)]
            if talk
            else none,
            "kin": self._kin,
            "path": self._path,
            "first": self._first,
            "feedback": self._feedback,
        }
        most = max(self.own, default=0.0) or 1.0
        columns = {
            name: [value / most for value in column] if any(column) else none
            for name, column in parts.items()
        }
        for name, column in (("coverage", self._roots), ("group", groups), ("filed", filed)):
            most = max(column, default=0.0) or 1.0
            columns[name] = [value / most for value in column]
        return columns


def _norms(
    turns: Sequence[bool], terms: Sequence[Sequence[str]], mean_length: float
) -> list[float]:
    by_kind = [(K1 * (1 - share), K1 * share / mean_length) for share in (_B_LONE, _B_TURN)]
    return [
        by_kind[turn][0] + by_kind[turn][1] * len(words)
        for turn, words in zip(turns, terms, strict=True)
    ]
