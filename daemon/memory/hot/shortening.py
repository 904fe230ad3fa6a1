"""Cuts long texts inside JSON values down to a size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..records import Json
from .document import document_size

MARK: Final = "…"
# The minimum length of a cut text in bytes of JSON; less would say nothing.
FLOOR: Final = 48

_SHORT_ESCAPES: Final = frozenset('"\\\b\f\n\r\t')


def shortened(value: Json, level: int) -> Json:
    """`value` with every text in it cut to at most `level` bytes of JSON, quotes included.

    Keys are not cut. `level` must be at least `FLOOR`.
    """
    if isinstance(value, str):
        return _cut(value, level) if document_size(value) > level else value
    if isinstance(value, dict):
        return {key: shortened(inner, level) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(inner, level) for inner in value]
    return value


def texts(value: Json, path: str) -> Iterator[tuple[str, str, int]]:
    """Every text inside `value`: its path such as `bio.towns[2]`, the text, its bytes of JSON."""
    if isinstance(value, str):
        yield path, value, document_size(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from texts(inner, f"{path}[{index}]")


def water_level(lengths: Iterable[int], excess: int, floor: int = FLOOR) -> int:
    """The highest level that frees `excess` bytes when all longer texts are cut to it.

    `floor` if no higher level frees that many.
    """
    ordered = sorted((length for length in lengths if length > floor), reverse=True)
    total = 0
    for count, length in enumerate(ordered, start=1):
        total += length
        level = (total - excess) // count
        following = ordered[count] if count < len(ordered) else floor
        if level >= following:
            return level
    return floor


def _cut(text: str, level: int) -> str:
    room = level - len('""') - len(MARK.encode())
    for index, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:index].rstrip() + MARK
    return text


def _width(character: str) -> int:
    if character in _SHORT_ESCAPES:
        return 2
    if character < " ":
        return 6
    return len(character.encode())
