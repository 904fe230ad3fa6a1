"""Memories as rows: a table with columns and full text, instead of JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from thermocline.sync import Clocks, Fields, Row

from ..errors import StoreDamaged
from ..memory.indexing import indexed_columns
from ..memory.records import Memory, Metadata
from ..memory.scoring import score_of
from ..memory.similarity import text_digest
from ..memory.warm import record_size
from . import full_text, introductions, people
from .database import in_pages
from .kind import ROWS
from .transaction import Transaction

# `group` is an SQL keyword; its column is `grp`.
FIELDS: Final = tuple("grp" if name == "group" else name for name in Memory.__struct_fields__)
# The full-text index of their texts.
INDEX: Final = "memory_fts"
SELECT: Final = f"SELECT {', '.join(FIELDS)} FROM memories"
# Derived on each device: from scores and caps, and from the uses that all devices have counted.
DERIVED: Final = frozenset({"last_accessed_at", "access_count", "archived_at"})
# The fields in the row of a memory.
SAID: Final = frozenset(Memory.__struct_fields__) - DERIVED - {"id"}

_SAID: Final = tuple(name for name in Memory.__struct_fields__ if name in SAID)
_DERIVED: Final = tuple(sorted(DERIVED))
_COLUMNS: Final = [
    *("grp" if name == "group" else name for name in _SAID),
    "clocks",
    "extra",
    "size",
    "digest",
]
_UPDATE: Final = (
    f"UPDATE memories SET {', '.join(f'{name} = ?' for name in _COLUMNS)}"
    " WHERE id = ? RETURNING row"
)
INSERT: Final = (
    f"INSERT INTO memories (row, id, {', '.join((*_COLUMNS, *_DERIVED))})"
    f" VALUES ({', '.join('?' * (2 + len(_COLUMNS) + len(_DERIVED)))})"
)
_BY_ROW: Final = "FROM memories WHERE row > ? ORDER BY row LIMIT ?"
_TAGS = FIELDS.index("tags")
_PINNED = FIELDS.index("pinned")
_STANDING = FIELDS.index("standing")
_METADATA = FIELDS.index("metadata")
_DATA = FIELDS.index("data")
_NO_METADATA = "{}"
_AT_ONCE: Final = 500
# Uses counted elsewhere, which a memory brings in its row.
BROUGHT: Final = ("access_count", "last_accessed_at")
_DEFAULTS: Final = {
    field.name: field.default for field in msgspec.structs.fields(Memory) if field.name in SAID
}


def from_row(row: Sequence[Any]) -> Memory:
    """The memory in a row of `SELECT`."""
    values = list(row)
    tags, metadata = values[_TAGS], values[_METADATA]
    values[_PINNED] = bool(values[_PINNED])
    values[_STANDING] = bool(values[_STANDING])
    try:
        values[_TAGS] = () if tags == "[]" else tuple(msgspec.json.decode(tags))
        values[_METADATA] = (
            Metadata() if metadata == _NO_METADATA else msgspec.json.decode(metadata, type=Metadata)
        )
        if values[_DATA] is not None:
            values[_DATA] = msgspec.json.decode(values[_DATA])
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _damaged(values[0]) from error
    return Memory(**dict(zip(Memory.__struct_fields__, values, strict=True)))


def said(memory: Memory) -> Fields:
    """A memory as the data of its row, without defaults and derived fields."""
    fields: Fields = {}
    for name, default in _DEFAULTS.items():
        value = getattr(memory, name)
        if value != default:
            fields[name] = value
    if memory.tags:
        fields["tags"] = list(memory.tags)
    if "metadata" in fields:
        lists = msgspec.structs.asdict(memory.metadata)
        fields["metadata"] = {name: list(found) for name, found in lists.items() if found}
    return fields


def memory_of(row: Row) -> Memory:
    """The memory in the data of a row, with only the uses that came with it.

    Raises:
        msgspec.ValidationError: the data is not valid.
    """
    fields: Fields = {name: v for name, v in row.data.items() if name in SAID or name in BROUGHT}
    fields["id"] = row.id
    return msgspec.convert(fields, Memory)


class MemoryTable:
    """The table `memories`. Tombstones of memories are in `rows`."""

    def load(self, db: sqlite3.Connection, kind: str, key: str) -> Row | None:
        """The current row, deleted or not."""
        found = db.execute(
            f"SELECT clocks, extra, {', '.join(FIELDS)} FROM memories WHERE id = ?", (key,)
        ).fetchone()
        return _row(found) if found is not None else ROWS.load(db, kind, key)

    def store(self, tx: Transaction, before: Row | None, row: Row, *, live: bool) -> None:
        """Write or delete the columns and the full text."""
        known = memory_of(before) if before is not None and "text" in before.data else None
        if not live:
            if known is not None:
                _take_away(tx, known)
            ROWS.store(tx, before, row, live=False)
            return
        memory = memory_of(row)
        if known is not None:
            written = tx.db.execute(_UPDATE, [*_said_values(memory, row), memory.id]).fetchone()
            if known.actor != memory.actor:
                people.drop(tx, known.actor)
                people.add(tx, memory.actor)
            if _entry(0, known) != _entry(0, memory):
                _unindex(tx, written[0], known)
                _index(tx, [_entry(written[0], memory)])
            return
        if before is not None:
            tx.db.execute("DELETE FROM rows WHERE kind = ? AND id = ?", (row.kind, row.id))
        self.add(tx, [row])

    def add(self, tx: Transaction, rows: Sequence[Row]) -> None:
        """Store live memories that are new."""
        last = tx.db.execute("SELECT coalesce(max(row), 0) FROM memories").fetchone()[0]
        values, actors = [], set()
        for number, row in enumerate(rows, last + 1):
            memory = memory_of(row)
            if tx.warm_floor is not None and _score(tx, memory) < tx.warm_floor:
                memory = msgspec.structs.replace(memory, archived_at=tx.now)
            derived = [getattr(memory, name) for name in _DERIVED]
            values.append([number, memory.id, *_said_values(memory, row), *derived])
            tx.unindexed.append(_entry(number, memory))
            actors.add(memory.actor)
        tx.db.executemany(INSERT, values)
        if len(tx.unindexed) >= _AT_ONCE:
            index_new(tx)
        for name in actors:
            people.add(tx, name)

    def normal(self, row: Row) -> Row:
        """The row with numbers of the column's type, and without fields at their default."""
        if "text" not in row.data:
            return row
        extra = {name: value for name, value in row.data.items() if name not in SAID}
        return _normal(memory_of(row), extra, row.clocks)

    def known(self, db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> set[str]:
        """Those of the ids for which a memory or its tombstone exists."""
        found = db.execute(
            "SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?))",
            (_json(keys),),
        )
        return {key for (key,) in found} | ROWS.known(db, kind, keys)

    def every(self, db: sqlite3.Connection, kind: str) -> Iterator[Row]:
        """Each row, including deleted ones, a few hundred at a time."""
        columns = f"row, clocks, extra, {', '.join(FIELDS)}"
        for _, *found in in_pages(db, f"SELECT {columns} {_BY_ROW}", after=0):
            yield _row(found)
        yield from ROWS.every(db, kind)


def index_new(tx: Transaction) -> None:
    """Add the texts of the transaction's new memories to the full-text index.

    They are collected because the index is written out at every savepoint after a change of it.
    """
    new, tx.unindexed = tx.unindexed, []
    _index(tx, new)


def reindex(tx: Transaction) -> None:
    """Build the full-text index and the table of people from the memories."""
    full_text.clear(tx, INDEX)
    introductions.clear(tx)
    tx.unindexed = []
    tx.db.execute("DELETE FROM people")
    for (name,) in tx.db.execute("SELECT DISTINCT actor FROM memories WHERE actor <> ''"):
        people.add(tx, name)
    pages = in_pages(tx.db, f"SELECT row, {', '.join(FIELDS)} {_BY_ROW}", after=0)
    _index(tx, (_entry(row, from_row(rest)) for row, *rest in pages))


def _entry(number: int, memory: Memory) -> full_text.IndexEntry:
    is_turn = bool(memory.group) and memory.position is not None
    return full_text.IndexEntry(number, indexed_columns(memory), memory.created_at, is_turn)


def _index(tx: Transaction, entries: Iterable[full_text.IndexEntry]) -> None:
    for batch in full_text.batches(entries):
        full_text.add(tx, INDEX, batch)
        for entry in batch:
            if not entry.is_turn:
                introductions.add(tx, entry.row, entry.columns[0])


def _row(found: Sequence[Any]) -> Row:
    clocks, extra, *columns = found
    try:
        others = {} if extra is None else msgspec.json.decode(extra)
        stamps = msgspec.json.decode(clocks, type=Clocks)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _damaged(columns[0]) from error
    return _normal(from_row(columns), others, stamps)


def _normal(memory: Memory, extra: Fields, clocks: Clocks) -> Row:
    data = said(memory) | extra
    if memory.tags:
        # As the merge of rows normalizes them.
        data["tags"].sort()
    return Row(
        kind="memory",
        id=memory.id,
        data=dict(sorted(data.items())),
        clocks=clocks,
    )


def _said_values(memory: Memory, row: Row) -> list[Any]:
    values = {name: getattr(memory, name) for name in _SAID}
    metadata = memory.metadata
    plain = not (metadata.urls or metadata.commands or metadata.paths)
    values["tags"] = _json(memory.tags)
    values["metadata"] = _NO_METADATA if plain else _json(metadata)
    values["data"] = None if memory.data is None else _json(memory.data)
    extra = {name: value for name, value in row.data.items() if name not in SAID}
    clocks = row.encoded()[1]
    unknown = _json(extra) if extra else None
    return [*values.values(), clocks, unknown, record_size(memory), text_digest(memory.text)]


def _score(tx: Transaction, memory: Memory) -> float:
    return score_of(memory, tx.now, tx.rules.scoring)


def _damaged(key: str) -> StoreDamaged:
    return StoreDamaged(f"cannot trust the memory '{key}': it is not what was written")


def _take_away(tx: Transaction, memory: Memory) -> None:
    gone = tx.db.execute("DELETE FROM memories WHERE id = ? RETURNING row", (memory.id,))
    _unindex(tx, gone.fetchone()[0], memory)
    people.drop(tx, memory.actor)


def _unindex(tx: Transaction, number: int, memory: Memory) -> None:
    index_new(tx)
    full_text.remove(tx, INDEX, number, indexed_columns(memory))
    introductions.remove(tx, number)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
