"""Condensing texts to what is worth remembering, and conversations to the window of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta

from ..config.settings import Distillation
from ..errors import InvalidInput
from ..language.cues import is_of_self
from ..language.extraction.distilling import stages_of
from ..language.secrets import clear
from ..language.speech import utterances
from ..memory import checks
from ..memory.messages import Message, conversation_tokens
from ..memory.records import DEFAULT_CATEGORY, Distilled
from ..schemas import conversations as schemas
from ..schemas.common import Endpoint, Json
from ..tasks import distillation
from ..tasks.compaction import Compacted, CompactionLimits, needs_compaction
from ..tasks.model_or_rules import AskOptions, Derived
from ..tasks.new_memories import categories_for, memory_of, store_memories
from ..tasks.summaries import shorten as compact
from .operation import Operation, Scope
from .views import view_of

# Texts of a batch that are distilled at the same time; small devices have few processors.
_AT_ONCE: Final = 4
# The size of the body is limited elsewhere.
_NO_LIMIT: Final = 1 << 30


class _Wanted(msgspec.Struct, frozen=True):
    """How to distil each text."""

    body: schemas.DistilBody
    measure: Distillation
    options: AskOptions
    category: str
    source: str


@Operation("POST", "/api/distill", role="write")
async def distill(
    scope: Scope, body: schemas.DistilBody
) -> schemas.DistilledText | schemas.DistilledTexts:
    """Condense a text to what is worth remembering, and store that on request."""
    texts = _texts(body)
    task = _wanted(scope, body, texts)
    if body.store:
        texts = [cleared.text for cleared in await asyncio.to_thread(lambda: [*map(clear, texts)])]
    groups = distillation.groups_of(texts) if task.options.model else [[text] for text in texts]
    room = asyncio.Semaphore(_AT_ONCE)

    async def of_group(group: list[str]) -> list[schemas.DistilledText]:
        async with room:
            return await _distilled(scope, group, task)

    views = [view for views in await asyncio.gather(*map(of_group, groups)) for view in views]
    return views[0] if body.texts is None else schemas.DistilledTexts(views)


def _texts(body: schemas.DistilBody) -> list[str]:
    if body.texts is None and body.text is not None:
        return [checks.check_text(body.text, _NO_LIMIT)]
    if body.texts is None or body.text is not None:
        raise InvalidInput("give either a 'text' or 'texts'", field="text")
    return [
        checks.check_text(text, _NO_LIMIT, field=f"texts[{number}]")
        for number, text in enumerate(body.texts)
    ]


def _wanted(scope: Scope, body: schemas.DistilBody, texts: Sequence[str]) -> _Wanted:
    settings = scope.settings.distillation
    for field in ("category", "source"):
        if getattr(body, field) is not None and not body.store:
            raise InvalidInput(f"give a '{field}' only with 'store'", field=field)
    options = AskOptions(model=body.llm, endpoint=body.llm_endpoint)
    options = scope.daemon.thinking.model.for_text(options, sum(map(len, texts)))
    if options.model is None:
        by_model = settings.mode == "llm" or body.llm_endpoint is not None
        options = msgspec.structs.replace(options, model=by_model)
    return _Wanted(
        body,
        msgspec.structs.replace(
            settings,
            aggression=settings.aggression if body.aggression is None else body.aggression,
            max_distilled_bytes=body.max_bytes or settings.max_distilled_bytes,
        ),
        options,
        checks.filed_category(body.category or DEFAULT_CATEGORY, scope.settings.tree.max_depth),
        checks.check_short(body.source or "", "source", checks.SOURCE_CHARS),
    )


async def _distilled(
    scope: Scope, texts: Sequence[str], task: _Wanted
) -> list[schemas.DistilledText]:
    """The views of texts that a model reads together."""
    how = (task.measure, scope.daemon.thinking.model, task.options)
    every = task.body.facts
    results: list[Derived[list[Distilled]]]
    if len(texts) > 1:
        results = await distillation.together(texts, *how, every=every)
    elif every:
        results = [await distillation.facts(texts[0], *how)]
    else:
        single = await distillation.distil(texts[0], *how)
        results = [Derived([single.value], single.method, single.why, single.spent)]
    return [
        await _viewed(scope, text, derived, task)
        for text, derived in zip(texts, results, strict=True)
    ]


async def _viewed(
    scope: Scope, text: str, derived: Derived[list[Distilled]], task: _Wanted
) -> schemas.DistilledText:
    facts, body = derived.value, task.body
    model = scope.daemon.thinking.model
    best = await distillation.best(facts, text, model) if body.facts else facts[0]
    stages = stages_of(text, best)
    view = view_of(
        schemas.DistilledText,
        stages,
        distilled=best,
        mode=derived.method,
        compression_ratio=round(stages.compression_ratio, 3),
        stages=schemas.StageSizes(stages.original_size, stages.distilled_size, stages.core_size),
        facts=facts if body.facts else UNSET,
        why=derived.why or UNSET,
        llm=derived.spent or UNSET,
    )
    if not body.core_summary:
        view.core_summary = view.core_size = UNSET
    if body.store:
        actors = await asyncio.to_thread(_actors, facts, text)
        view.stored = await _store(scope, facts, actors, task)
    return view


def _actors(facts: Sequence[Distilled], text: str) -> list[str]:
    """The speaker of each fact that tells of one: "I am allergic to nuts", said by "Ben: …"."""
    own = [bool(fact.people) and is_of_self(fact.fact) for fact in facts]
    speakers = {item.speaker for item in utterances(text)} if any(own) else set()
    return [
        fact.people[0] if is_own and fact.people[0] in speakers else ""
        for fact, is_own in zip(facts, own, strict=True)
    ]


async def _store(
    scope: Scope, facts: list[Distilled], actors: list[str], task: _Wanted
) -> list[schemas.StoredFact]:
    filled = [(fact, actor) for fact, actor in zip(facts, actors, strict=True) if fact.fact]
    texts = [fact.fact for fact, _ in filled]
    async with scope.store(create=True) as store:
        categories = await categories_for(store, texts, scope.now, scope.daemon.vectors.nearness)
        wished = [
            memory_of(
                fact,
                category or task.category,
                source=task.source,
                actor=actor,
                now=scope.now,
                writer=scope.peer.name,
            )
            for (fact, actor), category in zip(filled, categories, strict=True)
        ]
        result = await store.write(lambda tx: store_memories(tx, wished))
    new = [
        view_of(
            schemas.StoredFact,
            memory,
            duplicate=False,
            supersedes=[older.id for older in result.superseded[memory.id]] or UNSET,
        )
        for memory in result.stored
    ]
    return new + [view_of(schemas.StoredFact, fact, duplicate=True) for fact in result.known]


# Conversations


_Part = Annotated[float, Meta(gt=0, le=1)]


@Operation("POST", "/api/compact", agent=False)
async def shorten(
    scope: Scope,
    messages: Annotated[tuple[dict[str, Json], ...], Meta(min_length=1, max_length=10_000)],
    window: Annotated[int, Meta(ge=100, le=100_000_000)] = 128_000,
    threshold: _Part = 0.7,
    target: _Part = 0.5,
    check: bool = False,
    llm: bool | None = None,
    llm_endpoint: Endpoint | None = None,
) -> schemas.CompactedMessages:
    """Shorten a conversation to a model's window. Nothing is stored.

    The messages, oldest first, each have a `role`, a text as `content`, and any other fields.
    `window` is the model's window in tokens. A token is four characters, or one and a half of a
    script without blanks. Beyond `threshold` of the window the messages are reduced to `target`,
    which is not higher; fewer than ten are never reduced, the last six always stay, and results of
    tools are cut to 2,000 tokens. `check` only reports whether a reduction is due.

    The removed messages are summarized by a model if one is configured, else by rules; `llm` false
    uses only the rules, true reports why a model did not answer, and `llm_endpoint`, which needs
    the role `write`, asks another server.
    """
    if target > threshold:
        raise InvalidInput("give a 'target' below the 'threshold'", field="target")
    read = [_read(message, number) for number, message in enumerate(messages)]
    limits = CompactionLimits(threshold=threshold, target=target)
    if llm_endpoint is not None:
        # A reader may not let the daemon call other servers.
        scope.require("write")
    answer = await asyncio.to_thread(_measured, window, read, limits)
    if not check:
        options = AskOptions(model=llm, endpoint=llm_endpoint)
        derived = await compact(read, window, limits, scope.daemon.thinking.model, options)
        compacted = derived.value
        answer.messages = _messages(messages, read, compacted)
        answer.summary = UNSET if compacted.summary is None else compacted.summary
        answer.compacted_count = compacted.compacted_count
        answer.tokens_reduced = compacted.tokens_reduced
        answer.was_compacted = compacted.was_compacted
        answer.tool_results_truncated = compacted.tool_results_truncated or UNSET
        if compacted.summary is not None:
            answer.mode = derived.method
            answer.why = derived.why or UNSET
            answer.llm = derived.spent or UNSET
    return answer


def _measured(
    window: int, read: Sequence[Message], limits: CompactionLimits
) -> schemas.CompactedMessages:
    tokens = conversation_tokens(read)
    return schemas.CompactedMessages(
        original_count=len(read),
        compacted_count=len(read),
        tokens_reduced=0,
        was_compacted=False,
        needs_compaction=needs_compaction(read, window, limits),
        tokens=tokens,
        window=window,
        share=round(tokens / window, 6),
    )


def _messages(
    originals: Sequence[dict[str, Any]], read: Sequence[Message], compacted: Compacted
) -> list[dict[str, Any]]:
    """The messages that stay, unchanged except for a content that was cut."""
    messages: list[dict[str, Any]] = []
    for message, origin in zip(compacted.messages, compacted.origins, strict=True):
        if origin is None:
            messages.append({"role": message.role, "content": message.content})
        elif message.content == read[origin].content:
            messages.append(originals[origin])
        else:
            messages.append(originals[origin] | {"content": message.content})
    return messages


def _read(message: Mapping[str, Any], number: int) -> Message:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise InvalidInput("give each message a 'role'", field=f"messages[{number}].role")
    calls = message.get("tool_calls", message.get("toolCalls"))
    return Message(role, _text(content, number), len(calls) if isinstance(calls, list) else 0)


def _text(content: Any, number: int) -> str:
    """The text of a content, which some clients send in parts, and omit beside tool calls."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "\n".join(text for text in texts if isinstance(text, str))
    raise InvalidInput(
        "give each message a text as its 'content'", field=f"messages[{number}].content"
    )
