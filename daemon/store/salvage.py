"""Reading what can still be read of a damaged database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ..memory.records import Memory
from .rows import FIELDS, from_row

# Where the damage hides the highest row: rows cannot be smaller than this on a page.
_SMALLEST_ROW: Final = 40
_SELECT: Final = f"SELECT {', '.join(FIELDS)} FROM memories"


class Salvaged(msgspec.Struct, frozen=True):
    """What was read, table by table; an empty table may have been unreadable."""

    memories: tuple[Memory, ...]
    hot: tuple[tuple[Any, ...], ...]
    kv: tuple[tuple[Any, ...], ...]
    tree: tuple[tuple[Any, ...], ...]
    metrics: tuple[tuple[Any, ...], ...]
    tombstones: tuple[tuple[Any, ...], ...]


def salvage(path: Path) -> Salvaged:
    """All that can be read of the database at `path`. Raises nothing about damage."""
    try:
        db = sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None)
    except sqlite3.Error:
        return Salvaged((), (), (), (), (), ())
    try:
        return Salvaged(
            memories=tuple(_memories(db, path)),
            hot=_table(db, "SELECT section, key, value, position, clock FROM hot"),
            kv=_table(db, "SELECT key, value, created_at FROM kv"),
            tree=_table(db, "SELECT path, desc, last_access FROM tree"),
            metrics=_table(db, "SELECT name, value FROM metrics"),
            tombstones=_table(db, "SELECT kind, id, deleted_at, clock, device FROM tombstones"),
        )
    finally:
        db.close()


def _table(db: sqlite3.Connection, query: str) -> tuple[tuple[Any, ...], ...]:
    rows: list[tuple[Any, ...]] = []
    try:
        rows.extend(db.execute(query))
    except (sqlite3.Error, UnicodeDecodeError):
        return tuple(rows)
    return tuple(rows)


def _memories(db: sqlite3.Connection, path: Path) -> Iterator[Memory]:
    """The readable rows: a range that fails is halved until only the bad rows are left out."""
    ranges = [(0, _highest(db, path))]
    while ranges:
        low, high = ranges.pop()
        try:
            rows = db.execute(f"{_SELECT} WHERE row >= ? AND row <= ?", (low, high)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):
            if low < high:
                middle = (low + high) // 2
                ranges += [(low, middle), (middle + 1, high)]
            continue
        for row in rows:
            memory = _decoded(row)
            if memory is not None:
                yield memory


def _decoded(row: tuple[Any, ...]) -> Memory | None:
    try:
        memory = from_row(row)
        # The types of a damaged row are anyone's guess: only a whole record comes through.
        return msgspec.convert(msgspec.to_builtins(memory), Memory)
    except (msgspec.MsgspecError, TypeError, ValueError):
        return None


def _highest(db: sqlite3.Connection, path: Path) -> int:
    try:
        return int(db.execute("SELECT max(row) FROM memories").fetchone()[0] or 0)
    except sqlite3.Error:
        return path.stat().st_size // _SMALLEST_ROW
