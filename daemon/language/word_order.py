"""Whether two sequences of the same words say the same in another order."""

from __future__ import annotations

from typing import Final

import msgspec

from .vocabulary import words

# Words of a subject or a verb, and of a circumstance.
_LONGEST_VALUE: Final = 4
_LONGEST_MOVED: Final = 8
# Words of a statement; its places are compared in time that grows with their square.
_LONGEST_STATEMENT: Final = 200


class Difference(msgspec.Struct, frozen=True):
    """The common beginning and end of two word sequences, and the different middle of each."""

    before: tuple[str, ...]
    older: tuple[str, ...]
    newer: tuple[str, ...]
    after: tuple[str, ...]


def difference(older: tuple[str, ...], newer: tuple[str, ...]) -> Difference:
    """The one stretch in which two sequences differ, without their common ends."""
    shorter = min(len(older), len(newer))
    start = 0
    while start < shorter and older[start] == newer[start]:
        start += 1
    end = 0
    while end < shorter - start and older[-1 - end] == newer[-1 - end]:
        end += 1
    stop, other_stop = len(older) - end, len(newer) - end
    return Difference(older[:start], older[start:stop], newer[start:other_stop], older[stop:])


def circumstance_moved(first: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether only "on Monday" stands elsewhere, or two such changed places at the end."""
    return _moved(first, other) or _moved(other, first) or _swapped(first, other)


def equals_swapped(first: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether the two sides of an "is", or what an "and" joins, changed places."""
    return _turned(first) == other or _paired(first) == _paired(other)


def _moved(plain: tuple[str, ...], moved: tuple[str, ...]) -> bool:
    """Whether only a circumstance such as "on Monday" moved to the front.

    In German the verb is then followed by what it followed. False for long texts.
    """
    begins = words("movable", "movable_alone", "relative_days")
    if not 0 < len(moved) <= _LONGEST_STATEMENT or moved[0] not in begins:
        return False
    for length in range(1, min(len(moved), _LONGEST_MOVED + 1)):
        block, rest = moved[:length], moved[length:]
        # "After" and "instead of" move with what follows them.
        if block[-1] == "of" or block[-1] in words("movable"):
            continue
        for at in range(1, len(plain) - length + 1):
            if plain[at : at + length] != block:
                continue
            left = plain[:at] + plain[at + length :]
            # Subject and verb may have changed places.
            if left == rest or any(
                left[:cut] + left[cut + 1 :] == rest[1:] and left[cut] == rest[0]
                for cut in range(1, min(len(left), _LONGEST_VALUE + 1))
            ):
                return True
    return False


def _swapped(first: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two circumstances at the end changed places: "on 12 May at 8:45"."""
    parts = difference(first, other)
    circumstances = words("movable")
    if len(parts.older) > _LONGEST_STATEMENT:
        return False
    for at in range(1, len(parts.older)):
        first, second = parts.older[:at], parts.older[at:]
        if not parts.after and parts.newer == second + first and second[0] in circumstances:
            return first[0] in circumstances
    return False


def _turned(gist: tuple[str, ...]) -> tuple[str, ...]:
    """The words of "teal is my favourite" as in "my favourite is teal"; else unchanged."""
    if gist.count("is") != 1 or any(word in words("movable") for word in gist):
        return gist
    at = gist.index("is")
    return (*gist[at + 1 :], "is", *gist[:at])


def _paired(gist: tuple[str, ...]) -> tuple[str, ...]:
    """The words with the two around the only "and" in the order of the alphabet."""
    joined = [at for at, word in enumerate(gist) if word in {"and", "und"}]
    if len(joined) != 1 or not 0 < joined[0] < len(gist) - 1:
        return gist
    at = joined[0]
    first, second = sorted((gist[at - 1], gist[at + 1]))
    return (*gist[: at - 1], first, "and", second, *gist[at + 2 :])
