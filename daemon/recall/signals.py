"""The signals that rank a candidate: its words, its neighbours, its conversation, actor and time.

`word_scores` gives the signals of the words, each as a fraction of the best candidate's. The
weights were measured on conversations, facts and abstracts (see `tests/benchmarks/`).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ..memory.scoring import DAY, YEAR
from ..memory.stemming import terms_of
from ..memory.tree_nodes import is_within
from . import question as forms
from .dates import Span
from .pool import Pool
from .postings import Postings
from .presets import shares_of_best
from .query import Query
from .question import Question
from .relevance import relevance
from .sources import Candidate
from .word_scores import K1, LITTLE, WordScores

# Days until the signal of a day has faded to 1/e, after the day and before it.
_FADES_AFTER: Final = 4.0
_FADES_BEFORE: Final = 1.0
# The best facts that are compared, and from which share of common terms a newer one replaces.
_COMPARED: Final = 12
_ALIKE: Final = 0.3
_LATER: Final = 60.0

# The weights, fitted on the collections for development; no collection has the first three.
# `tests/benchmarks/fit_signals.py` evaluates and changes them with held-out conversations.
WEIGHTS: Final = {
    "phrase": 6.0, "category": 1.0, "reasoned": 6.0,
    "own": 3.0, "turn_own": -0.9, "around": 2.0, "context": 2.0, "kin": 2.8, "path": 3.5,
    "first": 0.8, "feedback": 0.6, "coverage": 0.8, "group": 0.4, "filed": 1.5,
    "older": -2.5, "superseded": -2.5, "actor": 3.0, "subject": 3.5, "day": 2.5, "date": 2.0,
    "when": 1.4, "answer": 1.2, "addresses": -0.3, "names": 0.3, "name": 1.2, "number": 1.0,
    "details": 0.3, "opens": 0.6,
}  # fmt: skip
# The signals that need the text are measured for this many of the best by their words.
_READ: Final = 40
_OF_TEXT: Final = (
    "when", "answer", "addresses", "names", "name", "number", "details", "opens",
)  # fmt: skip


class Signals(msgspec.Struct, frozen=True):
    """The measured signals of a pool, in the order of its entries.

    Attributes:
        columns: the values of all entries, by the names of `WEIGHTS`.
        scores: the weighted sum of each entry.
        relevance: how likely an entry answers the query, 0 to 1, independent of other entries.
        bm25: the BM25 of each entry's own words, as a fraction of the best.
    """

    columns: Mapping[str, Sequence[float]]
    scores: tuple[float, ...]
    relevance: Callable[[int], float]
    bm25: tuple[float, ...]

    def added(self, name: str, at: int) -> float:
        """The contribution of one signal to the score of an entry."""
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
    """Measure every signal of every entry; `question` is the form of `query`.

    `categories` are those that the query names, with their match, 0 to 1; `reasoned` those that a
    model named, with their relevance; `filed` has the query's terms in each category, with their
    weights. `read` returns the texts of candidates by key.
    """
    words = WordScores(postings, pool, filed or {})
    entries = pool.entries
    columns = words.columns()
    if postings.phrased:
        columns["phrase"] = [float(entry.key in postings.phrased) for entry in entries]
    if categories:
        columns["category"] = _filed(entries, categories)
    if reasoned:
        columns["reasoned"] = _filed(entries, reasoned)
    if question.one:
        # A text without an actor is about the person that it names.
        named = set(terms_of(" ".join(query.name_words)))
        columns["actor"] = [
            float(entry.actor == question.one)
            if entry.actor
            else float(not named.isdisjoint(terms))
            for entry, terms in zip(entries, words.terms, strict=True)
        ]
    if question.subject:
        columns["subject"] = [float(entry.actor == question.subject) for entry in entries]
    if query.dates:
        columns["day"] = [_day(entry, query.dates) for entry in entries]
        columns["date"] = [_date(entry, query.dates) for entry in entries]
    if any(entry.superseded for entry in entries):
        columns["superseded"] = [float(entry.superseded) for entry in entries]
    if not query.once:
        columns["older"] = _older(words, entries)
    people = {word.lower() for name in query.people for word in name.split()}
    columns |= _read(words, question, pool, read, people)
    return Signals(
        columns,
        tuple(_sums(columns, len(entries))),
        relevance(query, postings, pool, words.terms, words.own, filed or {}, columns),
        tuple(shares_of_best(words.own)),
    )


def _sums(columns: Mapping[str, Sequence[float]], size: int) -> list[float]:
    sums = [0.0] * size
    for name, column in columns.items():
        if any(column):
            weight = WEIGHTS[name]
            sums = [total + weight * value for total, value in zip(sums, column, strict=True)]
    return sums


def _read(
    words: WordScores,
    question: Question,
    pool: Pool,
    read: Callable[[Iterable[int]], Mapping[int, str]],
    people: Collection[str],
) -> dict[str, list[float]]:
    """The signals that need the text, for the best entries by their words and neighbours."""
    columns = {name: [0.0] * len(pool.entries) for name in _OF_TEXT}
    asks = question.asks_when or question.asks_name or question.asks_number
    if not asks and not any(words.turns):
        return columns
    worth = [own + around for own, around in zip(words.own, words.around, strict=True)]
    best = sorted(range(len(worth)), key=worth.__getitem__, reverse=True)[:_READ]
    best = [at for at in best if asks or words.turns[at]]
    before = {at: pool.beside(at, -1) for at in best if pool.entries[at].is_turn}
    needed = {*best, *(near for near in before.values() if near >= 0)}
    texts = read(pool.entries[at].key for at in needed)
    for at in best:
        entry, text = pool.entries[at], texts.get(pool.entries[at].key, "")
        names = forms.proper_names(text, people) if entry.is_turn or question.asks_name else 0.0
        columns["when"][at] = float(question.asks_when and forms.names_time(text))
        columns["name"][at] = names * question.asks_name
        columns["number"][at] = float(question.asks_number and forms.names_number(text))
        if not entry.is_turn:
            # The form of a turn shows whether it says something; that of a fact shows nothing.
            continue
        asker = before[at]
        if (
            asker >= 0
            and words.own[asker]
            and forms.is_question(texts.get(pool.entries[asker].key, ""))
        ):
            columns["answer"][at] = words.own[asker] / words.total * (1 + K1)
        if question.one and entry.actor == question.one:
            columns["addresses"][at] = forms.addresses(text)
        columns["names"][at] = names
        columns["details"][at] = forms.enumerates(text)
        columns["opens"][at] = float(entry.position is not None and entry.position < 2)
    return columns


def _older(words: WordScores, entries: Sequence[Candidate]) -> list[float]:
    """The share of a fact's terms in a newer fact of its category; 0 up to `_ALIKE`."""
    column = [0.0] * len(entries)
    lone = [at for at, own in enumerate(words.own) if own and not words.turns[at]]
    best = sorted(lone, key=words.own.__getitem__, reverse=True)[:_COMPARED]
    said = {at: set(words.terms[at]) - LITTLE for at in best}
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


def _filed(entries: Sequence[Candidate], named: Mapping[str, float]) -> list[float]:
    """For each entry, the best match among the named categories that contain its category."""
    best = {
        category: max(
            (worth for path, worth in named.items() if is_within(category, path)), default=0.0
        )
        for category in {entry.category for entry in entries}
    }
    return [best[entry.category] for entry in entries]


def _day(entry: Candidate, spans: Sequence[Span]) -> float:
    """How near an entry is to a day that the question names; fades more slowly after it."""
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
    """Whether an entry is of a month or year that the question names; a year counts less."""
    best = 0.0
    for span in spans:
        start, end = _same_year(entry, span)
        if start <= entry.created_at < end:
            best = max(best, 0.3 if end - start > 60 * DAY else 1.0)
        elif span.is_day and _same_month(entry.created_at, start):
            best = max(best, 1.0)
    return best


def _same_year(entry: Candidate, span: Span) -> tuple[float, float]:
    """The span; if its year was guessed, in the year nearest to the entry."""
    if span.exact or span.end - span.start > YEAR / 2:
        return span.start, span.end
    shift = round((entry.created_at - (span.start + span.end) / 2) / YEAR) * YEAR
    return span.start + shift, span.end + shift


def _same_month(one: float, other: float) -> bool:
    first, second = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (one, other))
    return (first.year, first.month) == (second.year, second.month)
