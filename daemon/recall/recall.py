"""The recall pipeline: query, candidates, signals, ranking, answer."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..config.settings import Tuning, Weights
from ..language.thesaurus import thesaurus
from ..memory.experiences import Experience
from ..memory.own_files import Skill
from ..memory.records import Memory, Pair
from ..memory.scoring import Scoring
from ..memory.tree_nodes import Node, is_within
from ..shapes.recall import Preset
from ..store import introductions, people, tree_rows
from ..store.connection import derived
from ..store.entities import Entity
from ..store.own_entries import OwnEntry
from ..store.selecting import Filters, teach_score
from . import pool as pools
from . import tree_search
from .pool import Pool
from .postings import Postings, admitted, demands_phrases, look_up
from .presets import tinyclaw_pair
from .query import MOST_CHARS, Query, parse
from .ranking import Ranked, rank, rank_as, rank_by_tree
from .signals import Signals, measure
from .sources import CHUNKS, MEMORIES, PAIRS, SOURCES, Source
from .tree_search import Reasoned, TreeHit

Mode: TypeAlias = Literal["keyword", "tree", "llm", "hybrid"]
Confidence: TypeAlias = Literal["sure", "unsure", "none"]

_PER_CATEGORY: Final = 20
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
        explain: whether hits include the contribution of each signal and the lending neighbours.
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
    reasoned: tuple[Reasoned, ...] = ()
    explain: bool = False


class Looked(msgspec.Struct, frozen=True):
    """The candidates of a query with their signals, before ranking."""

    query: Query
    postings: Postings
    pool: Pool
    signals: Signals
    paths: tuple[TreeHit, ...]


class Hit(msgspec.Struct, frozen=True):
    """One result, and why it was found.

    Attributes:
        source: the name of its source.
        item: a memory, or an item of another source.
        sure: whether it most likely answers the query.
        outdated: whether a newer memory contradicts it.
        method: `keyword`; `keyword-tree` if only its category matches; `llm-tree` if a model named
            its category; `cold-remote` if it is in the remote database only.
        words: the words of the query that it contains.
        path: the category of the tree search that contains it, or "".
        reason: a model's reason for naming that category, or "".
        signals: the non-zero contribution of each signal to its score.
        meant: the words of the query that it does not have itself, with the code in the index of
            the concept or date that it has instead.
        lenders: the ids of the neighbours whose words count for it.
    """

    source: str
    item: Any
    ranked: Ranked
    sure: bool
    outdated: bool
    method: str
    words: tuple[str, ...]
    path: str
    reason: str
    signals: dict[str, float]
    meant: Mapping[str, str]
    lenders: tuple[str, ...]

    @property
    def by(self) -> dict[str, str]:
        """Its own words for the words in `meant`: {"boss": "manager"}."""
        words: dict[str, str] = {}
        for meaning in thesaurus().meanings(self.text) if self.meant else ():
            for code in meaning.codes:
                words.setdefault(code, " ".join(meaning.words))
        return {word: words[code] for word, code in self.meant.items() if code in words}

    @property
    def id(self) -> str:
        """Its id within its source; of a pair `kv:` and the key."""
        match self.item:
            case Pair(key=key):
                return f"kv:{key}"
            case Entity(key=key):
                return key
        return str(self.item.id)

    @property
    def text(self) -> str:
        """Its text; of a pair the key and the value, of an entity its name and relations."""
        match self.item:
            case Pair(key=key, value=value):
                return f"{key}: {value}"
            case Experience(intent=intent, solution=solution):
                return f"{intent} → {solution}" if isinstance(solution, str) else intent
            case Entity() as entity:
                return entity.said
            case OwnEntry(item=Skill(description=description)):
                return description
            case OwnEntry(item=entry):
                return entry.text
        return str(self.item.text)

    @property
    def memory(self) -> Memory:
        """The memory."""
        assert isinstance(self.item, Memory)
        return self.item

    @property
    def relevance(self) -> float:
        """How likely it answers the query, 0 to 1."""
        return self.ranked.relevance


class Answer(msgspec.Struct, frozen=True):
    """The hits of all sources, what was searched, and how the query was read.

    Attributes:
        hits: best first.
        searched: the number of items searched, by source.
        why: the reason why there are no hits, in a sentence, or "".
    """

    hits: tuple[Hit, ...]
    searched: Mapping[str, int]
    query: Query
    common_words: tuple[str, ...]
    tree: tuple[TreeHit, ...]
    why: str

    @property
    def confidence(self) -> Confidence:
        """`sure` if the first hit is, `unsure` if it is not, `none` without hits."""
        if not self.hits:
            return "none"
        return "sure" if self.hits[0].sure else "unsure"

    def of(self, source: str) -> tuple[Hit, ...]:
        """The hits of one source."""
        return tuple(hit for hit in self.hits if hit.source == source)


def recall(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Answer:
    """Answer a request from one snapshot of the database, over a read connection."""
    looked = look(db, request, tuning)
    ranked = _ranked(db, looked, request, tuning.decay_per_day)
    hits = _within(_hits(db, _first(ranked, looked, request), looked, request), request.max_tokens)
    sources = _sources(request, looked.query)
    counts = derived(db, "sources", None, lambda: _counts(db)) | {CHUNKS.name: CHUNKS.count(db)}
    searched = {one.name: counts[one.name] if one in sources else 0 for one in SOURCES}
    why = "" if hits else _why(db, request, tuning, looked, ranked, searched)
    return Answer(hits, searched, looked.query, looked.postings.common, looked.paths, why)


def _counts(db: sqlite3.Connection) -> dict[str, int]:
    """The number of items of each source in the main database."""
    return {one.name: one.count(db) for one in SOURCES if one is not CHUNKS}


def look(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Looked:
    """The candidates and their signals, before ranking; arguments as in `recall`."""
    if request.filters.tier is not None:
        teach_score(db, request.now, request.scoring)
    known = people.named_in(db, request.text[:MOST_CHARS])
    query = parse(request.text, request.now, request.local, known, tuning.synonyms)
    query = _with_names(db, query)
    if request.mode == "tree":
        query = msgspec.structs.replace(query, dates=())
    sources = _sources(request, query)
    nodes = derived(db, "tree", None, lambda: tree_rows.load(db))
    paths = tuple(tree_search.search(nodes, request.text, request.now))
    postings = look_up(
        db, query, sources, common_share=tuning.common_word_share, newest=tuning.candidates
    )
    pool = _pool(db, query, postings, nodes, paths, sources, request, tuning)
    signals = measure(
        query,
        postings,
        pool,
        reasoned={path.path: path.relevance for path in request.reasoned},
        paths=tree_search.category_terms(nodes, query, postings.size),
        now=request.now,
        local=request.local,
    )
    return Looked(query, postings, pool, signals, paths)


def _with_names(db: sqlite3.Connection, query: Query) -> Query:
    """The query with the names that memories introduce by its words: of "son", "toby"."""
    codes = {code for word in query.words if word.term for code in word.codes}
    names = introductions.names_of(db, codes) if codes else {}
    if not names:
        return query
    asked = {word.text for word in query.words}
    words = [
        msgspec.structs.replace(
            word,
            names=tuple(
                dict.fromkeys(
                    name for code in word.codes for name in names.get(code, ()) if name not in asked
                )
            ),
        )
        for word in query.words
    ]
    return msgspec.structs.replace(query, words=tuple(words))


def _sources(request: Request, query: Query) -> list[Source]:
    """The sources to search: only memories for a tree search and for a query of a time alone."""
    by_time = query.of_time and request.sources is None
    only_memories = request.mode == "tree" or query.empty or by_time
    return [
        one
        for one in ((MEMORIES,) if only_memories else SOURCES)
        if one.passes(request.filters, request.now) is not None
        and (request.sources is None or one.name in request.sources)
    ]


def _pool(
    db: sqlite3.Connection,
    query: Query,
    postings: Postings,
    nodes: Mapping[str, Node],
    paths: Sequence[TreeHit],
    sources: Sequence[Source],
    request: Request,
    tuning: Tuning,
) -> Pool:
    named: list[int] = []
    if request.mode != "tree":
        named += pools.told_then(db, query, request.now, request.local)
        named += pools.of_actor(db, query)
    if MEMORIES in sources and not query.of_time:
        tops = [found.path for found in request.reasoned] + [found.path for found in paths]
        below = [path for path in nodes if any(is_within(path, top) for top in tops)]
        most = max(request.limit, _PER_CATEGORY)
        named += pools.of_categories(db, below, request.filters, request.now, most)
    keys = {*admitted(db, query, named)}
    if request.mode == "tree":
        postings = msgspec.structs.replace(postings, words=(), newest=(), phrased=frozenset())
    return pools.gather(
        db,
        query,
        postings,
        keys,
        request.filters,
        sources,
        now=request.now,
        limit=tuning.candidates,
        least=request.limit,
        neighbours=not (request.mode == "tree" or query.excluded or demands_phrases(query)),
    )


def _ranked(db: sqlite3.Connection, looked: Looked, request: Request, decay: float) -> list[Ranked]:
    pool, signals, now = looked.pool, looked.signals, request.now
    if request.mode == "tree":
        return rank_by_tree(pool, signals, looked.paths, request.scoring, now, decay)
    if request.preset is not None:
        pairs = _tinyclaw_pairs(db, pool, request.text) if request.preset == "tinyclaw" else {}
        return rank_as(pool, signals, request.preset, now, decay, request.weights, pairs)
    weights = request.weights or Weights()
    return rank(pool, signals, weights, now, once=looked.query.once, decay=decay)


def _tinyclaw_pairs(db: sqlite3.Connection, pool: Pool, text: str) -> dict[int, float]:
    """Tiny Claw's scores of the pairs among the candidates."""
    rows = {entry.row: at for at, entry in enumerate(pool.entries) if entry.source is PAIRS}
    shown = PAIRS.show(db, [*rows]) if rows else {}
    scores = {
        rows[row]: tinyclaw_pair(text, f"{pair.key}: {pair.value}") for row, pair in shown.items()
    }
    return {at: score for at, score in scores.items() if score is not None}


def _first(ranked: Sequence[Ranked], looked: Looked, request: Request) -> list[Ranked]:
    """The first results that the request admits."""
    limit, least = request.limit, request.min_relevance or 0.0
    chosen: list[Ranked] = []
    for one in ranked:
        source = looked.pool.entries[one.at].source.name
        if request.shown is not None and source not in request.shown:
            continue
        if one.relevance < least:
            continue
        if not chosen and not one.sure and request.unsure_limit is not None:
            limit = min(limit, request.unsure_limit)
        chosen.append(one)
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
    looked: Looked,
    request: Request,
) -> tuple[Hit, ...]:
    pool, signals, paths = looked.pool, looked.signals, looked.paths
    by_source: dict[str, list[Ranked]] = {}
    for one in chosen:
        by_source.setdefault(pool.entries[one.at].source.name, []).append(one)
    items: dict[int, Any] = {}
    lenders: dict[int, tuple[str, ...]] = {}
    for source in SOURCES:
        best = by_source.get(source.name)
        if not best:
            continue
        shown = source.show(db, [pool.entries[one.at].row for one in best])
        items |= {one.at: shown[pool.entries[one.at].row] for one in best}
        if request.explain:
            lenders |= _lenders(db, source, pool, signals, best)
    hits: list[Hit] = []
    for one in chosen:
        entry, met = pool.entries[one.at], signals.met[one.at]
        words = tuple(word.text for word in looked.query.words if word.text in met)
        path = next((p.path for p in paths if is_within(entry.category, p.path)), "")
        reasoned = next((r for r in request.reasoned if is_within(entry.category, r.path)), None)
        method = "keyword" if words or not path else "keyword-tree"
        hits.append(
            Hit(
                source=entry.source.name,
                item=items[one.at],
                ranked=one,
                sure=one.sure,
                outdated=entry.superseded_by is not None,
                method=method if reasoned is None else "llm-tree",
                words=words,
                path=path if reasoned is None else reasoned.path,
                reason="" if reasoned is None else reasoned.reason,
                signals=signals.parts(one.at) if request.explain else {},
                meant={word: code for word, code in met.items() if code},
                lenders=lenders.get(one.at, ()),
            )
        )
    return tuple(hits)


def _lenders(
    db: sqlite3.Connection, source: Source, pool: Pool, signals: Signals, best: Sequence[Ranked]
) -> dict[int, tuple[str, ...]]:
    """For each hit, the ids of the neighbours that lend it their words."""
    near = {
        one.at: [place for _, place in pool.around(one.at) if signals.bm25[place] > 0]
        for one in best
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
    looked: Looked,
    ranked: Sequence[Ranked],
    searched: Mapping[str, int],
) -> str:
    query, postings = looked.query, looked.postings
    if ranked and request.min_relevance is not None:
        best = max(one.relevance for one in ranked)
        return f"nothing is as relevant as required: the best reaches {best:.2f}"
    if not any(searched[one.name] for one in SOURCES if one is not PAIRS):
        return "nothing is stored there yet" if request.filters.paths else "nothing is stored yet"
    if query.empty:
        return "the query has no words to look for"
    if request.mode == "tree":
        return "no category of the tree has a word of the query"
    if request.filters != Filters():
        free = msgspec.structs.replace(request, filters=Filters(), limit=1)
        if recall(db, free, tuning).hits:
            return "there are matches, but the filters leave none of them"
    if query.of_time:
        return f"nothing is stored of '{query.dates[0].text}'"
    if postings.newest or any(not posting.word.is_grammar for posting in postings.words):
        return "what has a word of the query was left out by the rest of it"
    return (
        f"nothing stored has a word of it, or one that means the same: {', '.join(query.telling)}"
    )
