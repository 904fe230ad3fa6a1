"""JSON as a struct; what does not fit is named."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec

from ..errors import InvalidInput

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
