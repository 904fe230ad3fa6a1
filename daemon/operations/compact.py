"""Shortening a conversation to a model's window, as profClaw does it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET

from ..errors import InvalidInput
from ..memory.messages import Message, conversation_tokens
from ..shapes.compact import CompactBody, CompactedMessages
from ..thinking.compaction import WINDOW, Compacted, CompactionLimits, needs_compaction
from ..thinking.model_or_rules import AskOptions
from ..thinking.model_summary import shorten as compact
from .operation import Operation
from .scope import Scope

_MOST: Final = 10_000


@Operation("POST", "/api/compact", agent=False)
async def shorten(scope: Scope, body: CompactBody) -> CompactedMessages:
    """Shorten a conversation to a model's window. Nothing is stored."""
    if not 0 < len(body.messages) <= _MOST:
        raise InvalidInput(
            f"give 1 to {_MOST} messages (got {len(body.messages)})", field="messages"
        )
    if body.target > body.threshold:
        raise InvalidInput("give a 'target' below the 'threshold'", field="target")
    read = [_read(message, number) for number, message in enumerate(body.messages)]
    limits = CompactionLimits(
        threshold=body.threshold,
        target=body.target,
        recent=body.preserve_recent,
        least=body.min_messages,
        tool_tokens=body.max_tool_result_tokens,
    )
    if body.llm_endpoint is not None:
        # A reader may not let the daemon call other servers.
        scope.require("write")
    window = await _window(scope, body)
    answer = await asyncio.to_thread(_measured, window, read, limits)
    if not body.check:
        options = AskOptions(model=body.llm, endpoint=body.llm_endpoint)
        derived = await compact(read, window, limits, scope.daemon.thinking.model, options)
        compacted = derived.value
        answer.messages = _messages(body.messages, read, compacted)
        answer.summary = UNSET if compacted.summary is None else compacted.summary
        answer.compacted_count = compacted.compacted_count
        answer.tokens_reduced = compacted.tokens_reduced
        answer.was_compacted = compacted.was_compacted
        answer.tool_results_truncated = compacted.tool_results_truncated or UNSET
        if compacted.summary is not None:
            answer.mode = derived.way
            answer.why = derived.why or UNSET
            answer.llm = derived.spent or UNSET
    return answer


async def _window(scope: Scope, body: CompactBody) -> int:
    if body.window is not None:
        return body.window
    known = None if body.model is None else await scope.daemon.model.window(body.model)
    return known or WINDOW


def _measured(window: int, read: Sequence[Message], limits: CompactionLimits) -> CompactedMessages:
    tokens = conversation_tokens(read)
    return CompactedMessages(
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
    given: Sequence[dict[str, Any]], read: Sequence[Message], compacted: Compacted
) -> list[dict[str, Any]]:
    """The messages that stay, unchanged except for a content that was cut."""
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
