"""Shortening a conversation to a model's window, as profClaw does it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET

from ..errors import InvalidInput
from ..memory.messages import Message, conversation_tokens
from ..shapes.compact import CompactBody, CompactedMessages
from ..thinking.compaction import Compacted, CompactionLimits, compact, needs_compaction
from .operation import operation
from .scope import Scope

_MOST: Final = 10_000


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
    answer = await asyncio.to_thread(_measured, body, read, limits)
    if not body.check:
        chars = sum(len(message.content) for message in read)
        rules = scope.daemon.thinking.model.rules
        compacted = await rules.run(chars, compact, read, body.window, limits)
        answer.messages = _messages(body.messages, read, compacted)
        answer.summary = UNSET if compacted.summary is None else compacted.summary
        answer.compacted_count = compacted.compacted_count
        answer.tokens_reduced = compacted.tokens_reduced
        answer.was_compacted = compacted.was_compacted
        answer.tool_results_truncated = compacted.tool_results_truncated or UNSET
    return answer


def _measured(
    body: CompactBody, read: Sequence[Message], limits: CompactionLimits
) -> CompactedMessages:
    return CompactedMessages(
        original_count=len(read),
        compacted_count=len(read),
        tokens_reduced=0,
        was_compacted=False,
        needs_compaction=needs_compaction(read, body.window, limits),
        tokens=conversation_tokens(read),
        window=body.window,
    )


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


OPERATIONS: Final = (operation("POST", "/api/compact", shorten, agent=False),)
