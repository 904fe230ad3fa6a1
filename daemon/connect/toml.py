"""TOML: one table set or removed, every other byte kept."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

_HEADER: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)


def put(text: str, table: str, values: Mapping[str, Any]) -> str:
    """The text with a table of strings and lists of strings, which replaces one of that name."""
    body = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    kept = remove(text, table)
    gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
    return f"{kept}{gap}[{table}]\n{body}"


def remove(text: str, table: str) -> str:
    """The text without a table and the tables below it."""
    # A header in a multi-line string is not one: the text up to a real one is valid by itself.
    starts = [one.start() for one in _HEADER.finditer(text) if _is_valid(text[: one.start()])]
    kept, last = [], 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        name = text[start:end].split("]", 1)[0].strip().lstrip("[").replace(" ", "")
        if name == table or name.startswith(f"{table}."):
            kept.append(text[last:start])
            last = end
    if not last:
        return text
    result = "".join([*kept, text[last:]])
    return result.rstrip("\n") + "\n" if result.strip() else ""


def _is_valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
