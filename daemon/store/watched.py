"""The paths that were added to an agent's index, beside its workspace."""

from __future__ import annotations

import os
import sqlite3
from typing import Final

from thermocline.sync import Row

from ..errors import InvalidInput, NotFound
from ..memory.checks import check_time
from . import rows
from .rows import Kind
from .transaction import Transaction

# Published when a path is added or removed, here or on another device.
EVENT: Final = "files.watched"


def paths(db: sqlite3.Connection) -> list[str]:
    """The absolute paths, in order."""
    cursor = db.execute("SELECT id FROM rows WHERE kind = 'watched' AND live ORDER BY id")
    return [path for (path,) in cursor]


def add(tx: Transaction, path: str) -> bool:
    """Add an absolute path; False: it was already added."""
    if rows.load(tx.db, KIND, path) is not None:
        return False
    rows.write(tx, KIND, path, {"added_at": tx.now})
    return True


def remove(tx: Transaction, path: str) -> None:
    """Remove a path; `NotFound` if it was not added."""
    if rows.load(tx.db, KIND, path) is None:
        raise NotFound(f"'{path}' is not a path that was added", field="path")
    rows.write(tx, KIND, path, None)


def _check(row: Row) -> None:
    check_time(row.data.get("added_at", ""), field="added_at")
    if not row.id.startswith("/") or os.path.normpath(row.id) != row.id or "\0" in row.id:
        raise InvalidInput(f"cannot watch '{row.id}': it is not an absolute path", field="id")


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:  # noqa: ARG001
    tx.tell(EVENT, path=after.id)


# No history: undo needs a lower role than adding.
KIND: Final = Kind(
    name="watched",
    fields=frozenset({"added_at"}),
    history=False,
    check=_check,
    applied=_applied,
)
