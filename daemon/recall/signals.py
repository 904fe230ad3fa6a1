"""What speaks for each candidate: its words, its neighbours, its conversation, who and when.

The words score as BM25 does, with the idf of all texts and each text's length against their mean.
What a text earns from its words is a share of what the best earns; the other signals add to that.
What all of it is worth was measured on conversations, facts and abstracts (see
`tests/benchmarks/`).
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, count
from typing import Final

import msgspec

from ..memory.scoring import DAY, YEAR
from ..memory.stemming import terms_of
from ..memory.stop_words import ALSO_LEFT_OUT, STOP_WORDS
from ..memory.tree_nodes import is_within
from .dates import Span
from .pool import DISTANCES, Pool
from .postings import Posting, Postings, weight_of
from .presets import shares_of_best
from .query import Query, is_lone
from .question import (
    Question,
    addresses,
    enumerates,
    is_question,
    names_number,
    names_time,
    proper_names,
)
from .relevance import relevance
from .sources import Candidate

_K1: Final = 1.2
# How much the length of a text counts: of a turn less than of a text that stands alone.
_B_TURN: Final = 0.3
_B_LONE: Final = 0.6
# How fast more memories of one conversation or category with a word stop to add.
_K_GROUP: Final = 1.2
# What a match is worth to its neighbours at each distance: the best of them counts.
_LENDS: Final = {1: 0.8, 2: 0.7, 3: 0.5, 4: 0.3}
# How much of a word a memory has by the one before it, behind it, and those beyond.
_SHARES: Final = {-1: 0.5, 1: 0.4, -2: 0.3, 2: 0.25}
# Both by the distance of the neighbour, from where this entry stands on the other side.
_LENT_AT: Final = {
    distance: (_LENDS[abs(distance)], _SHARES.get(-distance, 0.0)) for distance in DISTANCES
}
# What was said in the days after a day may still be about it.
_FADES_AFTER: Final = 4.0
_FADES_BEFORE: Final = 1.0
# A long text says what it is about in its first terms.
_FIRST: Final = 12
# The best facts of a question lend so many of the terms that they share, to so many facts.
_TRUSTED: Final = 6
_LENT_TERMS: Final = 15
_REPEATED: Final = 60
# Of so many of the best facts it is looked whether a newer one says the same, by this share.
_COMPARED: Final = 12
_ALIKE: Final = 0.3
_LATER: Final = 60.0

# What each is worth, but for the first three, which no collection has: found by trial on those for
# development. `tests/benchmarks/fit_signals.py` judges and changes them, conversations held out.
WEIGHTS: Final = {
    "phrase": 6.0,
    "category": 1.0,
    "reasoned": 6.0,
    "own": 3.0,
    "turn_own": -0.9,
    "around": 2.0,
    "context": 2.0,
    "kin": 2.8,
    "path": 3.5,
    "first": 0.8,
    "feedback": 0.6,
    "coverage": 0.8,
    "group": 0.4,
    "filed": 1.5,
    "older": -2.5,
    "superseded": -2.5,
    "actor": 3.0,
    "subject": 3.5,
    "day": 2.5,
    "date": 2.0,
    "when": 1.4,
    "answer": 1.2,
    "addresses": -0.3,
    "names": 0.3,
    "name": 1.2,
    "number": 1.0,
    "details": 0.3,
    "opens": 0.6,
}
# Those that need the text are measured for so many of the best by their words.
_READ: Final = 40
_OF_TEXT: Final = (
    "when", "answer", "addresses", "names", "name", "number", "details", "opens",
)  # fmt: skip


class Signals(msgspec.Struct, frozen=True):
    """What was measured of a pool, in its order.

    Attributes:
        columns: the numbers of all entries by the names of `WEIGHTS`.
        scores: the weighted sum of each entry.
        relevance: tells of an entry how likely it answers, 0 to 1, whatever else was found.
        bm25: how well each entry's own words match, in parts of the best.
    """

    columns: Mapping[str, Sequence[float]]
    scores: tuple[float, ...]
    relevance: Callable[[int], float]
    bm25: tuple[float, ...]

    def added(self, name: str, at: int) -> float:
        """What one signal adds to the score of an entry."""
        column = self.columns.get(name)
        return WEIGHTS[name] * column[at] if column else 0.0

    def parts(self, at: int) -> dict[str, float]:
        """The non-zero contribution of each signal to the score of an entry."""
        return {name: round(added, 4) for name in WEIGHTS if (added := self.added(name, at))}


def measure(
    query: Query,
    question: Question,
    postings: Postings,
    pool: Pool,
    categories: Mapping[str, float],
    read: Callable[[Iterable[int]], Mapping[int, str]],
    reasoned: Mapping[str, float] | None = None,
    filed: Mapping[str, Mapping[str, float]] | None = None,
) -> Signals:
    """Every signal of every entry.

    Args:
        query: what is asked for.
        question: in which form.
        postings: where its words stand.
        pool: the candidates.
        categories: those that the query names, with how well, 0 to 1.
        read: gives the texts of candidates by their keys.
        reasoned: those that a model names for it, likewise.
        filed: of categories the terms of the query that they have, with their weights.
    """
    work = _Work(postings, pool, filed or {})
    entries = pool.entries
    columns = work.columns()
    if postings.phrased:
        columns["phrase"] = [float(entry.key in postings.phrased) for entry in entries]
    if categories:
        columns["category"] = [_filed(entry.category, categories) for entry in entries]
    if reasoned:
        columns["reasoned"] = [_filed(entry.category, reasoned) for entry in entries]
    if question.one:
        # What nobody in particular said is about a person whom it names.
        named = set(terms_of(" ".join(query.name_words)))
        columns["actor"] = [
            float(entry.actor == question.one)
            if entry.actor
            else float(not named.isdisjoint(terms))
            for entry, terms in zip(entries, work.terms, strict=True)
        ]
    if question.subject:
        columns["subject"] = [float(entry.actor == question.subject) for entry in entries]
    if query.dates:
        columns["day"] = [_day(entry, query.dates) for entry in entries]
        columns["date"] = [_date(entry, query.dates) for entry in entries]
    if any(entry.superseded for entry in entries):
        columns["superseded"] = [float(entry.superseded) for entry in entries]
    if not query.once:
        columns["older"] = _older(work, entries)
    people = {word.lower() for name in query.people for word in name.split()}
    columns |= _read(work, question, pool, read, people)
    return Signals(
        columns,
        tuple(_sums(columns, len(entries))),
        relevance(query, postings, pool, work.terms, work.own, filed or {}, columns),
        tuple(shares_of_best(work.own)),
    )


def _sums(columns: Mapping[str, Sequence[float]], size: int) -> list[float]:
    sums = [0.0] * size
    for name, column in columns.items():
        if any(column):
            weight = WEIGHTS[name]
            sums = [total + weight * value for total, value in zip(sums, column, strict=True)]
    return sums


def _read(
    work: _Work,
    question: Question,
    pool: Pool,
    read: Callable[[Iterable[int]], Mapping[int, str]],
    people: Collection[str],
) -> dict[str, list[float]]:
    """The signals that need the text, for the best by their words and what is around them."""
    columns = {name: [0.0] * len(pool.entries) for name in _OF_TEXT}
    told = question.asks_when or question.asks_name or question.asks_number
    if not told and not any(work.turns):
        return columns
    worth = [own + around for own, around in zip(work.own, work.around, strict=True)]
    best = sorted(range(len(worth)), key=worth.__getitem__, reverse=True)[:_READ]
    best = [at for at in best if told or work.turns[at]]
    before = {at: pool.beside(at, -1) for at in best if pool.entries[at].is_turn}
    needed = {*best, *(near for near in before.values() if near >= 0)}
    texts = read(pool.entries[at].key for at in needed)
    for at in best:
        entry, text = pool.entries[at], texts.get(pool.entries[at].key, "")
        names = proper_names(text, people) if entry.is_turn or question.asks_name else 0.0
        columns["when"][at] = float(question.asks_when and names_time(text))
        columns["name"][at] = names * question.asks_name
        columns["number"][at] = float(question.asks_number and names_number(text))
        if not entry.is_turn:
            # Of a statement its form says nothing; of a turn, whether it was more than a nod.
            continue
        asker = before[at]
        if asker >= 0 and work.own[asker] and is_question(texts.get(pool.entries[asker].key, "")):
            columns["answer"][at] = work.own[asker] / work.total * (1 + _K1)
        if question.one and entry.actor == question.one:
            columns["addresses"][at] = addresses(text)
        columns["names"][at] = names
        columns["details"][at] = enumerates(text)
        columns["opens"][at] = float(entry.position is not None and entry.position < 2)
    return columns


def _older(work: _Work, entries: Sequence[Candidate]) -> list[float]:
    """How much of a fact a newer one of its category says too, from `_ALIKE` on."""
    column = [0.0] * len(entries)
    lone = [at for at, own in enumerate(work.own) if own and not work.turns[at]]
    best = sorted(lone, key=work.own.__getitem__, reverse=True)[:_COMPARED]
    said = {at: set(work.terms[at]) - _LITTLE for at in best}
    for one in best:
        for other in best:
            if (
                entries[other].created_at > entries[one].created_at + _LATER
                and entries[other].category == entries[one].category
            ):
                least = min(len(said[one]), len(said[other])) or 1
                both = len(said[one] & said[other])
                alike = both / least
                if both > 1 and alike > _ALIKE:
                    column[one] = max(column[one], alike)
    return column


_LITTLE: Final = frozenset(terms_of(" ".join(STOP_WORDS | ALSO_LEFT_OUT)))


class _Work:
    """Adds up the words over the entries.

    Attributes:
        own: BM25 of each entry's own words.
        around: what the neighbours' words add, where they score more than its own.
        weight: of the words that each has.
        kin, path: of the words that it has something like, or that its category has.
        terms: of each entry.
        turns: whether each is one.
        total, asked: the weight of the words known, and with it that of the unknown.
        known: how many words are known.
    """

    def __init__(
        self, postings: Postings, pool: Pool, filed: Mapping[str, Mapping[str, float]]
    ) -> None:
        entries = pool.entries
        size = len(entries)
        self._pool = pool
        self.size = postings.size
        self.terms = [entry.terms.split() for entry in entries]
        if lone := {posting.term for posting in postings.words if is_lone(posting.term)}:
            # It stands for every pair that begins with it.
            self.terms = [
                [term[0] if term[0] in lone else term for term in terms] for terms in self.terms
            ]
        self.turns = [entry.is_turn for entry in entries]
        self._norms = _norms(self.turns, self.terms, postings.mean_length)
        self._groups = [entry.group for entry in entries]
        self._categories = [None if entry.is_turn else entry.category for entry in entries]
        # Of each entry that lends, once for all words: what lies around it.
        self._near: dict[int, list[tuple[int, float, float]]] = {}
        self.own, self.weight, self._roots = [0.0] * size, [0.0] * size, [0.0] * size
        self.kin, self._context = [0.0] * size, [0.0] * size
        self._first, self.path = [0.0] * size, [0.0] * size
        self._group: dict[str, float] = {}
        self._category: dict[str, float] = {}
        words = [posting for posting in postings.words if posting.weight]
        self.known = len(words)
        self.total = sum(posting.weight for posting in words) or 1.0
        self.asked = self.total * bool(words) + postings.unmet or 1.0
        lent = [0.0] * size
        places = self._found(words)
        for posting in words:
            self._add(posting.weight, places[posting.term])
            if pool.places:
                self._lend(posting.weight, places[posting.term], lent)
        self.around = [max(0.0, best - own) for best, own in zip(lent, self.own, strict=True)]
        self._feedback = self._of_best() if self.known > 2 else [0.0] * size
        if any(posting.kin for posting in postings.words):
            at_key = {entry.key: at for at, entry in enumerate(entries)}
            for posting in postings.words:
                for key in posting.kin.intersection(at_key):
                    self.kin[at_key[key]] += posting.kin_weight
        for at, category in enumerate(self._categories if filed else ()):
            if category is not None:
                self.path[at] = sum(filed.get(category, {}).values())

    def _found(self, words: Sequence[Posting]) -> dict[str, dict[int, int]]:
        """How often each entry has each word; what stands early is added on the way."""
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
        """What facts earn from the terms that the best facts have and most others have not.

        As in RM3, but against the candidates instead of all texts, so that it costs no look-up.
        """
        made = [0.0] * len(self.terms)
        lone = [at for at, own in enumerate(self.own) if own and not self.turns[at]]
        lone = sorted(lone, key=self.own.__getitem__, reverse=True)[:_REPEATED]
        best = lone[:_TRUSTED]
        bags = {at: set(self.terms[at]) for at in lone}
        told = set().union(*(bags[at] for at in best)) - _LITTLE
        spread = Counter(chain.from_iterable(map(told.intersection, bags.values())))
        model: dict[str, float] = {}
        for at in best:
            terms = self.terms[at]
            for term, times in Counter(terms).items():
                if term in told and spread[term] > 1 and len(term) > 2:
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
        own, have, roots, norms = self.own, self.weight, self._roots, self._norms
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
        """Add one word to what is around those entries of conversations that have it."""
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
                # Nothing lends to it either: it has nothing around it but its own words again.
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
        """The signals of the words, by name."""
        turns, none = self.turns, [0.0] * len(self.turns)
        talk = any(turns)
        # What is no part of a conversation is one by itself.
        groups = [
            self._group.get(name, 0.0) if name else weight / (1 + _K_GROUP)
            for name, weight in zip(self._groups, self.weight, strict=True)
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
            # A fact has nothing around it but its own words again.
            "context": [value * turn for value, turn in zip(self._context, turns, strict=True)]
            if talk
            else none,
            "kin": self.kin,
            "path": self.path,
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
    """What each text's length takes from how often a word stands in it."""
    by_kind = [(_K1 * (1 - share), _K1 * share / mean_length) for share in (_B_LONE, _B_TURN)]
    return [
        by_kind[turn][0] + by_kind[turn][1] * len(words)
        for turn, words in zip(turns, terms, strict=True)
    ]


def _filed(category: str, categories: Mapping[str, float]) -> float:
    """How well the best of the named categories fits that holds `category`."""
    fits = (worth for path, worth in categories.items() if is_within(category, path))
    return max(fits, default=0.0)


def _day(entry: Candidate, spans: Sequence[Span]) -> float:
    """How near an entry is to a day that the question names; it fades slower behind the day."""
    best = 0.0
    for span in spans:
        if not span.is_day:
            continue
        start, end = _same_year(entry, span)
        if entry.created_at >= end:
            away = (entry.created_at - end) / DAY / _FADES_AFTER
        else:
            away = max(0.0, start - entry.created_at) / DAY / _FADES_BEFORE
        best = max(best, math.exp(-away))
    return best


def _date(entry: Candidate, spans: Sequence[Span]) -> float:
    """Whether an entry is of a month or year that the question names; a year says less."""
    best = 0.0
    for span in spans:
        start, end = _same_year(entry, span)
        if start <= entry.created_at < end:
            best = max(best, 0.3 if end - start > 60 * DAY else 1.0)
        elif span.is_day and _same_month(entry.created_at, start):
            best = max(best, 1.0)
    return best


def _same_year(entry: Candidate, span: Span) -> tuple[float, float]:
    """The span; if its year was guessed, that of the years which is nearest to the entry."""
    if span.exact or span.end - span.start > YEAR / 2:
        return span.start, span.end
    shift = round((entry.created_at - (span.start + span.end) / 2) / YEAR) * YEAR
    return span.start + shift, span.end + shift


def _same_month(one: float, other: float) -> bool:
    first, second = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (one, other))
    return (first.year, first.month) == (second.year, second.month)
