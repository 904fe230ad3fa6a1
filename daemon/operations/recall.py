"""Recall: searching by a question in words."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ..config.settings import Weights
from ..errors import InvalidInput
from ..memory import checks
from ..memory.own_files import PATHS, Skill, skill_path
from ..recall.recall import Answer, Hit, Request
from ..recall.sources import CHUNKS, ENTITIES, EXPERIENCES, MEMORIES, OWN, PAIRS
from ..shapes import recall as shapes
from ..store.agent_store import AgentStore
from ..store.own_entries import OwnEntry
from ..store.sessions import Session
from ..thinking.model_or_rules import AskOptions
from ..thinking.tree_search import Reasoning, described
from . import sessions
from .experiences import found_view
from .files import found_chunks
from .graph import found_entity
from .memories import filters_of
from .operation import Operation, Stream
from .scope import Scope
from .views import hit_view, view_of

LINES: Final = "application/x-ndjson"
_NO_AGENT: Final = (
    "no agent is called '{}' yet: its memory begins with the first thing stored for it"
)


async def ask_in_two(scope: Scope, body: shapes.RecallBody) -> Stream | shapes.Recalled:
    """Answer twice: at once by words, then with the model; the second answer counts as used."""
    _check_endpoint(scope, body)
    if body.mode != "hybrid":
        return await ask(scope, body)
    at_once = msgspec.structs.replace(body, mode="keyword", llm_endpoint=None, reinforce=False)

    async def lines() -> AsyncGenerator[bytes, None]:
        for one in (at_once, body):
            yield msgspec.json.encode(await ask(scope, one)) + b"\n"

    return Stream(lines())


async def ask_in_two_by_url(scope: Scope, query: shapes.RecallQuery) -> Stream | shapes.Recalled:
    """The same for a question in the URL."""
    return await ask_in_two(scope, _body(query))


@Operation("POST", "/api/recall", others={LINES: ask_in_two}, tool="recall")
async def ask(scope: Scope, body: shapes.RecallBody) -> shapes.Recalled:
    """Recall memories by a question in words."""
    started = time.perf_counter()
    _check_endpoint(scope, body)
    tuning = scope.settings.recall
    async with scope.store() as store:
        reasoning = await _reason(scope, store, body)
        session = await sessions.entered(store, body.session)
        request = _request(scope, body, reasoning, session)
        read = sessions.recalling(request, tuning, session, scope.now)
        answer, used = await scope.daemon.own_files.read(
            store, read, seconds=scope.settings.limits.query_seconds
        )
        if body.reinforce and scope.leaves_traces:
            chars = sum(len(hit.memory.text) for hit in answer.of(MEMORIES.name))
            store.note_answer([hit.memory.id for hit in answer.of(MEMORIES.name)], chars)
        await sessions.record(scope, store, session, "recall", body.query, used)
    took_ms = round((time.perf_counter() - started) * 1000, 3)
    scope.daemon.minutes.note_recall(scope.agent, took_ms)
    return shapes.Recalled(
        results=[
            hit_view(scope, hit, request.now, explain=body.explain)
            for hit in answer.of(MEMORIES.name)
        ],
        searched=shapes.SearchCounts(
            answer.searched[MEMORIES.name],
            answer.searched[PAIRS.name],
            sum(answer.searched[one.name] for one in OWN),
            chunks=answer.searched[CHUNKS.name],
            experiences=answer.searched[EXPERIENCES.name],
            entities=answer.searched[ENTITIES.name],
        ),
        took_ms=took_ms,
        mode=body.mode,
        key_values=[
            view_of(
                shapes.FoundPair,
                hit.item,
                id=f"kv:{hit.item.key}",
                relevance=round(hit.relevance, 6),
                words=hit.words,
            )
            for hit in answer.of(PAIRS.name)
        ],
        chunks=found_chunks(answer.of(CHUNKS.name)),
        entries=_entries(answer, request.limit),
        experiences=[found_view(hit, request.now) for hit in answer.of(EXPERIENCES.name)],
        entities=[found_entity(hit) for hit in answer.of(ENTITIES.name)],
        understood=_understood(answer) if body.explain else UNSET,
        why=(answer.why if store.exists else _NO_AGENT.format(scope.agent)) or UNSET,
        llm=_by_model(reasoning),
    )


def _entries(answer: Answer, limit: int) -> list[shapes.FoundEntry]:
    hits = [(source.name, hit) for source in OWN for hit in answer.of(source.name)]
    hits.sort(key=lambda one: one[1].relevance, reverse=True)
    return [_entry(name, hit) for name, hit in hits[:limit]]


def _entry(name: str, hit: Hit) -> shapes.FoundEntry:
    entry: OwnEntry = hit.item
    item = entry.item
    return shapes.FoundEntry(
        source=name,  # type: ignore[arg-type]
        id=entry.id,
        text=item.description if isinstance(item, Skill) else item.text,
        path=skill_path(entry.id) if isinstance(item, Skill) else PATHS[name],
        created_at=entry.created_at,
        relevance=round(hit.relevance, 6),
        words=hit.words,
    )


@Operation("GET", "/api/recall", others={LINES: ask_in_two_by_url})
async def ask_by_url(scope: Scope, query: shapes.RecallQuery) -> shapes.Recalled:
    """Recall memories by a question in the URL."""
    return await ask(scope, _body(query))


@Operation("GET", "/api/memory/search")
async def search(scope: Scope, query: shapes.SearchQuery) -> shapes.SearchResults:
    """Search memories with ScalyClaw's parameters."""
    text = query.q if query.query is None else query.query
    if text is None:
        raise InvalidInput("give the search a 'q' (or 'query')", field="q")
    limit = query.topK or query.limit or 10
    body = shapes.RecallBody(query=text, limit=limit, types=query.type, tags=query.tags)
    return shapes.SearchResults((await ask(scope, body)).results)


def _body(query: shapes.RecallQuery) -> shapes.RecallBody:
    return shapes.RecallBody(**msgspec.structs.asdict(query))


def _understood(answer: Answer) -> shapes.Understood:
    return view_of(
        shapes.Understood,
        answer.query,
        common_words=answer.common_words,
        dates=tuple((span.start, span.end) for span in answer.query.dates),
        tree=tuple(view_of(shapes.TreePath, hit) for hit in answer.tree),
    )


def _request(
    scope: Scope,
    body: shapes.RecallBody,
    reasoning: Reasoning | None,
    session: Session | None,
) -> Request:
    tuning = scope.settings.recall
    return Request(
        text=body.query,
        filters=sessions.seen(
            session, filters_of(scope, body, types=body.types, events=body.events, tags=body.tags)
        ),
        limit=body.limit or tuning.limit,
        max_tokens=body.max_tokens,
        min_relevance=body.min_relevance,
        weights=_weights(scope, body.weights),
        # Weights in the call select the ranking that uses them.
        preset=body.preset or (tuning.preset if body.weights == shapes.GivenWeights() else None),
        mode=body.mode,
        scoring=scope.settings.scoring,
        now=scope.now if body.now is None else checks.check_time(body.now, field="now"),
        local=scope.zone,
        explain=body.explain,
        reasoned=() if reasoning is None else reasoning.found,
    )


def _weights(scope: Scope, given: shapes.GivenWeights) -> Weights:
    base = scope.settings.recall.weights
    weights = Weights(
        match=base.match if given.match is None else given.match,
        recency=base.recency if given.recency is None else given.recency,
        importance=base.importance if given.importance is None else given.importance,
    )
    if weights == Weights(0, 0, 0):
        raise InvalidInput("give at least one weight above 0", field="weights")
    return weights


# The modes `llm` and `hybrid`, which use a model.


def _check_endpoint(scope: Scope, body: shapes.RecallBody) -> None:
    """Refuse an endpoint that the mode does not use, or that the caller may not use."""
    if body.llm_endpoint is None:
        return
    # A reader may not let the daemon call other servers.
    scope.require("write")
    if body.mode not in {"llm", "hybrid"}:
        raise InvalidInput(
            f"cannot ask 'llm_endpoint' in mode '{body.mode}'",
            field="llm_endpoint",
            hint="give mode llm or hybrid",
        )


async def _reason(scope: Scope, store: AgentStore, body: shapes.RecallBody) -> Reasoning | None:
    """Where a model expects the answer; None in modes without a model.

    In mode `hybrid` it has `recall.hybrid_deadline_ms`, else `llm.timeouts.tree`.
    """
    if body.mode not in {"llm", "hybrid"}:
        return None
    tree = await store.read(described)
    options = AskOptions(model=True, endpoint=body.llm_endpoint)
    reasoner = scope.daemon.thinking.reasoner
    if body.mode == "llm":
        return await reasoner.search(tree, body.query, options)
    seconds = scope.settings.recall.hybrid_deadline_ms / 1000
    return await reasoner.search_within(tree, body.query, options, seconds)


def _by_model(reasoning: Reasoning | None) -> shapes.ByModel | UnsetType:
    if reasoning is None:
        return UNSET
    return shapes.ByModel(
        way=reasoning.way,
        tree=[
            view_of(shapes.ReasonedPath, found, relevance=round(found.relevance, 3))
            for found in reasoning.found
        ],
        why=reasoning.why or UNSET,
        spent=reasoning.spent or UNSET,
    )
