"""The JSON values that a hot state can hold, and the nearest such value to any other."""

from __future__ import annotations

import math
from typing import Final, TypeVar

from ..records import Json

T = TypeVar("T")

MAX_DEPTH: Final = 32

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


class Cleaning:
    """Makes values storable, and collects the changes that this needs.

    Attributes:
        faults: one line for each change, `path: fault`.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []

    def clean(self, value: Json, path: str, depth: int = 0) -> Json:
        """`value`, with anything that JSON in UTF-8 cannot hold replaced or removed."""
        if depth > MAX_DEPTH:
            return self._fault(path, f"nested deeper than {MAX_DEPTH} levels", None)
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, dict):
            return {
                self._text(str(key), path): self.clean(inner, _join(path, str(key)), depth + 1)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [
                self.clean(inner, f"{path}[{index}]", depth + 1)
                for index, inner in enumerate(value)
            ]
        return self._scalar(value, path)

    def _scalar(self, value: Json, path: str) -> Json:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            small = value.bit_length() <= 64
            return value if small else self._fault(path, "a number beyond 64 bits", None)
        if isinstance(value, float):
            finite = math.isfinite(value)
            return value if finite else self._fault(path, f"{value} is not a JSON number", None)
        return self._fault(path, f"{type(value).__name__} is not a JSON type", None)

    def _text(self, value: str, path: str) -> str:
        if "\0" in value:
            value = self._fault(path, "a NUL character", value.replace("\0", _REPLACEMENT))
        if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
            return value
        repaired = "".join(
            _REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in value
        )
        return self._fault(path, "lone surrogate", repaired)

    def _fault(self, path: str, fault: str, instead: T) -> T:
        self.faults.append(f"{path or 'document'}: {fault}")
        return instead


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
