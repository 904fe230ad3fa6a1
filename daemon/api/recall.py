"""`/api/recall` and `/api/memory/search`: asking in words."""

from __future__ import annotations

import time
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from ..errors import InvalidInput
from ..memory import checks
from ..memory.records import Type
from ..recall.ranking import Weights
from ..recall.recall import Answer, Tuning, recall
from ..store.selecting import Filters
from .calls import Call, Reply, Route
from .views import HitView, hit_view

Limit = Annotated[int, Meta(ge=1, le=100)]
Text = Annotated[str, Meta(max_length=8192)]
Weight = Annotated[float, Meta(ge=0, le=100)]
Time = str | float | int | None
METHOD: Final = "keyword"


class GivenWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights for this call; one that is left out keeps the configuration's."""

    match: Weight | None = None
    recency: Weight | None = None
    importance: Weight | None = None


class RecallBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A question, and what the answer must fit."""

    query: Text
    limit: Limit = 5
    types: tuple[Type, ...] = ()
    events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str | None = None
    since: Time = None
    until: Time = None
    weights: GivenWeights = GivenWeights()
    mode: Literal["keyword"] = "keyword"
    explain: bool = False
    reinforce: bool = True


class RecallQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The same in a URL, without the weights."""

    query: Text
    limit: Limit = 5
    types: tuple[Type, ...] = ()
    events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str | None = None
    since: str | None = None
    until: str | None = None
    mode: Literal["keyword"] = "keyword"
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


class RecallAnswer(msgspec.Struct, omit_defaults=True):
    """The hits, the best first. `why` says in a sentence why there are none."""

    results: list[HitView]
    searched: Searched
    took_ms: float
    mode: str
    words: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    common_words: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    why: str | msgspec.UnsetType = msgspec.UNSET


class SearchAnswer(msgspec.Struct):
    """The hits, the best first."""

    results: list[HitView]


async def ask(call: Call) -> Reply:
    """Search, with the request in the body."""
    return Reply(await _recalled(call, await call.body(RecallBody)))


async def ask_by_url(call: Call) -> Reply:
    """Search, with the request in the URL."""
    query = call.query(RecallQuery)
    return Reply(await _recalled(call, msgspec.convert(msgspec.structs.asdict(query), RecallBody)))


async def search(call: Call) -> Reply:
    """Search as ScalyClaw's clients do."""
    query = call.query(SearchQuery)
    text = query.q if query.query is None else query.query
    if text is None:
        raise InvalidInput("give the search a 'q' (or 'query')", field="q")
    limit = query.topK or query.limit or 10
    body = RecallBody(query=text, limit=limit, types=query.type, tags=query.tags)
    return Reply(SearchAnswer((await _recalled(call, body)).results))


async def _recalled(call: Call, body: RecallBody) -> RecallAnswer:
    started = time.perf_counter()
    filters = _filters(call, body)
    weights = _weights(call, body.weights)
    settings = call.settings.recall
    tuning = Tuning(settings.candidates, settings.common_word_share)
    async with call.store() as store:
        answer = await store.read(
            lambda db: recall(
                db,
                body.query,
                filters,
                limit=body.limit,
                weights=weights,
                tuning=tuning,
                now=call.now,
            )
        )
        if body.reinforce:
            store.note_answer([hit.memory.id for hit in answer.hits])
        scoring = store.rules.scoring
    found = RecallAnswer(
        results=[
            hit_view(hit, call.now, scoring, method=METHOD, explain=body.explain)
            for hit in answer.hits
        ],
        searched=Searched(answer.searched),
        took_ms=round((time.perf_counter() - started) * 1000, 3),
        mode=body.mode,
    )
    return _explained(found, answer, explain=body.explain)


def _explained(found: RecallAnswer, answer: Answer, *, explain: bool) -> RecallAnswer:
    if answer.why:
        found.why = answer.why
    if explain:
        found.words, found.common_words = answer.words, answer.common_words
    return found


def _filters(call: Call, body: RecallBody) -> Filters:
    category = body.category
    if category is not None:
        category = checks.check_category(category, call.settings.tree.max_depth)
    return Filters(
        types=body.types,
        events=body.events,
        tags=body.tags,
        category=category,
        since=None if body.since is None else checks.check_time(body.since, field="since"),
        until=None if body.until is None else checks.check_time(body.until, field="until"),
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
    ),
    Route(
        method="GET",
        path="/api/recall",
        handler=ask_by_url,
        summary="Recall memories by a question in the URL",
        query=RecallQuery,
        answer=RecallAnswer,
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
