"""The items of a context block, and how they are cut to the tokens of their section."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

# A section with less room is left out.
LEAST_TOKENS: Final = 12
_LEAST_WORDS: Final = 8
# The share of the budget that the importances divide before those cut last take their own.
_FLOOR: Final = 0.5


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
        uncertain: whether the query found it, but it may not answer.
        replaces: the beginning of the older statement that it contradicts.
        rendered: as the block writes it, if that is kept.
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
    uncertain: bool = False
    replaces: str = ""
    is_cut: bool = False
    rendered: str = ""

    @property
    def whole(self) -> str:
        """The text below its head."""
        return f"{self.head}\n{self.text}" if self.head and self.text else self.head or self.text


class Filled(msgspec.Struct, frozen=True):
    """A section with the items that fit; `left_out` counts the rest."""

    name: str
    items: tuple[Shown, ...]
    left_out: int


class Need(msgspec.Struct, frozen=True):
    """What a section asks of the budget.

    Attributes:
        wanted: the size of its items.
        importance: its share, relative to the other sections.
        is_last: whether it is cut only after the sections that are not.
    """

    wanted: int
    importance: float = 1.0
    is_last: bool = False


def shares(needs: Mapping[str, Need], budget: int) -> dict[str, int]:
    """The tokens that each section gets."""
    whole = sum(need.importance for need in needs.values()) or 1
    rooms = {
        name: min(need.wanted, int(budget * _FLOOR * need.importance / whole))
        for name, need in needs.items()
    }
    for is_last in (True, False):
        group = {name: need for name, need in needs.items() if need.is_last == is_last}
        left = budget - sum(rooms.values())
        while left > 0:
            short = {name: one for name, one in group.items() if rooms[name] < one.wanted}
            weight = sum(need.importance for need in short.values())
            given = 0
            for name, need in short.items():
                more = min(need.wanted - rooms[name], int(left * need.importance / weight))
                rooms[name] += more
                given += more
            left -= given
            if not given:
                break
    return rooms


def fill(name: str, items: Sequence[Shown], room: int, cost: Callable[[Shown], int]) -> Filled:
    """The first items that fit; if not even the first one does, it is cut."""
    kept: list[Shown] = []
    for item in items:
        tokens = cost(item)
        if tokens <= room:
            kept.append(item)
            room -= tokens
        elif (item.rest or not kept) and room >= LEAST_TOKENS:
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
    return msgspec.structs.replace(item, text=text, is_cut=True, rendered="")
