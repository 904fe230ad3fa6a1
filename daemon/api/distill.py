"""`/api/distill`: what a text is worth remembering for; and keeping that, if it is wished."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..errors import InvalidInput
from ..memory import checks
from ..memory.distilling import Distilled, stages_of
from ..memory.records import DEFAULT_CATEGORY, Memory
from ..recall.recall import Tuning
from ..thinking import distilling
from ..thinking.asking import Expense, Thought, Way, Wish
from ..thinking.distilling import Measure
from ..thinking.filing import category_for
from ..thinking.keeping import keep, memory_of
from .calls import Call, Reply, Route

# So many texts of a batch are thought about at once; a small device has no more processors.
_AT_ONCE: Final = 4
_MOST_TEXTS: Final = 100
# A body has a limit of its own.
_NO_LIMIT: Final = 1 << 30

Share = Annotated[float, Meta(ge=0, le=1)]


class DistilBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One `text`, or several `texts`.

    `llm` true asks the configured model, false goes by rules; left out, `distillation.mode` of
    the configuration decides. `llm_endpoint` is the URL of a server to ask instead. `facts`
    gives every statement worth keeping. `store` keeps what was distilled (all the facts, if
    they were asked for) in the fitting category of the tree, or else in `category`.
    `max_bytes` and `aggression` replace those of the configuration.
    """

    text: str | None = None
    texts: tuple[str, ...] | None = None
    core_summary: bool = False
    facts: bool = False
    store: bool = False
    category: str | None = None
    llm: bool | None = None
    llm_endpoint: str | None = None
    max_bytes: Annotated[int, Meta(ge=16, le=65_536)] | None = None
    aggression: Share | None = None


class StageSizes(msgspec.Struct):
    """The bytes of the text, of what was distilled from it, and of its summary."""

    raw: int
    fact: int
    core: int


class StoredFact(msgspec.Struct):
    """The memory that has it; `duplicate`: it said so already."""

    id: str
    text: str
    category: str
    importance: float
    duplicate: bool


class DistilledView(msgspec.Struct, kw_only=True):
    """What was distilled; `mode` tells whether by a model or by rules, `why` why not by one.

    `original_size` and `distilled_size` are bytes.
    """

    distilled: Distilled
    mode: Way
    original_size: int
    distilled_size: int
    compression_ratio: float
    stages: StageSizes
    core_summary: str | UnsetType = UNSET
    core_size: int | UnsetType = UNSET
    facts: list[Distilled] | UnsetType = UNSET
    stored: list[StoredFact] | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: Expense | UnsetType = UNSET


class DistilAnswer(msgspec.Struct, kw_only=True):
    """Of one text as `DistilledView`; of several, `results` in their order and nothing else."""

    distilled: Distilled | UnsetType = UNSET
    mode: Way | UnsetType = UNSET
    original_size: int | UnsetType = UNSET
    distilled_size: int | UnsetType = UNSET
    compression_ratio: float | UnsetType = UNSET
    stages: StageSizes | UnsetType = UNSET
    core_summary: str | UnsetType = UNSET
    core_size: int | UnsetType = UNSET
    facts: list[Distilled] | UnsetType = UNSET
    stored: list[StoredFact] | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: Expense | UnsetType = UNSET
    results: list[DistilledView] | UnsetType = UNSET


class _Wanted(msgspec.Struct, frozen=True):
    """What is to be done with each text."""

    body: DistilBody
    measure: Measure
    wish: Wish
    category: str


async def distill(call: Call) -> Reply:
    """Distil one text or several."""
    body = await call.body(DistilBody)
    texts = _texts(body)
    wanted = _wanted(call, body)
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(text: str) -> DistilledView:
        async with room:
            return await _distilled(call, text, wanted)

    views = await asyncio.gather(*map(one, texts))
    return Reply(views[0] if body.texts is None else DistilAnswer(results=views))


def _texts(body: DistilBody) -> tuple[str, ...]:
    if body.texts is None and body.text is not None:
        return (checks.check_text(body.text, _NO_LIMIT),)
    if body.texts is None or body.text is not None:
        raise InvalidInput("give either a 'text' or 'texts'", field="text")
    if not 0 < len(body.texts) <= _MOST_TEXTS:
        raise InvalidInput(f"give 1 to {_MOST_TEXTS} texts (got {len(body.texts)})", field="texts")
    return tuple(
        checks.check_text(text, _NO_LIMIT, field=f"texts[{number}]")
        for number, text in enumerate(body.texts)
    )


def _wanted(call: Call, body: DistilBody) -> _Wanted:
    settings = call.settings.distillation
    if body.category is not None and not body.store:
        raise InvalidInput("give a 'category' only with 'store'", field="category")
    by_model = body.llm
    if by_model is None:
        by_model = settings.mode == "llm" or body.llm_endpoint is not None
    return _Wanted(
        body,
        Measure(
            settings.aggression if body.aggression is None else body.aggression,
            settings.max_distilled_bytes if body.max_bytes is None else body.max_bytes,
        ),
        Wish(model=by_model, endpoint=body.llm_endpoint),
        checks.check_category(body.category or DEFAULT_CATEGORY, call.settings.tree.max_depth),
    )


async def _distilled(call: Call, text: str, wanted: _Wanted) -> DistilledView:
    mind, measure = call.services.thinking.mind, wanted.measure
    if wanted.body.facts:
        several = await distilling.facts(text, measure, mind, wanted.wish)
        found, best = several.value, await asyncio.to_thread(distilling.best, several.value, text)
        view = _view(text, best, several)
        view.facts = found
    else:
        single = await distilling.distil(text, measure, mind, wanted.wish)
        found = [single.value]
        view = _view(text, single.value, single)
    if not wanted.body.core_summary:
        view.core_summary = view.core_size = UNSET
    if wanted.body.store:
        view.stored = await _store(call, found, wanted)
    return view


def _view(text: str, best: Distilled, thought: Thought[Any]) -> DistilledView:
    stages = stages_of(text, best)
    return DistilledView(
        distilled=best,
        mode=thought.way,
        original_size=stages.original_size,
        distilled_size=stages.distilled_size,
        compression_ratio=round(stages.compression_ratio, 3),
        stages=StageSizes(stages.original_size, stages.distilled_size, stages.core_size),
        core_summary=stages.core_summary,
        core_size=stages.core_size,
        why=thought.why or UNSET,
        llm=thought.spent or UNSET,
    )


async def _store(call: Call, found: list[Distilled], wanted: _Wanted) -> list[StoredFact]:
    """Keep what was distilled, in one commit."""
    settings = call.settings.recall
    tuning = Tuning(settings.candidates, settings.common_word_share)

    def filed(db: sqlite3.Connection) -> list[Memory]:
        return [
            memory_of(
                one,
                category_for(db, one.fact, call.now, tuning) or wanted.category,
                now=call.now,
                writer=call.peer.name,
            )
            for one in found
            if one.fact
        ]

    async with call.store(create=True) as store:
        wished = await store.read(filed)
        kept = await store.write(lambda tx: keep(tx, wished))
    return [_stored(one, known=False) for one in kept.stored] + [
        _stored(one, known=True) for one in kept.known
    ]


def _stored(memory: Memory, *, known: bool) -> StoredFact:
    return StoredFact(memory.id, memory.text, memory.category, memory.importance, known)


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/distill",
        handler=distill,
        summary="Condense a text to what is worth remembering, and keep that if wished",
        role="write",
        body=DistilBody,
        answer=DistilAnswer,
    ),
)
