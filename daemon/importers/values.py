"""Single values of old files, read with patience: None where a value says nothing.

Nothing here raises, whatever JSON it is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ..errors import InvalidInput
from ..memory.checks import TIME_END, check_time, shown
from ..memory.records import Json

LARGEST_INT: Final = 2**63 - 1
_KEYS_NAMED: Final = 20
_GO_ZERO_TIME: Final = "0001-01-01T"


def number(value: Json) -> float | None:
    """A finite number; booleans are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def count(value: Json, largest: int = LARGEST_INT) -> int | None:
    """A whole number from 0 to `largest`."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= largest else None


def moment(value: Json) -> float | None:
    """Seconds since the epoch, from a number or a text that `check_time` knows.

    Numbers beyond the year 9999 are taken for milliseconds: as such they begin in 1978, and as
    seconds they would be no time at all.
    """
    if not isinstance(value, str):
        value = number(value)
        if value is None:
            return None
        if value >= TIME_END:
            value /= 1_000
    try:
        return check_time(value)
    except InvalidInput:
        return None


def says_nothing(value: Json) -> bool:
    """Whether a time is just absent: null, blank, 0, or Go's zero time."""
    if isinstance(value, str):
        return not value.strip() or value.startswith(_GO_ZERO_TIME)
    return value is None or (value == 0 and not isinstance(value, bool))


def storable(value: Json) -> bool:
    """Whether `value` is text that every store and program can hold."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def kind(value: Json) -> str:
    """What sort of JSON `value` is, for a fault that must not quote what was remembered."""
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


def unknown_keys(found: Mapping[str, int]) -> tuple[str, ...]:
    """A line for each key that has no meaning here, with how often it was found."""
    lines = [
        f"unknown key {shown(name)}" + (f" ({often} times)" if often > 1 else "")
        for name, often in sorted(found.items())[:_KEYS_NAMED]
    ]
    if len(found) > _KEYS_NAMED:
        lines.append(f"and {len(found) - _KEYS_NAMED} more unknown keys")
    return tuple(lines)
