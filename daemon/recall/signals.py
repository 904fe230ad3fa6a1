"""What speaks for each candidate: its words, its neighbours, its conversation, who and when.

The words score as BM25 does with k1 = 1.2 and b = 0.3, each counted once; what that and the
other signals are worth was measured on long conversations (see `tests/benchmarks/`).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final

import msgspec

from ..memory.scoring import DAY
from .dates import Span
from .pool import Pool
from .postings import Posting, Postings
from .presets import shares_of_best
from .query import Query
from .question import (
    Question,
    addresses,
    enumerates,
    is_question,
    names_number,
    names_time,
    proper_names,
)
from .sources import Candidate

_K1: Final = 1.2
_B: Final = 0.3
# What a match is worth to its neighbours at each distance: the best of them counts.
_LENDS: Final = {1: 0.8, 2: 0.7, 3: 0.5, 4: 0.3}
# How much of a word a memory has by the one before it, behind it, and those beyond.
_SHARES: Final = {-1: 0.5, 1: 0.4, -2: 0.3, 2: 0.25}
_YEAR: Final = 365.2425 * DAY
# A span of up to two days is a day; what was said in the days after it may still be about it.
_A_DAY: Final = 2 * DAY
_FADES_AFTER: Final = 4.0
_FADES_BEFORE: Final = 1.0

# What each is worth: fitted on five conversations of LoCoMo (759 questions), but for the first
# three, which those do not have. With one conversation at a time held out, recall@10 was 0.826.
WEIGHTS: Final = {
    "phrase": 6.0,
    "category": 1.0,
    "reasoned": 3.0,
    "rare": 1.25,
    "kin": 2.9,
    "around": 2.95,
    "context": 1.5,
    "behind": 0.75,
    "group": 1.6,
    "actor": 2.1,
    "subject": 2.2,
    "day": 3.0,
    "date": 2.9,
    "when": 1.4,
    "answer": 1.6,
    "asks": -0.5,
    "follows": 0.2,
    "addresses": -0.55,
    "names": 0.4,
    "name": 1.3,
    "number": 1.25,
    "details": 0.35,
    "opens": 0.65,
}
# Those that need the text are measured for so many of the best by the others.
_READ: Final = 40
_OF_TEXT: Final = (
    "when", "answer", "asks", "follows", "addresses", "names", "name", "number", "details", "opens",
)  # fmt: skip


class Signals(msgspec.Struct, frozen=True):
    """What was measured of a pool, in its order.

    Attributes:
        columns: the numbers of all entries by the names of `WEIGHTS`; most are 0 to 1.
        scores: the weighted sum of each entry.
        coverage: how much of what was asked each entry has itself, 0 to 1.
        bm25: how well each entry's own words match, in parts of the best.
    """

    columns: Mapping[str, Sequence[float]]
    scores: tuple[float, ...]
    coverage: tuple[float, ...]
    bm25: tuple[float, ...]

    @property
    def any_words(self) -> bool:
        """Whether any entry has a word that tells something."""
        return max(self.bm25, default=0.0) > 0

    def added(self, name: str, at: int) -> float:
        """What one signal adds to the score of an entry."""
        column = self.columns.get(name)
        return WEIGHTS[name] * column[at] if column else 0.0


def measure(
    query: Query,
    question: Question,
    postings: Postings,
    pool: Pool,
    categories: Mapping[str, float],
    read: Callable[[Iterable[int]], Mapping[int, str]],
    reasoned: Mapping[str, float] | None = None,
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
    """
    work = _Work(postings, pool)
    for posting in postings.rare:
        work.add(posting)
    entries = pool.entries
    columns = work.columns(several=question.asks_several)
    if postings.phrased:
        columns["phrase"] = [float(entry.key in postings.phrased) for entry in entries]
    if categories:
        columns["category"] = [_filed(entry.category, categories) for entry in entries]
    if reasoned:
        columns["reasoned"] = [_filed(entry.category, reasoned) for entry in entries]
    if question.one:
        # What nobody in particular said is about a person whom it names.
        columns["actor"] = [
            float(entry.actor == question.one if entry.actor else entry.key in postings.naming)
            for entry in entries
        ]
    if question.subject:
        columns["subject"] = [float(entry.actor == question.subject) for entry in entries]
    if query.dates:
        columns["day"] = [_day(entry, query.dates) for entry in entries]
        columns["date"] = [_date(entry, query.dates) for entry in entries]
    scores = _added(columns, [0.0] * len(entries))
    best = nlargest(_READ, range(len(entries)), key=scores.__getitem__)
    people = {word.lower() for name in query.people for word in name.split()}
    of_text = _read(work, question, pool, best, read, people)
    return Signals(
        columns | of_text,
        tuple(_added(of_text, scores)),
        tuple(work.coverage()),
        tuple(shares_of_best(work.own)),
    )


def _added(columns: Mapping[str, Sequence[float]], sums: list[float]) -> list[float]:
    """What each entry has with the weighted columns on top."""
    for name, column in columns.items():
        if not any(column):
            continue
        weight = WEIGHTS[name]
        sums = [total + weight * value for total, value in zip(sums, column, strict=True)]
    return sums


def _read(
    work: _Work,
    question: Question,
    pool: Pool,
    best: Sequence[int],
    read: Callable[[Iterable[int]], Mapping[int, str]],
    people: Collection[str],
) -> dict[str, list[float]]:
    """The signals that need the text, for the entries in `best`."""
    columns = {name: [0.0] * len(pool.entries) for name in _OF_TEXT}
    if not (question.asks_when or question.asks_name or question.asks_number):
        best = [at for at in best if pool.entries[at].is_turn]
    if not best:
        return columns
    before = {at: pool.beside(at, -1) for at in best if pool.entries[at].is_turn}
    needed = {*best, *(near for near in before.values() if near >= 0)}
    texts = read(pool.entries[at].key for at in needed)
    asking = {at: is_question(texts.get(pool.entries[at].key, "")) for at in needed}
    for at in best:
        entry, text = pool.entries[at], texts.get(pool.entries[at].key, "")
        names = proper_names(text, people) if entry.is_turn or question.asks_name else 0.0
        columns["when"][at] = float(question.asks_when and names_time(text))
        columns["name"][at] = names * question.asks_name
        columns["number"][at] = float(question.asks_number and names_number(text))
        if not entry.is_turn:
            # Of a statement its form says nothing; of a turn, whether it was more than a nod.
            continue
        if before[at] >= 0 and asking[before[at]]:
            columns["answer"][at] = work.share(before[at])
            columns["follows"][at] = 1.0
        if question.one and entry.actor == question.one:
            columns["addresses"][at] = addresses(text)
        columns["asks"][at] = float(asking[at])
        columns["names"][at] = names
        columns["details"][at] = enumerates(text)
        columns["opens"][at] = float(entry.position is not None and entry.position < 2)
    return columns


class _Work:
    """Adds up the words, one after the other, over the entries."""

    def __init__(self, postings: Postings, pool: Pool) -> None:
        self._pool = pool
        # Of each entry that lends, once for all words: what lies around it.
        self._near: dict[int, list[tuple[int, int]]] = {}
        self._index = {entry.key: at for at, entry in enumerate(pool.entries)}
        mean = sum(entry.length for entry in pool.entries) / (len(pool.entries) or 1) or 1.0
        self._norm = [_K1 * (1 - _B + _B * entry.length / mean) for entry in pool.entries]
        self._groups = [entry.group or f"\0{entry.key}" for entry in pool.entries]
        size = len(pool.entries)
        self.own, self._cover, self._rare = [0.0] * size, [0.0] * size, [0.0] * size
        self._kin = [0.0] * size
        self._around, self._context = [0.0] * size, [0.0] * size
        self._group: dict[str, float] = {}
        weights = [posting.weight for posting in postings.rare if posting.keys]
        self._total = sum(weights) or 1.0
        self._roots = sum(map(math.sqrt, weights)) or 1.0
        self._asked = sum(weights) + postings.unmet * len(postings.unknown) or 1.0

    def add(self, posting: Posting) -> None:
        """Add one word to every entry that has it, and to what is around them."""
        weight, root = posting.weight, math.sqrt(posting.weight)
        best: dict[int, float] = {}
        shared: dict[int, float] = {}
        in_group: dict[str, int] = {}
        for at in self._members(posting.keys):
            score = weight * (_K1 + 1) / (1 + self._norm[at])
            self.own[at] += score
            self._cover[at] += weight
            self._rare[at] += root
            in_group[self._groups[at]] = in_group.get(self._groups[at], 0) + 1
            self._lend(at, score, best, shared)
        for at, score in best.items():
            self._around[at] += score
        for at, share in shared.items():
            self._context[at] += weight * (_K1 + 1) * share / (share + self._norm[at])
        for group, count in in_group.items():
            score = weight * (_K1 + 1) * count / (count + _K1)
            self._group[group] = self._group.get(group, 0.0) + score
        for at in self._members(posting.kin):
            self._kin[at] += posting.kin_weight

    def _members(self, keys: frozenset[int]) -> list[int]:
        if len(keys) < len(self._index):
            return [self._index[key] for key in keys if key in self._index]
        return [at for key, at in self._index.items() if key in keys]

    def _lend(
        self, at: int, score: float, best: dict[int, float], shared: dict[int, float]
    ) -> None:
        if score > best.get(at, 0.0):
            best[at] = score
        shared[at] = shared.get(at, 0.0) + 1.0
        around = self._near.get(at)
        if around is None:
            around = self._near[at] = self._pool.around(at)
        for distance, near in around:
            lent = score * _LENDS[abs(distance)]
            if lent > best.get(near, 0.0):
                best[near] = lent
            # Seen from the neighbour, this entry stands on the other side.
            share = _SHARES.get(-distance)
            if share:
                shared[near] = shared.get(near, 0.0) + share

    def columns(self, *, several: bool) -> dict[str, list[float]]:
        """The signals of the words, by name.

        Args:
            several: the question asks for several things; one conversation then says little.
        """
        most_around = max(self._around, default=0.0) or 1.0
        most_group = max(self._group.values(), default=0.0) or 1.0
        group = [self._group.get(name, 0.0) / most_group for name in self._groups]
        return {
            "rare": [rare / self._roots for rare in self._rare],
            "kin": [kin / self._asked for kin in self._kin],
            "around": [around / most_around for around in self._around],
            "context": [context / 10 for context in self._context],
            "behind": self._behind(),
            "group": [0.0] * len(group) if several else group,
        }

    def coverage(self) -> list[float]:
        """How much of what was asked each entry has itself, unknown words included: 0 to 1."""
        return [
            (cover + 0.5 * kin) / self._asked
            for cover, kin in zip(self._cover, self._kin, strict=True)
        ]

    def _behind(self) -> list[float]:
        """The words of what the same speaker most likely said before: two places ahead."""
        found = [0.0] * len(self.own)
        for at, own in enumerate(self.own):
            if own and (behind := self._pool.beside(at, 2)) >= 0:
                found[behind] = own / self._total
        return found

    def share(self, at: int) -> float:
        """How much of the query's words an entry has itself."""
        return self.own[at] / self._total


def _filed(category: str, categories: Mapping[str, float]) -> float:
    """How well the best of the named categories fits that holds `category`."""
    fits = (
        worth
        for path, worth in categories.items()
        if category == path or category.startswith(f"{path}/")
    )
    return max(fits, default=0.0)


def _day(entry: Candidate, spans: Sequence[Span]) -> float:
    """How near an entry is to a day that the question names; it fades slower behind the day."""
    best = 0.0
    for span in spans:
        if span.end - span.start > _A_DAY:
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
        elif end - start <= _A_DAY and _same_month(entry.created_at, start):
            best = max(best, 1.0)
    return best


def _same_year(entry: Candidate, span: Span) -> tuple[float, float]:
    """The span; if its year was guessed, that of the years which is nearest to the entry."""
    if span.exact or span.end - span.start > _YEAR / 2:
        return span.start, span.end
    shift = round((entry.created_at - (span.start + span.end) / 2) / _YEAR) * _YEAR
    return span.start + shift, span.end + shift


def _same_month(one: float, other: float) -> bool:
    first, second = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (one, other))
    return (first.year, first.month) == (second.year, second.month)
