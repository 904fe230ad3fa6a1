"""What may go into a statement, and what may come out of a row, alike for every remote."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from .failures import Refused
from .remote import Statement, Value

_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1
# As a float the highest would be this already.
_BEYOND: Final = 2**63


def check(statements: Sequence[Statement]) -> None:
    """Refuse what no remote can take, before anything is sent.

    Raises:
        Refused: "bad_request", for an argument that SQLite cannot hold exactly.
    """
    for number, statement in enumerate(statements):
        for argument in (statement.sql, *statement.args):
            if fault := _fault(argument):
                raise Refused("bad_request", f"cannot send statement {number}: it holds {fault}")


def plain(row: Iterable[object]) -> tuple[Value, ...]:
    """A row of SQLite as values: a blob is read as text, an infinite number as None."""
    return tuple(map(_plain, row))


def whole(value: Value) -> int:
    """A value as an integer; 0 where it is no number of 64 bits, whoever has written it."""
    if not isinstance(value, int | float) or not _LOWEST <= value < _BEYOND:
        return 0
    return int(value)


def integer(value: Value, missing: int | None = None) -> int | None:
    """A value that is an integer already; `missing` where there is none, None for all others."""
    if value is None:
        return missing
    return value if isinstance(value, int) else None


def whole_in(column: str, otherwise: int) -> str:
    """The SQL for a column as an integer, which holds whatever anybody has put into it.

    SQLite keeps a text in a column of integers, and holds it for more than each of them.
    """
    return f"CASE WHEN typeof({column}) = 'integer' THEN {column} ELSE {otherwise} END"


def number(value: Value, otherwise: float) -> float:
    """A value as a number; `otherwise` where it is none, whoever has written it."""
    return float(value) if isinstance(value, int | float) else otherwise


def _fault(argument: object) -> str:
    if isinstance(argument, str):
        return "" if _encodable(argument) else "half a surrogate pair"
    if isinstance(argument, int):
        return "" if _LOWEST <= argument <= _HIGHEST else "an integer beyond 64 bits"
    if isinstance(argument, float):
        return "" if math.isfinite(argument) else "a number that is not finite"
    return "" if argument is None else f"a value of type {type(argument).__name__}"


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: object) -> Value:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    assert value is None or isinstance(value, str | int)
    return value
