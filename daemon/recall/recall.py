"""The pipeline: query, candidates, signals, ranking, answer."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ..config.settings import Tuning, Weights
from ..memory.records import Memory
from ..memory.scoring import Scoring
from ..shapes.recall import Preset
from ..store import tree_rows
from ..store.memory_table import SELECT, from_row
from ..store.selecting import Filters, teach_score, where
from . import key_values, question, tree_search
from .key_values import PairHit
from .people import Roster, roster
from .pool import Pool, gather, texts
from .postings import Postings, admitted, demands_phrases, look_up
from .query import Query, parse
from .ranking import Ranked, rank, rank_as, rank_by_tree
from .signals import WEIGHTS, Signals, measure
from .tree_search import Reasoned, TreeHit

Mode: TypeAlias = Literal["keyword", "tree", "llm", "hybrid"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and what the answer must fit.

    Attributes:
        limit: how many results at most.
        max_tokens: how many tokens of text, four characters each, may follow with the first hit,
            which always comes; None for any.
        now: the time that "last week" is told from, and by which memories have aged.
        local: whose days are meant.
        reasoned: categories that a model names for it; their memories are candidates, too.
    """

    text: str
    filters: Filters = Filters()
    limit: int = 5
    max_tokens: int | None = None
    weights: Weights = Weights()
    preset: Preset | None = None
    mode: Mode = "keyword"
    scoring: Scoring = Scoring()
    now: float
    local: dt.tzinfo = dt.UTC
    reasoned: tuple[Reasoned, ...] = ()


class Hit(msgspec.Struct, frozen=True):
    """One memory of the answer, and why it stands where it does.

    Attributes:
        method: `keyword`, or `keyword-tree` where only its category speaks for it; `llm-tree`
            where a model named that; `cold-remote` for a guest.
        words: those of the query that it has.
        signals: what each signal added to its score, without those that added nothing.
        lenders: the ids of the neighbours whose words count for it.
        path: the category of the tree search that named it, or "".
        reason: what a model says of that category, or "".
    """

    memory: Memory
    ranked: Ranked
    method: str
    words: tuple[str, ...]
    signals: dict[str, float]
    lenders: tuple[str, ...]
    path: str
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """The hits, the best first; what was searched and understood; and why there are none."""

    hits: tuple[Hit, ...]
    pairs: tuple[PairHit, ...]
    memories: int
    key_values: int
    query: Query
    common_words: tuple[str, ...]
    tree: tuple[TreeHit, ...]
    why: str


def recall(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Answer:
    """The memories that answer, out of one snapshot of the database.

    Args:
        db: a reader.
        request: what is asked.
        tuning: how wide to search, and how fast relevance fades.
    """
    if request.filters.tier is not None:
        teach_score(db, request.now, request.scoring)
    query = parse(request.text, request.now, request.local, _people(db))
    nodes = tree_rows.load(db)
    paths = tuple(tree_search.search(nodes, request.text, request.now))
    postings = look_up(db, query, common_share=tuning.common_word_share, newest=tuning.candidates)
    pool = _pool(db, query, postings, paths, request, tuning)
    memories = sum(tree_rows.totals(db))
    signals = measure(
        query,
        question.read(request.text, query),
        postings,
        pool,
        _worth(paths),
        lambda rows: texts(db, rows),
        reasoned={found.path: found.relevance for found in request.reasoned},
    )
    ranked = _ranked(pool, signals, paths, request, tuning.decay_per_day)
    hits = _hits(db, ranked, pool, signals, postings, paths, request)
    pairs: list[PairHit] = []
    looked_at = 0
    if request.mode != "tree" and request.filters == Filters() and not query.empty:
        pairs, looked_at = key_values.search(db, query, request.limit)
    why = "" if hits or pairs else _why(db, request, tuning, query, postings, memories)
    return Answer(hits, tuple(pairs), memories, looked_at, query, postings.common, paths, why)


def _people(db: sqlite3.Connection) -> Roster:
    """Who said something that is stored. Steps over the index from name to name."""
    rows = db.execute(
        "WITH RECURSIVE names(name) AS ("
        " SELECT min(actor) FROM memories WHERE actor <> ''"
        " UNION ALL SELECT (SELECT min(actor) FROM memories WHERE actor > name AND actor <> '')"
        " FROM names WHERE name IS NOT NULL)"
        " SELECT name FROM names WHERE name IS NOT NULL LIMIT 1000"
    )
    return roster(name for (name,) in rows)


def _pool(
    db: sqlite3.Connection,
    query: Query,
    postings: Postings,
    paths: Sequence[TreeHit],
    request: Request,
    tuning: Tuning,
) -> Pool:
    named: list[int] = []
    reasoned = (found.path for found in request.reasoned)
    for path in dict.fromkeys((*reasoned, *(found.path for found in paths))):
        named += _filed_under(db, path, request, max(request.limit, 50))
    if request.mode == "tree":
        postings = msgspec.structs.replace(postings, rare=(), newest=(), phrased=frozenset())
    return gather(
        db,
        postings,
        admitted(db, query, named),
        request.filters,
        now=request.now,
        limit=max(request.limit, tuning.candidates),
        neighbours=request.mode != "tree" and not query.excluded and not demands_phrases(query),
    )


def _filed_under(db: sqlite3.Connection, path: str, request: Request, limit: int) -> list[int]:
    condition, arguments = where(request.filters, request.now)
    rows = db.execute(
        "SELECT row FROM memories WHERE (category = ? OR (category >= ? AND category < ?))"
        f" AND {condition} ORDER BY importance DESC, created_at DESC LIMIT ?",
        (path, f"{path}/", f"{path}0", *arguments, limit),
    )
    return [row for (row,) in rows]


def _worth(paths: Sequence[TreeHit]) -> Mapping[str, float]:
    """How well each category fits the query: the share of its words, 0 to 1."""
    return {path.path: path.share for path in paths}


def _ranked(
    pool: Pool, signals: Signals, paths: Sequence[TreeHit], request: Request, decay: float
) -> list[Ranked]:
    if request.mode == "tree":
        return rank_by_tree(pool, paths, request.scoring, request.now, decay)
    if request.preset is not None:
        return rank_as(pool, signals, request.preset, request.now, decay)
    return rank(pool, signals, request.weights, request.now, decay)


def _hits(
    db: sqlite3.Connection,
    ranked: Sequence[Ranked],
    pool: Pool,
    signals: Signals,
    postings: Postings,
    paths: Sequence[TreeHit],
    request: Request,
) -> tuple[Hit, ...]:
    hits: list[Hit] = []
    tokens = 0
    for found in ranked[: request.limit]:
        entry = pool.entries[found.at]
        tokens += -(-entry.length // 4)
        if request.max_tokens is not None and tokens > request.max_tokens and hits:
            break
        words = tuple(p.word for p in postings.rare if entry.row in p.rows or entry.row in p.kin)
        path = next((p.path for p in paths if _within(entry.category, p.path)), "")
        reasoned = next((r for r in request.reasoned if _within(entry.category, r.path)), None)
        hits.append(
            Hit(
                memory=_memory(db, entry.row),
                ranked=found,
                method=_method(words, path, reasoned),
                words=words,
                signals=_parts(signals, found.at),
                lenders=_lenders(db, pool, signals, found.at),
                path=path if reasoned is None else reasoned.path,
                reason="" if reasoned is None else reasoned.reason,
            )
        )
    return tuple(hits)


def _memory(db: sqlite3.Connection, row: int) -> Memory:
    return from_row(db.execute(f"{SELECT} WHERE row = ?", (row,)).fetchone())


def _method(words: Sequence[str], path: str, reasoned: Reasoned | None) -> str:
    if reasoned is not None:
        return "llm-tree"
    return "keyword" if words or not path else "keyword-tree"


def _within(category: str, path: str) -> bool:
    return category == path or category.startswith(f"{path}/")


def _parts(signals: Signals, at: int) -> dict[str, float]:
    return {name: round(added, 4) for name in WEIGHTS if (added := signals.added(name, at))}


def _lenders(db: sqlite3.Connection, pool: Pool, signals: Signals, at: int) -> tuple[str, ...]:
    rows = [pool.entries[place].row for _, place in pool.around(at) if signals.bm25[place] > 0]
    found = (db.execute("SELECT id FROM memories WHERE row = ?", (row,)).fetchone() for row in rows)
    return tuple(row[0] for row in found if row)


def _why(
    db: sqlite3.Connection,
    request: Request,
    tuning: Tuning,
    query: Query,
    postings: Postings,
    memories: int,
) -> str:
    """Why nothing was found, as one sentence for whoever asked."""
    if not memories:
        return "nothing is stored yet"
    if query.empty:
        return "the query has no words to look for"
    if request.mode == "tree":
        return "no category of the tree has a word of the query"
    if request.filters != Filters():
        free = msgspec.structs.replace(request, filters=Filters(), limit=1)
        if recall(db, free, tuning).hits:
            return "there are matches, but the filters leave none of them"
    if postings.rare or postings.newest:
        return "what has a word of the query has too little of it to be meant"
    return f"none of the words stands in a memory: {', '.join(query.words)}"
