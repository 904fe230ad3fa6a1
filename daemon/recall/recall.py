"""The recall pipeline: query, candidates, signals, ranking, answer."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..config.settings import Tuning, Weights
from ..memory.experiences import Experience
from ..memory.records import Memory, Pair
from ..memory.scoring import Scoring
from ..memory.tree_nodes import is_within
from ..shapes.recall import Preset
from ..store import people, tree_rows
from ..store.chunk_tables import IndexedChunk
from ..store.entities import Entity
from ..store.selecting import Filters, teach_score
from . import pool as pools
from . import question, tree_search
from .pool import Pool
from .postings import Postings, admitted, demands_phrases, knowledge, look_up
from .query import MOST_CHARS, Query, parse
from .ranking import Ranked, first_of, rank, rank_as, rank_by_tree
from .signals import Signals, measure
from .sources import CHUNKS, ENTITIES, EXPERIENCES, MEMORIES, PAIRS, SOURCES, Source
from .tree_search import Reasoned, TreeHit

Mode: TypeAlias = Literal["keyword", "tree", "llm", "hybrid"]

_PER_CATEGORY: Final = 20
# While few memories are stored, this fraction of the usual minimum relevance is enough.
_LEAST_OF_CUT: Final = 0.75


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A query and the limits of its answer.

    Attributes:
        sources: the names of the sources to search; None: all.
        limit: maximum number of results of each source.
        max_tokens: maximum tokens of text of each source, four characters each; the first hit is
            always included. None: no limit.
        min_relevance: minimum relevance of every hit. None: the best hit must reach the configured
            minimum, unless the question is long.
        now: the time that "last week" is relative to, and that the age of memories is measured at.
        local: the time zone of days in the query.
        reasoned: categories that a model named for the query; their memories are candidates, too.
        explain: whether hits include the contribution of each signal and the lending neighbours.
    """

    text: str
    filters: Filters = Filters()
    sources: frozenset[str] | None = None
    limit: int = 5
    max_tokens: int | None = None
    min_relevance: float | None = None
    weights: Weights = Weights()
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
        item: a memory, or an item of another source.
        method: `keyword`; `keyword-tree` if only its category matches; `llm-tree` if a model named
            its category; `cold-remote` if it is in the remote database only.
        words: the words of the query that it contains.
        path: the category of the tree search that contains it, or "".
        reason: a model's reason for naming that category, or "".
        signals: the non-zero contribution of each signal to its score.
        lenders: the ids of the neighbours whose words count for it.
    """

    item: Any
    ranked: Ranked
    method: str
    words: tuple[str, ...]
    path: str
    reason: str
    signals: dict[str, float]
    lenders: tuple[str, ...]

    @property
    def memory(self) -> Memory:
        """The memory."""
        assert isinstance(self.item, Memory)
        return self.item

    @property
    def pair(self) -> Pair:
        """The key-value pair."""
        assert isinstance(self.item, Pair)
        return self.item

    @property
    def experience(self) -> Experience:
        """The experience."""
        assert isinstance(self.item, Experience)
        return self.item

    @property
    def entity(self) -> Entity:
        """The entity."""
        assert isinstance(self.item, Entity)
        return self.item

    @property
    def chunk(self) -> IndexedChunk:
        """The chunk of a file."""
        assert isinstance(self.item, IndexedChunk)
        return self.item

    @property
    def relevance(self) -> float:
        """How likely it answers the query, 0 to 1."""
        return self.ranked.relevance


class Answer(msgspec.Struct, frozen=True):
    """The hits, what was searched, and how the query was read.

    Attributes:
        found: the hits by source, best first.
        searched: the number of items searched, by source.
        why: the reason why nothing was found, or "".
        doubt: the reason why no hit may answer a long question, or "".
    """

    found: Mapping[str, tuple[Hit, ...]]
    searched: Mapping[str, int]
    query: Query
    common_words: tuple[str, ...]
    tree: tuple[TreeHit, ...]
    why: str
    doubt: str = ""

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The memories."""
        return self.found[MEMORIES.name]

    @property
    def pairs(self) -> tuple[Hit, ...]:
        """The key-value pairs."""
        return self.found[PAIRS.name]

    @property
    def experiences(self) -> tuple[Hit, ...]:
        """The experiences."""
        return self.found[EXPERIENCES.name]

    @property
    def entities(self) -> tuple[Hit, ...]:
        """The people and things that memories mention."""
        return self.found[ENTITIES.name]

    @property
    def chunks(self) -> tuple[Hit, ...]:
        """The chunks of watched files."""
        return self.found[CHUNKS.name]


def recall(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Answer:
    """Answer a request from one snapshot of the database, over a read connection."""
    looked = look(db, request, tuning)
    ranked = _ranked(looked.pool, looked.signals, looked.paths, request, tuning.decay_per_day)
    ranked, unlikely = _likely(looked, ranked, request, tuning)
    found = _hits(db, ranked, looked, request)
    sources = _sources(request, looked.query)
    searched = {one.name: one.count(db) if one in sources else 0 for one in SOURCES}
    why = doubt = ""
    if any(found.values()):
        doubt = unlikely
    else:
        why = unlikely or _why(db, request, tuning, looked.query, looked.postings, searched)
    common = looked.postings.common
    return Answer(found, searched, looked.query, common, looked.paths, why, doubt)


def look(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Looked:
    """The candidates and their signals, before ranking; arguments as in `recall`."""
    if request.filters.tier is not None:
        teach_score(db, request.now, request.scoring)
    known = people.named_in(db, request.text[:MOST_CHARS])
    query = parse(request.text, request.now, request.local, known)
    if request.mode == "tree":
        query = msgspec.structs.replace(query, dates=())
    sources = _sources(request, query)
    nodes = tree_rows.load(db)
    paths = tuple(tree_search.search(nodes, request.text, request.now))
    postings = look_up(
        db, query, sources, common_share=tuning.common_word_share, newest=tuning.candidates
    )
    pool = _pool(db, query, postings, paths, sources, request, tuning)
    signals = measure(
        query,
        question.read(request.text, query),
        postings,
        pool,
        {path.path: path.share for path in paths},
        lambda keys: pools.texts(db, keys),
        reasoned={found.path: found.relevance for found in request.reasoned},
        filed=tree_search.category_terms(nodes, query, postings.size),
    )
    return Looked(query, postings, pool, signals, paths)


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
    paths: Sequence[TreeHit],
    sources: Sequence[Source],
    request: Request,
    tuning: Tuning,
) -> Pool:
    named: list[int] = []
    if request.mode != "tree":
        named += pools.of_days(db, query) + pools.of_actor(db, query)
    categories = [found.path for found in request.reasoned] + [found.path for found in paths]
    by_category = MEMORIES in sources and not query.of_time
    for path in dict.fromkeys(categories) if by_category else ():
        most = max(request.limit, _PER_CATEGORY)
        named += pools.of_category(db, path, request.filters, request.now, most)
    keys = {*admitted(db, query, named)}
    if query.of_time:
        keys |= pools.of_date_words(query, postings)
    if request.mode == "tree" or query.of_time:
        postings = msgspec.structs.replace(postings, words=(), newest=(), phrased=frozenset())
    return pools.gather(
        db,
        postings,
        keys,
        request.filters,
        sources,
        now=request.now,
        limit=tuning.candidates,
        least=request.limit,
        neighbours=not (
            request.mode == "tree" or query.of_time or query.excluded or demands_phrases(query)
        ),
    )


def _ranked(
    pool: Pool, signals: Signals, paths: Sequence[TreeHit], request: Request, decay: float
) -> list[Ranked]:
    if request.mode == "tree":
        return rank_by_tree(pool, paths, request.scoring, request.now, decay)
    if request.preset is not None:
        return rank_as(pool, signals, request.preset, request.now, decay)
    return rank(pool, signals, request.weights, request.now, decay, request.limit)


def _likely(
    looked: Looked, ranked: list[Ranked], request: Request, tuning: Tuning
) -> tuple[list[Ranked], str]:
    """The candidates that are relevant enough, and why the answer is empty or in doubt, or "".

    A long question always keeps its hits: small talk in it lowers every relevance.
    """
    entries = looked.pool.entries
    best = max((one.relevance / entries[one.at].source.weight for one in ranked), default=0.0)
    usual = tuning.min_relevance * max(_LEAST_OF_CUT, knowledge(looked.postings.size))
    if request.min_relevance is not None:
        kept = [one for one in ranked if one.relevance >= request.min_relevance]
        least = request.min_relevance
    elif request.mode == "tree" or request.preset is not None or best >= usual:
        return ranked, ""
    else:
        kept, least = (ranked if looked.query.long else []), usual
    if not ranked or (kept and best >= least):
        return kept, ""
    return kept, f"nothing found is likely to answer: the best reaches {best:.2f} of {least:.2g}"


def _hits(
    db: sqlite3.Connection, ranked: Sequence[Ranked], looked: Looked, request: Request
) -> dict[str, tuple[Hit, ...]]:
    pool, signals, postings, paths = looked.pool, looked.signals, looked.postings, looked.paths
    found: dict[str, tuple[Hit, ...]] = {}
    for source in SOURCES:
        best = first_of(pool, source, ranked, request.limit, request.max_tokens)
        rows = [pool.entries[one.at].row for one in best]
        items = source.show(db, rows) if rows else {}
        lenders = _lenders(db, source, pool, signals, best) if request.explain else {}
        hits: list[Hit] = []
        for one in best:
            entry = pool.entries[one.at]
            has = f" {entry.terms} "
            words = tuple(
                p.word for p in postings.words if f" {p.term} " in has or entry.key in p.kin
            )
            path = next((p.path for p in paths if is_within(entry.category, p.path)), "")
            reasoned = next(
                (r for r in request.reasoned if is_within(entry.category, r.path)), None
            )
            method = "keyword" if words or not path else "keyword-tree"
            hits.append(
                Hit(
                    item=items[entry.row],
                    ranked=one,
                    method=method if reasoned is None else "llm-tree",
                    words=words,
                    path=path if reasoned is None else reasoned.path,
                    reason="" if reasoned is None else reasoned.reason,
                    signals=signals.parts(one.at) if request.explain else {},
                    lenders=lenders.get(one.at, ()),
                )
            )
        found[source.name] = tuple(hits)
    return found


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
    query: Query,
    postings: Postings,
    searched: Mapping[str, int],
) -> str:
    if not any(searched[one.name] for one in SOURCES if one is not PAIRS):
        return "nothing is stored there yet" if request.filters.paths else "nothing is stored yet"
    if query.empty:
        return "the query has no words to look for"
    if request.mode == "tree":
        return "no category of the tree has a word of the query"
    if request.filters != Filters():
        free = msgspec.structs.replace(request, filters=Filters(), limit=1)
        if any(recall(db, free, tuning).found.values()):
            return "there are matches, but the filters leave none of them"
    if query.of_time:
        return f"nothing is stored from {query.dates[0].days(request.local)}"
    if postings.words or postings.newest:
        return "what has a word of the query was left out by the rest of it"
    return f"no memory contains any of the words: {', '.join(query.words)}"
