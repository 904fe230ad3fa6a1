"""Strict JSON: mistakes are refused."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..errors import InvalidInput

_HALF_ESCAPED: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def decode(body: bytes) -> Any:
    """The JSON value in `body`.

    Raises:
        InvalidInput: it is not valid UTF-8 or JSON, names a key twice, contains NaN, an infinity or
            a lone surrogate, or is nested too deeply.
    """
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"cannot read the body: it is not valid UTF-8 ({error.reason})"
        ) from error
    except RecursionError as error:
        raise InvalidInput("cannot read the body: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"cannot read the body as JSON: {error.msg} ({place})") from error
    except ValueError as error:
        # Python's error for integers of more than 4,300 digits.
        raise InvalidInput(f"cannot read the body as JSON: {error}") from error
    if _HALF_ESCAPED.search(body):
        _refuse_halves(value)
    return value


def _refuse_halves(value: Any) -> None:
    """Refuse lone surrogates anywhere in the body: such text cannot be stored or shown."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, found = waiting.pop()
        if isinstance(found, dict):
            for key, inner in found.items():
                below = f"{path}.{key}" if path else key
                waiting += [(below, inner), (below, key)]
        elif isinstance(found, list):
            waiting += [(f"{path}[{index}]", inner) for index, inner in enumerate(found)]
        elif isinstance(found, str):
            _refuse_half(path, found)


def _refuse_half(path: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        whose = f"'{path}'" if path else "the body"
        raise InvalidInput(
            f"fix {whose}: lone surrogate at position {error.start}",
            field=path or None,
            hint="the text must be valid Unicode",
        ) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(f"cannot read the body: it names '{twice[:64]}' twice", field=twice[:64])
    return found


def _refuse_constant(name: str) -> Any:
    raise InvalidInput(f"cannot read the body: {name} is not JSON")
