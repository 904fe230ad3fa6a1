"""Which candidates each word of a query stands in, out of the full-text indexes."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from .irregular import variants
from .query import Phrase, Query, match_expression
from .sources import MEMORIES, Source

# A word may stand in so many things of a source before its share of them is asked for.
_ALWAYS_RARE: Final = 200
# Kin are words that share so many first letters, or all of a shorter word's.
_KIN_LETTERS: Final = 5
_KIN_AT_LEAST: Final = 4
# A word that stands in so many needs no kin to be found.
_FEW: Final = 20
_KEYS: Final = msgspec.json.Decoder(list[int])


class Posting(msgspec.Struct, frozen=True, gc=False):
    """One word: the keys that it stands in, and its weight, `ln(1 + (N − n + ½) / (n + ½))`.

    `kin` are keys without it that have a word which begins alike; `kin_weight` is theirs.
    """

    word: str
    keys: frozenset[int]
    weight: float
    kin: frozenset[int] = frozenset()
    kin_weight: float = 0.0


class Postings(msgspec.Struct, frozen=True):
    """What the indexes know of a query.

    Attributes:
        rare: the words that tell candidates apart.
        common: those that stand in too many to decide anything.
        unknown: those that stand nowhere.
        newest: if there is no rare word, the newest keys with a common one.
        phrased: the keys with a phrase that is quoted beside other words.
        naming: the keys whose text has the name of a person in question.
        unmet: the weight that a word would have which stands nowhere.
    """

    rare: tuple[Posting, ...]
    common: tuple[str, ...]
    unknown: tuple[str, ...]
    newest: tuple[int, ...]
    phrased: frozenset[int]
    naming: frozenset[int]
    unmet: float


class _Index:
    """The full-text index of a source, and what was found in it so far."""

    def __init__(self, db: sqlite3.Connection, source: Source, common_share: float) -> None:
        self._db = db
        self._source = source
        newest = db.execute(f"SELECT coalesce(max(row), 0) FROM {source.table}").fetchone()
        self.size = int(newest[0])
        self.most = max(_ALWAYS_RARE, int(self.size * common_share))
        # In a lesser source a word may be common without being so for memories.
        self.decides = source.weight == MEMORIES.weight

    def keys(self, expression: str, limit: int, *, latest: bool = False) -> list[int]:
        """The keys that match, or the latest of them."""
        order = "ORDER BY rowid DESC " if latest else ""
        # As one value: hundreds of rows cost more than half of the look-up.
        found = self._db.execute(
            f"SELECT json_group_array(key) FROM (SELECT {self._source.key_of('rowid')} AS key"
            f" FROM {self._source.index} WHERE {self._source.index} MATCH ? {order}LIMIT ?)",
            (expression, limit),
        ).fetchone()
        return _KEYS.decode(found[0])

    def few(self, expression: str) -> list[int] | None:
        """The keys that match; None if they are so many that they tell nothing."""
        found = self.keys(expression, self.most + 1)
        return None if len(found) > self.most else found


def look_up(
    db: sqlite3.Connection,
    query: Query,
    sources: Sequence[Source] = (MEMORIES,),
    *,
    common_share: float,
    newest: int,
) -> Postings:
    """The postings of every word, within what the query demands and excludes.

    A phrase is demanded if nothing is asked but phrases; beside other words it is preferred.
    Each look-up stops at the share above which a word counts as common, so that a word in every
    memory costs no more than another.
    """
    indexes = [_Index(db, source, common_share) for source in sources]
    # What is empty takes no look-ups.
    indexes = [index for index in indexes if index.size]
    size = sum(index.size for index in indexes)
    rare: list[Posting] = []
    common: list[str] = []
    unknown: list[str] = []
    phrased: frozenset[int] = frozenset()
    if query.phrases and not demands_phrases(query):
        quoted = " OR ".join(match_expression((), (phrase,)) for phrase in query.phrases)
        query = msgspec.structs.replace(query, phrases=())
        expression = _within(query, quoted)
        phrased = frozenset(
            key for index in indexes for key in index.keys(expression, index.most + 1)
        )
    naming: frozenset[int] = frozenset()
    if query.name_words:
        expression = _demanded(query, query.name_words)
        naming = frozenset(
            key for index in indexes for key in index.keys(expression, index.most, latest=True)
        )
    for word in dict.fromkeys((*query.words, *query.date_words)):
        posting = _posting(query, word, indexes, size)
        if posting is None:
            common.append(word)
            continue
        if posting.keys or posting.kin:
            rare.append(posting)
        # That no text says "May" tells nothing against one that was stored in May.
        if not posting.keys and word in query.words:
            unknown.append(word)
    latest: list[int] = []
    if common and not rare:
        expression = _demanded(query, tuple(common))
        latest = [key for index in indexes for key in index.keys(expression, newest, latest=True)]
    return Postings(
        tuple(rare),
        tuple(common),
        tuple(unknown),
        tuple(latest),
        phrased,
        naming,
        weight_of(0, size),
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


def _posting(query: Query, word: str, indexes: Iterable[_Index], size: int) -> Posting | None:
    """The word in all indexes; None if it is common."""
    keys: list[int] = []
    left_out = 0
    searched: list[_Index] = []
    expression = _demanded(query, (word, *variants(word)))
    for index in indexes:
        found = index.few(expression)
        if found is not None:
            searched.append(index)
            keys += found
        elif index.decides:
            return None
        else:
            left_out += index.most
    if left_out and not keys:
        return None
    count = len(keys) + left_out
    kin: frozenset[int] = frozenset()
    if count < _FEW and len(word) >= _KIN_AT_LEAST and word.isascii() and word.isalpha():
        prefix = _within(query, f'"{word[:_KIN_LETTERS]}"*')
        kin = frozenset(key for index in searched for key in index.few(prefix) or ()) - set(keys)
    return Posting(
        word=word,
        keys=frozenset(keys),
        weight=weight_of(count, size) if keys else 0.0,
        kin=kin,
        kin_weight=math.log1p(size / (len(kin) + 0.5)) if kin else 0.0,
    )


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
