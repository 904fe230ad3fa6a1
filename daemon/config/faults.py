"""Errors of a configuration, with their place and the expected value."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec import inspect

if TYPE_CHECKING:
    from .kinds import Json, KeyPath

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 80
# Where a URL may contain a token or a password: before its host, and after its path.
_SECRET = re.compile(r"(?<=://)[^/?#]*(?=@)|(?<=[?#]).+", re.DOTALL)


class Fault(msgspec.Struct, frozen=True):
    """One error; its `str` is a line for people.

    Attributes:
        source: the file, or `--set`.
        key: dotted; empty when the fault is in the file as a whole.
    """

    source: str
    key: str
    text: str

    def __str__(self) -> str:
        """`FILE: key.path: what is wrong`, without line breaks or escape sequences."""
        return ": ".join(visible(part) for part in (self.source, self.key, self.text) if part)


class Pairs(tuple[tuple[str, "Json"], ...]):
    """A JSON object as it was written: its pairs in order, duplicate keys included."""

    __slots__ = ()


def visible(text: str) -> str:
    """`text` with everything that could control a terminal or break the line escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def dotted(path: KeyPath) -> str:
    """The path as `--set` takes it; a name with a dot or a blank in it is quoted."""
    return ".".join(
        name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in path
    )


def found(value: Json) -> str:
    """A value as a message shows it: short, without secrets, with its type if not obvious."""
    match value:
        case str():
            return f"{_cut(json.dumps(_harmless(value), ensure_ascii=False))} (text)"
        case Pairs():
            return "an object"
        case list() if any(isinstance(item, list | Pairs) for item in value):
            return "a list"
        case list():
            items = [_harmless(item) if isinstance(item, str) else item for item in value]
            return _cut(json.dumps(items, ensure_ascii=False))
        case _:
            return _cut(json.dumps(value, ensure_ascii=False))


def expected(kind: inspect.Type) -> str:
    """The allowed values of this type, in words."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            text = str(schema["description"]) if schema else expected(inner)
        case inspect.UnionType(types=types):
            text = either([expected(one) for one in types])
        case inspect.LiteralType(values=values):
            text = either([f'"{value}"' for value in values])
        case inspect.IntType(ge=low, le=high):
            text = f"an integer {low} to {high}"
        case inspect.FloatType(ge=low, le=high):
            text = f"a number {low} to {high}"
        case inspect.BoolType():
            text = "true or false"
        case inspect.NoneType():
            text = "null"
        case _:
            text = "an object"
    return text


def either(words: list[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _harmless(text: str) -> str:
    return _SECRET.sub("…", text) if "://" in text else text


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
