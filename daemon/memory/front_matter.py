"""The front matter of a page: the fields between two lines of dashes at its beginning."""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

Meta: TypeAlias = dict[str, Any]
_MOST_LINES: Final = 60
_ENDS: Final = frozenset({"---", "..."})
_FIELD: Final = re.compile(r"([A-Za-z0-9_][\w .-]{0,63}):(?:\s+(.*))?$")
_ITEM: Final = re.compile(r"\s*-\s+(.*)")


def front_matter(text: str) -> tuple[Meta, int]:
    """The fields, and the number of lines that they take with both lines of dashes.

    Only plain values and lists; anything else is left out.
    """
    lines = text.split("\n", _MOST_LINES)
    if lines[0].strip() != "---":
        return {}, 0
    close = next((at for at, line in enumerate(lines[1:], 1) if line.strip() in _ENDS), 0)
    meta: Meta = {}
    name = ""
    for line in map(str.rstrip, lines[1:close]):
        if field := _FIELD.match(line):
            name, meta[field[1]] = field[1], _value((field[2] or "").strip())
        elif name and (item := _ITEM.match(line)):
            before = meta[name]
            meta[name] = [*(before if isinstance(before, list) else []), _plain(item[1])]
    return meta, close + 1 if close else 0


def _value(text: str) -> str | list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [_plain(part) for part in text[1:-1].split(",") if part.strip()]
    return _plain(text)


def _plain(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text
