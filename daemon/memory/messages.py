"""The messages of a conversation: their worth to a model, and which were sent before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from math import ceil
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from .similarity import fold

OVERHEAD: Final = 10
_CHARS_PER_TOKEN: Final = 4.0
_UNSPACED_CHARS_PER_TOKEN: Final = 1.5
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uff00-\uffef\U00020000-\U0003ffff]"
)
# profClaw's words; the latter also match within words.
_IMPERATIVE: Final = re.compile(r"create|make|build|implement|fix|update|change", re.IGNORECASE)
_KEYWORDS: Final = re.compile(r"error|fail|success|complete|done|critical|important", re.IGNORECASE)
_TOOL_ROLES: Final = frozenset({"tool", "function"})
# The types of the parts of a message that somebody says.
_SPOKEN: Final = frozenset({"text", "input_text", "output_text"})


def estimated_tokens(text: str) -> int:
    """An estimate without a tokenizer: 1/1.5 for a Chinese or similar character, 1/4 for others.

    Within 20 % of most tokenizers for English prose; code and scripts such as Cyrillic take up to
    50 % more.
    """
    unspaced = 0 if text.isascii() else len(_UNSPACED.findall(text))
    spaced = len(text) - unspaced
    return ceil(spaced / _CHARS_PER_TOKEN + unspaced / _UNSPACED_CHARS_PER_TOKEN)


class Message(msgspec.Struct, frozen=True):
    """A message of a conversation; `tool_calls` is the number of tools that an assistant calls."""

    role: str
    content: str
    tool_calls: int = 0


def spoken_text(content: Any) -> str:
    """What a message's content says: without images, thinking, tool calls and tool results."""
    texts = (
        part.get("text")
        if isinstance(part, Mapping)
        and str(part.get("type", "text")) in _SPOKEN
        and not part.get("thought")
        else part
        for part in (content if isinstance(content, list) else [content])
    )
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())


def message_tokens(message: Message) -> int:
    """The tokens of a message, with 10 for its frame."""
    return estimated_tokens(message.content) + OVERHEAD


def conversation_tokens(messages: Sequence[Message]) -> int:
    """The tokens of all messages."""
    return sum(map(message_tokens, messages))


def retention_score(message: Message) -> int:
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
    tokens = estimated_tokens(message.content)
    return points + 5 * (tokens > 100) + 10 * (tokens > 500)


def units_of(messages: Sequence[Message]) -> list[list[int]]:
    """The indexes of messages that belong together: a call of tools and its results."""
    units: list[list[int]] = []
    for place, message in enumerate(messages):
        if message.role in _TOOL_ROLES and units:
            units[-1].append(place)
        else:
            units.append([place])
    return units


def with_cut_result(message: Message, most: int) -> Message:
    """`message`; of a tool's result of more than `most` tokens only the beginning and the end."""
    tokens = estimated_tokens(message.content)
    if message.role not in _TOOL_ROLES or tokens <= most:
        return message
    share = max(0, most - 20) / tokens
    head = int(len(message.content) * share * 0.75)
    tail = int(len(message.content) * share * 0.25)
    end = message.content[len(message.content) - tail :]
    note = f"\n… [about {tokens - most} tokens of this result were cut] …\n"
    return replace(message, content=message.content[:head] + note + end)


# So many turns in a row may be said twice.
_ACCIDENT: Final = 3
# The speaker and the text of a turn.
Spoken: TypeAlias = tuple[str, str]


def known_turns(stored: Sequence[Spoken | None], sent: Sequence[Spoken]) -> int:
    """The number of turns at the beginning of `sent` that are not new.

    Agents send the whole history with each turn, or what is left of it after its beginning was cut.
    So the turns sent begin with the last ones stored, or with all of them. A history may also have
    been changed: then the last two stored turns are in it, or it begins like the stored one, or has
    four turns in a row of it, and continues differently. What precedes a known turn is not new
    either. Anything else continues the conversation, whatever it repeats. Both are in their order;
    a stored turn that is None was forgotten, and may have been any turn. Case, blanks and forms of
    the same letter do not matter.
    """
    return _known([turn and _folded(turn) for turn in stored], [*map(_folded, sent)])


def _folded(turn: Spoken) -> Spoken:
    return turn[0], fold(turn[1])


def _known(stored: Sequence[Spoken | None], sent: Sequence[Spoken]) -> int:
    for count in range(min(len(stored), len(sent)), 0, -1):
        length, equal = _common(stored[-count:], sent)
        if equal and length == count:
            return count
    newest_first = stored[::-1]
    most, known = 1, 0
    for end in range(1, len(sent)):
        _, equal = _common(newest_first, sent[end::-1])
        if equal > most:
            most, known = equal, end + 1
    if known:
        return known
    length, equal = _common(stored, sent)
    # The first exchange alone, such as "go on" and "done", may well occur twice.
    if equal < 2 or equal == 2 == len(sent):
        at, begin, size = SequenceMatcher(None, stored, sent, autojunk=False).find_longest_match()
        if size <= _ACCIDENT:
            return 0
        length = begin + size
        stored = stored[at + size :]
    else:
        stored = stored[length:]
    # A change that was sent before is stored behind what it replaced.
    for turn in stored:
        length += length < len(sent) and turn == sent[length]
    return length


def _common(stored: Sequence[Spoken | None], sent: Sequence[Spoken]) -> tuple[int, int]:
    """The number of turns with which both begin, and how many of these are not forgotten."""
    length = equal = 0
    for old, turn in zip(stored, sent, strict=False):
        if old is not None and old != turn:
            break
        length += 1
        equal += old is not None
    return length, equal
