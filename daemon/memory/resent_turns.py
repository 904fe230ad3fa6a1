"""Recognises the stored turns at the beginning of a conversation that is sent again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

# The speaker and the text of a turn.
Spoken: TypeAlias = tuple[str, str]


def known_turns(stored: Sequence[Spoken | None], sent: Sequence[Spoken]) -> int:
    """The number of turns at the beginning of `sent` that are not new.

    Agents send the whole history with each turn, or what is left of it after its beginning was
    cut. So the turns sent begin with the last ones stored, or with all of them. A history may also
    have been changed: then the last two stored turns are in it, or it begins like the stored one
    and continues differently. What precedes a known turn is not new either. Anything else
    continues the conversation, whatever it repeats.

    Args:
        stored: the last stored turns, in their order; None is one that was forgotten, which any
            turn may have been.
        sent: the turns of a request, in their order.
    """
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
    return length if equal > 2 or equal == 2 < len(sent) else 0


def _common(stored: Sequence[Spoken | None], sent: Sequence[Spoken]) -> tuple[int, int]:
    """The number of turns with which both begin, and how many of these are not forgotten."""
    length = equal = 0
    for old, turn in zip(stored, sent, strict=False):
        if old is not None and old != turn:
            break
        length += 1
        equal += old is not None
    return length, equal
