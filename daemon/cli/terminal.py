"""Text for a terminal: escaped, aligned, cut to its width; and JSON for programs."""

from __future__ import annotations

import json
import os
import re
import sys

from ..client.wording import ago, moment, number_of, one_line, size
from .values import WrongUsage, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Final

    from .usage import Shown

_SHORT_ID: Final = 8
# The columns that a text has on a line with others, where it needs as many.
_LEAST_TEXT: Final = 30
# Control characters, line separators, and what turns the direction of writing or is
# half a character: everything by which a stored text could act on a terminal.
_ACTING: Final = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def visible(text: str, keep: str = "") -> str:
    """`text` with every control character as a visible escape, except those in `keep`."""
    if text.isprintable():
        return text

    def escaped(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode()

    return re.sub(_ACTING, escaped, text)


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


def show_result(shown: Shown, answer: Any, *, as_json: bool) -> None:
    """Print what a verb returned, or the daemon's answer in its place if JSON was asked for."""
    if as_json:
        show_json(answer)
    elif isinstance(shown, str):
        print(visible(shown))
    else:
        shown()


def ask(question: str) -> str | None:
    """What a person types; None: the input has ended, or Ctrl-C."""
    try:
        return input(question).strip()
    except (EOFError, KeyboardInterrupt):
        print()
        return None


def agreed(question: str, otherwise: str) -> bool:
    """Whether a person agrees; without a terminal `WrongUsage`, with what to do `otherwise`."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise WrongUsage(f"cannot ask without a terminal: {otherwise}")
    try:
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return True
    except KeyboardInterrupt:
        print(file=sys.stderr)
    say("nothing was changed")
    return False


def show_json(value: Any, *, one_line: bool = False) -> None:
    """Print JSON, control characters escaped for terminals."""
    encoding = str(getattr(sys.stdout, "encoding", "") or "")
    text = json.dumps(
        value,
        indent=None if one_line else 2,
        ensure_ascii=encoding.lower().replace("-", "") != "utf8",
    )
    # Line feeds are those between values.
    print(re.sub(rf"(?!\n){_ACTING}", lambda match: f"\\u{ord(match[0]):04x}", text))


class AnswerFields:
    """The fields of an answer as attributes, for the wording that the terminal view shares."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.__dict__.update(answer)

    def __getattr__(self, name: str) -> Any:
        return None

    @classmethod
    def of(cls, answer: Mapping[str, Any] | None) -> Any:
        """Those of an answer, if there is one."""
        return None if answer is None else cls(answer)


def worded(template: str, fields: Mapping[str, Any]) -> str:
    """A template with the fields of an answer: `{updated_at:moment}`, `{kept.id:short}`.

    What is absent is left empty. After the colon stands one of `_FORMATS`, or the words that go
    with a number: `{answers:answer answers}`.
    """

    def field(match: re.Match[str]) -> str:
        value: Any = fields
        for name in match[1].split("."):
            value = value.get(name) if isinstance(value, dict) else None
        name = match[2]
        if name and " " in name:
            return number_of(value or 0, *name.split(" "))
        if name:
            return _FORMATS[name](value)
        return "" if value is None else str(value)

    return re.sub(r"\{([\w.]+)(?::([\w ]+))?\}", field, template)


def short(row_id: str) -> str:
    """The part of an id that people see; the daemon accepts it in place of the whole."""
    return row_id[:_SHORT_ID]


def page(
    name: str, *cells: str | Callable[[Any], str], empty: str = "nothing found"
) -> Callable[[Any, Mapping[str, Any]], None]:
    """A function that shows the list `name` of an answer, a line each, and how many more exist.

    The `cells` are templates or functions of an entry. Without one the answer's `why` is said, or
    `empty`.
    """

    def show(answer: Any, fields: Mapping[str, Any]) -> None:
        entries = answer[name]
        show_rows(
            [worded(cell, entry) if isinstance(cell, str) else cell(entry) for cell in cells]
            for entry in entries
        )
        total, offset = answer.get("total", len(entries)), fields.get("offset", 0)
        if not entries and offset:
            say(f"nothing beyond {total}")
        elif not entries and (why := answer.get("why") or empty):
            say(visible(why))
        elif (shown := offset + len(entries)) < total:
            say(f"{len(entries)} of {total}; more with --offset {shown}")

    return show


def warn(answer: Mapping[str, Any]) -> None:
    """Say the warnings of an answer on standard error."""
    for text in (answer.get("warning"), *(answer.get("warnings") or ())):
        if text:
            say(visible(text))


def show_rows(rows: Iterable[Iterable[str]], *, is_whole: bool = False) -> None:
    """Print rows as aligned columns, the last one cut where the terminal ends, or continued.

    If too little of it would be left, it has a line of its own.
    """
    columns = width()
    table = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*table, strict=True)]
    begin = sum(widths[:-1]) + 2 * len(widths[:-1])
    is_below = columns is not None and columns - begin < _LEAST_TEXT <= widths[-1]
    for row in table:
        padded = [
            cell + " " * (size - cells(cell)) for cell, size in zip(row[:-1], widths, strict=False)
        ]
        line = "  ".join([*padded, row[-1]]).rstrip()
        if columns is not None and is_whole and cells(line) > columns:
            import textwrap  # noqa: PLC0415 - seldom needed

            indent = " " * min(columns // 4, begin)
            print(
                "\n".join(
                    textwrap.wrap(line, columns, subsequent_indent=indent, break_on_hyphens=False)
                )
            )
        elif is_below and padded:
            print(cut("  ".join(padded).rstrip(), columns), cut(f"  {row[-1]}", columns), sep="\n")
        else:
            print(cut(line, columns))


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


_FORMATS: Final[dict[str, Callable[[Any], str]]] = {
    "moment": moment,
    "ago": ago,
    "size": size,
    "short": short,
    "line": one_line,
    "day": lambda text: str(text)[:10],
    "count": lambda number: f"{number:,.0f}",
    "share": lambda number: f"{number:.2f}",
    "seconds": lambda milliseconds: f"{milliseconds / 1000:.1f} s",
}


def _to_terminal() -> bool:
    stream: Any = sys.stdout
    return stream is not None and stream.isatty()
