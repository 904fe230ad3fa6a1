"""Recall: searching by a question in words."""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from ..config.settings import Weights
from ..errors import InvalidInput
from ..memory import checks
from ..memory.agent_files import PATHS, Skill, skill_path
from ..memory.experiences import Experience
from ..memory.records import Entity, IndexedChunk, Memory, Pair, Session, Type, is_outside
from ..memory.tree_nodes import is_within, trace_of
from ..recall.answer import Answer, Hit
from ..recall.presets import PUBLISHED
from ..recall.recall import UNSURE_LIMIT, Request, recall
from ..recall.sources import CHUNKS, MEMORIES
from ..recall.tree_search import described
from ..schemas import recall as schemas
from ..schemas.common import RecallLimit, Words
from ..store.agent_store import AgentStore
from ..store.records.agent_entries import OwnEntry
from ..store.records.conversations import PATH
from ..tasks.model_or_rules import AskOptions
from ..tasks.tree_tasks import Reasoning, search_tree
from ..vectors.vectors import Near
from . import sessions
from .experiences import experience_view
from .files import chunk_view, read_current
from .memories import filters_of
from .operation import Operation, Scope
from .views import hit_view, memory_view, view_of

_NO_AGENT: Final = (
    "no agent is called '{}' yet: its memory begins with the first thing stored for it"
)


class AnsweredQuery(msgspec.Struct, frozen=True):
    """An answer, how it was reached, and how long that took.

    Attributes:
        preset: the formula that ranked it, if any.
        now: the time that the question refers to.
        why: the reason for an empty answer, or "".
        note: why words answered without an encoder that is configured, or "".
        auto_synced: whether the index of the files was brought up to date for it.
    """

    answer: Answer
    reasoning: Reasoning | None
    preset: schemas.Preset | None
    now: float
    took_ms: float
    why: str
    note: str
    auto_synced: bool | UnsetType = UNSET


@Operation("POST", "/api/recall", tool="recall", also_get=True)
async def ask(scope: Scope, body: schemas.RecallBody) -> schemas.Recalled:
    """Recall by a question in words, from all that is stored."""
    scope = scope.of_user(body.user)
    recalled = await answered(scope, body)
    answer = recalled.answer
    # The categories whose names or descriptions alone lead to a result.
    by_category = {hit.path for hit in answer.hits if hit.method == "keyword-tree"}
    tree = [view_of(schemas.TreePath, hit) for hit in answer.tree if hit.path in by_category]
    return schemas.Recalled(
        results=[_result(scope, hit, recalled, body) for hit in answer.hits],
        confidence=answer.confidence,
        took_ms=recalled.took_ms,
        mode=body.mode,
        searched={name: count for name, count in answer.searched.items() if count},
        understood=_understood(answer) if body.explain else UNSET,
        auto_synced=recalled.auto_synced,
        why=recalled.why or UNSET,
        note=recalled.note or UNSET,
        tree=tree or UNSET,
        llm=_by_model(recalled.reasoning),
    )


@Operation("GET", "/api/memory/search")
async def search(
    scope: Scope,
    q: Words | None = None,
    query: Words | None = None,
    top_k: RecallLimit = 10,
    limit: RecallLimit | None = None,
    type: tuple[Type, ...] = (),
    tags: tuple[str, ...] = (),
) -> schemas.SearchResults:
    """Search memories with ScalyClaw's parameters: `q` or `query` is required."""
    text = q if query is None else query
    if text is None:
        raise InvalidInput("give the search a 'q' (or 'query')", field="q")
    body = schemas.RecallBody(
        query=text, limit=limit or top_k, types=type, tags=tags, preset="scalyclaw"
    )
    recalled = await answered(scope, body, (MEMORIES.name,))
    return schemas.SearchResults(
        [hit_view(scope, hit, recalled.now) for hit in recalled.answer.hits],
        note=recalled.note or UNSET,
    )


async def answered(
    scope: Scope,
    body: schemas.RecallBody,
    shown: Collection[str] | None = None,
    place: Literal["memory", "chat", "custom"] | None = None,
) -> AnsweredQuery:
    """Answer a question, with results of some sources or of all; sure memories count as used.

    With a `place` only what is there is searched.
    """
    started = time.perf_counter()
    _check_endpoint(scope, body)
    tuning = scope.settings.recall
    async with scope.store() as store:
        session = await sessions.entered(store, body.session)
        reasoning = await _reason(scope, store, body, session)
        request = _request(scope, body, shown, reasoning, session)
        if place is not None:
            request = replace(request, filters=replace(request.filters, place=place))
        near = Near() if body.mode == "tree" else await scope.daemon.vectors.near(store, body.query)
        request = replace(request, nearness=near.nearness)
        read = partial(recall, request=request, tuning=tuning)
        seconds = scope.settings.limits.query_seconds
        reading = partial(scope.daemon.agent_files.read, store, read, seconds=seconds)
        synced: bool | UnsetType = UNSET
        if (shown is None or CHUNKS.name in shown) and body.mode != "tree":
            wait = scope.settings.index.search_wait_ms / 1000
            answer, synced = await read_current(scope, store, request.filters, wait, reading)
        else:
            answer = await reading()
        if body.reinforce and scope.leaves_traces:
            sure = [hit.id for hit in answer.of(MEMORIES.name) if hit.sure]
            store.note_answer(sure, sum(len(hit.text) for hit in answer.hits))
    took_ms = round((time.perf_counter() - started) * 1000, 3)
    scope.daemon.minutes.note_recall(scope.agent, took_ms)
    if answer.confidence == "none":
        # Another device may have stored the answer a moment ago.
        scope.daemon.replicas.poll_soon(scope.agent)
    why = answer.why if store.exists else _NO_AGENT.format(scope.agent)
    return AnsweredQuery(
        answer, reasoning, request.preset, request.now, took_ms, why, near.note, synced
    )


def _result(
    scope: Scope, hit: Hit, recalled: AnsweredQuery, body: schemas.RecallBody
) -> schemas.RecallResult:
    result = schemas.RecallResult(
        id=hit.id,
        source=hit.source,  # type: ignore[arg-type]
        text=hit.text,
        relevance=round(hit.relevance, 3),
        sure=hit.sure,
        outdated=hit.outdated,
        search_method=hit.method,
        created_at=0.0,
    )
    if recalled.preset is not None:
        result.score = result.relevance
    _add_fields(result, hit.item)
    if body.fields == "full":
        match hit.item:
            case Memory() as memory:
                result.memory = memory_view(scope, memory, now=recalled.now)
            case IndexedChunk():
                result.file = chunk_view(hit)
            case OwnEntry(item=entry):
                result.entry = msgspec.to_builtins(entry)
            case Experience() as experience:
                result.experience = experience_view(experience, scope)
            case record:
                setattr(result, hit.source, record)
    if body.explain:
        parts = {name: round(getattr(hit.ranked, name), 6) for name in Weights.__struct_fields__}
        result.parts = view_of(schemas.Explanation, hit, **parts)
    return result


def _add_fields(result: schemas.RecallResult, item: Any) -> None:
    match item:
        case Memory():
            result.category, result.actor, result.outcome = item.category, item.actor, item.outcome
            result.path = f"{PATH}{item.group}" if item.group else ""
            result.quoted_from = item.source if is_outside(item.source) else ""
            result.expires_at = UNSET if item.expires_at is None else item.expires_at
            result.created_at, updated_at = item.created_at, item.updated_at
        case IndexedChunk():
            result.path, result.lines = item.path, (item.start_line, item.end_line)
            result.created_at = updated_at = item.modified_at
        case OwnEntry(item=entry):
            is_skill = isinstance(entry, Skill)
            result.path = skill_path(item.id) if is_skill else PATHS[result.source]
            result.created_at = updated_at = item.created_at
        case Experience():
            result.created_at, updated_at = item.created_at, item.last_used_at
        case Entity():
            # Names and relations are words of texts, whoever wrote those.
            result.quoted_from = f"memories that name {item.name}"
            result.created_at, updated_at = item.first_seen, item.last_seen
        case _:
            result.key = item.key if isinstance(item, Pair) else ""
            result.created_at = item.created_at
            updated_at = getattr(item, "updated_at", item.created_at)
    if updated_at != result.created_at:
        result.updated_at = updated_at


def _understood(answer: Answer) -> schemas.Understood:
    return view_of(
        schemas.Understood,
        answer.query,
        common_words=answer.common_words,
        words=answer.query.telling,
        dates=tuple(date.text for date in answer.query.dates),
        tree=tuple(view_of(schemas.TreePath, hit) for hit in answer.tree),
    )


def _request(
    scope: Scope,
    body: schemas.RecallBody,
    shown: Collection[str] | None,
    reasoning: Reasoning | None,
    session: Session | None,
) -> Request:
    tuning = scope.settings.recall
    is_open = body.limit is None and body.min_relevance is None
    # Weights in the call select the ranking that uses them.
    preset = body.preset or (tuning.preset if body.weights == schemas.GivenWeights() else None)
    return Request(
        text=body.query,
        filters=sessions.seen(session, filters_of(scope, body)),
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
        isolated=sessions.is_isolated(session),
        reasoned=() if reasoning is None else reasoning.value,
    )


def _weights(base: Weights, overrides: schemas.GivenWeights) -> Weights:
    chosen = {name: value for name, value in asdict(overrides).items() if value is not None}
    if {"match", "semantic"} <= chosen.keys():
        raise InvalidInput("give either 'match' or 'semantic', not both", field="weights")
    if "semantic" in chosen:
        chosen["match"] = chosen.pop("semantic")
    weights = replace(base, **chosen)
    if weights == Weights(0, 0, 0):
        raise InvalidInput("give at least one weight above 0", field="weights")
    return weights


# The mode `llm`, which uses a model.


def _check_endpoint(scope: Scope, body: schemas.RecallBody) -> None:
    if body.llm_endpoint is None:
        return
    # A reader may not let the daemon call other servers.
    scope.require("write")
    if body.mode != "llm":
        raise InvalidInput(
            f"cannot ask 'llm_endpoint' in mode '{body.mode}'",
            field="llm_endpoint",
            hint="give mode llm",
        )


async def _reason(
    scope: Scope, store: AgentStore, body: schemas.RecallBody, session: Session | None
) -> Reasoning | None:
    """Where a model expects the answer; None in modes without a model."""
    if body.mode != "llm":
        return None
    tree = await store.read(described)
    if session is not None and sessions.is_isolated(session):
        tree = {path: node for path, node in tree.items() if is_within(path, session.category)}
    options = AskOptions(model=True, endpoint=body.llm_endpoint)
    return await search_tree(scope.daemon.thinking.model, tree, body.query, options)


def _by_model(reasoning: Reasoning | None) -> schemas.ByModel | UnsetType:
    if reasoning is None:
        return UNSET
    return schemas.ByModel(
        method=reasoning.method,
        tree=[
            schemas.ReasonedPath(
                named.path, round(named.relevance, 3), named.reason, trace=trace_of(named.path)
            )
            for named in reasoning.value
        ],
        why=reasoning.why or UNSET,
        spent=reasoning.spent or UNSET,
    )
