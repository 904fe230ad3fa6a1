"""Condensing texts to what is worth remembering, and storing that on request."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..errors import InvalidInput
from ..language.distilling import stages_of
from ..language.secrets import clear
from ..memory import checks
from ..memory.records import DEFAULT_CATEGORY, Distilled, Memory
from ..shapes.distill import DistilBody, DistilledText, DistilledTexts, StageSizes, StoredFact
from ..thinking import distillation
from ..thinking.distillation import Measure
from ..thinking.filing import category_for
from ..thinking.keeping import keep, memory_of
from ..thinking.model_or_rules import AskOptions, Derived
from .operation import Operation
from .scope import Scope
from .views import view_of

# Texts of a batch that are distilled at the same time; small devices have few processors.
_AT_ONCE: Final = 4
_MOST_TEXTS: Final = 100
# The size of the body is limited elsewhere.
_NO_LIMIT: Final = 1 << 30


class _Wanted(msgspec.Struct, frozen=True):
    """How to distil each text."""

    body: DistilBody
    measure: Measure
    options: AskOptions
    category: str


@Operation("POST", "/api/distill", role="write")
async def distill(scope: Scope, body: DistilBody) -> DistilledText | DistilledTexts:
    """Condense a text to what is worth remembering, and store that on request."""
    texts = _texts(body)
    wanted = _wanted(scope, body)
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(text: str) -> DistilledText:
        async with room:
            return await _distilled(scope, text, wanted)

    views = await asyncio.gather(*map(one, texts))
    return views[0] if body.texts is None else DistilledTexts(views)


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


def _wanted(scope: Scope, body: DistilBody) -> _Wanted:
    settings = scope.settings.distillation
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
        AskOptions(model=by_model, endpoint=body.llm_endpoint),
        checks.check_category(body.category or DEFAULT_CATEGORY, scope.settings.tree.max_depth),
    )


async def _distilled(scope: Scope, text: str, wanted: _Wanted) -> DistilledText:
    model, measure = scope.daemon.thinking.model, wanted.measure
    if wanted.body.store:
        text = (await asyncio.to_thread(clear, text)).text
    if wanted.body.facts:
        several = await distillation.facts(text, measure, model, wanted.options)
        found, best = several.value, await distillation.best(several.value, text, model)
        view = _view(text, best, several)
        view.facts = found
    else:
        single = await distillation.distil(text, measure, model, wanted.options)
        found = [single.value]
        view = _view(text, single.value, single)
    if not wanted.body.core_summary:
        view.core_summary = view.core_size = UNSET
    if wanted.body.store:
        view.stored = await _store(scope, found, wanted)
    return view


def _view(text: str, best: Distilled, thought: Derived[Any]) -> DistilledText:
    stages = stages_of(text, best)
    return view_of(
        DistilledText,
        stages,
        distilled=best,
        mode=thought.way,
        compression_ratio=round(stages.compression_ratio, 3),
        stages=StageSizes(stages.original_size, stages.distilled_size, stages.core_size),
        why=thought.why or UNSET,
        llm=thought.spent or UNSET,
    )


async def _store(scope: Scope, found: list[Distilled], wanted: _Wanted) -> list[StoredFact]:

    def filed(db: sqlite3.Connection) -> list[Memory]:
        return [
            memory_of(
                one,
                category_for(db, one.fact, scope.now, scope.settings) or wanted.category,
                now=scope.now,
                writer=scope.peer.name,
            )
            for one in found
            if one.fact
        ]

    async with scope.store(create=True) as store:
        wished = await store.read(filed)
        kept = await store.write(lambda tx: keep(tx, wished))
    new = [
        view_of(
            StoredFact,
            memory,
            duplicate=False,
            supersedes=[older.id for older in kept.superseded[memory.id]] or UNSET,
        )
        for memory in kept.stored
    ]
    return new + [view_of(StoredFact, one, duplicate=True) for one in kept.known]
