"""A summary of the messages that are removed from a conversation.

Its size is the largest of Tiny Claw's tiers that fits: 200, 1,000 or 3,000 tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..language.sentences import printable
from ..language.speech import Role, Utterance, role_of
from ..language.statements import SaidSentence, spoken, worth_keeping
from ..memory.messages import estimated_tokens

TIERS: Final = (200, 1_000, 3_000)
_TITLE: Final = "[CONVERSATION SUMMARY - {} messages compacted]"
_TITLE_READ: Final = re.compile(r"\[CONVERSATION SUMMARY - (\d{1,9}) messages compacted\]")
# Only the beginning and the end of a long message are read.
_HEAD_CHARS: Final = 3_000
_TAIL_CHARS: Final = 1_000
_TOOL_CHARS: Final = 600
_LINE_CHARS: Final = 300
_AGGRESSION: Final = 0.5
_SHOWN: Final[dict[Role, str]] = {"user": "User", "agent": "Agent", "tool": "Tool"}


def summary_size(room: int) -> int:
    """The tokens of the largest tier that takes at most half of `room`, or of the smallest."""
    return max((tier for tier in TIERS if 2 * tier <= room), default=TIERS[0])


def is_summary(content: str) -> bool:
    """Whether a message is a summary of this module."""
    return _TITLE_READ.match(content) is not None


def summary_of(said: Sequence[tuple[str, str]], room: int) -> str:
    """A summary in at most `room` tokens and at most the largest tier.

    It has the statements that say most, in order, each with its speaker, and the lines of earlier
    summaries among the messages.

    Args:
        said: role and text of each message, oldest first.
        room: the tokens available; at least those of the smallest tier are used.
    """
    earlier, before = _earlier(said)
    fresh = [pair for pair in said if not is_summary(pair[1])]
    statements = worth_keeping(spoken(tuple(map(_utterance, fresh)), _AGGRESSION), _AGGRESSION)
    ranked = sorted(range(len(statements)), key=lambda place: -statements[place].worth)
    title = _TITLE.format(before + len(fresh))
    left = min(max(room, TIERS[0]), TIERS[-1]) - estimated_tokens(title)
    kept, left = _fitting(earlier, left // 2 if statements else left, left)
    chosen: set[int] = set()
    lines = {place: _line(statements[place]) for place in ranked}
    for place in ranked:
        cost = estimated_tokens(lines[place]) + 1
        if cost <= left:
            chosen.add(place)
            left -= cost
    return "\n".join([title, *kept, *(lines[place] for place in sorted(chosen))])


def _earlier(said: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """The lines of earlier summaries, and the number of messages that they summarise."""
    lines: list[str] = []
    messages = 0
    for _, text in said:
        title = _TITLE_READ.match(text)
        if title:
            messages += int(title[1])
            lines += [line for line in text.splitlines()[1:] if line.strip()]
    return lines, messages


def _fitting(lines: Sequence[str], most: int, left: int) -> tuple[list[str], int]:
    """The latest lines that fit into `most` tokens, and `left` without their tokens."""
    kept: list[str] = []
    used = 0
    for line in reversed(lines):
        cost = estimated_tokens(line) + 1
        if used + cost > most:
            break
        used += cost
        kept.insert(0, line)
    return kept, left - used


def _utterance(pair: tuple[str, str]) -> Utterance:
    role = role_of(pair[0])
    most = _TOOL_CHARS if role == "tool" else _HEAD_CHARS
    text = printable(pair[1][:most])
    if role != "tool" and len(pair[1]) > _HEAD_CHARS:
        text += "\n\n" + printable(pair[1][max(_HEAD_CHARS, len(pair[1]) - _TAIL_CHARS) :])
    return Utterance(role, "", text)


def _line(statement: SaidSentence) -> str:
    text = " ".join(statement.text.split())
    if len(text) > _LINE_CHARS:
        text = text[:_LINE_CHARS].rsplit(" ", 1)[0] + " …"
    who = _SHOWN.get(statement.role, "")
    return f"- {text}" if not who or text.startswith(who) else f"- {who}: {text}"
