"""Text for a terminal: escaped, aligned, cut to its width; and JSON for programs."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

# The result of a verb for people: a line, or what prints it.
Shown: TypeAlias = str | Callable[[], object]
# Control characters, line separators, and what turns the direction of writing or is
# half a character: everything by which a stored text could act on a terminal.
_ACTING: Final = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def visible(text: str, keep: str = "") -> str:
    """`text` with every control character as a visible escape, except those in `keep`."""
    if text.isprintable():
        return text
    return re.sub(_ACTING, lambda found: _escaped(found[0], keep), text)


def width() -> int | None:
    """The columns of the terminal on standard output; None when it is not a terminal."""
    if not _to_terminal():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


def show_text(text: str) -> None:
    """Print stored text: unchanged into a file or a pipe, escaped on a terminal."""
    print(visible(text, keep="\n\t") if _to_terminal() else text)


def show_answer(answered: bytes, *, one_line: bool = False) -> None:
    """Print the daemon's JSON with all its fields, also those that this release does not know."""
    show_json(json.loads(answered), one_line=one_line)


def show_result(shown: Shown, answered: bytes, *, as_json: bool) -> None:
    """Print what a verb returned, or the daemon's answer in its place if JSON was asked for."""
    if as_json:
        show_answer(answered)
    elif isinstance(shown, str):
        print(visible(shown))
    else:
        shown()


def show_json(value: Any, *, one_line: bool = False) -> None:
    """Print JSON, control characters escaped for terminals; structs are objects."""
    encoding = str(getattr(sys.stdout, "encoding", "") or "")
    text = json.dumps(
        value,
        indent=None if one_line else 2,
        default=msgspec.to_builtins,
        ensure_ascii=encoding.lower().replace("-", "") != "utf8",
    )
    print(re.sub(_ACTING, lambda found: _escaped_json(found[0]), text))


def show_rows(rows: Iterable[Sequence[str]]) -> None:
    """Print rows as aligned columns, the last one cut where the terminal ends."""
    columns = width()
    table = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*table, strict=True)]
    for row in table:
        padded = [
            cell + " " * (size - cells(cell)) for cell, size in zip(row[:-1], widths, strict=False)
        ]
        print(cut("  ".join([*padded, row[-1]]).rstrip(), columns))


def cut(text: str, columns: int | None) -> str:
    """`text` cut to a number of columns, with an ellipsis if it was longer; None: no limit."""
    if columns is None or cells(text) <= columns:
        return text
    room = columns - 1
    for index, character in enumerate(text):
        room -= cells(character)
        if room < 0:
            return text[:index] + "…"
    return text


def cells(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415 - not for plain ASCII

    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _to_terminal() -> bool:
    stream: Any = sys.stdout
    return stream is not None and stream.isatty()


def _escaped(character: str, keep: str) -> str:
    return character if character in keep else character.encode("unicode_escape").decode()


def _escaped_json(character: str) -> str:
    return character if character == "\n" else f"\\u{ord(character):04x}"
