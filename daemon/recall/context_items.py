"""The items of a context block, and how they are cut to the tokens of their section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

# A section with less room is left out.
_LEAST_TOKENS: Final = 12
_LEAST_WORDS: Final = 8


class Shown(msgspec.Struct, frozen=True):
    """One item of a section.

    Attributes:
        source: who said it, or the file or command that it is from.
        at: its time in seconds since the epoch; None if it has no meaningful time.
        id: the id of a memory, or "".
        quoted: whether it is not the agent's own word.
        rest: where to read the rest if it is cut. Such an item is cut at a line, others at a word.
        line: the number of its first line there; 0 if that is not a file.
        head: a line to show above the text that is not part of it.
        relevance: to the query, if the query found it.
    """

    text: str
    source: str = ""
    at: float | None = None
    id: str = ""
    quoted: bool = False
    rest: str = ""
    line: int = 0
    head: str = ""
    relevance: float | None = None
    is_cut: bool = False

    @property
    def whole(self) -> str:
        """The text below its head."""
        return f"{self.head}\n{self.text}" if self.head and self.text else self.head or self.text


class Filled(msgspec.Struct, frozen=True):
    """A section with the items that fit; `left_out` counts the rest."""

    name: str
    items: tuple[Shown, ...]
    left_out: int


def fill(name: str, items: Sequence[Shown], room: int, cost: Callable[[Shown], int]) -> Filled:
    """The first items that fit; if not even the first one does, it is cut."""
    kept: list[Shown] = []
    for item in items:
        tokens = cost(item)
        if tokens <= room:
            kept.append(item)
            room -= tokens
        elif (item.rest or not kept) and room >= _LEAST_TOKENS:
            part = cut(item, room, cost)
            if part is not None:
                kept.append(part)
                room -= cost(part)
    return Filled(name, tuple(kept), len(items) - len(kept))


def cut(item: Shown, room: int, cost: Callable[[Shown], int]) -> Shown | None:
    """The beginning of an item within `room` tokens, up to a line of a file or a word."""
    # A token has at most four characters, so the rest never fits.
    pieces = item.text[: 4 * room].split("\n" if item.rest else " ")
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        fits = cost(_cut_at(item, pieces, middle)) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    # Fewer words say nothing.
    least = 1 if item.rest else min(_LEAST_WORDS, item.text.count(" ") // 2 + 1)
    return _cut_at(item, pieces, low) if low >= max(1, least) else None


def _cut_at(item: Shown, pieces: Sequence[str], count: int) -> Shown:
    if item.rest:
        line = f", line {item.line + count}" if item.line else ""
        text = "\n".join((*pieces[:count], f"[cut: it goes on in {item.rest}{line}]"))
    else:
        text = " ".join(pieces[:count]) + " …"
    return msgspec.structs.replace(item, text=text, is_cut=True)
