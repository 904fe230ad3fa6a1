"""The paths that were added to an agent's index, beside its workspace."""

from __future__ import annotations

import os
import sqlite3
from typing import Final

import msgspec

from ...errors import InvalidInput
from ..database.record_kind import RecordKind
from ..database.transaction import Transaction

# Published when a path is added or removed, here or on another device.
EVENT: Final = "files.watched"


class Watched(msgspec.Struct, frozen=True):
    """An absolute path, and when it was added."""

    path: str
    added_at: float


def _is_absolute(path: str, field: str) -> None:
    if not path.startswith("/") or os.path.normpath(path) != path or "\0" in path:
        raise InvalidInput(f"cannot watch '{path}': it is not an absolute path", field=field)


# No history: undo needs a lower role than adding.
PATHS: Final = RecordKind(
    "watched",
    Watched,
    missing="'{}' is not a path that was added",
    field="path",
    checks={"path": _is_absolute},
    history=False,
    applied=lambda tx, _, after: tx.emit(EVENT, path=after.id),
)


def paths(db: sqlite3.Connection) -> list[str]:
    """The absolute paths, in order."""
    return [watched.path for watched in PATHS.select(db, "true")]


def add(tx: Transaction, path: str) -> bool:
    """Add an absolute path; False: it was already added."""
    is_new = PATHS.find(tx.db, path) is None
    if is_new:
        PATHS.put(tx, Watched(path, tx.now))
    return is_new
