"""The messages of a conversation with a model: what each costs, and what it is worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

import msgspec
from msgspec.structs import replace

OVERHEAD: Final = 10
_CHARS_PER_TOKEN: Final = 4.0
_UNSPACED_CHARS_PER_TOKEN: Final = 1.5
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uff00-\uffef\U00020000-\U0003ffff]"
)
# The words of profClaw, which looks for the latter anywhere, also within words.
_IMPERATIVE: Final = re.compile(r"create|make|build|implement|fix|update|change", re.IGNORECASE)
_KEYWORDS: Final = re.compile(r"error|fail|success|complete|done|critical|important", re.IGNORECASE)
_TOOL_ROLES: Final = frozenset({"tool", "function"})

Count = Callable[[str], int]


def estimated_tokens(text: str) -> int:
    """An estimate without a tokenizer: a character of Chinese and its like is 1/1.5, others 1/4.

    Within a fifth of what most tokenizers count for English prose; code, and scripts such as
    Cyrillic, take up to half as many again.
    """
    unspaced = 0 if text.isascii() else len(_UNSPACED.findall(text))
    spaced = len(text) - unspaced
    return ceil(spaced / _CHARS_PER_TOKEN + unspaced / _UNSPACED_CHARS_PER_TOKEN)


class Message(msgspec.Struct, frozen=True):
    """A message of a conversation; `tool_calls` is how many tools an assistant calls in it."""

    role: str
    content: str
    tool_calls: int = 0


def message_tokens(message: Message, count: Count = estimated_tokens) -> int:
    """The tokens of a message, with 10 for its frame."""
    return count(message.content) + OVERHEAD


def conversation_tokens(messages: Sequence[Message], count: Count = estimated_tokens) -> int:
    """The tokens of all messages."""
    return sum(message_tokens(message, count) for message in messages)


def retention_score(message: Message, count: Count = estimated_tokens) -> int:
    """How much a message deserves to stay: profClaw's points, 100 for the system's."""
    if message.role == "system":
        return 100
    points = 0
    if message.role == "user":
        points = 20 + 10 * ("?" in message.content or "？" in message.content)
        points += 15 * (_IMPERATIVE.match(message.content) is not None)
    elif message.role == "assistant":
        points = 10 + 5 * message.tool_calls
    points += 10 * (_KEYWORDS.search(message.content) is not None)
    tokens = count(message.content)
    return points + 5 * (tokens > 100) + 10 * (tokens > 500)


def units_of(messages: Sequence[Message]) -> list[list[int]]:
    """The places of messages that belong together: a call of tools and the results after it."""
    units: list[list[int]] = []
    for place, message in enumerate(messages):
        if message.role in _TOOL_ROLES and units:
            units[-1].append(place)
        else:
            units.append([place])
    return units


def with_cut_result(message: Message, most: int, count: Count = estimated_tokens) -> Message:
    """`message`; a tool's result of more than `most` tokens as its two ends and a note between."""
    tokens = count(message.content)
    if message.role not in _TOOL_ROLES or tokens <= most:
        return message
    share = max(0, most - 20) / tokens
    head = int(len(message.content) * share * 0.75)
    tail = int(len(message.content) * share * 0.25)
    end = message.content[len(message.content) - tail :]
    note = f"\n… [about {tokens - most} tokens of this result were cut] …\n"
    return replace(message, content=message.content[:head] + note + end)
