"""Whether two sequences of the same words say the same in another order."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile
from typing import Final

import msgspec

from .vocabulary import cue, words

# Words of a subject or a verb, and of a circumstance.
_LONGEST_VALUE: Final = 4
_LONGEST_MOVED: Final = 8
# Words of a statement; its places are compared in time that grows with their square.
_LONGEST_STATEMENT: Final = 200
# A preposition and two words, to which the next circumstance may belong.
_ATTACHED: Final = 3
# Numbers, and German adjectives.
_QUALIFIES: Final = re.compile(r"\d|e[nrsm]?$")


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
    """Whether only circumstances such as "on Monday" stand elsewhere.

    Not if another verb may be meant: "tell Ben to call on Monday", "on Monday tell Ben to call".
    """
    if cue("embedding").any_in(" ".join(first)):
        return False
    return _moved(first, other) or _moved(other, first) or _swapped(first, other)


def equals_swapped(
    first: tuple[str, ...], other: tuple[str, ...], texts: tuple[str, str], names: frozenset[str]
) -> bool:
    """Whether the two sides of an "is", or what an "and" joins, changed places.

    One side has to be definite in both texts: "bats are mammals" is not "mammals are bats". `names`
    are those of both.
    """
    if _turned(first) == other:
        return not _definite(texts[0]).isdisjoint(_definite(texts[1]))
    return _paired(first, names) == _paired(other, names)


def _definite(text: str) -> frozenset[str]:
    """The words behind "the", "my" or "Ann's"."""
    pairs = pairwise(("", *text.split()))
    return frozenset(
        word.rstrip(".,;:!")
        for before, word in pairs
        if before in words("definite") or before.endswith("'s")
    )


def _moved(plain: tuple[str, ...], moved: tuple[str, ...]) -> bool:
    """Whether only a circumstance such as "on Monday", or "on Monday at nine", moved to the front.

    In German the verb is then followed by what it followed. False for long texts.
    """
    opener = int(moved[0] in _binding())
    if not opener < len(moved) <= _LONGEST_STATEMENT or moved[opener] not in _openers():
        return False
    # "Not every morning" is not "every morning not".
    if moved[opener] in words("universal") and not _denials().isdisjoint(moved):
        return False
    for length in range(opener + 1, min(len(moved), _LONGEST_MOVED) + 1):
        block, rest = moved[:length], moved[length:]
        # "After" and "instead of" move with what follows them.
        if block[-1] == "of" or block[-1] in words("movable"):
            continue
        for blocks in {(block,), _times(block)}:
            if any(left == rest or _inverted(left, rest) for left in _without(plain, blocks)):
                return True
    return False


def _openers() -> frozenset[str]:
    return words("movable", "movable_alone", "relative_days")


def _times(block: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The times of a block such as "every morning at 9"; the whole block if it has other words."""
    starts = [at for at, word in enumerate(block) if word in _openers()]
    times = tuple(block[at:end] for at, end in pairwise([*starts, len(block)]))
    of_time = words("days", "weekdays", "dayparts", "months", "units", "relative_days")
    rest = (word for time in times for word in time[1:])
    is_time = starts[:1] == [0] and all(word in of_time or word[0].isdigit() for word in rest)
    return times if is_time else (block,)


def _without(
    sequence: tuple[str, ...], blocks: tuple[tuple[str, ...], ...]
) -> set[tuple[str, ...]]:
    """What may be left of a sequence without blocks that stand behind its beginning.

    Not if they may belong to the word before them: "not on Monday", "for the party on Monday". Of
    several blocks each has to stand there once.
    """
    lefts = {sequence}
    for block in blocks:
        length = len(block)
        lefts = {
            left[:at] + left[at + length :]
            for left in lefts
            for at in range(1, len(left) - length + 1)
            if left[at] == block[0]
            and left[at : at + length] == block
            and not _is_attached(left[max(0, at - _ATTACHED) : at])
        }
        if len(blocks) > 1 < len(lefts):
            return set()
    return lefts


def _is_attached(before: tuple[str, ...]) -> bool:
    """Whether what follows these words may belong to the last of them."""
    for at, word in enumerate(before):
        if word in words("attaching") and words("copulas", "was").isdisjoint(before[at:]):
            return True
    return before[-1] in _binding()


def _binding() -> frozenset[str]:
    """The words that belong to what follows them: "not on Monday", "only on Monday"."""
    return _denials() | words("only", "focusing")


def _denials() -> frozenset[str]:
    return words("negations", "joined_negations")


def _inverted(plain: tuple[str, ...], turned: tuple[str, ...]) -> bool:
    """Whether only subject and verb changed places."""
    length = 1 + sum(1 for _ in takewhile(words("proclitics").__contains__, turned))
    verb = turned[:length]
    if len(verb) < length or verb[-1] in _binding() or plain[0] in words("copulas"):
        return False
    return any(
        plain[cut : cut + length] == verb and verb + plain[:cut] + plain[cut + length :] == turned
        for cut in range(1, min(len(plain), _LONGEST_VALUE + 1))
    )


def _swapped(first: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two circumstances at the end changed places: "on 12 May at 8:45"."""
    parts = difference(first, other)
    circumstances = words("movable") - words("attaching")
    if parts.after or len(parts.older) > _LONGEST_STATEMENT:
        return False
    for at in range(1, len(parts.older)):
        first, second = parts.older[:at], parts.older[at:]
        if parts.newer == second + first and second[0] in circumstances:
            return first[0] in circumstances
    return False


def _turned(gist: tuple[str, ...]) -> tuple[str, ...]:
    """The words of "teal is my favourite" as in "my favourite is teal"; else unchanged."""
    if gist.count("is") != 1 or any(word in words("movable") for word in gist):
        return gist
    at = gist.index("is")
    return (*gist[at + 1 :], "is", *gist[:at])


def _paired(gist: tuple[str, ...], names: frozenset[str]) -> tuple[str, ...]:
    """The words with the two around the only "and" in the order of the alphabet.

    Only two at the beginning, or names at the end: "green tea and coffee" is not turned.
    """
    joined = [at for at, word in enumerate(gist) if word in {"and", "und"}]
    if len(joined) != 1 or not 0 < joined[0] < len(gist) - 1:
        return gist
    at = joined[0]
    first, second = pair = sorted((gist[at - 1], gist[at + 1]))
    if not names.isdisjoint(f"{word}'s" for word in pair):
        return gist
    ends = at + 2 == len(gist) and names.issuperset(pair) and not _QUALIFIES.search(gist[at - 2])
    if at > 1 and not ends:
        return gist
    return (*gist[: at - 1], first, "and", second, *gist[at + 2 :])
