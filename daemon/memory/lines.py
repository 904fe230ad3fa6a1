"""Three-way merge of texts by lines."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias

import msgspec

_Pair: TypeAlias = tuple[int, int]
# Above this product of lengths, two stretches without a common anchor count as different, since
# the comparison is quadratic.
_SMALL: Final = 2_500


class Joined(msgspec.Struct, frozen=True):
    """Two versions of a text, merged."""

    text: str
    # Whether both versions replaced the same lines. The text then has the lines of the later
    # version, and the earlier version should be kept separately.
    contradicts: bool = False


class _Hunk(msgspec.Struct, frozen=True, order=True):
    """Lines `begin` to `end` of the base, replaced by `added` in one version."""

    begin: int
    end: int
    is_later: bool
    added: tuple[str, ...]


def join(base: str, earlier: str, later: str, *, log: bool = False) -> Joined:
    """Merge two versions of `base`, without losing a line that either version added.

    Lines that one version removed and the other kept are removed. Of lines that both added at the
    same place, those of the earlier version come first, and common lines appear once. The result is
    the same on all devices. If the two contradict, the lines of `later` win; in a `log` each line
    is a separate entry: both versions of a line stay then, and nothing contradicts.
    """
    if earlier in (base, later):
        return Joined(later)
    if later == base:
        return Joined(earlier)
    was = _lines(base)
    hunks = sorted([*_hunks(was, _lines(earlier), False), *_hunks(was, _lines(later), True)])
    joined: list[str] = []
    contradicts = False
    done = 0
    for group in _groups(hunks):
        joined += was[done : group[0].begin]
        for part in [group] if _contains(group) else _groups(group, overlapping=True):
            first, second = _added(part)
            clash = not _contains(part) and _share_removed(part)
            joined += second if clash and not log else _both(first, second)
            contradicts |= clash and not log
        done = max(hunk.end for hunk in group)
    return Joined("".join([*joined, *was[done:]]), contradicts)


def _contains(group: Sequence[_Hunk]) -> bool:
    """Whether one version added everything that the other added."""
    first, second = _added(group)
    return len(_matches(first, second)) == min(len(first), len(second))


def _added(group: Sequence[_Hunk]) -> tuple[list[str], list[str]]:
    first = [line for hunk in group if not hunk.is_later for line in hunk.added]
    return first, [line for hunk in group if hunk.is_later for line in hunk.added]


def _share_removed(group: Sequence[_Hunk]) -> bool:
    return any(
        max(hunk.begin, two.begin) < min(hunk.end, two.end)
        for hunk in group
        for two in group
        if hunk.is_later < two.is_later
    )


def _both(first: Sequence[str], second: Sequence[str]) -> list[str]:
    joined: list[str] = []
    begin = other = 0
    for here, there in [*_matches(first, second), (len(first), len(second))]:
        joined += [*first[begin:here], *second[other:there], *first[here : here + 1]]
        begin, other = here + 1, there + 1
    return joined


def _groups(hunks: Sequence[_Hunk], *, overlapping: bool = False) -> Iterator[list[_Hunk]]:
    """Groups of hunks that touch, or only of those that overlap or insert at the same place."""
    group: list[_Hunk] = []
    begin = end = 0
    for hunk in hunks:
        touches = hunk.begin < end or (hunk.begin == end and (not overlapping or hunk.end == begin))
        if group and not touches:
            yield group
            group = []
        if not group:
            begin = end = hunk.begin
        group.append(hunk)
        end = max(end, hunk.end)
    if group:
        yield group


def _hunks(base: Sequence[str], new: Sequence[str], is_later: bool) -> Iterator[_Hunk]:
    begin = other = 0
    for here, there in [*_matches(base, new), (len(base), len(new))]:
        if begin < here or other < there:
            yield _Hunk(begin, here, is_later, tuple(new[other:there]))
        begin, other = here + 1, there + 1


def _matches(first: Sequence[str], second: Sequence[str]) -> list[_Pair]:
    """Pairs of positions of equal lines, both ascending.

    Equal lines at both ends match; between them, lines that each side has once are anchors
    (the longest ascending run of them), and short stretches between anchors are compared in full.
    """
    begin, end, other_end = _trimmed(first, second, 0, len(first), 0, len(second))
    matches = [(at, at) for at in range(begin)]
    before = (begin, begin)
    for anchor in [*_anchors(first, second, (begin, end), (begin, other_end)), (end, other_end)]:
        matches += _between(first, second, before, anchor)
        if anchor != (end, other_end):
            matches.append(anchor)
        before = (anchor[0] + 1, anchor[1] + 1)
    matches += [(end + at, other_end + at) for at in range(len(first) - end)]
    return matches


def _trimmed(
    first: Sequence[str], second: Sequence[str], begin: int, end: int, other: int, other_end: int
) -> tuple[int, int, int]:
    shift = other - begin
    while begin < end and begin + shift < other_end and first[begin] == second[begin + shift]:
        begin += 1
    while begin < end and begin + shift < other_end and first[end - 1] == second[other_end - 1]:
        end, other_end = end - 1, other_end - 1
    return begin, end, other_end


def _anchors(first: Sequence[str], second: Sequence[str], here: _Pair, there: _Pair) -> list[_Pair]:
    counts, others = Counter(first[slice(*here)]), Counter(second[slice(*there)])
    place = {second[at]: at for at in range(*there) if others[second[at]] == 1}
    pairs = [
        (at, place[first[at]])
        for at in range(*here)
        if counts[first[at]] == 1 and first[at] in place
    ]
    return _ascending(pairs)


def _ascending(pairs: Sequence[_Pair]) -> list[_Pair]:
    """The longest run of pairs whose second positions ascend too."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(tails, at)
        tails[length : length + 1] = [at]
        ends[length : length + 1] = [number]
        previous.append(ends[length - 1] if length else -1)
    run: list[_Pair] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        run.append(pairs[number])
        number = previous[number]
    return run[::-1]


def _between(
    first: Sequence[str], second: Sequence[str], before: _Pair, anchor: _Pair
) -> list[_Pair]:
    (begin, other), (end, other_end) = before, anchor
    low, high, other_high = _trimmed(first, second, begin, end, other, other_end)
    shift = other - begin
    result = [(at, at + shift) for at in range(begin, low)]
    if (high - low) * (other_high - low - shift) <= _SMALL:
        small = SequenceMatcher(
            None, first[low:high], second[low + shift : other_high], autojunk=False
        )
        for block in small.get_matching_blocks():
            result += [(low + block.a + at, low + shift + block.b + at) for at in range(block.size)]
    return result + [(high + at, other_high + at) for at in range(end - high)]


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    return lines
