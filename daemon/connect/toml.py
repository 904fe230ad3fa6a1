"""TOML: one table set or removed, every other byte kept."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

_HEADER: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)


class CannotEdit(ValueError):
    """The file has the table in a form that cannot be edited as text."""


def put(text: str, table: str, values: Mapping[str, Any]) -> str:
    """The text with a table of strings and lists of strings, which replaces one of that name.

    `CannotEdit`: the result would not be what is meant; `tomllib.TOMLDecodeError`: it is not TOML.
    """
    # TOML's strings are those of JSON, but for pairs of surrogates and the character DEL.
    texts = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
    body = "".join(f"{key} = {text}\n" for key, text in texts.items()).replace("\x7f", "\\u007f")
    rest = remove(text, table)
    gap = "" if not rest else "\n" if rest.endswith("\n") else "\n\n"
    result = f"{rest}{gap}[{table}]\n{body}"
    wanted = tomllib.loads(rest)
    *above, name = table.split(".")
    inner = wanted
    for key in above:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise _cannot(table)
    inner[name] = dict(values)
    return _checked(result, wanted, table)


def remove(text: str, table: str) -> str:
    """The text without a table and the tables below it; raises as `put`."""
    wanted = tomllib.loads(text)
    keys = table.split(".")
    # The text up to a header is valid by itself, unless that stands in a multi-line string.
    starts = [match.start() for match in _HEADER.finditer(text) if _is_valid(text[: match.start()])]
    parts, last = [], 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        if _name(text[start:end])[: len(keys)] == keys:
            parts.append(text[last:start])
            last = end - len(_remarks(text[start:end]))
    if not last:
        return text
    result = "".join([*parts, text[last:]])
    result = result.rstrip("\n") + "\n" if result.strip() else ""
    return _checked(result, _without(wanted, keys), table)


def _checked(result: str, wanted: Mapping[str, Any], table: str) -> str:
    try:
        is_meant = _without({"": tomllib.loads(result)}, []) == _without({"": wanted}, [])
    except tomllib.TOMLDecodeError:
        is_meant = False
    if not is_meant:
        raise _cannot(table)
    return result


def _cannot(table: str) -> CannotEdit:
    return CannotEdit(f"it has '{table}', or what is around it, in another form: enter it by hand")


def _without(document: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in document.items():
        if keys == [name]:
            continue
        if not isinstance(value, Mapping):
            values[name] = value
        elif rest := _without(value, keys[1:] if keys[:1] == [name] else []):
            values[name] = rest
    return values


def _remarks(part: str) -> str:
    """The comments behind the last value of a part, which may be about what follows."""
    lines = part.splitlines(keepends=True)
    own = next(n for n in range(len(lines), 0, -1) if lines[n - 1].strip()[:1] not in {"", "#"})
    return "".join(lines[own:]).lstrip("\r\n")


def _name(part: str) -> list[str]:
    """The keys of the table that a part of a text begins with; a list of tables has none."""
    keys: list[str] = []
    value: Any = tomllib.loads(part.splitlines()[0])
    while isinstance(value, dict) and value:
        [(key, value)] = value.items()
        keys.append(key)
    return keys if isinstance(value, dict) else []


def _is_valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
