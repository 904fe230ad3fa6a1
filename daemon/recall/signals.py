"""The signals that rank a candidate, and their sum: its relevance.

All are shares of the question's weight, which is the sum of the weights of its words, so that they
can be added, and compared between questions. The weights were chosen so that each signal helps, or
costs less than a point, on every kind of collection with that collection left out
(`tests/benchmarks/fit_signals.py`).
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Final

import msgspec

from ..language.dates import DAY_CODE, seconds_of
from ..language.meaning import CHANGE, NAME
from ..language.vocabulary import words
from ..memory.scoring import DAY
from ..memory.stemming import terms_of
from ..memory.tree_nodes import is_within
from ..memory.vectors import nearer_than_rest
from .pool import DISTANCES, Pool
from .postings import Posting, Postings, weight_of
from .query import Query, Wanted, is_lone, little
from .sources import Candidate

# BM25: the saturation of a word's count, and how much the length of a text counts.
# (Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009.)
K1: Final = 1.2
_FIRST_DATE: Final = chr(DAY_CODE)
_B: Final = 0.3
WEIGHTS: Final = {
    # BM25 of its words and of what means the same; of the first words of a long text.
    "words": 1.0, "first": 0.25,
    # What the neighbours in a conversation or file have and it lacks; being next to a question
    # with the words.
    "neighbours": 0.5, "answer": 0.2,
    # Words of its category; a category that a model named.
    "path": 0.5, "reasoned": 1.0,
    # Being said by the person named, and at the time named.
    "speaker": 0.5, "told": 0.2,
    # A quoted phrase; terms that the best texts share, for a question of many words.
    "phrase": 1.0, "feedback": 0.2,
    # Having a name or a value, if the question wants one.
    "wanted": 0.1,
    # Being nearer in meaning than most, by the vectors of an encoder.
    "meaning": 0.3,
}  # fmt: skip
# The share of a match that counts for its neighbours at each distance; the best one counts.
_LENT: Final = {1: 0.8, 2: 0.7, 3: 0.5, 4: 0.3}
_LENT_AT: Final = {distance: _LENT[abs(distance)] for distance in DISTANCES}
# The first terms of a long text say what it is about.
_FIRST: Final = 12
# The best texts lend these many of the terms that they share, to these many texts, if the question
# has enough words to trust them.
_TRUSTED: Final = 6
_LENT_TERMS: Final = 15
_REPEATED: Final = 60
_MANY_WORDS: Final = 6
_LONG_NUMBER: Final = re.compile(r"\d{3,}")
# What the words of grammar of a question weigh together at most, as a share of its topics.
_MOST_GRAMMAR: Final = 0.3
# An answer with so much of the question is likely.
_LIKELY: Final = 0.4
# Days until the signal of a day has faded to 1/e, after the day and before it.
_FADES_AFTER: Final = 4.0
_FADES_BEFORE: Final = 1.0
# A longer span, in days, says little.
_SHORT_SPAN: Final = 62
_LONG_SPAN: Final = 0.3


class Signals(msgspec.Struct, frozen=True):
    """The measured signals of a pool, in the order of its entries.

    Attributes:
        columns: the values of all entries, by the names of `WEIGHTS`.
        relevance: the weighted sums; about 1 for a text that has the whole question.
        bm25: the BM25 of each entry's own words, as a share of the best.
        met: for each entry, the words of the question that it has, with what they are met by: ""
            for the word itself, else the code of a concept or date.
        asked: the terms and codes of the question's words.
        decisive: the words of the question without which nothing surely answers: who somebody is
            ("sister"), and long numbers.
        wants: what kind of word the question asks for.
        asks: whether it is a question.
        words: the number of the question's words that are no words of grammar; 0 if it asks only
            for a time.
        texts: the number of texts that were searched.
    """

    columns: Mapping[str, Sequence[float]]
    relevance: Sequence[float]
    bm25: Sequence[float]
    met: Sequence[Mapping[str, str]]
    asked: frozenset[str]
    decisive: frozenset[str]
    wants: Wanted
    asks: bool
    words: int
    texts: int

    def parts(self, at: int) -> dict[str, float]:
        """The non-zero contribution of each signal to the relevance of an entry."""
        return {
            name: round(added, 4)
            for name, column in self.columns.items()
            if (added := WEIGHTS[name] * column[at])
        }


def measure(
    query: Query,
    postings: Postings,
    pool: Pool,
    near: Mapping[int, float],
    reasoned: Mapping[str, float],
    paths: Mapping[str, Mapping[str, float]],
    now: float,
    local: dt.tzinfo,
) -> Signals:
    """Measure every signal of every entry.

    Args:
        query: the question.
        postings: its words in the indexes.
        pool: the candidates.
        near: the cosines of the nearest items, at most `MOST_NEAR`, by key.
        reasoned: the categories that a model named, with their relevance.
        paths: for each category, the query's terms in its path or description, with their weights.
        now: seconds since the epoch.
        local: the time zone of days in the question.
    """
    scores = _WordScores(postings, pool)
    columns = scores.columns() | _other_columns(
        query, postings, pool, reasoned, paths, scores, _told_in(query, now, local)
    )
    sums = [0.0] * len(pool.entries)
    for name, column in columns.items():
        sums = _with(sums, name, column)
    if query.wants:
        columns["wanted"] = _wanted(query, pool, sums)
        sums = _with(sums, "wanted", columns["wanted"])
    if near:
        shares = nearer_than_rest(near)
        columns["meaning"] = [shares.get(entry.key, 0.0) for entry in pool.entries]
        sums = _with(sums, "meaning", columns["meaning"])
    best = max(scores.own, default=0.0) or 1.0
    telling = 0 if query.of_time else sum(not word.is_grammar for word in query.words)
    asked = frozenset(label for word in query.words for label in (word.term, *word.codes))
    return Signals(
        columns,
        sums,
        [own / best for own in scores.own],
        scores.met,
        asked,
        _decisive(query),
        query.wants,
        query.asks,
        telling,
        postings.size,
    )


def _other_columns(
    query: Query,
    postings: Postings,
    pool: Pool,
    reasoned: Mapping[str, float],
    paths: Mapping[str, Mapping[str, float]],
    scores: _WordScores,
    times: list[tuple[float, float]],
) -> dict[str, list[float]]:
    """The signals beside the words, those that the question gives rise to."""
    entries = pool.entries
    columns: dict[str, list[float]] = {}
    if paths:
        columns["path"] = [
            0.0 if entry.is_turn else sum(paths.get(entry.category, {}).values()) / scores.total
            for entry in entries
        ]
    if postings.phrased:
        columns["phrase"] = [float(entry.key in postings.phrased) for entry in entries]
    if reasoned:
        columns["reasoned"] = _in_category(entries, reasoned)
    if query.people and not query.together:
        columns["speaker"] = _by_speaker(query, entries, scores.texts)
    if times:
        columns["told"] = [
            _told(entry.created_at, times, only_then=query.of_time) for entry in entries
        ]
    return columns


def _decisive(query: Query) -> frozenset[str]:
    dates = {word for date in query.dates for word in date.text.split()}
    numbers = (word.text for word in query.words if _LONG_NUMBER.fullmatch(word.text))
    relatives = (word.text for word in query.words if word.text in words("relatives"))
    return frozenset(relatives).union(numbers) - dates


def _wanted(query: Query, pool: Pool, sums: Sequence[float]) -> list[float]:
    """Whether each entry has what is asked for: a name, a time, a number.

    An entry that has nothing else of the question may answer it only if nothing likely does.
    """
    unlikely = max(sums, default=0.0) < _LIKELY
    return [
        float((unlikely or total > 0) and has_wanted(entry, query.wants))
        for entry, total in zip(pool.entries, sums, strict=True)
    ]


def _with(sums: Sequence[float], name: str, column: Sequence[float]) -> list[float]:
    """The sums with a weighted signal added."""
    weight = WEIGHTS[name]
    return [total + weight * value for total, value in zip(sums, column, strict=True)]


class _WordScores:
    """The scores of the query's words for each entry of a pool.

    Attributes:
        own: BM25 of each entry's own words and of what means the same.
        texts: the terms of each entry, with blanks around each.
        met: as in `Signals`.
        total: the weight of the whole question.
    """

    def __init__(self, postings: Postings, pool: Pool) -> None:
        self._pool = pool
        entries = pool.entries
        size = len(entries)
        self.texts = [f" {entry.terms} " for entry in entries]
        lone = [posting.word.term for posting in postings.words if is_lone(posting.word.term)]
        if lone:
            # It matches every pair that begins with it.
            pairs = re.compile(rf"(?<= )([{''.join(lone)}])\S+")
            self.texts = [pairs.sub(r"\1", text) for text in self.texts]
        share = K1 * _B / postings.mean_length
        self._lengths = [entry.terms.count(" ") + 1 if entry.terms else 0 for entry in entries]
        self._norms = [K1 * (1 - _B) + share * length for length in self._lengths]
        self.own, self._lent, self._first = [0.0] * size, [0.0] * size, [0.0] * size
        self.met: list[dict[str, str]] = [{} for _ in entries]
        self._words = [posting for posting in postings.words if posting.weight]
        has_neighbours = bool(pool.places)
        near: dict[int, list[tuple[int, float]]] = {}
        self._beginnings: dict[int, str] = {}
        self.total = postings.total
        for posting in postings.words:
            if posting.word.is_grammar:
                continue
            term = posting.word.term
            scores = self._scores(posting, self._counts(term, posting.weight) if term else {})
            for at, score in scores.items():
                self.own[at] += score
            if has_neighbours:
                self._lend(scores, near)
        self._add_grammar(posting for posting in postings.words if posting.word.is_grammar)
        self.total = self.total or 1.0
        self._feedback = self._of_best() if len(self._words) >= _MANY_WORDS else None

    def _add_grammar(self, postings: Iterable[Posting]) -> None:
        """Add the words of grammar, which together weigh little beside a topic.

        How many texts have them is estimated from the candidates.
        """
        size, topics = len(self.own), self.total
        counted = [(posting, self._counts(posting.word.term, 0.0)) for posting in postings]
        weights = [posting.word.share * weight_of(len(counts), size) for posting, counts in counted]
        self.total += sum(weights)
        most = _MOST_GRAMMAR * topics
        scale = min(1.0, most / sum(weights)) if topics and sum(weights) else 1.0
        for (posting, counts), weight in zip(counted, weights, strict=True):
            weighted = msgspec.structs.replace(posting, weight=scale * weight)
            for at, score in self._scores(weighted, counts).items():
                self.own[at] += score

    def _counts(self, term: str, weight: float) -> dict[int, int]:
        """How often each entry that has a term has it.

        Adds the weight to `_first` where a long text has it among its first words.
        """
        # Of two side by side, which share a blank, the first is counted alone.
        word, pair, twice = f" {term} ", f" {term} {term}", f" {term} {term} "
        # Without the blank behind it, which is everywhere, most texts are passed over faster.
        beginning = f" {term}"
        counts = {
            at: number + (text.count(twice) if pair in text else 0)
            for at, text in enumerate(self.texts)
            if beginning in text and (number := text.count(word))
        }
        for at in counts if weight else ():
            if self._lengths[at] > 2 * _FIRST and word in self._beginning(at):
                self._first[at] += weight
        return counts

    def _beginning(self, at: int) -> str:
        """The first words of a long text, with a blank around each."""
        if at not in self._beginnings:
            first = self.texts[at].split(maxsplit=_FIRST)[:_FIRST]
            self._beginnings[at] = f" {' '.join(first)} "
        return self._beginnings[at]

    def _scores(self, posting: Posting, counts: Mapping[int, int]) -> dict[int, float]:
        """What a word adds to each entry that has it, or else what means the same."""
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

    def _of_best(self) -> list[float]:
        """What texts earn from the terms that the best texts have and most others lack.

        Pseudo-relevance feedback as in RM3 (Abdul-Jaleel et al., TREC 2004), but against the
        candidates instead of all texts, which needs no look-up.
        """
        made = [0.0] * len(self.texts)
        lone = [at for at, own in enumerate(self.own) if own and not self._pool.entries[at].is_turn]
        lone = sorted(lone, key=self.own.__getitem__, reverse=True)[:_REPEATED]
        best = lone[:_TRUSTED]
        terms = {at: self.texts[at].split() for at in lone}
        bags = {at: set(of_entry) for at, of_entry in terms.items()}
        shared = set().union(*(bags[at] for at in best)) - little_terms()
        spread = Counter(chain.from_iterable(map(shared.intersection, bags.values())))
        model: dict[str, float] = {}
        for at in best:
            for term, times in Counter(terms[at]).items():
                if term in shared and spread[term] > 1 and len(term) > 2:
                    worth = self.own[at] * times / (self._lengths[at] + 10)
                    worth *= weight_of(spread[term], len(lone))
                    model[term] = model.get(term, 0.0) + worth
        chosen = sorted(model, key=model.__getitem__, reverse=True)[:_LENT_TERMS]
        whole = sum(model[term] for term in chosen) or 1.0
        for at in lone:
            bag, norm = bags[at], self._norms[at]
            for term in chosen:
                if term in bag:
                    times = terms[at].count(term)
                    made[at] += model[term] / whole * times / (times + norm)
        return made

    def columns(self) -> dict[str, list[float]]:
        """The signals of the words, by their names in `WEIGHTS`."""
        # A word that is there once in a text of mean length counts as one.
        scale = (1 + K1) / self.total
        columns = {
            "words": [scale * own for own in self.own],
            "first": [early / self.total for early in self._first],
        }
        if any(self._lent):
            columns["neighbours"] = [scale * lent for lent in self._lent]
            columns["answer"] = [scale * own for own in self._asked_before()]
        if self._feedback is not None:
            columns["feedback"] = self._feedback
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


def has_wanted(entry: Candidate, wants: Wanted) -> bool:
    """Whether a statement has what a question wants: a name, or a number or date."""
    match wants:
        case "name":
            return NAME in entry.codes
        case "value":
            return _has_value(entry.terms, entry.codes)
    return False


@lru_cache(1_024)
def _has_value(terms: str, codes: str) -> bool:
    return any(_FIRST_DATE <= code < CHANGE for code in codes) or any(
        term[0].isdigit() or term in number_terms() for term in terms.split()
    )


@cache
def number_terms() -> frozenset[str]:
    """The terms of words for numbers."""
    return frozenset(terms_of(" ".join(words("numbers"))))


@cache
def little_terms() -> frozenset[str]:
    """The terms of words that say nothing about a topic."""
    return frozenset(terms_of(" ".join(little())))


def _in_category(entries: Sequence[Candidate], named: Mapping[str, float]) -> list[float]:
    """For each entry, the best match among the named categories that contain its category."""
    best = {
        category: max(
            (worth for path, worth in named.items() if is_within(category, path)), default=0.0
        )
        for category in {entry.category for entry in entries}
    }
    return [best[entry.category] for entry in entries]


def _by_speaker(query: Query, entries: Sequence[Candidate], texts: Sequence[str]) -> list[float]:
    """Whether the person who is named first said it, or it names that person and has no speaker."""
    speaker = query.people[0]
    named = [f" {term} " for term in terms_of(" ".join(query.name_words))]
    return [
        float(entry.actor == speaker if entry.actor else any(name in text for name in named))
        for entry, text in zip(entries, texts, strict=True)
    ]


def _told_in(query: Query, now: float, local: dt.tzinfo) -> list[tuple[float, float]]:
    """The times in the past that the query names, in seconds since the epoch."""
    return [
        (start, min(end, now))
        for date in query.dates
        for start, end in (seconds_of(period, local) for period in date.periods)
        if start < now
    ]


def _told(created_at: float, times: Iterable[tuple[float, float]], *, only_then: bool) -> float:
    """How near to one of the times an entry was told, 0 to 1; with `only_then` 0 outside them."""
    best = 0.0
    for start, end in times:
        days = (end - start) / DAY
        if start <= created_at < end:
            best = max(best, 1.0 if days <= _SHORT_SPAN else _LONG_SPAN)
        elif days <= 2 and not only_then:
            after, before = (created_at - end) / DAY, (start - created_at) / DAY
            away = after / _FADES_AFTER if after >= 0 else before / _FADES_BEFORE
            best = max(best, math.exp(-away))
    return best
