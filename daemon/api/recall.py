"""`/api/recall` and `/api/memory/search`: asking in words."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from ..errors import InvalidInput
from ..memory import checks
from ..memory.records import Tier, Type
from ..memory.scoring import Scoring
from ..recall.ranking import Preset, Weights
from ..recall.recall import Answer, Mode, Request, Tuning, recall
from ..store.selecting import Filters
from .calls import Answer as Answered
from .calls import Call, Reply, Route
from .reasoned import ByModel, by_model, check, reason
from .streaming import streamed
from .views import HitView, hit_view

_LINES: Final = "application/x-ndjson"

Limit = Annotated[int, Meta(ge=1, le=100)]
Text = Annotated[str, Meta(max_length=8192)]
Weight = Annotated[float, Meta(ge=0, le=100)]
Time = str | float | int | None
Share = Annotated[float, Meta(ge=0, le=1)]


class GivenWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights for this call; one that is left out keeps the configuration's."""

    match: Weight | None = None
    recency: Weight | None = None
    importance: Weight | None = None


class RecallBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A question, and what the answer must fit.

    `mode` tree asks the categories alone. In mode `llm` a model, or the server at `llm_endpoint`,
    names the categories in which it expects the answer, and what is filed there takes part; in
    mode `hybrid` only if it does so at once (`recall.hybrid_deadline_ms`). Without its answer
    both are as `keyword`, and `llm` in the answer says why. Who takes `application/x-ndjson`
    gets two lines in mode `hybrid`: what the words find, at once, and then the answer.

    `preset` ranks by a published formula in place of the weights. `now`, seconds or ISO 8601, is
    the time that "last week" is told from and by which memories have aged. `include` takes
    `merged` and `expired`. `max_tokens` counts four characters of text as one. `reinforce` false
    leaves no trace of the question.
    """

    query: Text
    limit: Limit = 5
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    types: tuple[Type, ...] = ()
    events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str | None = None
    tier: Tier | None = None
    source: str | None = None
    actor: str | None = None
    group: str | None = None
    since: Time = None
    until: Time = None
    min_importance: Share | None = None
    include: tuple[Literal["merged", "expired"], ...] = ()
    weights: GivenWeights = GivenWeights()
    preset: Preset | None = None
    mode: Mode = "keyword"
    llm_endpoint: str | None = None
    now: Time = None
    explain: bool = False
    reinforce: bool = True


class RecallQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The same in a URL, without the weights."""

    query: Text
    limit: Limit = 5
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    types: tuple[Type, ...] = ()
    events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str | None = None
    tier: Tier | None = None
    source: str | None = None
    actor: str | None = None
    group: str | None = None
    since: str | None = None
    until: str | None = None
    min_importance: Share | None = None
    include: tuple[Literal["merged", "expired"], ...] = ()
    preset: Preset | None = None
    mode: Mode = "keyword"
    llm_endpoint: str | None = None
    now: str | None = None
    explain: bool = False
    reinforce: bool = True


class SearchQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """ScalyClaw's parameters beside ours: `q` is the query, `topK` the limit."""

    q: Text | None = None
    query: Text | None = None
    topK: Limit | None = None  # noqa: N815 - the name of the parameter
    limit: Limit | None = None
    type: tuple[Type, ...] = ()
    tags: tuple[str, ...] = ()


class Searched(msgspec.Struct):
    """How many of each kind were searched."""

    memories: int
    key_values: int


class PairView(msgspec.Struct):
    """A key-value pair that answers; `id` is `kv:` and the key."""

    id: str
    key: str
    value: str
    relevance: float
    words: tuple[str, ...]


class TreePath(msgspec.Struct):
    """A category that the query named, and the way to it."""

    path: str
    relevance: float
    words: tuple[str, ...]
    trace: tuple[str, ...]


class Understood(msgspec.Struct):
    """What was read in the query. Dates are spans in seconds since the epoch."""

    words: tuple[str, ...]
    common_words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[str, ...], ...]
    people: tuple[str, ...]
    dates: tuple[tuple[float, float], ...]
    tree: tuple[TreePath, ...]


class RecallAnswer(msgspec.Struct, omit_defaults=True):
    """The hits, the best first. `why` says in a sentence why there are none.

    `llm` is there in the modes that
    a model has a part in.
    """

    results: list[HitView]
    searched: Searched
    took_ms: float
    mode: str
    key_values: list[PairView] = []
    understood: Understood | msgspec.UnsetType = msgspec.UNSET
    why: str | msgspec.UnsetType = msgspec.UNSET
    llm: ByModel | msgspec.UnsetType = msgspec.UNSET


class SearchAnswer(msgspec.Struct):
    """The hits, the best first."""

    results: list[HitView]


async def ask(call: Call) -> Answered:
    """Search, with the request in the body."""
    return await _answered(call, await call.body(RecallBody))


async def ask_by_url(call: Call) -> Answered:
    """Search, with the request in the URL."""
    query = call.query(RecallQuery)
    return await _answered(call, msgspec.convert(msgspec.structs.asdict(query), RecallBody))


async def search(call: Call) -> Reply:
    """Search as ScalyClaw's clients do."""
    query = call.query(SearchQuery)
    text = query.q if query.query is None else query.query
    if text is None:
        raise InvalidInput("give the search a 'q' (or 'query')", field="q")
    limit = query.topK or query.limit or 10
    body = RecallBody(query=text, limit=limit, types=query.type, tags=query.tags)
    return Reply(SearchAnswer((await _recalled(call, body)).results))


async def _answered(call: Call, body: RecallBody) -> Answered:
    check(call, body.mode, body.llm_endpoint)
    if body.mode == "hybrid" and _LINES in call.request.headers.get("Accept", ""):
        return await streamed(call, _LINES, _in_two(call, body))
    return Reply(await _recalled(call, body))


async def _in_two(call: Call, body: RecallBody) -> AsyncGenerator[bytes, None]:
    """What the words find, then what is found with the model; the latter is what was used."""
    at_once = msgspec.structs.replace(body, mode="keyword", llm_endpoint=None, reinforce=False)
    for one in (at_once, body):
        yield msgspec.json.encode(await _recalled(call, one)) + b"\n"


async def _recalled(call: Call, body: RecallBody) -> RecallAnswer:
    started = time.perf_counter()
    settings = call.settings.recall
    tuning = Tuning(settings.candidates, settings.common_word_share)
    async with call.store() as store:
        scoring = store.rules.scoring
        reasoning = await reason(call, store, body.query, body.mode, body.llm_endpoint)
        request = _request(call, body, scoring)
        if reasoning is not None:
            request = msgspec.structs.replace(request, reasoned=reasoning.found)
        answer = await store.read(lambda db: recall(db, request, tuning))
        if body.reinforce and call.leaves_traces:
            chars = sum(len(hit.memory.text) for hit in answer.hits)
            store.note_answer([hit.memory.id for hit in answer.hits], chars)
    found = RecallAnswer(
        results=[hit_view(hit, request.now, scoring, explain=body.explain) for hit in answer.hits],
        searched=Searched(answer.memories, answer.key_values),
        took_ms=round((time.perf_counter() - started) * 1000, 3),
        mode=body.mode,
        key_values=[
            PairView(
                f"kv:{hit.pair.key}",
                hit.pair.key,
                hit.pair.value,
                round(hit.relevance, 6),
                hit.words,
            )
            for hit in answer.pairs
        ],
    )
    if answer.why:
        found.why = answer.why
    found.llm = by_model(reasoning)
    if body.explain:
        found.understood = _understood(answer)
    return found


def _understood(answer: Answer) -> Understood:
    query = answer.query
    return Understood(
        words=query.words,
        common_words=answer.common_words,
        phrases=query.phrases,
        excluded=query.excluded,
        people=query.people,
        dates=tuple((span.start, span.end) for span in query.dates),
        tree=tuple(TreePath(hit.path, hit.relevance, hit.words, hit.trace) for hit in answer.tree),
    )


def _request(call: Call, body: RecallBody, scoring: Scoring) -> Request:
    local = datetime.now().astimezone().tzinfo
    assert local is not None
    return Request(
        text=body.query,
        filters=_filters(call, body),
        limit=body.limit,
        max_tokens=body.max_tokens,
        weights=_weights(call, body.weights),
        preset=body.preset,
        mode=body.mode,
        scoring=scoring,
        now=call.now if body.now is None else checks.check_time(body.now, field="now"),
        local=local,
        explain=body.explain,
    )


def _filters(call: Call, body: RecallBody) -> Filters:
    category = body.category
    if category is not None:
        category = checks.check_category(category, call.settings.tree.max_depth)
    return Filters(
        types=body.types,
        events=body.events,
        tags=body.tags,
        category=category,
        tier=body.tier,
        source=body.source,
        actor=body.actor,
        group=body.group,
        since=None if body.since is None else checks.check_time(body.since, field="since"),
        until=None if body.until is None else checks.check_time(body.until, field="until"),
        min_importance=body.min_importance,
        merged="merged" in body.include,
        expired="expired" in body.include,
    )


def _weights(call: Call, given: GivenWeights) -> Weights:
    base = call.settings.recall.weights
    weights = Weights(
        match=base.match if given.match is None else given.match,
        recency=base.recency if given.recency is None else given.recency,
        importance=base.importance if given.importance is None else given.importance,
    )
    if weights == Weights(0, 0, 0):
        raise InvalidInput("give at least one weight above 0", field="weights")
    return weights


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/recall",
        handler=ask,
        summary="Recall memories by a question in words",
        body=RecallBody,
        answer=RecallAnswer,
        types=("application/json", _LINES),
    ),
    Route(
        method="GET",
        path="/api/recall",
        handler=ask_by_url,
        summary="Recall memories by a question in the URL",
        query=RecallQuery,
        answer=RecallAnswer,
        types=("application/json", _LINES),
    ),
    Route(
        method="GET",
        path="/api/memory/search",
        handler=search,
        summary="Search memories with ScalyClaw's parameters",
        query=SearchQuery,
        answer=SearchAnswer,
    ),
)
