"""The port to a remote: a place that runs SQL in transactions. Nothing here knows which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

Value: TypeAlias = str | int | float | None


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement. `args` fill its `?` in order, or its `?1`, `?2` … by number."""

    sql: str
    args: tuple[Value, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """What came of one statement: its rows, and how many rows it changed itself.

    `affected` is 0 for an upsert whose condition did not hold.
    """

    rows: tuple[tuple[Value, ...], ...]
    affected: int


class Remote(Protocol):
    """A database somewhere else. Safe to use from several tasks of one event loop.

    Integers are exact to 64 bits, text comes back to the last character, NUL included. What the
    database may hold but no `Value` can be is read alike everywhere: a blob as text, with U+FFFD
    where it is not UTF-8; an infinite number as None.
    """

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        """Run the statements in order, in one transaction: all of them or none.

        A batch that raised `TryLater` may have been applied all the same, since the answer may
        have been lost, and so may one that was cancelled: it must do no harm when run again. It
        may be run twice by itself where the connection broke.

        Args:
            statements: none of them may begin or end a transaction. One that reads and then
                writes may find that another device was quicker (`TryLater`, "busy"): write first.

        Returns:
            One result for each statement.

        Raises:
            SyncError: nothing else. Unless it is `TryLater`, nothing was changed.
        """

    async def close(self) -> None:
        """Give up the connection, after what is under way. May be called twice."""
