"""Which files of a workspace belong to a memory, and two versions of one made into one."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

import msgspec

# Of what a path begins with; the rest of a workspace is not the memory's.
FOLDER: Final = "memory"
LARGEST: Final = 262_144
LONGEST_PATH: Final = 1_000
_LONGEST_NAME: Final = 255
# A copy's name still has to fit once more is put before its ending.
_SPARE: Final = 80
_ENDINGS: Final = frozenset({".md", ".markdown", ".txt", ".jsonl"})
_LINES: Final = ".jsonl"


class Joined(msgspec.Struct, frozen=True):
    """What became of two versions of a file.

    Attributes:
        content: what the file says from here on.
        other: a version that found no place in it, and has to be kept beside it.
    """

    content: str
    other: str | None = None


def belongs(path: str) -> bool:
    """Whether a file with this path is one of the memory's: a text below `memory/`, in view.

    Hidden files are other programs' affairs, and a path that leads out of the folder is nobody's.
    """
    first, *rest = path.split("/")
    if first != FOLDER or not rest or len(path.encode(errors="replace")) > LONGEST_PATH:
        return False
    # A name with a dot in front is hidden; so are "." and "..".
    plain = all(
        name and not name.startswith(".") and len(name.encode(errors="replace")) <= _LONGEST_NAME
        for name in rest
    )
    printable = not any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in path)
    return plain and printable and PurePosixPath(path).suffix.lower() in _ENDINGS


def join(path: str, base: str | None, mine: str, theirs: str) -> Joined:
    """Two versions of one file, so that nothing either says is lost.

    What both have only added to is added up, and changes in different places are both made. Of
    a log with a line for each entry no line is lost. Where the two contradict each other theirs
    stays, and mine is the other.

    Args:
        path: of the file.
        base: what both were made from, if that is known.
        mine: the version that was written here.
        theirs: the other; where both have added something at one place, its part comes first.
    """
    if mine == base or (theirs != base and theirs.startswith(mine)):
        return Joined(theirs)
    if theirs == base or mine.startswith(theirs):
        return Joined(mine)
    if base is not None:
        both = _both_changes(_lines(base), _lines(mine), _lines(theirs))
        if both is not None:
            return Joined("".join(both))
    if PurePosixPath(path).suffix.lower() == _LINES:
        return Joined(_all_lines(mine, theirs))
    return Joined(theirs, mine)


def copy_path(path: str, word: str, taken: frozenset[str]) -> str:
    """A name beside `path` that is free, and tells what it is: `note.conflict-<word>.md`."""
    file = PurePosixPath(path)
    stem = _shortened(file.stem, _LONGEST_NAME - _SPARE)
    for number in range(1, len(taken) + 2):
        again = f"-{number}" if number > 1 else ""
        found = str(file.with_name(f"{stem}.conflict-{word}{again}{file.suffix}"))
        if found not in taken:
            return found
    raise AssertionError("more names than there are files")


def _both_changes(base: list[str], mine: list[str], theirs: list[str]) -> list[str] | None:
    """The base with the one stretch changed that each has changed; None: the two overlap.

    At the same place what was added there comes first that is theirs.
    """
    begin, end = _changed(base, mine)
    other_begin, other_end = _changed(base, theirs)
    ours = mine[begin : len(mine) - (len(base) - end)]
    others = theirs[other_begin : len(theirs) - (len(base) - other_end)]
    if other_end <= begin:
        return [*base[:other_begin], *others, *base[other_end:begin], *ours, *base[end:]]
    if end <= other_begin:
        return [*base[:begin], *ours, *base[end:other_begin], *others, *base[other_end:]]
    return None


def _changed(base: list[str], new: list[str]) -> tuple[int, int]:
    """The stretch of the base outside of which the new version is the same."""
    most = min(len(base), len(new))
    begin = 0
    while begin < most and base[begin] == new[begin]:
        begin += 1
    same = 0
    while same < most - begin and base[-1 - same] == new[-1 - same]:
        same += 1
    return begin, len(base) - same


def _all_lines(mine: str, theirs: str) -> str:
    known = _lines(theirs)
    there = set(known)
    return "".join([*known, *(line for line in _lines(mine) if line not in there)])


def _lines(text: str) -> list[str]:
    """The lines with their ends; the last gets one, so that another can follow it."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    return lines


def _shortened(name: str, most: int) -> str:
    return name.encode()[:most].decode(errors="ignore")
