"""Which memories each word of a query stands in, out of the full-text index."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from .irregular import variants
from .query import Phrase, Query, match_expression

# A word may stand in so many memories before its share of them is asked for.
_ALWAYS_RARE: Final = 200
# Kin are words that share so many first letters, or all of a shorter word's.
_KIN_LETTERS: Final = 5
_KIN_AT_LEAST: Final = 4
# A word that stands in so many memories needs no kin to be found.
_FEW: Final = 20


class Posting(msgspec.Struct, frozen=True, gc=False):
    """One word: the rows that it stands in, and its weight, `ln(1 + (N − n + ½) / (n + ½))`.

    `kin` are rows without it that have a word which begins alike; `kin_weight` is theirs.
    """

    word: str
    rows: frozenset[int]
    weight: float
    kin: frozenset[int] = frozenset()
    kin_weight: float = 0.0


class Postings(msgspec.Struct, frozen=True):
    """What the index knows of a query.

    Attributes:
        rare: the words that tell memories apart.
        common: those that stand in too many to decide anything.
        unknown: those that stand in none.
        newest: if there is no rare word, the newest rows with a common one.
        phrased: the rows with a phrase that is quoted beside other words.
        naming: the rows whose text has the name of a person in question.
        unmet: the weight that a word would have which stands in no memory.
    """

    rare: tuple[Posting, ...]
    common: tuple[str, ...]
    unknown: tuple[str, ...]
    newest: tuple[int, ...]
    phrased: frozenset[int]
    naming: frozenset[int]
    unmet: float


def look_up(db: sqlite3.Connection, query: Query, *, common_share: float, newest: int) -> Postings:
    """The postings of every word, within what the query demands and excludes.

    A phrase is demanded if nothing is asked but phrases; beside other words it is preferred.
    Each look-up stops at the share above which a word counts as common, so that a word in every
    memory costs no more than another.
    """
    size = int(db.execute("SELECT coalesce(max(row), 0) FROM memories").fetchone()[0])
    most = max(_ALWAYS_RARE, int(size * common_share))
    rare: list[Posting] = []
    common: list[str] = []
    unknown: list[str] = []
    phrased: frozenset[int] = frozenset()
    if query.phrases and not demands_phrases(query):
        quoted = " OR ".join(match_expression((), (phrase,)) for phrase in query.phrases)
        query = msgspec.structs.replace(query, phrases=())
        phrased = frozenset(_rows(db, _within(query, quoted), most + 1))
    naming: frozenset[int] = frozenset()
    if query.name_words:
        naming = frozenset(_rows(db, _demanded(query, query.name_words), most, latest=True))
    for word in dict.fromkeys((*query.words, *query.date_words)):
        rows = _rows(db, _demanded(query, (word, *variants(word))), most + 1)
        if len(rows) > most:
            common.append(word)
            continue
        posting = _posting(db, query, word, frozenset(rows), size, most)
        if posting.rows or posting.kin:
            rare.append(posting)
        # That no text says "May" tells nothing against one that was stored in May.
        if not posting.rows and word in query.words:
            unknown.append(word)
    latest: list[int] = []
    if common and not rare:
        latest = _rows(db, _demanded(query, tuple(common)), newest, latest=True)
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


def admitted(db: sqlite3.Connection, query: Query, rows: Sequence[int]) -> list[int]:
    """Those of `rows`, found without the index, that the query does not refuse."""
    demanded = query.phrases if demands_phrases(query) else ()
    kept = set(rows)
    for phrase in demanded:
        kept &= _among(db, phrase, rows)
    for phrase in query.excluded:
        kept -= _among(db, phrase, rows)
    return [row for row in rows if row in kept]


def _among(db: sqlite3.Connection, phrase: Phrase, rows: Sequence[int]) -> set[int]:
    found = db.execute(
        "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ?"
        " AND rowid IN (SELECT value FROM json_each(?))",
        (match_expression((), (phrase,)), msgspec.json.encode(rows).decode()),
    )
    return {row for (row,) in found}


def _posting(
    db: sqlite3.Connection, query: Query, word: str, rows: frozenset[int], size: int, most: int
) -> Posting:
    kin: frozenset[int] = frozenset()
    if len(rows) < _FEW and len(word) >= _KIN_AT_LEAST and word.isascii() and word.isalpha():
        prefix = f'"{word[:_KIN_LETTERS]}"*'
        found = _rows(db, _within(query, prefix), most + 1)
        if len(found) <= most:
            kin = frozenset(found) - rows
    return Posting(
        word=word,
        rows=rows,
        weight=weight_of(len(rows), size) if rows else 0.0,
        kin=kin,
        kin_weight=math.log1p(size / (len(kin) + 0.5)) if kin else 0.0,
    )


def weight_of(count: int, size: int) -> float:
    """What a word is worth that stands in `count` of `size` memories, which are no fewer."""
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


def _rows(
    db: sqlite3.Connection, expression: str, limit: int, *, latest: bool = False
) -> list[int]:
    order = "ORDER BY rowid DESC " if latest else ""
    found = db.execute(
        f"SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? {order}LIMIT ?",
        (expression, limit),
    )
    return [row for (row,) in found]
