"""The recall pipeline: query, candidates, signals, ranking, answer."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..config.settings import Tuning, Weights
from ..memory.scoring import Scoring
from ..memory.stemming import terms_of
from ..memory.tree_nodes import NamedCategory, is_within
from ..memory.vectors import MOST_NEAR, Nearness
from ..schemas.recall import Preset
from ..store.database.connection import derived
from ..store.records import names, tree_rows
from ..store.records.selecting import Filters, teach_score
from . import pool as pools
from . import tree_search
from .answer import Answer, Hit
from .pool import Pool
from .postings import Postings, admitted, demands_phrases, look_up
from .presets import rank_as, rank_by_tree, tinyclaw_pair
from .query import MOST_CHARS, Query, parse
from .ranking import Ranked, rank
from .signals import Signals, measure
from .sources import CHUNKS, MEMORIES, PAIRS, SOURCES, Condition, Conditions, Source
from .successors import later_rows
from .tree_search import SearchedTree, TreeHit

Mode: TypeAlias = Literal["keyword", "tree", "llm"]

_PER_CATEGORY: Final = 20
# Among more memories any topic is spoken of by chance, and looking them up takes longer.
_MANY: Final = 3_000
# The number of the nearest in meaning that are candidates; more cost time and add nothing.
_NEAREST: Final = 8
# ScalyClaw's for each result.
_PER_RESULT: Final = 3
_WIDER: Final = 8
# The maximum number of results that are shown unless the caller says how many, if the first is not
# sure.
UNSURE_LIMIT: Final = 5


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A query and the limits of its answer.

    Attributes:
        sources: the names of the sources to search; None: all.
        shown: the names of the sources of the results; None: all that are searched. The others
            count all the same for what a word is worth, so that the order stays the same.
        limit: maximum number of results.
        max_tokens: maximum tokens of text in all, four characters each; the first hit is always
            included. None: no limit.
        unsure_limit: maximum number of results if the first is not sure; None: `limit`.
        min_relevance: minimum relevance of every hit; None: no minimum.
        weights: None: those of the preset, else the usual ones.
        now: the time that "last week" is relative to, and that the age of memories is measured at.
        local: the time zone of days in the query.
        reasoned: categories that a model named for the query; their memories are candidates, too.
        isolated: whether the answer must tell nothing of what the filters leave out, not even how
            much it is.
        explain: whether hits include the contribution of each signal and the lending neighbours.
        nearness: how near the items are in meaning; None: words alone answer.
    """

    text: str
    filters: Filters = Filters()
    sources: frozenset[str] | None = None
    shown: frozenset[str] | None = None
    limit: int = 5
    unsure_limit: int | None = None
    max_tokens: int | None = None
    min_relevance: float | None = None
    weights: Weights | None = None
    preset: Preset | None = None
    mode: Mode = "keyword"
    scoring: Scoring = Scoring()
    now: float
    local: dt.tzinfo = dt.UTC
    reasoned: tuple[NamedCategory, ...] = ()
    isolated: bool = False
    explain: bool = False
    nearness: Nearness | None = None


class Measured(msgspec.Struct, frozen=True):
    """The candidates of a query with their signals, before ranking.

    `near` has the cosines of what is nearest in meaning, by key.
    """

    query: Query
    sources: Conditions
    postings: Postings
    pool: Pool
    signals: Signals
    paths: tuple[TreeHit, ...]
    near: Mapping[int, float]


def recall(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Answer:
    """Answer a request from one snapshot of the database, over a read connection."""
    measured = measure_candidates(db, request, tuning)
    ranked = _ranked(db, measured, request, tuning.decay_per_day)
    best = next(ranked, None)
    first = _first(ranked if best is None else chain((best,), ranked), measured, request)
    hits = _within(_hits(db, first, measured, request), request.max_tokens)
    searched = _searched(db, measured.sources, request)
    why = "" if hits else _why(db, request, tuning, measured, best, searched)
    if request.isolated:
        inside = request.filters.category or "root"
        paths = tuple(path for path in measured.paths if is_within(path.path, inside))
        return Answer(hits, searched, measured.query, (), paths, why)
    return Answer(hits, searched, measured.query, measured.postings.common, measured.paths, why)


def _searched(db: sqlite3.Connection, sources: Conditions, request: Request) -> dict[str, int]:
    """The number of items searched, by source."""
    if request.isolated:
        counts = {source.name: source.count_passing(db, condition) for source, condition in sources}
    else:
        counts = derived(db, "sources", None, lambda: _counts(db)) | {CHUNKS.name: CHUNKS.count(db)}
    searched = dict.fromkeys((source.name for source in SOURCES), 0)
    return searched | {source.name: counts[source.name] for source, _ in sources}


def _counts(db: sqlite3.Connection) -> dict[str, int]:
    """The number of items of each source in the main database."""
    return {source.name: source.count(db) for source in SOURCES if source is not CHUNKS}


def measure_candidates(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Measured:
    """The candidates and their signals, before ranking; arguments as in `recall`."""
    if request.filters.tier is not None:
        teach_score(db, request.now, request.scoring)
    known = names.named_in(db, request.text[:MOST_CHARS])
    if request.isolated and known:
        known = _speaking_inside(db, known, request)
    query = parse(request.text, request.now, request.local, known, tuning.synonyms)
    query = _with_names(db, query, request)
    if request.mode == "tree":
        query = msgspec.structs.replace(query, dates=())
    sources = _sources(request, query)
    tree = derived(db, "tree", None, lambda: SearchedTree(tree_rows.load(db)))
    nodes = tree.with_any({*terms_of(request.text.lower()), *(word.term for word in query.words)})
    paths = tuple(tree_search.search(nodes, request.text, request.now))
    indexed, common = [source for source, _ in sources], tuning.common_word_share
    postings = look_up(db, query, indexed, common_share=common, newest=tuning.candidates)
    near = _near(request, query, sources)
    tops = [*(named.path for named in request.reasoned), *(named.path for named in paths)]
    below = [path for path in tree.nodes if any(is_within(path, top) for top in tops)]
    wider = _wider(request)
    named = islice(near, wider * _NEAREST if request.preset is None else None)
    pool = _pool(db, query, postings, below, [*named], sources, request, tuning)
    if near and wider > 1:
        passing = near.keys() & {entry.key for entry in pool.entries}
        near = dict(islice((item for item in near.items() if item[0] in passing), MOST_NEAR))
    texts = postings.texts.get(MEMORIES.name, 0)
    if len(pool.entries) < texts < _MANY and request.mode != "tree" and not request.preset:
        later = admitted(db, query, later_rows(db, query, pool))
        pool = pools.with_memories(db, pool, later, sources)
    signals = measure(
        query,
        postings,
        pool,
        near=near,
        reasoned={path.path: path.relevance for path in request.reasoned},
        paths=tree_search.category_terms(nodes, query, postings.size),
        now=request.now,
        local=request.local,
    )
    return Measured(query, sources, postings, pool, signals, paths, near)


def _speaking_inside(db: sqlite3.Connection, names: Sequence[str], request: Request) -> list[str]:
    """Those of the people who say something that passes the filters."""
    condition = MEMORIES.passes(request.filters, request.now)
    if condition is None:
        return []
    result = db.execute(
        "SELECT DISTINCT actor FROM memories WHERE actor IN (SELECT value FROM json_each(?))"
        f" AND {condition[0]}",
        (msgspec.json.encode(names).decode(), *condition[1]),
    )
    return [actor for (actor,) in result]


def _with_names(db: sqlite3.Connection, query: Query, request: Request) -> Query:
    """The query with the names that memories introduce by its words: of "son", "toby"."""
    codes = {code for word in query.words if word.term for code in word.codes}
    everywhere: Condition = ("true", ())
    within = MEMORIES.passes(request.filters, request.now) if request.isolated else everywhere
    introduced = names.names_of(db, codes, within) if codes and within is not None else {}
    if not introduced:
        return query
    present = {word.text for word in query.words}
    words = [
        msgspec.structs.replace(
            word,
            names=tuple(
                dict.fromkeys(
                    name
                    for code in word.codes
                    for name in introduced.get(code, ())
                    if name not in present
                )
            ),
        )
        for word in query.words
    ]
    return msgspec.structs.replace(query, words=tuple(words))


def _sources(request: Request, query: Query) -> Conditions:
    """The sources to search: only memories for a tree search and for a query of a time alone."""
    by_time = query.of_time and request.sources is None
    only_memories = request.mode == "tree" or query.empty or by_time
    return [
        (source, condition)
        for source in ((MEMORIES,) if only_memories else SOURCES)
        if request.sources is None or source.name in request.sources
        if (condition := source.passes(request.filters, request.now)) is not None
    ]


def _near(request: Request, query: Query, sources: Conditions) -> dict[int, float]:
    """The cosines of what is nearest in meaning among the sources, by key, the nearest first."""
    nearness = request.nearness
    if nearness is None or request.mode == "tree" or request.preset == "tinyclaw" or query.of_time:
        return {}
    most = MOST_NEAR if request.preset is None else max(MOST_NEAR, _PER_RESULT * request.limit)
    nearest = nearness.nearest(_wider(request) * most)
    return {key: cosine for key, cosine in nearest if any(source.has(key) for source, _ in sources)}


def _wider(request: Request) -> int:
    """How many times more of the nearest to compare, since most of them may not pass."""
    return 1 if request.sources is None and request.filters == Filters() else _WIDER


def _pool(
    db: sqlite3.Connection,
    query: Query,
    postings: Postings,
    categories: Sequence[str],
    near: Iterable[int],
    sources: Conditions,
    request: Request,
    tuning: Tuning,
) -> Pool:
    named = MEMORIES.rows(near)
    if request.mode != "tree":
        named += pools.told_then(db, query, request.now, request.local)
        named += pools.of_actor(db, query)
    memories = next((condition for source, condition in sources if source is MEMORIES), None)
    if memories is not None and not query.of_time:
        most = max(request.limit, _PER_CATEGORY)
        named += pools.of_categories(db, categories, memories, most)
    keys = {*admitted(db, query, named)}
    if not (query.excluded or demands_phrases(query)):
        keys |= {*near}
    if request.mode == "tree":
        postings = msgspec.structs.replace(postings, words=(), newest=(), phrased=frozenset())
    return pools.gather(
        db,
        query,
        postings,
        keys,
        sources,
        limit=tuning.candidates,
        least=request.limit,
        neighbours=not (request.mode == "tree" or query.excluded or demands_phrases(query)),
    )


def _ranked(
    db: sqlite3.Connection, measured: Measured, request: Request, decay: float
) -> Iterator[Ranked]:
    pool, signals, now = measured.pool, measured.signals, request.now
    if request.mode == "tree":
        return iter(rank_by_tree(pool, signals, measured.paths, request.scoring, now, decay))
    if request.preset is not None:
        pairs = _tinyclaw_pairs(db, pool, request.text) if request.preset == "tinyclaw" else {}
        weights, near = request.weights, measured.near
        return iter(rank_as(pool, signals, request.preset, now, decay, weights, pairs, near))
    weights = request.weights or Weights()
    return rank(pool, signals, weights, now, once=measured.query.once, decay=decay)


def _tinyclaw_pairs(db: sqlite3.Connection, pool: Pool, text: str) -> dict[int, float]:
    """Tiny Claw's scores of the pairs among the candidates."""
    rows = {entry.row: at for at, entry in enumerate(pool.entries) if entry.source is PAIRS}
    shown = PAIRS.show(db, [*rows]) if rows else {}
    scores = {
        rows[row]: tinyclaw_pair(text, f"{pair.key}: {pair.value}") for row, pair in shown.items()
    }
    return {at: score for at, score in scores.items() if score is not None}


def _first(ranked: Iterable[Ranked], measured: Measured, request: Request) -> list[Ranked]:
    """The first results that the request admits."""
    limit, least = request.limit, request.min_relevance or 0.0
    chosen: list[Ranked] = []
    for item in ranked:
        source = measured.pool.entries[item.at].source.name
        if request.shown is not None and source not in request.shown:
            continue
        if item.relevance < least:
            continue
        if not chosen and not item.sure and request.unsure_limit is not None:
            limit = min(limit, request.unsure_limit)
        chosen.append(item)
        if len(chosen) == limit:
            break
    return chosen


def _within(hits: tuple[Hit, ...], max_tokens: int | None) -> tuple[Hit, ...]:
    """The first hits whose texts fit, at least one."""
    if max_tokens is None:
        return hits
    tokens = accumulate(-(-len(hit.text) // 4) for hit in hits)
    return hits[: max(1, sum(total <= max_tokens for total in tokens))]


def _hits(
    db: sqlite3.Connection,
    chosen: Sequence[Ranked],
    measured: Measured,
    request: Request,
) -> tuple[Hit, ...]:
    pool, signals, paths = measured.pool, measured.signals, measured.paths
    by_source: dict[str, list[Ranked]] = {}
    for ranked in chosen:
        by_source.setdefault(pool.entries[ranked.at].source.name, []).append(ranked)
    items: dict[int, Any] = {}
    neighbours: dict[int, tuple[str, ...]] = {}
    for source in SOURCES:
        best = by_source.get(source.name)
        if not best:
            continue
        shown = source.show(db, [pool.entries[item.at].row for item in best])
        items |= {ranked.at: shown[pool.entries[ranked.at].row] for ranked in best}
        if request.explain:
            neighbours |= _lenders(db, source, pool, signals, best)
    hits: list[Hit] = []
    for ranked in chosen:
        entry, met = pool.entries[ranked.at], signals.met[ranked.at]
        words = tuple(word.text for word in measured.query.words if word.text in met)
        path = next((p.path for p in paths if is_within(entry.category, p.path)), "")
        reasoned = next((r for r in request.reasoned if is_within(entry.category, r.path)), None)
        method = "keyword" if words or not path else "keyword-tree"
        if not words and entry.key in measured.near:
            method = "meaning"
        hits.append(
            Hit(
                source=entry.source.name,
                item=items[ranked.at],
                ranked=ranked,
                sure=ranked.sure,
                outdated=entry.superseded_by is not None,
                method=method if reasoned is None else "llm-tree",
                words=words,
                path=path if reasoned is None else reasoned.path,
                reason="" if reasoned is None else reasoned.reason,
                signals=signals.parts(ranked.at) if request.explain else {},
                meant={word: code for word, code in met.items() if code},
                neighbours=neighbours.get(ranked.at, ()),
            )
        )
    return tuple(hits)


def _lenders(
    db: sqlite3.Connection, source: Source, pool: Pool, signals: Signals, best: Sequence[Ranked]
) -> dict[int, tuple[str, ...]]:
    """For each hit, the ids of the neighbours that lend it their words."""
    near = {
        ranked.at: [place for _, place in pool.around(ranked.at) if signals.bm25[place] > 0]
        for ranked in best
    }
    rows = {pool.entries[place].row for places in near.values() for place in places}
    if not rows:
        return {}
    ids = {row: item.id for row, item in source.show(db, sorted(rows)).items()}
    return {
        at: tuple(ids[pool.entries[place].row] for place in places) for at, places in near.items()
    }


def _why(  # noqa: PLR0911 - a reason each
    db: sqlite3.Connection,
    request: Request,
    tuning: Tuning,
    measured: Measured,
    best: Ranked | None,
    searched: Mapping[str, int],
) -> str:
    query, postings = measured.query, measured.postings
    if best is not None and request.min_relevance is not None:
        return f"nothing is as relevant as required: the best reaches {best.relevance:.2f}"
    if not any(searched[source.name] for source in SOURCES if source is not PAIRS):
        limited = request.filters.paths or (request.isolated and request.filters != Filters())
        return "nothing is stored there yet" if limited else "nothing is stored yet"
    if query.empty:
        return "the query has no words to look for"
    if request.mode == "tree":
        return "no category of the tree has a word of the query"
    if request.filters != Filters() and not request.isolated:
        free = msgspec.structs.replace(request, filters=Filters(), limit=1)
        if recall(db, free, tuning).hits:
            return "there are matches, but the filters leave none of them"
    if query.of_time:
        return f"nothing is stored of '{query.dates[0].text}'"
    met = postings.newest or any(not posting.word.is_grammar for posting in postings.words)
    # The words are measured up everywhere: that one is met would tell of what is outside.
    if met and not request.isolated:
        return "what has a word of the query was left out by the rest of it"
    words = ", ".join(query.telling)
    return f"nothing stored has a word of it, or a word that means the same: {words}"
