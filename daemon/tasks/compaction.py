"""Shortens a conversation to a model's window, by profClaw's rules.

Long results of tools are cut first. If that is not enough, the system's messages, the latest
messages and those with the highest score stay; one message summarises the rest. The size of the
summary is the largest of Tiny Claw's tiers that fits: 200, 1,000 or 3,000 tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..language.extraction.statements import SpokenSentence, spoken, worth_keeping
from ..language.sentences import printable
from ..language.speech import Role, Utterance, role_of
from ..memory.messages import (
    OVERHEAD,
    Message,
    conversation_tokens,
    estimated_tokens,
    message_tokens,
    retention_score,
    units_of,
    with_cut_result,
)

TIERS: Final = (200, 1_000, 3_000)
_TITLE: Final = "[CONVERSATION SUMMARY - {} messages compacted]"
_TITLE_READ: Final = re.compile(r"\[CONVERSATION SUMMARY - (\d{1,9}) messages compacted\]")
# Only the beginning and the end of a long message are read.
_HEAD_CHARS: Final = 3_000
_TAIL_CHARS: Final = 1_000
_TOOL_CHARS: Final = 600
_LINE_CHARS: Final = 300
_AGGRESSION: Final = 0.5
# Fewer say nothing: "ok", "thanks a lot".
_TELLING_WORDS: Final = 4
_SHOWN: Final[dict[Role, str]] = {"user": "User", "agent": "Agent", "tool": "Tool"}


def summary_size(room: int) -> int:
    """The tokens of the largest tier that takes at most half of `room`, or of the smallest."""
    return max((tier for tier in TIERS if 2 * tier <= room), default=TIERS[0])


def is_summary(content: str) -> bool:
    """Whether a message is a summary of this module."""
    return _TITLE_READ.match(content) is not None


def summary_of(messages: Sequence[tuple[str, str]], room: int) -> str:
    """A summary in at most `room` tokens and at most the largest tier.

    It has the statements that say most, in order, each with its speaker, and the lines of earlier
    summaries among the messages. In the room that is left, other messages have the sentence of
    theirs that says most, the user's first: there is always something to read. `messages` are role
    and text, oldest first; `room` is the number of available tokens; at least those of the smallest
    tier are used.
    """
    earlier, before = _earlier(messages)
    fresh = [pair for pair in messages if not is_summary(pair[1])]
    sentences = spoken(tuple(map(_utterance, fresh)), _AGGRESSION)
    statements = worth_keeping(sentences, _AGGRESSION)
    ranked = [
        *sorted(statements, key=lambda item: -item.worth),
        *_others(fresh, sentences, statements),
    ]
    title = _TITLE.format(before + len(fresh))
    left = min(max(room, TIERS[0]), TIERS[-1]) - estimated_tokens(title)
    lines, left = _fitting(earlier, left // 2 if statements else left, left)
    chosen: list[SpokenSentence] = []
    for statement in ranked:
        cost = estimated_tokens(_line(statement)) + 1
        if cost <= left:
            chosen.append(statement)
            left -= cost
    chosen.sort(key=lambda statement: statement.place)
    return "\n".join([title, *lines, *map(_line, chosen)])


def _others(
    fresh: Sequence[tuple[str, str]],
    sentences: Sequence[SpokenSentence],
    statements: Sequence[SpokenSentence],
) -> list[SpokenSentence]:
    """For each message without a statement what says most in it, the user's first."""
    covered = {statement.place for statement in statements}
    best: dict[int, SpokenSentence] = {}
    for sentence in sentences:
        if sentence.place not in covered and (
            sentence.place not in best or sentence.worth > best[sentence.place].worth
        ):
            best[sentence.place] = sentence
    for place, pair in enumerate(fresh):
        # Code, or a list, has no sentences.
        if (
            place not in covered
            and place not in best
            and (text := printable(pair[1][:_LINE_CHARS]))
        ):
            role = role_of(pair[0])
            best[place] = SpokenSentence(text, text, role, "", frozenset(), 0.0, place)
    known = {statement.text for statement in statements}
    new = {item.text: item for item in reversed(best.values()) if item.text not in known}
    telling = [message for message in new.values() if len(message.text.split()) >= _TELLING_WORDS]
    few = [] if statements or telling else new.values()
    return sorted(
        (*telling, *few),
        key=lambda message: (message.role != "user", -message.worth, message.place),
    )


def _earlier(summaries: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """The lines of earlier summaries, and the number of messages that they summarise."""
    lines: list[str] = []
    messages = 0
    for _, text in summaries:
        title = _TITLE_READ.match(text)
        if title:
            messages += int(title[1])
            lines += [line for line in text.splitlines()[1:] if line.strip()]
    return lines, messages


def _fitting(lines: Sequence[str], most: int, left: int) -> tuple[list[str], int]:
    """The latest lines that fit into `most` tokens, and `left` without their tokens."""
    fitting: list[str] = []
    used = 0
    for line in reversed(lines):
        cost = estimated_tokens(line) + 1
        if used + cost > most:
            break
        used += cost
        fitting.insert(0, line)
    return fitting, left - used


def _utterance(pair: tuple[str, str]) -> Utterance:
    role = role_of(pair[0])
    most = _TOOL_CHARS if role == "tool" else _HEAD_CHARS
    text = printable(pair[1][:most])
    if role != "tool" and len(pair[1]) > _HEAD_CHARS:
        text += "\n\n" + printable(pair[1][max(_HEAD_CHARS, len(pair[1]) - _TAIL_CHARS) :])
    return Utterance(role, "", text)


def _line(statement: SpokenSentence) -> str:
    text = " ".join(statement.text.split())
    if len(text) > _LINE_CHARS:
        text = text[:_LINE_CHARS].rsplit(" ", 1)[0] + " …"
    who = _SHOWN.get(statement.role, "")
    return f"- {text}" if not who or text.startswith(who) else f"- {who}: {text}"


WINDOW: Final = 128_000


class CompactionLimits(msgspec.Struct, frozen=True):
    """When to compact, and how far."""

    threshold: float = 0.7  # the share of the window above which a conversation is compacted
    target: float = 0.5  # the share of the window that it is compacted to
    recent: int = 6  # the number of latest messages that always stay
    least: int = 10  # the minimum number of messages of a conversation that is compacted
    tool_tokens: int = 2_000  # longer results of tools are cut to this number of tokens


LIMITS: Final = CompactionLimits()


class Compacted(msgspec.Struct, frozen=True):
    """The shortened conversation."""

    messages: tuple[Message, ...]  # the messages for the model from now on
    origins: tuple[int | None, ...]  # for each message its former index, None for the summary
    summary: str | None  # of the removed messages; None if no message was removed
    # The number of messages before and after.
    original_count: int
    compacted_count: int
    tokens_reduced: int  # the number of tokens saved
    was_compacted: bool  # whether anything changed
    tool_results_truncated: int  # the number of tool results that were cut
    room: int = 0  # the tokens available for the summary


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
    Compacting again includes the earlier summary in the new one. `messages` are oldest first;
    `window` is the number of tokens that the model can read; the limits are profClaw's by default.
    """
    if not needs_compaction(messages, window, limits):
        return _result(messages, messages, range(len(messages)), None, 0)
    cut = [with_cut_result(message, limits.tool_tokens) for message in messages]
    truncated = sum(message != other for message, other in zip(cut, messages, strict=True))
    target = int(limits.target * window)
    if conversation_tokens(cut) <= target:
        return _result(messages, cut, range(len(cut)), None, truncated)
    remaining, room = _chosen(cut, target, limits.recent)
    gone = [message for place, message in enumerate(cut) if place not in remaining]
    summary = summary_of([(message.role, message.content) for message in gone], room)
    compacted = _result(messages, cut, sorted(remaining), summary, truncated)
    if compacted.tokens_reduced > 0:
        return replace(compacted, room=room)
    return _result(messages, messages, range(len(messages)), None, 0)


def _chosen(messages: Sequence[Message], target: int, recent: int) -> tuple[set[int], int]:
    units = units_of(messages)
    first_recent = max(0, len(messages) - recent)
    scores = [max(retention_score(messages[place]) for place in unit) for unit in units]
    costs = [sum(message_tokens(messages[place]) for place in unit) for unit in units]
    chosen: set[int] = set()
    room = target - OVERHEAD
    for unit, cost in zip(units, costs, strict=True):
        held = messages[unit[0]].role == "system" and not is_summary(messages[unit[0]].content)
        if held or unit[-1] >= first_recent:
            chosen.update(unit)
            room -= cost
    reserved = summary_size(room)
    for index in sorted(range(len(units)), key=lambda index: (-scores[index], -index)):
        summed_up = is_summary(messages[units[index][0]].content)
        if units[index][0] in chosen or summed_up or costs[index] > room - reserved:
            continue
        chosen.update(units[index])
        room -= costs[index]
    return chosen, max(room, reserved)


def _result(
    before: Sequence[Message],
    after: Sequence[Message],
    places: Sequence[int],
    summary: str | None,
    truncated: int,
) -> Compacted:
    origins: list[int | None] = list(places)
    messages = [after[place] for place in places]
    if summary is not None:
        at = next(
            (i for i, message in enumerate(messages) if message.role != "system"), len(messages)
        )
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
