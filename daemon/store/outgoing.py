"""The rows of an agent as they travel to the replica."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final

import msgspec

from thermocline.sync import Outgoing, Row, View

from ..memory.records import Memory
from . import (
    files,
    hot_rows,
    key_values,
    link,
    memory_rows,
    merge_rows,
    merging,
    remote_rows,
    tree_rows,
    uses_rows,
)
from .remote_rows import Note

METRIC_KIND: Final = "metric"
# The kinds that make up the critical state.
CRITICAL: Final = frozenset({hot_rows.KIND, tree_rows.KIND})


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a memory is filed."""

    category: str
    original_category: str = ""
    archived_at: float | None = None


class HotEntry(msgspec.Struct, frozen=True):
    """An entry of the hot state."""

    value: Any
    position: int


class TreeNode(msgspec.Struct, frozen=True):
    """A category; the time of its last use is taken at its latest."""

    desc: str
    last_access: float


class Pair(msgspec.Struct, frozen=True):
    """A key's value."""

    value: str
    created_at: float
    updated_at: float


class Merge(msgspec.Struct, frozen=True):
    """What undoing a merge needs."""

    kept: str
    record: msgspec.Raw


class Use(msgspec.Struct, frozen=True):
    """How often one device has used one memory, and when last."""

    count: int
    last_at: float


def read(db: sqlite3.Connection, kinds: frozenset[str] | None, limit: int) -> list[Outgoing]:
    """What the replica still has to hear, with the rows as they stand."""
    return [Outgoing(mark, row_of(db, mark.kind, mark.id)) for mark in link.marks(db, kinds, limit)]


def row_of(db: sqlite3.Connection, kind: str, key: str) -> Row | None:
    """One row as it travels, or the trace of its deletion; None: there is neither."""
    find = _FINDERS.get(kind)
    found = find(db, key) if find else None
    if found is not None:
        return found
    buried = db.execute(
        "SELECT clock, device FROM tombstones WHERE kind = ? AND id = ?", (kind, key)
    ).fetchone()
    return (
        None
        if buried is None
        else Row(kind=kind, id=key, data=None, clock=buried[0], device=buried[1])
    )


def memory_row(memory: Memory, uses: int) -> Row:
    """A memory as it travels.

    Args:
        memory: it.
        uses: how many of its accesses devices have counted; those travel by themselves.
    """
    said = msgspec.structs.replace(
        memory,
        category="general",
        original_category="",
        archived_at=None,
        access_count=memory.access_count - uses,
        clock=0,
        device="",
        filed_clock=0,
        filed_device="",
    )
    place = Place(memory.category, memory.original_category, memory.archived_at)
    return Row(
        kind=memory_rows.KIND,
        id=memory.id,
        data=_json(said),
        clock=memory.clock,
        device=memory.device,
        place=_json(place),
        place_clock=memory.filed_clock,
        place_device=memory.filed_device,
        view=View(
            text=memory.text.replace("\0", "\N{REPLACEMENT CHARACTER}"),
            category=memory.category,
            importance=memory.importance,
            created_at=int(memory.created_at),
            access_count=memory.access_count,
        ),
    )


def move_row(note: Note) -> Row:
    """Where a memory is filed that the replica alone holds, as that travels."""
    place = Place(note.category, note.original_category, note.archived_at)
    return Row(
        kind=memory_rows.KIND,
        id=note.id,
        data=None,
        clock=note.clock,
        device=note.device,
        place=_json(place),
        place_clock=note.filed_clock,
        place_device=note.filed_device,
        view=View(
            text="",
            category=note.category,
            importance=note.importance,
            created_at=int(note.created_at),
            access_count=note.accesses,
        ),
    )


def _memory(db: sqlite3.Connection, key: str) -> Row | None:
    memory = memory_rows.fetch(db, key)
    if memory is not None:
        return memory_row(memory, uses_rows.total(db, key))
    note = remote_rows.find(db, key)
    return None if note is None else move_row(note)


def _hot(db: sqlite3.Connection, key: str) -> Row | None:
    section, _, name = key.partition("/")
    row = db.execute(
        "SELECT value, position, clock, device FROM hot WHERE section = ? AND key = ?",
        (section, name),
    ).fetchone()
    if row is None:
        return None
    entry = HotEntry(msgspec.Raw(row[0].encode()), row[1])
    return _object(hot_rows.KIND, key, entry, row[2], row[3])


def _tree(db: sqlite3.Connection, path: str) -> Row | None:
    row = db.execute(
        "SELECT desc, last_access, clock, device FROM tree WHERE path = ?", (path,)
    ).fetchone()
    return row and _object(tree_rows.KIND, path, TreeNode(row[0], row[1]), row[2], row[3])


def _pair(db: sqlite3.Connection, key: str) -> Row | None:
    row = db.execute(
        "SELECT value, created_at, updated_at, clock, device FROM kv WHERE key = ?", (key,)
    ).fetchone()
    return row and _object(key_values.KIND, key, Pair(*row[:3]), row[3], row[4])


def _merge(db: sqlite3.Connection, retired: str) -> Row | None:
    row = db.execute(
        "SELECT kept, record, clock, device FROM merges WHERE id = ?", (retired,)
    ).fetchone()
    if row is None:
        return None
    merge = Merge(row[0], msgspec.Raw(row[1].encode()))
    return _object(merge_rows.KIND, retired, merge, row[2], row[3])


def _apart(db: sqlite3.Connection, key: str) -> Row | None:
    row = db.execute("SELECT clock, device FROM kept_apart WHERE id = ?", (key,)).fetchone()
    return row and _object(merging.APART, key, {}, row[0], row[1])


def _use(db: sqlite3.Connection, key: str) -> Row | None:
    memory, device = uses_rows.parts_of(key)
    row = db.execute(
        "SELECT count, last_at, clock FROM uses WHERE id = ? AND device = ?", (memory, device)
    ).fetchone()
    return row and _object(uses_rows.KIND, key, Use(row[0], row[1]), row[2], device)


def _file(db: sqlite3.Connection, path: str) -> Row | None:
    row = db.execute(
        "SELECT content, modified_at, seen, clock, device FROM files WHERE path = ?", (path,)
    ).fetchone()
    if row is None:
        return None
    content = files.content(*row[:3])
    return _object(files.KIND, path, content, row[3], row[4])


def _metric(db: sqlite3.Connection, key: str) -> Row | None:
    name, _, device = key.rpartition("/")
    row = db.execute(
        "SELECT value, clock FROM metrics WHERE name = ? AND device = ?", (name, device)
    ).fetchone()
    return row and _object(METRIC_KIND, key, row[0], row[1], device)


_FINDERS: Final[dict[str, Callable[[sqlite3.Connection, str], Row | None]]] = {
    memory_rows.KIND: _memory,
    hot_rows.KIND: _hot,
    tree_rows.KIND: _tree,
    key_values.KIND: _pair,
    merge_rows.KIND: _merge,
    merging.APART: _apart,
    uses_rows.KIND: _use,
    METRIC_KIND: _metric,
    files.KIND: _file,
}
# Every kind of row that travels.
KINDS: Final = frozenset(_FINDERS)


def _object(kind: str, key: str, value: Any, clock: int, device: str) -> Row:
    return Row(kind=kind, id=key, data=_json(value), clock=clock, device=device)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
