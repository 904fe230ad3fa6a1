"""The candidates that contain each word of a query, or what means the same."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from ..memory.stemming import variants
from ..store.database import full_text
from .query import Phrase, Query, Word, match_expression
from .sources import MEMORIES, Source

# A word in no more items of a source than this is never common.
_ALWAYS_RARE: Final = 500
# The keys that all words of a query name together, the rarest words first.
_BUDGET: Final = 2_000
# The keys of a word that its number of keys is estimated from.
_SAMPLE: Final = 200
# A word matches others that begin with this many of its letters, or with all of a shorter word.
_PREFIX_LETTERS: Final = 5
_PREFIX_AT_LEAST: Final = 4
# In German "geheizt" is a form of "heizen".
_PARTICIPLE: Final = re.compile(r"ge(\w{4,}?)(?:t|en)")
# The worth of such a match, of a concept, of a word that a person declared to be the same, and of a
# name that was introduced by the word.
_PREFIX_SHARE: Final = 0.3
_CONCEPT_SHARE: Final = 0.7
_SYNONYM_SHARE: Final = 0.9
_NAME_SHARE: Final = 0.8
# A concept is as rare as in a memory with this many more texts: of a small one, what many texts are
# about is what is asked for.
_MORE_TEXTS: Final = 100
# The share of its weight that a word of no text has in the weight of the question.
_UNKNOWN_SHARE: Final = 0.5
# A word of this many texts needs no others that begin alike.
_FEW: Final = 20
# A smaller memory counts as one of this many texts.
LEAST_SIZE: Final = 50
_KEYS: Final = msgspec.json.Decoder(list[int])


class Alternative(msgspec.Struct, frozen=True, gc=False):
    """What a word is also met by.

    Attributes:
        label: the code of a concept or date, or "" for words that begin alike and synonyms.
        weight: at most that of the word itself.
        keys: the candidates that have it; none if they are too many. Those of a code are only the
            candidates that it names: a text has it if its code is among the text's.
    """

    label: str
    weight: float
    keys: frozenset[int] = frozenset()


class Posting(msgspec.Struct, frozen=True, gc=False):
    """The postings of one word.

    Attributes:
        word: the word of the query.
        weight: `ln(1 + (N − n + ½) / (n + ½))`, times the word's share in the query; 0 if n is 0,
            and of a word of grammar, whose texts are not counted.
        keys: the candidates that contain it; none if it is common, or of grammar.
        also: what meets it in a text that does not contain it, best first.
    """

    word: Word
    weight: float
    keys: frozenset[int] = frozenset()
    also: tuple[Alternative, ...] = ()


class Postings(msgspec.Struct, frozen=True):
    """What the indexes hold for a query.

    Attributes:
        words: the words that occur in a text, or are met otherwise, and those of grammar.
        common: the words that occur in too many texts to name candidates.
        unknown: the words that nothing meets.
        total: the weight of the whole question without words of grammar; unknown words included.
        newest: if no word names candidates, the newest keys with the most common words.
        phrased: the keys that contain a quoted phrase, if the query has other words, too.
        naming: the keys whose text names a person, if the query asks for nothing else.
        size: the number of texts.
        mean_length: the mean number of terms of a text.
        texts: the number of texts of each source that is not empty.
    """

    words: tuple[Posting, ...]
    common: tuple[str, ...]
    unknown: tuple[str, ...]
    total: float
    newest: tuple[int, ...]
    phrased: frozenset[int]
    naming: frozenset[int]
    size: int
    mean_length: float
    texts: Mapping[str, int]


class _Index:
    """The full-text index of a source."""

    def __init__(
        self, db: sqlite3.Connection, source: Source, counts: tuple[int, int], common_share: float
    ) -> None:
        self._db = db
        self.source = source
        self.texts, self.terms = counts
        self.most = max(_ALWAYS_RARE, int(self.texts * common_share))

    @cached_property
    def _newest(self) -> int:
        """The newest row, which an index without texts does not have."""
        return int(self._db.execute(f"SELECT max(row) FROM {self.source.table}").fetchone()[0])

    def keys(
        self, expression: str, limit: int, *, latest: bool = False, after: int = 0
    ) -> list[int]:
        """At most `limit` keys that match, of rows beyond `after`; with `latest` the newest."""
        query = f"SELECT {self.keys_sql(latest=latest)}"
        return _KEYS.decode(self._db.execute(query, (expression, after, limit)).fetchone()[0])

    def keys_sql(self, *, latest: bool = False) -> str:
        """SQL of the JSON of `keys`, from an expression, `after` and the limit."""
        order = "ORDER BY rowid DESC " if latest else ""
        # As one value: fetching hundreds of rows takes more than half of the time.
        return (
            f"(SELECT json_group_array(key) FROM (SELECT {self.source.key_of('rowid')} AS key"
            f" FROM {self.source.index} WHERE {self.source.index} MATCH ?1 AND rowid > ?2"
            f" {order}LIMIT ?3))"
        )

    def count(self, first: Sequence[int]) -> int:
        """The number of all that match, from the first `_SAMPLE` keys: exact if they are few."""
        if len(first) < _SAMPLE:
            return len(first)
        # Keys are in ascending order, so the last one gives the density.
        dense = _SAMPLE * self._newest // max(1, *self.source.rows(first[-1:]))
        return min(self.texts, max(_SAMPLE, dense))


class _Matches(msgspec.Struct):
    """How many texts match an expression, and a sample of their keys by index."""

    expression: str
    count: int
    samples: list[tuple[_Index, list[int]]]

    def named(self, budget: int) -> list[int] | None:
        """The candidates that it names; None if they are too many."""
        if self.count >= _SAMPLE and self.count > budget:
            return None
        named: list[int] = []
        for index, keys in self.samples:
            named += keys
            if len(keys) == _SAMPLE:
                left = index.most - _SAMPLE
                last = index.source.rows(keys[-1:])[0]
                more = index.keys(self.expression, left + 1, after=last)
                if len(more) > left:
                    return None
                named += more
        return named


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
    return _LookUp(db, query, indexes).postings(newest)


class _LookUp:
    def __init__(self, db: sqlite3.Connection, query: Query, indexes: Sequence[_Index]) -> None:
        self._db = db
        self._indexes = indexes
        # All indexes at once: most of a look-up is the call.
        self._sql = f"SELECT {', '.join(index.keys_sql() for index in indexes)}"
        self._size = sum(index.texts for index in indexes)
        self._budget = _BUDGET
        self._phrased: frozenset[int] = frozenset()
        self._query = query
        if query.phrases and not demands_phrases(query):
            self._query = msgspec.structs.replace(query, phrases=())
            quoted = " OR ".join(match_expression((), (phrase,)) for phrase in query.phrases)
            self._phrased = self._all_keys(quoted)

    def postings(self, newest: int) -> Postings:
        """The postings; arguments as in `look_up`."""
        query = self._query
        words = [Posting(word, 0.0) for word in query.words if word.is_grammar]
        total = 0.0
        common, unknown = list[Word](), list[str]()
        rest = (word for word in query.words if not word.is_grammar)
        by_word = [(word, self._matches(_expression(word))) for word in rest]
        # The rarest words name their candidates first.
        for word, matches in sorted(by_word, key=lambda pair: pair[1].count):
            posting, is_common = self._posting(word, matches)
            if is_common:
                common.append(word)
            if posting.weight or posting.also:
                words.append(posting)
            elif word.term:
                unknown.append(word.text)
            total += _worth(posting, self._weight(word, 0))
        latest: tuple[int, ...] = ()
        if not any(posting.keys or _keys_of(posting) for posting in words):
            only_grammar = all(word.is_grammar for word in query.words)
            latest = self._latest(query.words if only_grammar else common, newest)
        naming: frozenset[int] = frozenset()
        if query.name_words and not query.topics:
            naming = self._all_keys(match_expression(query.name_words), latest=True)
        return Postings(
            words=tuple(words),
            common=tuple(word.text for word in query.words if word in common),
            unknown=tuple(unknown),
            total=total,
            newest=latest,
            phrased=self._phrased,
            naming=naming,
            size=self._size,
            mean_length=sum(index.terms for index in self._indexes) / (self._size or 1) or 1.0,
            texts={index.source.name: index.texts for index in self._indexes},
        )

    def _posting(self, word: Word, matches: _Matches) -> tuple[Posting, bool]:
        """The posting of a word, and whether it is too common to name candidates."""
        weight = self._weight(word, matches.count)
        keys = matches.named(self._budget) if word.term else []
        self._budget -= len(keys or ())
        also = [
            *self._by_synonyms(word, weight),
            *(self._by_code(code, worth, word, weight) for code, worth in word.codes.items()),
            *self._by_prefix(word, matches, weight),
        ]
        also = [alternative for alternative in also if alternative.weight]
        also.sort(key=lambda item: item.weight, reverse=True)
        own = weight if matches.count and word.term else 0.0
        return Posting(word, own, frozenset(keys or ()), tuple(also)), keys is None

    def _by_code(self, code: str, worth: float, word: Word, weight: float) -> Alternative:
        matches = self._matches(f'codes : "{code}"')
        if not matches.count:
            return Alternative(code, 0.0)
        keys = matches.named(self._budget) or ()
        self._budget -= len(keys)
        share = worth * (_CONCEPT_SHARE if word.term else 1.0)
        rarity = weight_of(matches.count, self._size + _MORE_TEXTS) * word.share
        return Alternative(code, share * min(weight, rarity), frozenset(keys))

    def _by_synonyms(self, word: Word, weight: float) -> Iterable[Alternative]:
        names = tuple((name,) for name in word.names)
        for phrases, share in ((word.synonyms, _SYNONYM_SHARE), (names, _NAME_SHARE)):
            if phrases:
                every = " OR ".join(match_expression((), (phrase,)) for phrase in phrases)
                matches = self._matches(every)
                if matches.count:
                    keys = frozenset(matches.named(self._budget) or ())
                    yield Alternative(
                        "", share * min(weight, self._weight(word, matches.count)), keys
                    )

    def _by_prefix(self, word: Word, matches: _Matches, weight: float) -> Iterable[Alternative]:
        text = word.text
        plain = len(text) >= _PREFIX_AT_LEAST and text.isascii() and text.isalpha()
        if not word.term or not plain or matches.count >= _FEW:
            return
        participle = _PARTICIPLE.fullmatch(text)
        starts = [text, *([participle[1]] if participle else ())]
        either = " OR ".join(f'"{start[:_PREFIX_LETTERS]}"*' for start in starts)
        prefix = self._within(either)
        keys: set[int] = set()
        for more in self._first_keys(prefix, _SAMPLE + 1):
            keys.update(more if len(more) <= _SAMPLE else ())
        keys.difference_update(*(sample for _, sample in matches.samples))
        if keys:
            yield Alternative("", _PREFIX_SHARE * weight, frozenset(keys))

    def _matches(self, expression: str) -> _Matches:
        if not expression:
            return _Matches("", 0, [])
        expression = self._within(expression)
        samples = [*zip(self._indexes, self._first_keys(expression, _SAMPLE), strict=True)]
        return _Matches(expression, sum(index.count(keys) for index, keys in samples), samples)

    def _first_keys(self, expression: str, limit: int) -> list[list[int]]:
        """At most `limit` of the keys that match, for each index."""
        if not self._indexes:
            return []
        row = self._db.execute(self._sql, (expression, 0, limit)).fetchone()
        return [*map(_KEYS.decode, row)]

    def _weight(self, word: Word, count: int) -> float:
        return weight_of(count, self._size) * word.share

    def _latest(self, words: Iterable[Word], limit: int) -> tuple[int, ...]:
        """The newest keys with all of the words, then the newest with any."""
        each = [f"({_expression(word)})" for word in words]
        keys: dict[int, None] = {}
        for joint in (" AND ", " OR ") if each else ():
            for index in self._indexes:
                result = index.keys(self._within(joint.join(each)), limit, latest=True)
                keys |= dict.fromkeys(result)
        return tuple(keys)

    def _all_keys(self, expression: str, *, latest: bool = False) -> frozenset[int]:
        expression = self._within(expression)
        return frozenset(
            key
            for index in self._indexes
            for key in index.keys(expression, index.most, latest=latest)
        )

    def _within(self, expression: str) -> str:
        """`expression`, restricted to the phrases that the query demands, without exclusions."""
        demanded = match_expression((), self._query.phrases)
        joined = f"({demanded}) AND ({expression})" if demanded else expression
        if not self._query.excluded:
            return joined
        refused = (match_expression((), (phrase,)) for phrase in self._query.excluded)
        return f"({joined}) NOT ({' OR '.join(refused)})"


def _expression(word: Word) -> str:
    return match_expression((word.text, *variants(word.text))) if word.term else ""


def _keys_of(posting: Posting) -> bool:
    return any(alternative.keys for alternative in posting.also)


def _worth(posting: Posting, unknown: float) -> float:
    """The weight of a word in the question: of a word that nothing contains, a part of it."""
    if posting.weight:
        return posting.weight
    if not posting.word.term:
        return max((alternative.weight for alternative in posting.also), default=0.0)
    return _UNKNOWN_SHARE * unknown


def _indexes(
    db: sqlite3.Connection, sources: Sequence[Source], common_share: float
) -> list[_Index]:
    counts = full_text.counts(db, [source.index for source in sources])
    return [
        _Index(db, source, counts[source.index], common_share)
        for source in sources
        if counts[source.index][0]
    ]


def demands_phrases(query: Query) -> bool:
    """Whether the query has only phrases, so that every answer must contain them."""
    quoted = {word for phrase in query.phrases for word in phrase}
    return bool(query.phrases) and all(word.text in quoted for word in query.words)


def admitted(db: sqlite3.Connection, query: Query, rows: Sequence[int]) -> list[int]:
    """The keys of those rows, found without the index, that the query does not exclude."""
    demanded = query.phrases if demands_phrases(query) else ()
    allowed = set(rows)
    for phrase in demanded:
        allowed &= _among(db, phrase, rows)
    for phrase in query.excluded:
        allowed -= _among(db, phrase, rows)
    return MEMORIES.keys(row for row in rows if row in allowed)


def _among(db: sqlite3.Connection, phrase: Phrase, rows: Sequence[int]) -> set[int]:
    result = db.execute(
        f"SELECT rowid FROM {MEMORIES.index} WHERE {MEMORIES.index} MATCH ?"
        " AND rowid IN (SELECT value FROM json_each(?))",
        (match_expression((), (phrase,)), msgspec.json.encode(rows).decode()),
    )
    return {row for (row,) in result}


def weight_of(count: int, size: int) -> float:
    """The idf of a word in `count` of `size` texts; `size` must not be less than `count`.

    A small memory counts as one of `LEAST_SIZE` texts: what stands in one of two texts is no
    common word.
    """
    return math.log1p((max(size, LEAST_SIZE) - count + 0.5) / (count + 0.5))
