"""What a model says, made fit to be stored: it may say anything."""

from __future__ import annotations

from collections.abc import Iterable

from ..memory.distilling.plain import printable


def one_line(text: str, most: int | None = None) -> str:
    """`text` on one line, of at most so many printable characters."""
    return " ".join(printable(text).split())[:most].strip()


def short_list(values: Iterable[str], most: int, chars: int) -> tuple[str, ...]:
    """The first `most` different values that are not blank, each on one line and cut."""
    clean = dict.fromkeys(one_line(value, chars) for value in values)
    return tuple(value for value in clean if value)[:most]
