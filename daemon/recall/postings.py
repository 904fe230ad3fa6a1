"""Which candidates each word of a query stands in, out of the full-text indexes."""

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

# A word may stand in so many things of a source before its share of them is asked for.
_ALWAYS_RARE: Final = 500
# How many keys the words of a query name together, those of the rarest first.
_BUDGET: Final = 2_000
# So many keys of a word tell how many it has, if these are more.
_SAMPLE: Final = 200
# Kin are words that share so many first letters, or all of a shorter word's.
_KIN_LETTERS: Final = 5
_KIN_AT_LEAST: Final = 4
_KIN_SHARE: Final = 0.3
# What an unknown word of a message counts.
_UNKNOWN_IN_LONG: Final = 0.5
# From so many texts on, a word that none of them has tells in full against an answer.
_KNOWS_WORDS: Final = 100
# A word that stands in so many needs no kin to be found.
_FEW: Final = 20
_KEYS: Final = msgspec.json.Decoder(list[int])


class Posting(msgspec.Struct, frozen=True, gc=False):
    """One word: how it stands in `Candidate.terms`, and what it weighs.

    Attributes:
        weight: `ln(1 + (N − n + ½) / (n + ½))`, times the word's share in the query; 0 if n is 0.
        keys: what it names as candidates: all that it stands in, or nothing if it is common.
        kin: the keys without it that have a word which begins alike, and what they weigh.
    """

    word: str
    term: str
    weight: float
    keys: frozenset[int] = frozenset()
    kin: frozenset[int] = frozenset()
    kin_weight: float = 0.0


class Postings(msgspec.Struct, frozen=True):
    """What the indexes know of a query.

    Attributes:
        words: those that stand anywhere, or have kin.
        common: those of them that stand in too many to name candidates.
        unknown: those that stand nowhere, and `unmet`: what they tell against any answer.
        newest: if no word names candidates, the newest keys with the most of the common ones.
        phrased: the keys with a phrase that is quoted beside other words.
        naming: the keys whose text has the name of a person, if nothing else is asked for.
        size: how many texts there are.
        mean_length: in terms, of one.
        searched: the names of the sources that have any.
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
        """The keys that match, or the latest of them."""
        order = "ORDER BY rowid DESC " if latest else ""
        # As one value: hundreds of rows cost more than half of the look-up.
        found = self._db.execute(
            f"SELECT json_group_array(key) FROM (SELECT {self.source.key_of('rowid')} AS key"
            f" FROM {self.source.index} WHERE {self.source.index} MATCH ? {order}LIMIT ?)",
            (expression, limit),
        ).fetchone()
        return _KEYS.decode(found[0])

    def sample(self, expression: str) -> tuple[list[int], int]:
        """The first keys that match, and how many there are: exactly if they are no more."""
        found = self.keys(expression, _SAMPLE)
        if len(found) < _SAMPLE:
            return found, len(found)
        # Keys come in their order, so that the last tells how dense they are.
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

    A phrase is demanded if nothing is asked but phrases; beside other words it is preferred. A
    word of more texts than `common_share` of all, or beyond the budget of all words together,
    names no candidates, but counts for those that are there.
    """
    counts = full_text.counts(db, [source.index for source in sources])
    # What is empty takes no look-ups.
    indexes = [
        _Index(db, source, counts[source.index], common_share)
        for source in sources
        if counts[source.index][0]
    ]
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
        share = query.shares.get(one.word, 1.0)
        weight = weight_of(one.count, size) * share
        keys = _named(one, budget)
        if keys is None:
            common.append(one.word)
        budget -= len(keys or ())
        posting = Posting(
            word=one.word,
            term="".join(word_terms(one.word)[:1]),
            weight=weight if one.count else 0.0,
            keys=frozenset(keys or ()),
            kin=_kin(query, one, indexes),
            kin_weight=_KIN_SHARE * weight,
        )
        if one.count or posting.kin:
            words.append(posting)
        # That no text says "May" tells nothing against one that was stored in May.
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


def _distinct(query: Query) -> list[str]:
    """The words of the query, of several forms of one the first."""
    words = dict.fromkeys((*query.words, *query.date_words))
    by_term = {"".join(word_terms(word)): word for word in reversed(words)}
    return [*reversed(by_term.values())]


def _sampled(query: Query, word: str, indexes: Iterable[_Index]) -> _Word:
    expression = _demanded(query, (word, *variants(word)))
    samples = [(index, *index.sample(expression)) for index in indexes]
    return _Word(word, expression, sum(count for *_, count in samples), samples)


def _named(word: _Word, budget: int) -> list[int] | None:
    """What a word names as candidates; None if it is common."""
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
    """The newest keys with all of the words, and then those with any."""
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
    """Whether nothing is asked but phrases, so that no memory will do without them."""
    quoted = {word for phrase in query.phrases for word in phrase}
    return bool(query.phrases) and not set(query.words) - quoted


def admitted(
    db: sqlite3.Connection, query: Query, rows: Sequence[int], source: Source = MEMORIES
) -> list[int]:
    """The keys of those rows, found without the index, that the query does not refuse."""
    demanded = query.phrases if demands_phrases(query) else ()
    kept = set(rows)
    for phrase in demanded:
        kept &= _among(db, source, phrase, rows)
    for phrase in query.excluded:
        kept -= _among(db, source, phrase, rows)
    return source.keys(row for row in rows if row in kept)


def _among(db: sqlite3.Connection, source: Source, phrase: Phrase, rows: Sequence[int]) -> set[int]:
    found = db.execute(
        f"SELECT rowid FROM {source.index} WHERE {source.index} MATCH ?"
        " AND rowid IN (SELECT value FROM json_each(?))",
        (match_expression((), (phrase,)), msgspec.json.encode(rows).decode()),
    )
    return {row for (row,) in found}


def knowledge(size: int) -> float:
    """How much so many texts know, 0 to 1: few know few words, and seldom agree by chance."""
    return min(1.0, math.log1p(size) / math.log1p(_KNOWS_WORDS))


def weight_of(count: int, size: int) -> float:
    """What a word is worth that stands in `count` of `size` candidates, which are no fewer."""
    return math.log1p((size - count + 0.5) / (count + 0.5))


def _demanded(query: Query, words: tuple[str, ...]) -> str:
    return _within(query, match_expression(words))


def _within(query: Query, expression: str) -> str:
    """`expression`, with every phrase that the query demands and nothing that it excludes."""
    demanded = match_expression((), query.phrases)
    joined = f"({demanded}) AND ({expression})" if demanded else expression
    if not query.excluded:
        return joined
    refused = " OR ".join(match_expression((), (phrase,)) for phrase in query.excluded)
    return f"({joined}) NOT ({refused})"
