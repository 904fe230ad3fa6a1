"""`/api/compact`: a conversation made to fit into a model's window again, as profClaw does it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..errors import InvalidInput
from ..memory.compaction import LIMITS, WINDOW, Compacted, Limits, compact, needs_compaction
from ..memory.messages import Message, conversation_tokens
from .calls import Call, Reply, Route

_MOST: Final = 10_000

Share = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class CompactBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The messages, the oldest first, each with a `role` and a `content` and whatever else.

    `window` is what the model can read, in tokens (four characters each, or two thirds of one of
    a script without blanks). Beyond `threshold` of it the messages are brought down to `target`;
    fewer than `min_messages` never are, the last `preserve_recent` always stay, and results of
    tools are cut to `max_tool_result_tokens`. `check` only tells whether it is time.
    """

    messages: tuple[dict[str, Any], ...]
    window: Annotated[int, Meta(ge=100, le=100_000_000)] = WINDOW
    threshold: Share = LIMITS.threshold
    target: Share = LIMITS.target
    preserve_recent: Count = LIMITS.recent
    min_messages: Count = LIMITS.least
    max_tool_result_tokens: Annotated[int, Meta(ge=50, le=1_000_000)] = LIMITS.tool_tokens
    check: bool = False


class CompactAnswer(msgspec.Struct, kw_only=True, rename="camel"):
    """The messages as they should go on, under profClaw's names.

    `needs_compaction`, which is spelt so, tells how it was before; `tokens` is how many there
    were, `summary` what is said of the messages that are gone.
    """

    messages: list[dict[str, Any]] | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    original_count: int
    compacted_count: int
    tokens_reduced: int
    was_compacted: bool
    tool_results_truncated: int | UnsetType = UNSET
    needs_compaction: bool = msgspec.field(name="needs_compaction")
    tokens: int
    window: int


async def shorten(call: Call) -> Reply:
    """Compact a conversation, if it needs it. Nothing is stored."""
    body = await call.body(CompactBody)
    if not 0 < len(body.messages) <= _MOST:
        raise InvalidInput(
            f"give 1 to {_MOST} messages (got {len(body.messages)})", field="messages"
        )
    if body.target > body.threshold:
        raise InvalidInput("give a 'target' below the 'threshold'", field="target")
    read = [_read(message, number) for number, message in enumerate(body.messages)]
    return Reply(await asyncio.to_thread(_answer, body, read))


def _answer(body: CompactBody, read: Sequence[Message]) -> CompactAnswer:
    limits = Limits(
        threshold=body.threshold,
        target=body.target,
        recent=body.preserve_recent,
        least=body.min_messages,
        tool_tokens=body.max_tool_result_tokens,
    )
    needed = needs_compaction(read, body.window, limits)
    answer = CompactAnswer(
        original_count=len(read),
        compacted_count=len(read),
        tokens_reduced=0,
        was_compacted=False,
        needs_compaction=needed,
        tokens=conversation_tokens(read),
        window=body.window,
    )
    if not body.check:
        compacted = compact(read, body.window, limits)
        answer.messages = _messages(body.messages, read, compacted)
        answer.summary = UNSET if compacted.summary is None else compacted.summary
        answer.compacted_count = compacted.compacted_count
        answer.tokens_reduced = compacted.tokens_reduced
        answer.was_compacted = compacted.was_compacted
        answer.tool_results_truncated = compacted.tool_results_truncated or UNSET
    return answer


def _messages(
    given: Sequence[dict[str, Any]], read: Sequence[Message], compacted: Compacted
) -> list[dict[str, Any]]:
    """The messages that stay as they were given, but for a content that was cut."""
    found: list[dict[str, Any]] = []
    for message, origin in zip(compacted.messages, compacted.origins, strict=True):
        if origin is None:
            found.append({"role": message.role, "content": message.content})
        elif message.content == read[origin].content:
            found.append(given[origin])
        else:
            found.append(given[origin] | {"content": message.content})
    return found


def _read(message: Mapping[str, Any], number: int) -> Message:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise InvalidInput("give each message a 'role'", field=f"messages[{number}].role")
    calls = message.get("tool_calls", message.get("toolCalls"))
    return Message(role, _text(content, number), len(calls) if isinstance(calls, list) else 0)


def _text(content: Any, number: int) -> str:
    """The text of a content, which some clients send in parts, and leave out beside calls."""
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


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/compact",
        handler=shorten,
        summary="Make a conversation fit into a model's window again",
        body=CompactBody,
        answer=CompactAnswer,
        agent=False,
    ),
)
