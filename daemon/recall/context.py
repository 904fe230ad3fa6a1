"""The context block: what an agent reads before its turn, section by section, within a budget.

`SECTIONS` in `context_sections` lists the sections. All read their items from one snapshot, which
are then cut to the budget. If all living memories fit, all are shown. Else what always holds comes
first, up to half of the budget; every other section has a floor by its importance, the knowledge
then gets what it needs, and the other sections share the rest by importance. What is left shows
memories by score.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from ..memory.messages import estimated_tokens
from ..store.selecting import Filters
from .context_items import LEAST_TOKENS, Filled, Need, Shown, fill, shares
from .context_reading import Asked, BlockReading
from .context_sections import SECTIONS, Section, by_score

# The tokens of a section's tags.
_FRAME_TOKENS: Final = 12
# The share of the budget that what always holds may take before all else.
_FIRST: Final = 0.5
_MEMORY_SECTIONS: Final = ("always", "remembered")

Render: TypeAlias = Callable[[Shown], str]
Cost: TypeAlias = Callable[[Shown], int]


def read_block(db: sqlite3.Connection, asked: Asked, render: Render) -> list[Filled]:
    """The sections with content, in order, within `asked.max_tokens` as `render` writes them."""

    def cost(item: Shown) -> int:
        return estimated_tokens(item.rendered or render(item)) + 1

    reading = BlockReading(db, asked)
    read = {one.name: _items(reading, one, render) for one in SECTIONS if _is_read(one, asked)}
    budget = asked.max_tokens
    rest: Sequence[Shown] = ()
    first: dict[str, int] = {}
    if not asked.found:
        rest = _prepare(read, reading, render)
        every = _size((*read["always"], *read["remembered"], *rest), cost)
        if reading.ranked.complete and every + _FRAME_TOKENS * 2 <= budget:
            certain = [replace(item, uncertain=False, rendered="") for item in read["remembered"]]
            read["remembered"], rest = [*certain, *rest], ()
            first = {name: _size(read[name], cost) for name in _MEMORY_SECTIONS}
        else:
            first = {"always": min(_size(read["always"], cost), int(budget * _FIRST))}
    return _filled(read, first, rest, budget, cost)


def _is_read(section: Section, asked: Asked) -> bool:
    if asked.found and not section.asks:
        return False
    return bool(section.source) or asked.filters == Filters()


def _items(reading: BlockReading, section: Section, render: Render) -> list[Shown]:
    if not section.asks:
        name = f"context {section.name}"
        return reading.kept(name, lambda: _rendered(section.read(reading), render))
    found = reading.asked.found
    items = (item for item in section.read(reading) if item.relevance is not None or not found)
    return _rendered(items, render)


def _rendered(items: Iterable[Shown], render: Render) -> list[Shown]:
    return [replace(item, rendered=render(item)) for item in items]


def _prepare(read: dict[str, list[Shown]], reading: BlockReading, render: Render) -> list[Shown]:
    """The memories that no other section shows, by score; no memory is shown twice."""
    hits = {item.id: item for item in read["remembered"] if item.relevance is not None}
    read["always"] = [
        replace(item, relevance=hits[item.id].relevance) if item.id in hits else item
        for item in read["always"]
    ]
    known = {item.id for item in read["always"]}
    read["remembered"] = [item for item in read["remembered"] if item.id not in known]
    known |= {item.id for item in read["remembered"]}
    rest = reading.kept("context rest", lambda: _rendered(by_score(reading), render))
    return [item for item in rest if item.id not in known]


def _rooms(needs: dict[str, Need], first: dict[str, int], budget: int) -> dict[str, int]:
    """The tokens of each section beyond `first`; sections that get too few are left out."""
    while True:
        left = budget - _FRAME_TOKENS * len(needs) - sum(first.values())
        rooms = shares(needs, max(0, left))
        small = [
            (needs[name].is_last, needs[name].importance, name)
            for name, room in rooms.items()
            if room < min(LEAST_TOKENS, needs[name].wanted) and not first.get(name)
        ]
        if not small:
            return rooms
        del needs[min(small)[2]]


def _size(items: Iterable[Shown], cost: Cost) -> int:
    return sum(map(cost, items))


def _filled(
    read: dict[str, list[Shown]],
    first: dict[str, int],
    rest: Sequence[Shown],
    budget: int,
    cost: Cost,
) -> list[Filled]:
    """The sections cut to the budget; what is left of it shows `rest`.

    Args:
        read: the items of each section.
        first: the tokens that some sections get before the others share what is left.
        rest: further memories.
        budget: the tokens of all.
        cost: measures an item.
    """
    wanted = {name: _size(items, cost) for name, items in read.items() if items}
    needs = {
        section.name: Need(
            wanted[section.name] - first.get(section.name, 0), section.importance, section.is_last
        )
        for section in SECTIONS
        if section.name in wanted
    }
    rooms = _rooms(needs, first, budget)
    filled = {
        name: fill(name, read[name], room + first.get(name, 0), cost)
        for name, room in rooms.items()
    }
    used = sum(_FRAME_TOKENS + _size(one.items, cost) for one in filled.values() if one.items)
    remembered = filled.get("remembered") or Filled("remembered", (), 0)
    if not remembered.items:
        used += _FRAME_TOKENS
    further: list[Shown] = []
    for item in rest:
        if (tokens := cost(item)) <= budget - used:
            further.append(item)
            used += tokens
    if further:
        items = (*remembered.items, *further)
        filled["remembered"] = Filled("remembered", items, remembered.left_out)
    return [filled[one.name] for one in SECTIONS if one.name in filled and filled[one.name].items]
