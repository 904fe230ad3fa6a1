"""What a field expects, in words: the values of an enumeration, or its description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

_STEP = re.compile(r"([^.\[\]]+)|\[(?:\d+|\.\.\.)\]")


def expected(kind: Any, place: str) -> str:
    """What the field at `place` of a `kind` may hold, such as `kind_ of a, b`; "" if any value.

    `place` is a path in msgspec's notation, such as `turns[2].role`.
    """
    types = [*_plain(inspect.type_info(kind))]
    for step in _STEP.finditer(place):
        types = [inner for item in types for inner in _below(item, step.group(1))]
    values = dict.fromkeys(str(value) for kind_ in types for value in _values(kind_))
    if values:
        return f"one of {', '.join(values)}"
    described = (
        kind_.extra_json_schema or {} for kind_ in types if isinstance(kind_, inspect.Metadata)
    )
    return next((str(kind_["description"]) for kind_ in described if "description" in kind_), "")


def _plain(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The alternatives of a type, with their descriptions."""
    if isinstance(kind, inspect.UnionType):
        for item in kind.types:
            yield from _plain(item)
        return
    yield kind
    if isinstance(kind, inspect.Metadata):
        yield from _plain(kind.type)


def _below(kind: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    inner: list[inspect.Type] = []
    if isinstance(kind, inspect.StructType):
        inner = [field.type for field in kind.fields if field.encode_name == name]
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType | inspect.SetType):
        inner = [kind.item_type]
    elif isinstance(kind, inspect.DictType):
        inner = [kind.value_type]
    for item in inner:
        yield from _plain(item)


def _values(kind: inspect.Type) -> tuple[Any, ...]:
    if isinstance(kind, inspect.LiteralType):
        return tuple(kind.values)
    return tuple(item.value for item in kind.cls) if isinstance(kind, inspect.EnumType) else ()
