"""Reading the tables of foreign databases row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from ...memory.records import Json
from ..found import ReadFault
from ..sqlite_copy import Copy
from ..values import moment


def table_rows(
    copy: Copy, table: str, order: str = "rowid"
) -> Iterator[dict[str, Any] | ReadFault]:
    """The rows of a table; where the file is damaged, a fault says after how many."""
    number = 0
    try:
        for row in copy.rows(table, order):
            number += 1
            yield row
    except sqlite3.DatabaseError as error:
        yield ReadFault(f"{copy.path}: {table}", f"damaged after {number} rows ({error})")


def seconds(*given: Json) -> float | None:
    """The first that is a time, in seconds since the epoch; databases hold milliseconds, too."""
    return next((found for one in given if (found := moment(one)) is not None), None)
