"""The port to a remote: a database that runs SQL in transactions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from .failures import Refused

Value: TypeAlias = str | int | float | None
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1


class SqlStatement(msgspec.Struct, frozen=True):
    """One SQL statement. `args` fill its `?` in order, or its `?1`, `?2` … by number."""

    sql: str
    args: tuple[Value, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """The result of one statement: its rows, and the number of rows that it changed.

    `affected` is 0 for an upsert whose condition did not hold.
    """

    rows: tuple[tuple[Value, ...], ...]
    affected: int


class Remote(Protocol):
    """A remote database. Safe to use from several tasks of one event loop.

    Integers are exact to 64 bits, text is returned unchanged, NUL included. Values of the database
    that are not a `Value` are read alike everywhere: a blob as text, with U+FFFD for invalid UTF-8;
    an infinite number as None.
    """

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        """Run the statements in order, in one transaction: all of them or none.

        A batch that raised `TryLater`, or was cancelled, may have been applied, since only the
        answer may have been lost: repeating it must do no harm. It may be repeated automatically if
        the connection broke.

        Args:
            statements: none of them may begin or end a transaction. A batch that reads and then
                writes may conflict with another device (`TryLater`, "busy"): write first.

        Returns:
            One result for each statement.

        Raises:
            SyncError: nothing else. Unless it is `TryLater`, nothing was changed.
        """

    async def close(self) -> None:
        """Close the connection after the running batch. May be called twice."""


async def rows_of(remote: Remote, sql: str, *args: Value) -> tuple[tuple[Value, ...], ...]:
    """The rows of one statement; raises as `Remote.batch`."""
    [result] = await remote.batch([SqlStatement(sql, args)])
    return result.rows


def check(statements: Sequence[SqlStatement]) -> None:
    """Refuse values that no remote can store, before anything is sent.

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
    """A value as an integer; 0 if it is not a number of 64 bits."""
    if not isinstance(value, int | float) or not _LOWEST <= value <= _HIGHEST:
        return 0
    return int(value)


def _fault(argument: object) -> str:
    if isinstance(argument, str):
        try:
            argument.encode()
        except UnicodeEncodeError:
            return "a lone surrogate"
        return ""
    if isinstance(argument, int):
        return "" if _LOWEST <= argument <= _HIGHEST else "an integer beyond 64 bits"
    if isinstance(argument, float):
        return "" if math.isfinite(argument) else "a number that is not finite"
    return "" if argument is None else f"a value of type {type(argument).__name__}"


def _plain(value: object) -> Value:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    assert value is None or isinstance(value, str | int)
    return value
