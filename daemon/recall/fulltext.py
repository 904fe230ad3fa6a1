"""Candidates from the full-text index."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import msgspec

from ..store.selecting import Filters, where
from .query import Query, match_expression

# A word may stand in so many memories before its share of them is asked for.
_ALWAYS_RARE: Final = 200
# What a hit in each column counts: text, subject, tags.
_COLUMN_WEIGHTS: Final = "1.0, 1.5, 1.2"


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A memory that may answer, with what ranking needs; `match` is BM25, higher is better."""

    row: int
    match: float
    importance: float
    created_at: float
    last_accessed_at: float | None
    access_count: int


class Found(msgspec.Struct, frozen=True):
    """The candidates, and which words found them."""

    candidates: tuple[Candidate, ...]
    used: tuple[str, ...]
    common: tuple[str, ...]


def candidates(
    db: sqlite3.Connection,
    query: Query,
    filters: Filters,
    *,
    now: float,
    limit: int,
    common_share: float,
) -> Found:
    """The best `limit` memories by BM25 that pass the filters.

    A word that stands in more than `common_share` of all memories decides nothing and is left
    out while a rarer one remains. If there is none, the newest matches are taken unscored, so
    that a word in every memory costs no more than another.
    """
    size = int(db.execute("SELECT coalesce(max(row), 0) FROM memories").fetchone()[0])
    most = max(_ALWAYS_RARE, int(size * common_share))
    common = tuple(word for word in query.words if _is_common(db, word, most))
    rare = tuple(word for word in query.words if word not in common)
    if rare:
        return Found(_scored(db, rare, filters, now, limit), rare, common)
    return Found(_newest(db, common, filters, now, limit), common, common)


def _is_common(db: sqlite3.Connection, word: str, most: int) -> bool:
    counted = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM memory_fts WHERE memory_fts MATCH ? LIMIT ?)",
        (match_expression((word,)), most + 1),
    ).fetchone()[0]
    return int(counted) > most


def _scored(
    db: sqlite3.Connection, words: tuple[str, ...], filters: Filters, now: float, limit: int
) -> tuple[Candidate, ...]:
    # In two steps, because a hit costs the index little, and its memory a page of its own.
    hits = db.execute(
        f"SELECT rowid, -bm25(memory_fts, {_COLUMN_WEIGHTS}) AS match FROM memory_fts"
        " WHERE memory_fts MATCH ? ORDER BY match DESC, rowid DESC",
        (match_expression(words),),
    )
    found: list[Candidate] = []
    step = limit
    while len(found) < limit and (matches := dict(hits.fetchmany(step))):
        found += _passing(db, matches, filters, now)
        step *= 4
    return tuple(found[:limit])


def _passing(
    db: sqlite3.Connection, matches: dict[int, float], filters: Filters, now: float
) -> list[Candidate]:
    """Those of `matches` that pass the filters, in its order."""
    condition, arguments = where(filters, now)
    rows = db.execute(
        "SELECT row, importance, created_at, last_accessed_at, access_count FROM memories"
        f" WHERE row IN (SELECT value FROM json_each(?)) AND {condition}",
        (msgspec.json.encode(list(matches)).decode(), *arguments),
    )
    passing = [Candidate(row, matches[row], *rest) for row, *rest in rows]
    return sorted(passing, key=lambda hit: (-hit.match, -hit.row))


def _newest(
    db: sqlite3.Connection, words: tuple[str, ...], filters: Filters, now: float, limit: int
) -> tuple[Candidate, ...]:
    condition, arguments = where(filters, now)
    rows = db.execute(
        "SELECT row, 1.0, importance, created_at, last_accessed_at, access_count FROM memory_fts"
        " JOIN memories ON memories.row = memory_fts.rowid"
        f" WHERE memory_fts MATCH ? AND {condition} ORDER BY memory_fts.rowid DESC LIMIT ?",
        (match_expression(words), *arguments, limit),
    )
    return _candidates(rows)


def _candidates(rows: Any) -> tuple[Candidate, ...]:
    return tuple(Candidate(*row) for row in rows)
