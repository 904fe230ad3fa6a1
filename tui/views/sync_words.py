"""What waits for the replica and what lost, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ..text import number_of

_WORDS: Final = {
    "memory": ("memory", "memories"),
    "hot": ("hot entry", "hot entries"),
    "category": ("category", "categories"),
    "pair": ("pair", "pairs"),
    "uses": ("count of uses", "counts of uses"),
    "metrics": ("set of counters", "sets of counters"),
    "note": ("note", "notes"),
}


def counted(outbox: dict[str, int]) -> Iterator[str]:
    """The rows that wait, by kind, the most first."""
    for kind, number in sorted(outbox.items(), key=lambda pair: -pair[1]):
        yield number_of(number, *_WORDS.get(kind, (f"{kind} row", f"{kind} rows")))


def or_dash(number: int) -> str:
    """A number, or `-` for none."""
    return f"{number:,}" if number else "-"


def value_of(value: Any) -> str:
    """The value of a field, as text."""
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
