"""Tolerant parsing of single values of old files: each unreadable value is a line of a report.

Nothing here raises, whatever JSON it is given, and no fault quotes the content of a memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from ..errors import InvalidInput, ThermoclineError
from ..memory.checks import TIME_END, check_time, shown
from ..memory.hot.state import number
from ..memory.records import Json

T = TypeVar("T")
LARGEST_INT: Final = 2**63 - 1
_KEYS_NAMED: Final = 20
_KINDS: Final = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}


class Parsed(msgspec.Struct, Generic[T], frozen=True):
    """The content of a file, and a line for each value that could not be read."""

    content: T
    faults: tuple[str, ...] = ()


class Fields:
    """An object in a file; faults of its fields are reported."""

    def __init__(self, where: str, fields: Mapping[str, Json], faults: list[str]) -> None:
        self.fields = fields
        self._where = where
        self._faults = faults

    def fault(self, name: str, what: str) -> None:
        self._faults.append(f"{self._where}.{name}: {what}")

    def expected(self, name: str, wanted: str, value: Json) -> None:
        """Report a field with an unexpected value."""
        self.fault(name, unexpected(wanted, value))

    def text(self, name: str) -> str:
        """Text that every store and program can hold, else ""."""
        value = self.fields.get(name)
        if value is None or is_storable(value):
            return value or ""
        unfit = isinstance(value, str)
        self.expected(name, "text without NUL and lone surrogates" if unfit else "text", value)
        return ""

    def importance(self, default: float) -> float:
        """The importance, brought into 0 to 1."""
        value = self.fields.get("importance")
        importance = number(value)
        if value is not None and (importance is None or not 0.0 <= importance <= 1.0):
            self.expected("importance", "a number from 0 to 1", value)
        return default if importance is None else min(1.0, max(0.0, importance))

    def count(self, name: str, largest: int = LARGEST_INT) -> int | None:
        """A whole number from 0 to `largest`."""
        value = self.fields.get(name)
        whole = count(value, largest)
        if whole is None and value is not None:
            self.expected(name, "a whole number from 0", value)
        return whole

    def time(self, *names: str) -> float | None:
        """Seconds since the epoch, from the first of the fields that has a time."""
        for name in names:
            value = self.fields.get(name)
            if (at := moment(value)) is not None:
                return at
            if not is_no_time(value):
                self.expected(name, "a time", value)
        return None


def count(value: Json, largest: int = LARGEST_INT) -> int | None:
    """A whole number from 0 to `largest`."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= largest else None


def moment(value: Json) -> float | None:
    """Seconds since the epoch, from a number or a text that `check_time` accepts.

    Numbers beyond the year 9999 are taken as milliseconds: as such they begin in 1978, and as
    seconds they would not be valid.
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


def seconds(*values: Json) -> float | None:
    """The first that is a time, in seconds since the epoch."""
    return next((at for value in values if (at := moment(value)) is not None), None)


def is_no_time(value: Json) -> bool:
    """Whether a time is absent: null, blank, 0, or Go's zero time."""
    if isinstance(value, str):
        return not value.strip() or value.startswith("0001-01-01T")
    return value is None or (value == 0 and not isinstance(value, bool))


def is_storable(value: Json) -> bool:
    """Whether `value` is text that every store and program can hold."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def unexpected(wanted: str, value: Json) -> str:
    """The expected and the found value; of values other than numbers only the JSON type."""
    if number(value) is not None:
        return f"expected {wanted}, got {shown(value)}"
    kind = "true or false" if isinstance(value, bool) else _KINDS.get(type(value), "null")
    return f"expected {wanted}, got {kind}"


def unknown_keys(counts: Mapping[str, int]) -> list[str]:
    """A line for each unknown key, with its number of occurrences."""
    lines = [
        f"unknown key {shown(name)}" + (f" ({often} times)" if often > 1 else "")
        for name, often in sorted(counts.items())[:_KEYS_NAMED]
    ]
    if len(counts) > _KEYS_NAMED:
        lines.append(f"and {len(counts) - _KEYS_NAMED} more unknown keys")
    return lines


def reason(error: Exception, path: Path) -> str:
    """Why a file could not be read, without its path."""
    if isinstance(error, ThermoclineError):
        return error.message.removeprefix(f"cannot read {path}: ")
    return f"cannot be read ({getattr(error, 'strerror', None) or error})"
