"""The pipeline: query, candidates, signals, ranking, answer."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..config.settings import Tuning, Weights
from ..memory.experiences import Experience
from ..memory.records import Memory, Pair
from ..memory.scoring import DAY, Scoring
from ..memory.stemming import label_terms, word_terms
from ..memory.stop_words import STOP_WORDS
from ..memory.tree_nodes import Node
from ..shapes.recall import Preset
from ..store import people, tree_rows
from ..store.chunk_tables import IndexedChunk
from ..store.entities import Entity
from ..store.selecting import Filters, teach_score, where
from . import question, tree_search
from .dates import FOREVER, Span
from .pool import Pool, gather, texts
from .postings import Postings, admitted, demands_phrases, knowledge, look_up, weight_of
from .query import MOST_CHARS, Query, little, parse
from .ranking import Ranked, rank, rank_as, rank_by_tree
from .signals import A_DAY, WEIGHTS, YEAR, Signals, measure
from .sources import CHUNKS, ENTITIES, EXPERIENCES, MEMORIES, PAIRS, SOURCES, Source
from .tree_search import Reasoned, TreeHit

Mode: TypeAlias = Literal["keyword", "tree", "llm", "hybrid"]


# A day may be spoken of on the day itself, shortly before and in the days after.
_BEFORE_DAY: Final = DAY
_AFTER_DAY: Final = 3 * DAY
_YEARS: Final = 9
_OF_A_DAY: Final = 60
_OF_A_PERSON: Final = 100
_OF_A_CATEGORY: Final = 20
# In a young memory this share of the usual relevance is enough.
_LEAST_OF_CUT: Final = 0.75


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and what the answer must fit.

    Attributes:
        sources: the names of those that are searched; None: all.
        limit: how many results at most, of each source.
        max_tokens: how many tokens of text, four characters each, may follow with the first hit,
            which always comes; None for any.
        min_relevance: what every hit must reach; None: what the most relevant one must reach by the
            configuration, unless the question is long.
        now: the time that "last week" is told from, and by which memories have aged.
        local: whose days are meant.
        reasoned: categories that a model names for it; their memories are candidates, too.
        explain: whether the hits shall say what each signal added, and who lent.
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
    """What a question found, before any order."""

    query: Query
    postings: Postings
    pool: Pool
    signals: Signals
    paths: tuple[TreeHit, ...]


class Hit(msgspec.Struct, frozen=True):
    """One thing of the answer, and why it stands where it does.

    Attributes:
        item: a memory, or what its source has.
        method: `keyword`, or `keyword-tree` where only its category speaks for it; `llm-tree`
            where a model named that; `cold-remote` for a guest.
        words: those of the query that it has.
        path: the category of the tree search that named it, or "".
        reason: what a model says of that category, or "".
        signals: what each signal added to its score, without those that added nothing.
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
        """How well it answers, 0 to 1."""
        return self.ranked.relevance


class Answer(msgspec.Struct, frozen=True):
    """The hits, the best first; what was searched and understood; and why there are none.

    Attributes:
        found: the hits, by source.
        doubt: why none of them may answer, for a long question; else "".
        searched: how many things were searched, by source.
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
        """The people and things that memories name."""
        return self.found[ENTITIES.name]

    @property
    def chunks(self) -> tuple[Hit, ...]:
        """The chunks of watched files."""
        return self.found[CHUNKS.name]

    @property
    def memories(self) -> int:
        """How many memories there are."""
        return self.searched[MEMORIES.name]

    @property
    def key_values(self) -> int:
        """How many pairs were searched."""
        return self.searched[PAIRS.name]


def recall(db: sqlite3.Connection, request: Request, tuning: Tuning) -> Answer:
    """What answers, out of one snapshot of the database.

    Args:
        db: a reader.
        request: what is asked.
        tuning: how wide to search, and how fast relevance fades.
    """
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
    """The candidates and what was measured of them, before any order; arguments as in `recall`."""
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
        lambda keys: texts(db, keys),
        reasoned={found.path: found.relevance for found in request.reasoned},
        filed=_filed_terms(nodes, query, postings.size),
    )
    return Looked(query, postings, pool, signals, paths)


def _filed_terms(nodes: Mapping[str, Node], query: Query, size: int) -> dict[str, dict[str, float]]:
    """Of each category the terms of the query in its path or description, with their weights.

    Those that hold half of all are left out.
    """
    asked = {"".join(word_terms(word)): query.shares.get(word, 1.0) for word in query.words}
    telling = {"".join(word_terms(word)) for word in query.words if word not in little()}
    told = {
        path: found
        for path, node in nodes.items()
        if (found := asked.keys() & label_terms(path) | telling & label_terms(node.desc))
    }
    counts: dict[str, int] = {}
    for path, terms in told.items():
        for term in terms:
            counts[term] = counts.get(term, 0) + nodes[path].warm_count + nodes[path].cold_count
    weights = {
        term: weight_of(count, size) * asked[term]
        for term, count in counts.items()
        if 0 < count < size / 2
    }
    return {
        path: {term: weights[term] for term in terms & weights.keys()}
        for path, terms in told.items()
    }


def _sources(request: Request, query: Query) -> list[Source]:
    """What is searched: only memories have a category, and a time that is asked for."""
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
        named += _of_days(db, query) + _of_person(db, query)
    categories = [found.path for found in request.reasoned] + [found.path for found in paths]
    by_category = MEMORIES in sources and not query.of_time
    for path in dict.fromkeys(categories) if by_category else ():
        named += _filed_under(db, path, request, max(request.limit, _OF_A_CATEGORY))
    keys = {*admitted(db, query, named)}
    if query.of_time:
        keys |= _of_text(query, postings)
    if request.mode == "tree" or query.of_time:
        postings = msgspec.structs.replace(postings, words=(), newest=(), phrased=frozenset())
    return gather(
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


def _of_days(db: sqlite3.Connection, query: Query) -> list[int]:
    """The newest rows of the days that the query names; a guessed day is one of any year.

    Of a longer time the most important, if nothing else is asked for.
    """
    rows: list[int] = []
    for span in query.dates:
        is_day = span.end - span.start <= A_DAY
        if not is_day and not query.of_time:
            continue
        order = "created_at" if is_day else "importance DESC, created_at"
        before, after = (0.0, 0.0) if query.of_time else (_BEFORE_DAY, _AFTER_DAY)
        for years in (0,) if span.exact else range(-_YEARS, _YEARS + 1):
            start, end = span.start + years * YEAR, span.end + years * YEAR
            found = db.execute(
                "SELECT row FROM memories WHERE created_at >= ? AND created_at < ?"
                f" ORDER BY {order} DESC LIMIT ?",
                (start - before, end + after, _OF_A_DAY),
            )
            rows += (row for (row,) in found)
    return rows[: 4 * _OF_A_DAY]


def _of_text(query: Query, postings: Postings) -> set[int]:
    """The keys whose text has a day in figures that the query names."""
    words = set(query.date_words) - STOP_WORDS
    if not any(word[0].isdigit() for word in words):
        return set()
    found = [set(posting.keys) for posting in postings.words if posting.word in words]
    return set.intersection(*found) if len(found) == len(words) else set()


def _of_person(db: sqlite3.Connection, query: Query) -> list[int]:
    """The newest rows of a person, if nothing else is asked for."""
    if query.topics or not query.people:
        return []
    found = db.execute(
        # The second condition is what the partial index needs to be told.
        "SELECT row FROM memories WHERE actor = ? AND actor <> '' ORDER BY row DESC"
        f" LIMIT {_OF_A_PERSON}",
        query.people[:1],
    )
    return [row for (row,) in found]


def _filed_under(db: sqlite3.Connection, path: str, request: Request, limit: int) -> list[int]:
    condition, arguments = where(request.filters, request.now)
    rows = db.execute(
        "SELECT row FROM memories WHERE (category = ? OR (category >= ? AND category < ?))"
        f" AND {condition} ORDER BY importance DESC, created_at DESC LIMIT ?",
        (path, f"{path}/", f"{path}0", *arguments, limit),
    )
    return [row for (row,) in rows]


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
    """What is likely enough to answer, and why the answer is empty or in doubt, else "".

    In a long question small talk hides what is asked, so that it is never left empty for it.
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
    """The hits of each source, with a look-up for each and not for each hit."""
    pool, signals, postings, paths = looked.pool, looked.signals, looked.postings, looked.paths
    found: dict[str, tuple[Hit, ...]] = {}
    for source in SOURCES:
        best = _best(pool, source, ranked, request)
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
            path = next((p.path for p in paths if _within(entry.category, p.path)), "")
            reasoned = next((r for r in request.reasoned if _within(entry.category, r.path)), None)
            hits.append(
                Hit(
                    item=items[entry.row],
                    ranked=one,
                    method=_method(words, path, reasoned),
                    words=words,
                    path=path if reasoned is None else reasoned.path,
                    reason="" if reasoned is None else reasoned.reason,
                    signals=_parts(signals, one.at) if request.explain else {},
                    lenders=lenders.get(one.at, ()),
                )
            )
        found[source.name] = tuple(hits)
    return found


def _best(pool: Pool, source: Source, ranked: Sequence[Ranked], request: Request) -> list[Ranked]:
    """The best of a source, within the number and the tokens that the answer may have."""
    best: list[Ranked] = []
    tokens = 0
    for one in ranked:
        entry = pool.entries[one.at]
        if not source.has(entry.key):
            continue
        tokens += -(-entry.length // 4)
        if request.max_tokens is not None and tokens > request.max_tokens and best:
            break
        best.append(one)
        if len(best) == request.limit:
            break
    return best


def _method(words: Sequence[str], path: str, reasoned: Reasoned | None) -> str:
    if reasoned is not None:
        return "llm-tree"
    return "keyword" if words or not path else "keyword-tree"


def _within(category: str, path: str) -> bool:
    return category == path or category.startswith(f"{path}/")


def _parts(signals: Signals, at: int) -> dict[str, float]:
    return {name: round(added, 4) for name in WEIGHTS if (added := signals.added(name, at))}


def _lenders(
    db: sqlite3.Connection, source: Source, pool: Pool, signals: Signals, best: Sequence[Ranked]
) -> dict[int, tuple[str, ...]]:
    """The ids of the neighbours that lend their words to each hit."""
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
    """Why nothing was found, as one sentence for whoever asked."""
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
        return f"nothing is stored from {_told(query.dates[0], request.local)}"
    if postings.words or postings.newest:
        return "what has a word of the query was left out by the rest of it"
    return f"none of the words stands in a memory: {', '.join(query.words)}"


def _told(span: Span, local: dt.tzinfo) -> str:
    """The days of a span, the last included; one alone, if it is one."""
    first, last = (
        dt.datetime.fromtimestamp(at, local).date().isoformat()
        for at in (span.start, max(span.start, min(span.end, FOREVER) - 1))
    )
    return first if first == last else f"{first} to {last}"
