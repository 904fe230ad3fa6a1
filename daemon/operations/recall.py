"""Recall: searching by a question in words."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ..config.settings import Weights
from ..errors import InvalidInput
from ..memory import checks
from ..memory.experiences import Experience
from ..memory.own_files import PATHS, Skill, skill_path
from ..memory.records import Memory, Pair
from ..recall.presets import PUBLISHED
from ..recall.recall import UNSURE_LIMIT, Answer, Hit, Request
from ..recall.sources import MEMORIES
from ..shapes import recall as shapes
from ..shapes.memory import MemoryView
from ..store.agent_store import AgentStore
from ..store.chunk_tables import IndexedChunk
from ..store.conversations import PATH
from ..store.entities import Entity
from ..store.own_entries import OwnEntry
from ..store.sessions import Session
from ..thinking.model_or_rules import AskOptions
from ..thinking.tree_search import Reasoning, described
from . import sessions
from .experiences import experience_view
from .files import found_chunk
from .graph import entity_view
from .memories import filters_of
from .operation import Operation
from .scope import Scope
from .views import explanation, hit_view, memory_fields, view_of

_NO_AGENT: Final = (
    "no agent is called '{}' yet: its memory begins with the first thing stored for it"
)


class AnsweredQuery(msgspec.Struct, frozen=True):
    """An answer, how it was reached, and how long that took.

    Attributes:
        preset: the formula that ranked it, if any.
        now: the time that the question refers to.
        why: the reason for an empty answer, or "".
    """

    answer: Answer
    reasoning: Reasoning | None
    preset: shapes.Preset | None
    now: float
    took_ms: float
    why: str


@Operation("POST", "/api/recall", tool="recall")
async def ask(scope: Scope, body: shapes.RecallBody) -> shapes.Recalled:
    """Recall by a question in words, from all that is stored."""
    done = await answered(scope, body)
    answer = done.answer
    return shapes.Recalled(
        results=[_result(scope, hit, done, body) for hit in answer.hits],
        confidence=answer.confidence,
        took_ms=done.took_ms,
        mode=body.mode,
        searched={name: count for name, count in answer.searched.items() if count},
        understood=_understood(answer) if body.explain else UNSET,
        why=done.why or UNSET,
        llm=_by_model(done.reasoning),
    )


@Operation("GET", "/api/recall")
async def ask_by_url(scope: Scope, query: shapes.RecallQuery) -> shapes.Recalled:
    """Recall by a question in the URL."""
    return await ask(scope, shapes.RecallBody(**msgspec.structs.asdict(query)))


@Operation("GET", "/api/memory/search")
async def search(scope: Scope, query: shapes.SearchQuery) -> shapes.SearchResults:
    """Search memories with ScalyClaw's parameters."""
    text = query.q if query.query is None else query.query
    if text is None:
        raise InvalidInput("give the search a 'q' (or 'query')", field="q")
    limit = query.topK or query.limit or 10
    body = shapes.RecallBody(
        query=text, limit=limit, types=query.type, tags=query.tags, preset="scalyclaw"
    )
    done = await answered(scope, body, (MEMORIES.name,))
    results = [hit_view(scope, hit, done.now) for hit in done.answer.hits]
    for result in results:
        result.score = result.relevance
    return shapes.SearchResults(results)


async def answered(
    scope: Scope, body: shapes.RecallBody, shown: Collection[str] | None = None
) -> AnsweredQuery:
    """Answer a question, with results of some sources or of all; sure memories count as used."""
    started = time.perf_counter()
    _check_endpoint(scope, body)
    tuning = scope.settings.recall
    async with scope.store() as store:
        reasoning = await _reason(scope, store, body)
        session = await sessions.entered(store, body.session)
        request = _request(scope, body, shown, reasoning, session)
        read = sessions.recalling(request, tuning, session, scope.now)
        answer, used = await scope.daemon.own_files.read(
            store, read, seconds=scope.settings.limits.query_seconds
        )
        if body.reinforce and scope.leaves_traces:
            sure = [hit.id for hit in answer.of(MEMORIES.name) if hit.sure]
            store.note_answer(sure, sum(len(hit.text) for hit in answer.hits))
        await sessions.record(scope, store, session, "recall", body.query, used)
    took_ms = round((time.perf_counter() - started) * 1000, 3)
    scope.daemon.minutes.note_recall(scope.agent, took_ms)
    why = answer.why if store.exists else _NO_AGENT.format(scope.agent)
    return AnsweredQuery(answer, reasoning, request.preset, request.now, took_ms, why)


def _result(
    scope: Scope, hit: Hit, done: AnsweredQuery, body: shapes.RecallBody
) -> shapes.RecallResult:
    result = shapes.RecallResult(
        id=hit.id,
        source=hit.source,  # type: ignore[arg-type]
        text=hit.text,
        relevance=round(hit.relevance, 3),
        sure=hit.sure,
        outdated=hit.outdated,
        search_method=hit.method,
        created_at=0.0,
    )
    if done.preset is not None:
        result.score = result.relevance
    _add_fields(result, hit.item)
    if body.fields == "full":
        _add_record(scope, result, hit, done.now)
    if body.explain:
        result.parts = explanation(hit)
    return result


def _add_fields(result: shapes.RecallResult, item: Any) -> None:
    """The fields of a result that depend on its source."""
    match item:
        case Memory():
            result.category, result.actor, result.outcome = item.category, item.actor, item.outcome
            result.path = f"{PATH}{item.group}" if item.group else ""
            result.expires_at = UNSET if item.expires_at is None else item.expires_at
            result.created_at, updated_at = item.created_at, item.updated_at
        case Pair():
            result.key = item.key
            result.created_at, updated_at = item.created_at, item.updated_at
        case IndexedChunk():
            result.path, result.lines = item.path, (item.first_line, item.last_line)
            result.created_at = updated_at = item.modified_at
        case OwnEntry(item=entry):
            is_skill = isinstance(entry, Skill)
            result.path = skill_path(item.id) if is_skill else PATHS[result.source]
            result.created_at = updated_at = item.created_at
        case Experience():
            result.created_at, updated_at = item.created_at, item.last_used_at
        case _:
            result.created_at, updated_at = item.first_seen, item.last_seen
    if updated_at != result.created_at:
        result.updated_at = updated_at


def _add_record(scope: Scope, result: shapes.RecallResult, hit: Hit, now: float) -> None:
    match hit.item:
        case Memory() as memory:
            result.memory = MemoryView(**memory_fields(memory, now, scope.settings.scoring))
        case Pair() as pair:
            result.pair = pair
        case IndexedChunk():
            result.file = found_chunk(hit)
        case OwnEntry(item=entry):
            result.entry = msgspec.to_builtins(entry)
        case Experience() as experience:
            result.experience = experience_view(experience, now)
        case Entity() as entity:
            result.entity = entity_view(entity)


def _understood(answer: Answer) -> shapes.Understood:
    return view_of(
        shapes.Understood,
        answer.query,
        common_words=answer.common_words,
        words=answer.query.telling,
        dates=tuple(date.text for date in answer.query.dates),
        tree=tuple(view_of(shapes.TreePath, hit) for hit in answer.tree),
    )


def _request(
    scope: Scope,
    body: shapes.RecallBody,
    shown: Collection[str] | None,
    reasoning: Reasoning | None,
    session: Session | None,
) -> Request:
    tuning = scope.settings.recall
    is_open = body.limit is None and body.min_relevance is None
    # Weights in the call select the ranking that uses them.
    preset = body.preset or (tuning.preset if body.weights == shapes.GivenWeights() else None)
    return Request(
        text=body.query,
        filters=sessions.seen(
            session, filters_of(scope, body, types=body.types, events=body.events, tags=body.tags)
        ),
        shown=None if shown is None else frozenset(shown),
        limit=body.limit or tuning.limit,
        # Who says how many, how relevant, or in which order, gets that.
        unsure_limit=UNSURE_LIMIT if is_open and preset is None else None,
        max_tokens=body.max_tokens,
        min_relevance=body.min_relevance,
        weights=_weights(tuning.weights if preset is None else PUBLISHED[preset], body.weights),
        preset=preset,
        mode=body.mode,
        scoring=scope.settings.scoring,
        now=scope.now if body.now is None else checks.check_time(body.now, field="now"),
        local=scope.zone,
        explain=body.explain,
        reasoned=() if reasoning is None else reasoning.found,
    )


def _weights(base: Weights, given: shapes.GivenWeights) -> Weights:
    if given.match is not None and given.semantic is not None:
        raise InvalidInput("give either 'match' or 'semantic', not both", field="weights")
    match = given.semantic if given.match is None else given.match
    weights = Weights(
        match=base.match if match is None else match,
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
