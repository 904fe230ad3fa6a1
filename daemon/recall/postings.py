"""The candidates that contain each word of a query, from the full-text indexes."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..memory.irregular import variants
from ..memory.stemming import word_terms
from ..store import full_text
from .query import Phrase, Query, match_expression
from .sources import MEMORIES, Source

# A word in no more items of a source than this is never common.
_ALWAYS_RARE: Final = 500
# The keys that all words of a query name together, the rarest words first.
_BUDGET: Final = 2_000
# The keys of a word that its number of keys is estimated from.
_SAMPLE: Final = 200
# Kin are words that begin with this many letters of a word, or with all of a shorter word.
_KIN_LETTERS: Final = 5
_KIN_AT_LEAST: Final = 4
_KIN_SHARE: Final = 0.3
# The share of its weight that an unknown word of a long message counts.
_UNKNOWN_IN_LONG: Final = 0.5
# From this many texts on, an unknown word counts in full against an answer.
_KNOWS_WORDS: Final = 100
# A word of this many texts needs no kin.
_FEW: Final = 20
_KEYS: Final = msgspec.json.Decoder(list[int])


class Posting(msgspec.Struct, frozen=True, gc=False):
    """The postings of one word.

    Attributes:
        term: the word as it is in `Candidate.terms`.
        weight: `ln(1 + (N − n + ½) / (n + ½))`, times the word's share in the query; 0 if n is 0.
        keys: the candidates that contain it; none if it is common.
        kin: the keys that contain a word with the same beginning instead, of weight `kin_weight`.
    """

    word: str
    term: str
    weight: float
    keys: frozenset[int] = frozenset()
    kin: frozenset[int] = frozenset()
    kin_weight: float = 0.0


class Postings(msgspec.Struct, frozen=True):
    """What the indexes hold for a query.

    Attributes:
        words: the words that occur in a text, or have kin.
        common: the words that occur in too many texts to name candidates.
        unknown: the words that occur in no text.
        unmet: the weight of the unknown words, which counts against any answer.
        newest: if no word names candidates, the newest keys with the most common words.
        phrased: the keys that contain a quoted phrase, if the query has other words, too.
        naming: the keys whose text names a person, if the query asks for nothing else.
        size: the number of texts.
        mean_length: the mean number of terms of a text.
        searched: the names of the sources that are not empty.
    """

    words: tuple[Posting, ...]
    common: tuple[str, ...]
    unknown: tuple[str, ...]
    unmet: float
    newest: tuple[int, ...]
    phrased: frozenset[int]
    naming: frozenset[int]
    size: int
    mean_length: float
    searched: frozenset[str]


class _Index:
    """The full-text index of a source."""

    def __init__(
        self, db: sqlite3.Connection, source: Source, counts: tuple[int, int], common_share: float
    ) -> None:
        self._db = db
        self.source = source
        self.texts, self.terms = counts
        self.most = max(_ALWAYS_RARE, int(self.texts * common_share))

    def keys(self, expression: str, limit: int, *, latest: bool = False) -> list[int]:
        """At most `limit` keys that match; with `latest` the newest."""
        order = "ORDER BY rowid DESC " if latest else ""
        # As one value: fetching hundreds of rows takes more than half of the time.
        found = self._db.execute(
            f"SELECT json_group_array(key) FROM (SELECT {self.source.key_of('rowid')} AS key"
            f" FROM {self.source.index} WHERE {self.source.index} MATCH ? {order}LIMIT ?)",
            (expression, limit),
        ).fetchone()
        return _KEYS.decode(found[0])

    def sample(self, expression: str) -> tuple[list[int], int]:
        """The first keys that match, and the number of all that match: exact if they are few."""
        found = self.keys(expression, _SAMPLE)
        if len(found) < _SAMPLE:
            return found, len(found)
        # Keys are in ascending order, so the last one gives the density.
        newest = self._db.execute(f"SELECT max(row) FROM {self.source.table}").fetchone()[0]
        dense = _SAMPLE * newest // max(1, self.source.rows(found[-1:])[0])
        return found, min(self.texts, max(_SAMPLE, dense))


class _Word(msgspec.Struct):
    word: str
    expression: str
    count: int
    samples: list[tuple[_Index, list[int], int]]


def look_up(
    db: sqlite3.Connection,
    query: Query,
    sources: Sequence[Source] = (MEMORIES,),
    *,
    common_share: float,
    newest: int,
) -> Postings:
    """The postings of every word, within what the query demands and excludes.

    A phrase is demanded if the query has only phrases, else preferred. A word in more than
    `common_share` of all texts, or beyond the budget of all words together, names no candidates
    but adds to the score of those that contain it.
    """
    indexes = _indexes(db, sources, common_share)
    size = sum(index.texts for index in indexes)
    phrased: frozenset[int] = frozenset()
    if query.phrases and not demands_phrases(query):
        quoted = " OR ".join(match_expression((), (phrase,)) for phrase in query.phrases)
        query = msgspec.structs.replace(query, phrases=())
        phrased = _all_keys(indexes, _within(query, quoted))
    naming: frozenset[int] = frozenset()
    if query.name_words and not query.topics:
        naming = _all_keys(indexes, _demanded(query, query.name_words), latest=True)
    found = [_sampled(query, word, indexes) for word in _distinct(query)]
    words: list[Posting] = []
    common: list[str] = []
    unknown: list[str] = []
    unmet = 0.0
    unknown_share = knowledge(size) * (_UNKNOWN_IN_LONG if query.long else 1.0)
    budget = _BUDGET
    for one in sorted(found, key=lambda word: word.count):
        weight = weight_of(one.count, size) * query.shares.get(one.word, 1.0)
        keys = _named(one, budget)
        if keys is None:
            common.append(one.word)
        budget -= len(keys or ())
        posting = _posting(query, one, weight, keys or (), indexes)
        if one.count or posting.kin:
            words.append(posting)
        # A memory that was stored in May need not contain the word.
        if not one.count and one.word in query.words:
            unknown.append(one.word)
            unmet += weight * unknown_share
    latest: tuple[int, ...] = ()
    if common and not any(posting.keys or posting.kin for posting in words):
        latest = _latest(query, tuple(common), indexes, newest)
    return Postings(
        words=tuple(words),
        common=tuple(word for word in _distinct(query) if word in common),
        unknown=tuple(unknown),
        unmet=unmet,
        newest=latest,
        phrased=phrased,
        naming=naming,
        size=size,
        mean_length=sum(index.terms for index in indexes) / (size or 1) or 1.0,
        searched=frozenset(index.source.name for index in indexes),
    )


def _indexes(
    db: sqlite3.Connection, sources: Sequence[Source], common_share: float
) -> list[_Index]:
    counts = full_text.counts(db, [source.index for source in sources])
    return [
        _Index(db, source, counts[source.index], common_share)
        for source in sources
        if counts[source.index][0]
    ]


def _posting(
    query: Query, one: _Word, weight: float, keys: Iterable[int], indexes: Iterable[_Index]
) -> Posting:
    return Posting(
        word=one.word,
        term="".join(word_terms(one.word)[:1]),
        weight=weight if one.count else 0.0,
        keys=frozenset(keys),
        kin=_kin(query, one, indexes),
        kin_weight=_KIN_SHARE * weight,
    )


def _distinct(query: Query) -> list[str]:
    """The words of the query; of several forms of a word only the first."""
    words = dict.fromkeys((*query.words, *query.date_words))
    by_term = {"".join(word_terms(word)): word for word in reversed(words)}
    return [*reversed(by_term.values())]


def _sampled(query: Query, word: str, indexes: Iterable[_Index]) -> _Word:
    expression = _demanded(query, (word, *variants(word)))
    samples = [(index, *index.sample(expression)) for index in indexes]
    return _Word(word, expression, sum(count for *_, count in samples), samples)


def _named(word: _Word, budget: int) -> list[int] | None:
    """The candidates that a word names; None if it is common."""
    named: list[int] = []
    if word.count >= _SAMPLE and word.count > budget:
        return None
    for index, keys, _ in word.samples:
        if len(keys) < _SAMPLE:
            named += keys
            continue
        more = index.keys(word.expression, index.most + 1)
        if len(more) > index.most:
            return None
        named += more
    return named


def _kin(query: Query, word: _Word, indexes: Iterable[_Index]) -> frozenset[int]:
    plain = len(word.word) >= _KIN_AT_LEAST and word.word.isascii() and word.word.isalpha()
    if word.count >= _FEW or not plain:
        return frozenset()
    prefix = _within(query, f'"{word.word[:_KIN_LETTERS]}"*')
    found: set[int] = set()
    for index in indexes:
        keys = index.keys(prefix, _SAMPLE + 1)
        found.update(keys if len(keys) <= _SAMPLE else ())
    return frozenset(found.difference(*(keys for _, keys, _ in word.samples)))


def _latest(
    query: Query, words: tuple[str, ...], indexes: Iterable[_Index], limit: int
) -> tuple[int, ...]:
    """The newest keys with all of the words, then the newest with any."""
    every = " AND ".join(f"({match_expression((word, *variants(word)))})" for word in words)
    found: dict[int, None] = {}
    for expression in (_within(query, every), _demanded(query, words)):
        for index in indexes:
            found |= dict.fromkeys(index.keys(expression, limit, latest=True))
    return tuple(found)


def _all_keys(
    indexes: Iterable[_Index], expression: str, *, latest: bool = False
) -> frozenset[int]:
    return frozenset(
        key for index in indexes for key in index.keys(expression, index.most, latest=latest)
    )


def demands_phrases(query: Query) -> bool:
    """Whether the query has only phrases, so that every answer must contain them."""
    quoted = {word for phrase in query.phrases for word in phrase}
    return bool(query.phrases) and not set(query.words) - quoted


def admitted(db: sqlite3.Connection, query: Query, rows: Sequence[int]) -> list[int]:
    """The keys of those rows, found without the index, that the query does not exclude."""
    demanded = query.phrases if demands_phrases(query) else ()
    kept = set(rows)
    for phrase in demanded:
        kept &= _among(db, phrase, rows)
    for phrase in query.excluded:
        kept -= _among(db, phrase, rows)
    return MEMORIES.keys(row for row in rows if row in kept)


def _among(db: sqlite3.Connection, phrase: Phrase, rows: Sequence[int]) -> set[int]:
    found = db.execute(
        f"SELECT rowid FROM {MEMORIES.index} WHERE {MEMORIES.index} MATCH ?"
        " AND rowid IN (SELECT value FROM json_each(?))",
        (match_expression((), (phrase,)), msgspec.json.encode(rows).decode()),
    )
    return {row for (row,) in found}


def knowledge(size: int) -> float:
    """How much the words of `size` texts tell, 0 to 1: few texts contain few words."""
    return min(1.0, math.log1p(size) / math.log1p(_KNOWS_WORDS))


def weight_of(count: int, size: int) -> float:
    """The idf of a word in `count` of `size` texts; `size` must not be less than `count`."""
    return math.log1p((size - count + 0.5) / (count + 0.5))


def _demanded(query: Query, words: tuple[str, ...]) -> str:
    return _within(query, match_expression(words))


def _within(query: Query, expression: str) -> str:
    """`expression`, restricted to the phrases that the query demands, without its exclusions."""
    demanded = match_expression((), query.phrases)
    joined = f"({demanded}) AND ({expression})" if demanded else expression
    if not query.excluded:
        return joined
    refused = " OR ".join(match_expression((), (phrase,)) for phrase in query.excluded)
    return f"({joined}) NOT ({refused})"
