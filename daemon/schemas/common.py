"""Types of fields that several requests share, and the conversion of JSON to a struct.

A limit that the configuration sets is marked with the name of the setting; the OpenAPI description
shows its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct, inspect

from ..errors import InvalidInput

SETTING: Final = "x-setting"


def limited_by(setting: str, *, least: int | None = None, ge: int | None = None) -> Meta:
    """The constraint of a field whose maximum is a setting, such as `limits.max_list`."""
    more = {} if least is None else {"minItems": least}
    return Meta(extra_json_schema={SETTING: setting, **more}, ge=ge)


Json: TypeAlias = Any
Limit = Annotated[int, limited_by("limits.max_list", ge=1)]
Offset = Annotated[int, Meta(ge=0, le=10_000_000)]
RecallLimit = Annotated[int, Meta(ge=1, le=100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Position = Annotated[int, Meta(ge=0, le=2**53)]
Time = Annotated[
    str | float | int,
    Meta(description="seconds since the epoch, or ISO 8601; in the years 1970 to 9999"),
]
CategoryPath = Annotated[
    str, Meta(description="a path in the tree such as `a/b`: no empty level, no control character")
]
MemoryId = Annotated[str, Meta(description="an id, or its first characters, at least 4")]
Words = Annotated[str, Meta(max_length=8192)]
NotBlank = Annotated[str, Meta(description="not blank")]
AgentName = Annotated[str, Meta(description="1 to 64 letters, digits, `_` or `-`")]
KindName = Annotated[
    str,
    Meta(
        description="the kind of a row: memory, hot, category, pair, note, experience, session or"
        " entity"
    ),
]
Endpoint = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2_048,
        pattern="^https?://[^/]",
        description="the http:// or https:// URL of a server to ask in place of the configured"
        " model",
    ),
]
Included = Literal["merged", "expired"]
# Whether a model made a result, or the rules.
Method = Literal["rule", "llm"]


T = TypeVar("T")


class Input(Struct, forbid_unknown_fields=True):
    """The query or the body of a request; a field that it does not have is refused."""


class PageOf(Struct, Generic[T]):
    """A part of a list, and the number of all its entries."""

    results: list[T]
    total: int


_PLACE: Final = re.compile(r" - at `\$?\.?(.*)`$")
# msgspec names neither the values of an enumeration nor the meaning of a pattern.
_NOT_AMONG: Final = re.compile(
    r"invalid enum value (?P<value>.*)|expected `str` matching regex .*", re.DOTALL
)


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """`value` as a `kind`; `InvalidInput` names the field, what was expected and what was found."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        text = str(error)
        place = _PLACE.search(text)
        message = _PLACE.sub("", text)
        message = message[0].lower() + message[1:]
        wrong = _NOT_AMONG.fullmatch(message)
        if wrong is not None and (wanted := _expected(kind, place.group(1) if place else "")):
            value = wrong.group("value")
            message = f"expected {wanted}" + (f" (got {value})" if value else "")
        field = ".".join(filter(None, (place and place.group(1), _named(message))))
        where = f"'{field}': " if field else ""
        raise InvalidInput(where + _in_words(message), field=field or None) from error
    except RecursionError as error:
        raise InvalidInput("cannot read the body: it is nested too deeply") from error


_TYPES: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_IN_WORDS: Final = (
    (r"object contains unknown field .*", r"unknown field"),
    (r"object missing required field .*", r"is missing"),
    (r" of length >= 1$", r" that is not empty"),
    (r" of length >= (\S+)$", r" of length \1 at least"),
    (r" of length <= (\S+)$", r" of length \1 at most"),
    (r"(?<= )>= (\S+?)(?:\.0)?$", r"of at least \1"),
    (r"(?<= )<= (\S+?)(?:\.0)?$", r"of at most \1"),
    (r"(?<= )> (\S+?)(?:\.0)?$", r"above \1"),
    (r"(?<= )< (\S+?)(?:\.0)?$", r"below \1"),
)


def _in_words(message: str) -> str:
    """A message of msgspec without its notation: `int` >= 1 is "an integer of at least 1"."""
    for pattern, words in _IN_WORDS:
        message = re.sub(pattern, words, message)
    return re.sub(
        r"`([^`]*)`",
        lambda match: " or ".join(_TYPES.get(name, name) for name in match[1].split(" | ")),
        message,
    )


def _named(message: str) -> str:
    match = re.search(r"field `([^`]+)`", message)
    return match.group(1) if match else ""


_STEP = re.compile(r"([^.\[\]]+)|\[(?:\d+|\.\.\.)\]")


def _expected(kind: Any, place: str) -> str:
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
