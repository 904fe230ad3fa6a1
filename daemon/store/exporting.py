"""Everything of one agent as lines of JSON, a page at a time.

A page is read in one transaction and no transaction stays open between two, so that a slow
reader keeps nothing from going on: each line is true at its own moment.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from ..memory.records import Memory
from . import hot_rows, tree_rows
from .rows import FIELDS, from_row
from .transaction import Rules

# A memory's text may have 64 KB, and its data as much as a request: so a page ends by bytes, too.
_ROWS: Final = 500
_BYTES: Final = 524_288


class Page(msgspec.Struct, frozen=True):
    """Some lines, and the key behind which the next page begins; None after the last."""

    lines: bytes
    after: Any


def memories(db: sqlite3.Connection, after: int, view: Callable[[Memory], object]) -> Page:
    """The memories behind a row, merged, expired and archived ones among them.

    Args:
        db: a reader.
        after: the row; 0 for the first page.
        view: makes of a memory what its line shows.
    """
    rows = db.execute(
        f"SELECT row, {', '.join(FIELDS)} FROM memories WHERE row > ? ORDER BY row LIMIT ?",
        (after, _ROWS),
    )
    return _page((number, view(from_row(rest))) for number, *rest in rows)


def merges(db: sqlite3.Connection, after: int) -> Page:
    """What undoing a merge takes, in the order of the merges."""
    rows = db.execute(
        "SELECT row, record FROM merges WHERE row > ? ORDER BY row LIMIT ?", (after, _ROWS)
    )
    return _page(
        (number, {"kind": "merge", **msgspec.json.decode(record)}) for number, record in rows
    )


def pairs(db: sqlite3.Connection, after: str) -> Page:
    """The pairs whose key is behind another; no key is empty."""
    rows = db.execute(
        "SELECT key, value, created_at, updated_at FROM kv WHERE key > ? ORDER BY key LIMIT ?",
        (after, _ROWS),
    )
    names = ("kind", "key", "value", "created_at", "updated_at")
    return _page((row[0], dict(zip(names, ("key_value", *row), strict=True))) for row in rows)


def state(db: sqlite3.Connection, now: float, rules: Rules) -> bytes:
    """The hot document and the categories: they are few."""
    return b"".join(_line(one) for one in _state(db, now, rules))


def _state(db: sqlite3.Connection, now: float, rules: Rules) -> Iterator[dict[str, Any]]:
    yield {"kind": "hot", "state": hot_rows.document(db, now, rules)}
    for path, node in sorted(tree_rows.load(db).items()):
        yield {"kind": "category", "path": path, **msgspec.structs.asdict(node)}


def _page(found: Iterable[tuple[Any, object]]) -> Page:
    lines = bytearray()
    count, last = 0, None
    for key, value in found:
        lines += _line(value)
        count, last = count + 1, key
        if len(lines) >= _BYTES:
            return Page(bytes(lines), last)
    return Page(bytes(lines), last if count == _ROWS else None)


def _line(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"
