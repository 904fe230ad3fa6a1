"""Types of fields that several requests share, and the conversion of JSON to a struct.

A limit that the configuration sets is marked with the name of the setting; the OpenAPI description
shows its value.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

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
    str,
    Meta(description="a path in the tree such as `a/b`: no empty level, no control character"),
]
MemoryId = Annotated[str, Meta(description="an id, or the beginning of one: 4 characters or more")]
Words = Annotated[str, Meta(max_length=8192)]
Endpoint = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2_048,
        description="the URL of a server to ask in place of the configured model",
    ),
]
Included = Literal["merged", "expired"]
Order = Literal["newest", "oldest", "importance", "score", "uses", "type", "category", "subject"]
# Whether a model made a result, or the rules.
Way = Literal["rule", "llm"]


T = TypeVar("T")
_PLACE: Final = re.compile(r" - at `\$?\.?(.*)`$")


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """`value` as a `kind`.

    Raises:
        InvalidInput: naming the field, what was expected and what was found.
    """
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        text = str(error)
        place = _PLACE.search(text)
        message = _PLACE.sub("", text)
        message = message[0].lower() + message[1:]
        field = ".".join(filter(None, (place and place.group(1), _named(message))))
        where = f"'{field}': " if field else ""
        raise InvalidInput(f"{where}{message}", field=field or None) from error
    except RecursionError as error:
        raise InvalidInput("cannot read the body: it is nested too deeply") from error


def _named(message: str) -> str:
    found = re.search(r"field `([^`]+)`", message)
    return found.group(1) if found else ""
