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
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ..language.dates import seconds_of
from ..language.meaning import NAME, VALUE
from ..language.secret_names import names_in
from ..language.vocabulary import is_of_grammar, words
from ..memory.scoring import DAY
from ..memory.stemming import terms_of
from ..memory.tree_nodes import is_within
from ..memory.vectors import nearer_than_rest
from .pool import Pool
from .postings import Postings
from .query import Query, Wanted
from .sources import Candidate
from .word_scores import WordScores

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
    # A quoted phrase.
    "phrase": 1.0,
    # Having a name or a value, if the question wants one; less for a value that it does not want.
    "wanted": 0.1,
    # Being nearer in meaning than most, by the vectors of an encoder.
    "meaning": 0.45,
}  # fmt: skip
_SECRETS: Final = frozenset({"pin", "password", "word", "token", "person", "bank", "code"})
_NUMBER: Final = re.compile(r"\d")
_LONG_NUMBER: Final = re.compile(r"\d{3,}")
# An answer with so much of the question is likely.
_LIKELY: Final = 0.4
# From this relevance on the words answer, and nearness in meaning adds nothing.
_ANSWERED: Final = 0.8
# Days until the signal of a day has faded to 1/e, after the day and before it.
_FADES_AFTER: Final = 4.0
_FADES_BEFORE: Final = 1.0
# The signal of a value in a statement, of which a question without one asks something else.
_UNWANTED: Final = -0.3
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
        query_terms: the terms and codes of the question's words.
        decisive: the words of the question without which nothing surely answers: who somebody is
            ("sister"), and long numbers.
        secret: whether it asks for a password or the like.
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
    query_terms: frozenset[str]
    decisive: frozenset[str]
    secret: bool
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
    scores = WordScores(postings, pool)
    columns = scores.columns() | _other_columns(
        query, postings, pool, reasoned, paths, scores, _told_in(query, now, local)
    )
    sums = [0.0] * len(pool.entries)
    for name, column in columns.items():
        sums = _with(sums, name, column)
    numbered = query.dates or any(_NUMBER.search(word.text) for word in query.words)
    if query.wants or (query.asks and not numbered):
        columns["wanted"] = _wanted(query, pool, sums)
        sums = _with(sums, "wanted", columns["wanted"])
    if near:
        shares, left = nearer_than_rest(near), _left_to_meaning(max(sums, default=0.0))
        worth = left * query.compared
        columns["meaning"] = [worth * shares.get(entry.key, 0.0) for entry in pool.entries]
        sums = _with(sums, "meaning", columns["meaning"])
    best = max(scores.own, default=0.0) or 1.0
    texts = [word.text for word in query.words if not word.is_grammar]
    telling = 0 if query.of_time else different_words(texts)
    query_terms = frozenset(label for word in query.words for label in (word.term, *word.codes))
    return Signals(
        columns,
        sums,
        [own / best for own in scores.own],
        scores.met,
        query_terms,
        _decisive(query),
        any(name.kind in _SECRETS for name in names_in(" ".join(query.telling))),
        query.wants,
        query.asks,
        telling,
        postings.size,
    )


def different_words(texts: Iterable[str]) -> int:
    """The number of words and phrases that have a word which no shorter one of them has."""
    known: set[str] = set()
    count = 0
    for text in sorted(texts, key=len):
        parts = text.lower().split()
        # In "do we drive" only one word tells something; "door" alone does, though Dutch has it.
        telling = {part for part in parts if len(parts) == 1 or not is_of_grammar(part)}
        count += not telling <= known
        known |= telling
    return count


def _left_to_meaning(best: float) -> float:
    """How much nearness in meaning counts: the less, the more of the question `best` answers."""
    return max(0.0, _ANSWERED - best)


def _other_columns(
    query: Query,
    postings: Postings,
    pool: Pool,
    reasoned: Mapping[str, float],
    paths: Mapping[str, Mapping[str, float]],
    scores: WordScores,
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
    if query.people:
        columns["speaker"] = _by_speaker(query, entries, scores.terms)
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

    An entry that has nothing else of the question may answer it only if nothing likely does. What
    says when or how much is less likely to answer a question that does not ask for that.
    """
    if not query.wants:
        return [
            _UNWANTED * (not entry.is_turn and has_wanted(entry, "value")) for entry in pool.entries
        ]
    unlikely = max(sums, default=0.0) < _LIKELY
    return [
        float((unlikely or total > 0) and has_wanted(entry, query.wants))
        for entry, total in zip(pool.entries, sums, strict=True)
    ]


def _with(sums: Sequence[float], name: str, column: Sequence[float]) -> list[float]:
    """The sums with a weighted signal added."""
    weight = WEIGHTS[name]
    return [total + weight * value for total, value in zip(sums, column, strict=True)]


def has_wanted(entry: Candidate, wants: Wanted) -> bool:
    """Whether a statement has what a question wants: a name, or a number or date."""
    match wants:
        case "name":
            return NAME in entry.codes
        case "value":
            return VALUE in entry.codes
    return False


def _in_category(entries: Sequence[Candidate], named: Mapping[str, float]) -> list[float]:
    """For each entry, the best match among the named categories that contain its category."""
    best = {
        category: max(
            (worth for path, worth in named.items() if is_within(category, path)), default=0.0
        )
        for category in {entry.category for entry in entries}
    }
    return [best[entry.category] for entry in entries]


def _by_speaker(
    query: Query, entries: Sequence[Candidate], terms: Sequence[Sequence[str]]
) -> list[float]:
    """Whether somebody who is named said it, or it has no speaker and names somebody."""
    named = {*terms_of(" ".join(query.name_words))}
    return [
        float(entry.actor in query.people if entry.actor else not named.isdisjoint(of_entry))
        for entry, of_entry in zip(entries, terms, strict=True)
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
