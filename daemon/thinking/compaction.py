"""Shortens a conversation to a model's window, by profClaw's rules.

Long results of tools are cut first. If that is not enough, the system's messages, the latest
messages and those with the highest score stay; one message summarises the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..memory.messages import (
    OVERHEAD,
    Message,
    conversation_tokens,
    message_tokens,
    retention_score,
    units_of,
    with_cut_result,
)
from .summing import is_summary, summary_of, summary_size

WINDOW: Final = 128_000


class CompactionLimits(msgspec.Struct, frozen=True):
    """When to compact, and how far.

    Attributes:
        threshold: the share of the window above which a conversation is compacted.
        target: the share of the window that it is compacted to.
        recent: the number of latest messages that always stay.
        least: the minimum number of messages of a conversation that is compacted.
        tool_tokens: longer results of tools are cut to this number of tokens.
    """

    threshold: float = 0.7
    target: float = 0.5
    recent: int = 6
    least: int = 10
    tool_tokens: int = 2_000


LIMITS: Final = CompactionLimits()


class Compacted(msgspec.Struct, frozen=True):
    """The shortened conversation.

    Attributes:
        messages: the messages for the model from now on.
        origins: for each message its former index, None for the summary.
        summary: of the removed messages; None if no message was removed.
        original_count, compacted_count: the number of messages before and after.
        tokens_reduced: the number of tokens saved.
        was_compacted: whether anything changed.
        tool_results_truncated: the number of tool results that were cut.
        room: the tokens available for the summary.
    """

    messages: tuple[Message, ...]
    origins: tuple[int | None, ...]
    summary: str | None
    original_count: int
    compacted_count: int
    tokens_reduced: int
    was_compacted: bool
    tool_results_truncated: int
    room: int = 0


def needs_compaction(
    messages: Sequence[Message],
    window: int = WINDOW,
    limits: CompactionLimits = LIMITS,
) -> bool:
    """Whether there are at least 10 messages, and more tokens than 70 % of the window."""
    if len(messages) < limits.least:
        return False
    return conversation_tokens(messages) > limits.threshold * window


def compact(
    messages: Sequence[Message],
    window: int = WINDOW,
    limits: CompactionLimits = LIMITS,
) -> Compacted:
    """`messages` within half of the window, if they need it.

    The system's messages and the last 6 always stay, and a call of a tool stays with its results,
    even if they alone exceed the target. Nothing changes if the result would not be shorter.
    Compacting again includes the earlier summary in the new one.

    Args:
        messages: the conversation, oldest first.
        window: the tokens that the model can read.
        limits: profClaw's numbers by default.
    """
    if not needs_compaction(messages, window, limits):
        return _result(messages, messages, range(len(messages)), None, 0)
    cut = [with_cut_result(message, limits.tool_tokens) for message in messages]
    truncated = sum(one != other for one, other in zip(cut, messages, strict=True))
    target = int(limits.target * window)
    if conversation_tokens(cut) <= target:
        return _result(messages, cut, range(len(cut)), None, truncated)
    kept, room = _chosen(cut, target, limits.recent)
    gone = [message for place, message in enumerate(cut) if place not in kept]
    summary = summary_of([(message.role, message.content) for message in gone], room)
    compacted = _result(messages, cut, sorted(kept), summary, truncated)
    if compacted.tokens_reduced > 0:
        return replace(compacted, room=room)
    return _result(messages, messages, range(len(messages)), None, 0)


def _chosen(messages: Sequence[Message], target: int, recent: int) -> tuple[set[int], int]:
    """The indexes of the messages that stay, and the tokens left for a summary of the rest."""
    units = units_of(messages)
    first_recent = max(0, len(messages) - recent)
    scores = [max(retention_score(messages[place]) for place in unit) for unit in units]
    costs = [sum(message_tokens(messages[place]) for place in unit) for unit in units]
    kept: set[int] = set()
    room = target - OVERHEAD
    for unit, cost in zip(units, costs, strict=True):
        held = messages[unit[0]].role == "system" and not is_summary(messages[unit[0]].content)
        if held or unit[-1] >= first_recent:
            kept.update(unit)
            room -= cost
    reserved = summary_size(room)
    for index in sorted(range(len(units)), key=lambda index: (-scores[index], -index)):
        summed_up = is_summary(messages[units[index][0]].content)
        if units[index][0] in kept or summed_up or costs[index] > room - reserved:
            continue
        kept.update(units[index])
        room -= costs[index]
    return kept, max(room, reserved)


def _result(
    before: Sequence[Message],
    after: Sequence[Message],
    kept: Sequence[int],
    summary: str | None,
    truncated: int,
) -> Compacted:
    origins: list[int | None] = list(kept)
    messages = [after[place] for place in kept]
    if summary is not None:
        at = next((i for i, one in enumerate(messages) if one.role != "system"), len(messages))
        origins.insert(at, None)
        messages.insert(at, Message("system", summary))
    reduced = conversation_tokens(before) - conversation_tokens(messages)
    return Compacted(
        messages=tuple(messages),
        origins=tuple(origins),
        summary=summary,
        original_count=len(before),
        compacted_count=len(messages),
        tokens_reduced=reduced,
        was_compacted=summary is not None or truncated > 0,
        tool_results_truncated=truncated,
    )
