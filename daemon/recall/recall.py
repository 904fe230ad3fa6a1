"""The pipeline: query, candidates, ranking, answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from ..memory.records import Memory
from ..store.rows import SELECT, from_row
from ..store.selecting import Filters
from ..store.tree_rows import totals
from .fulltext import Found, candidates
from .query import parse
from .ranking import Ranked, Weights, rank


class Tuning(msgspec.Struct, frozen=True):
    """How wide to search, from the configuration."""

    candidates: int = 200
    common_word_share: float = 0.02


class Hit(msgspec.Struct, frozen=True):
    """One memory of the answer, and why it stands where it does."""

    memory: Memory
    ranked: Ranked


class Answer(msgspec.Struct, frozen=True):
    """The hits, the best first; how many memories were searched; and why there are none."""

    hits: tuple[Hit, ...]
    searched: int
    words: tuple[str, ...]
    common_words: tuple[str, ...]
    why: str


def recall(
    db: sqlite3.Connection,
    text: str,
    filters: Filters,
    *,
    limit: int,
    weights: Weights,
    tuning: Tuning,
    now: float,
) -> Answer:
    """The memories that answer `text`, out of one snapshot of the database."""
    query = parse(text)
    found = Found((), (), ())
    if not query.empty:
        found = candidates(
            db,
            query,
            filters,
            now=now,
            limit=max(limit, tuning.candidates),
            common_share=tuning.common_word_share,
        )
    best = rank(found.candidates, weights, now)[:limit]
    searched = sum(totals(db))
    why = "" if best else _why(query.words, searched, filters, db, text, now)
    return Answer(_hits(db, best), searched, found.used, found.common, why)


def _hits(db: sqlite3.Connection, best: Sequence[Ranked]) -> tuple[Hit, ...]:
    hits = []
    for ranked in best:
        row = db.execute(f"{SELECT} WHERE row = ?", (ranked.row,)).fetchone()
        hits.append(Hit(from_row(row), ranked))
    return tuple(hits)


def _why(
    words: Sequence[str],
    searched: int,
    filters: Filters,
    db: sqlite3.Connection,
    text: str,
    now: float,
) -> str:
    """Why nothing was found, as one sentence for whoever asked."""
    if not searched:
        return "nothing is stored yet"
    if not words:
        return "the query has no words to look for"
    if filters != Filters():
        query = parse(text)
        free = candidates(db, query, Filters(), now=now, limit=1, common_share=1.0)
        if free.candidates:
            return "there are matches, but the filters leave none of them"
    return f"none of the words stands in a memory: {', '.join(words)}"
