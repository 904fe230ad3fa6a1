"""The rows of memories, and what follows from each version: links, uses, categories."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import msgspec

from thermocline.sync import Clocks, Fields, Row, Stamp, stamps

from ...errors import InvalidInput, StoreDamaged
from ...memory import checks
from ...memory.indexing import indexed_columns
from ...memory.records import DEFAULT_CATEGORY, Memory, Metadata
from ...memory.scoring import record_size
from ...memory.similarity import text_digest
from ..database import full_text, rows
from ..database.connection import batches, column, scalar, to_json
from ..database.memory_database import in_pages
from ..database.rows import Kind, RowTable
from ..database.transaction import DeletedMemory, IndexEntry, StateFile, Transaction
from . import entity_rows, names, tree_rows, uses

# `group` is an SQL keyword; its column is `grp`.
FIELDS: Final = tuple("grp" if name == "group" else name for name in Memory.__struct_fields__)
# The full-text index of their texts.
INDEX: Final = "memory_fts"
SELECT: Final = f"SELECT {', '.join(FIELDS)} FROM memories"
# Derived on each device: from scores and caps, and from the uses that all devices have counted.
DERIVED: Final = ("access_count", "archived_at", "last_accessed_at")
# The fields in the row of a memory.
ROW_FIELDS: Final = frozenset(Memory.__struct_fields__) - {"id", *DERIVED}

_ROW_NAMES: Final = tuple(sorted(ROW_FIELDS))
_row_values: Final = attrgetter(*_ROW_NAMES)
# What decides which entities a memory mentions, and how that counts.
_naming: Final = attrgetter("data", "merged_into", "created_at")
_COLUMNS: Final = [
    *("grp" if name == "group" else name for name in _ROW_NAMES),
    "clocks",
    "extra",
    "size",
    "digest",
]
_UPDATE: Final = (
    f"UPDATE memories SET {', '.join(f'{name} = ?' for name in _COLUMNS)}"
    " WHERE id = ? RETURNING row"
)
_INSERT: Final = (
    f"INSERT INTO memories (id, {', '.join((*_COLUMNS, *DERIVED))}, stored_at)"
    f" VALUES ({', '.join('?' * (2 + len(_COLUMNS) + len(DERIVED)))})"
)
# What `_row` reads.
_ROW: Final = f"{', '.join(FIELDS)}, clocks, extra"
_BY_ROW: Final = "FROM memories WHERE row > ? ORDER BY row LIMIT ?"
_EARLIER_TEXTS: Final = (
    "SELECT DISTINCT data ->> 'text' FROM history WHERE kind = ? AND id = ? AND data IS NOT NULL"
)
_AT_TAGS, _AT_METADATA, _AT_DATA = map(_ROW_NAMES.index, ("tags", "metadata", "data"))
_NO_METADATA = "{}"
_AT_ONCE: Final = 500
# Uses counted elsewhere, which a memory brings in its row.
BROUGHT: Final = ("access_count", "last_accessed_at")
_READ: Final = ROW_FIELDS.union(BROUGHT)
_DEFAULTS: Final = {field.name: field.default for field in msgspec.structs.fields(Memory)}
_ROW_DEFAULTS: Final = [_DEFAULTS[name] for name in _ROW_NAMES]
_tags_decoder: Final = msgspec.json.Decoder(tuple[str, ...])
_metadata_decoder: Final = msgspec.json.Decoder(Metadata)
_clocks_decoder: Final = msgspec.json.Decoder(Clocks)


def from_row(row: Sequence[Any]) -> Memory:
    """The memory in a row of `SELECT`."""
    values = dict(zip(Memory.__struct_fields__, row, strict=True))
    tags, metadata, data = values["tags"], values["metadata"], values["data"]
    values["pinned"], values["standing"] = bool(values["pinned"]), bool(values["standing"])
    try:
        values["tags"] = () if tags == "[]" else _tags_decoder.decode(tags)
        plain = metadata == _NO_METADATA
        values["metadata"] = Metadata() if plain else _metadata_decoder.decode(metadata)
        if data is not None:
            values["data"] = msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _damaged(values["id"]) from error
    return Memory(**values)


def to_row(memory: Memory, *, with_uses: bool = False) -> Fields:
    """A memory as the data of its row, in their order, without defaults and derived fields.

    `with_uses`: with the uses that the memory brings from elsewhere.
    """
    values = zip(_ROW_NAMES, _row_values(memory), _ROW_DEFAULTS, strict=True)
    fields: Fields = {name: value for name, value, default in values if value != default}
    if "tags" in fields:
        # As the merge of rows normalizes them.
        fields["tags"] = sorted(memory.tags)
    if "metadata" in fields:
        lists = msgspec.structs.asdict(memory.metadata).items()
        fields["metadata"] = {name: list(values) for name, values in lists if values}
    if memory.data is not None:
        fields["data"] = msgspec.to_builtins(memory.data)
    if with_uses and memory.access_count:
        fields["access_count"] = memory.access_count
    if with_uses and memory.last_accessed_at is not None:
        fields["last_accessed_at"] = memory.last_accessed_at
    return fields


def memory_of(row: Row) -> Memory:
    """The memory in a row, with only the uses that came with it; else `ValidationError`."""
    fields = row.data
    if not fields.keys() <= _READ:
        fields = {name: value for name, value in fields.items() if name in _READ}
    return msgspec.convert(fields | {"id": row.id}, Memory)


class MemoryTable(RowTable):
    """The table `memories`. Tombstones of memories are in `rows`."""

    def load(self, db: sqlite3.Connection, kind: str, key: str) -> Row | None:
        row = db.execute(f"SELECT {_ROW} FROM memories WHERE id = ?", (key,)).fetchone()
        return _row(row) if row is not None else super().load(db, kind, key)

    def load_all(self, db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> dict[str, Row]:
        sql = f"SELECT {_ROW} FROM memories WHERE id IN (SELECT value FROM json_each(?))"
        live = {row.id: row for row in map(_row, db.execute(sql, (to_json(keys),)))}
        return live if len(live) == len(keys) else super().load_all(db, kind, keys) | live

    def store(self, tx: Transaction, before: Row | None, row: Row, *, live: bool) -> None:
        """Write or delete the columns, and what the indexes have of them."""
        known = memory_of(before) if before is not None and "text" in before.data else None
        memory = memory_of(row) if live else None
        if known is None:
            if memory is None:
                super().store(tx, before, row, live=False)
                return
            if before is not None:
                tx.db.execute("DELETE FROM rows WHERE kind = ? AND id = ?", (row.kind, row.id))
            self.add(tx, [row], [memory])
            return
        named = set() if known.data is None else entity_rows.named_by(tx.db, known.id)
        if memory is None:
            gone = tx.db.execute("DELETE FROM memories WHERE id = ? RETURNING row", (known.id,))
            _unindex(tx, gone.fetchone()[0], known)
            names.drop_person(tx, known.actor)
            super().store(tx, before, row, live=False)
        else:
            values = (*_column_values(tx, memory, row), memory.id)
            written = tx.db.execute(_UPDATE, values).fetchone()
            if known.actor != memory.actor:
                names.drop_person(tx, known.actor)
                names.add_person(tx, memory.actor)
            if entry_of(0, known) != entry_of(0, memory):
                _unindex(tx, written[0], known)
                index(tx, [entry_of(written[0], memory)])
        if memory is None or _naming(memory) != _naming(known):
            entity_rows.refresh(tx, named | entity_rows.named_by(tx.db, known.id))

    def add(self, tx: Transaction, rows: Sequence[Row], memories: Sequence[Memory]) -> None:
        if tx.is_bulk:
            values = [_values(tx, *pair) for pair in zip(memories, rows, strict=True)]
            tx.db.executemany(_INSERT, values)
        else:
            for memory, row in zip(memories, rows, strict=True):
                number = tx.db.execute(_INSERT, _values(tx, memory, row)).lastrowid
                assert number is not None
                tx.unindexed.append(entry_of(number, memory))
                if len(tx.unindexed) >= _AT_ONCE:
                    index_new(tx)
        for name in {memory.actor for memory in memories} - {""}:
            names.add_person(tx, name)
        for memory in memories:
            if memory.data is not None:
                entity_rows.refresh(tx, entity_rows.named_by(tx.db, memory.id))

    def normal(self, row: Row) -> Row:
        """The row with numbers of the column's type, and without fields at their default."""
        if "text" not in row.data:
            return row
        extra = {name: value for name, value in row.data.items() if name not in ROW_FIELDS}
        return _with_extra(row.id, to_row(memory_of(row)), extra, row.clocks)

    def every(self, db: sqlite3.Connection, kind: str) -> Iterator[Row]:
        for _, *values in in_pages(db, f"SELECT row, {_ROW} {_BY_ROW}", after=0):
            yield _row(values)
        yield from super().every(db, kind)


def _values(tx: Transaction, memory: Memory, row: Row) -> tuple[Any, ...]:
    archived_at = tx.now if tx.is_bulk else memory.archived_at
    derived = (memory.access_count, archived_at, memory.last_accessed_at)
    stored_at = tx.now if tx.writer else None
    return (memory.id, *_column_values(tx, memory, row), *derived, stored_at)


def index_new(tx: Transaction) -> None:
    """Add the texts of the transaction's new memories to the full-text index.

    They are collected because the index is written out at every savepoint after a change of it.
    """
    new, tx.unindexed = tx.unindexed, []
    index(tx, new)


def reindex(tx: Transaction) -> None:
    """Build the full-text index and the table of people from the memories."""
    full_text.clear(tx.db, INDEX)
    names.clear(tx)
    tx.unindexed = []
    for name in column(tx.db, "SELECT DISTINCT actor FROM memories WHERE actor <> ''"):
        names.add_person(tx, name)
    pages = in_pages(tx.db, f"SELECT row, {', '.join(FIELDS)} {_BY_ROW}", after=0)
    index(tx, (entry_of(row, from_row(rest)) for row, *rest in pages))


def entry_of(number: int, memory: Memory) -> IndexEntry:
    """What the index takes of a memory."""
    is_turn = bool(memory.group) and memory.position is not None
    return IndexEntry(number, indexed_columns(memory), memory.created_at, is_turn)


def index(tx: Transaction, entries: Iterable[IndexEntry]) -> None:
    """Add memories to the full text, and the names that they introduce."""
    for batch in batches(entries, full_text.AT_ONCE):
        full_text.add(tx.db, INDEX, batch)
        for entry in batch:
            if not entry.is_turn:
                names.add_introduced(tx, entry.row, entry.columns[0])


def _row(values: Sequence[Any]) -> Row:
    """The row in the columns `_ROW`."""
    *columns, clocks, extra = values
    memory = from_row(columns)
    try:
        unknown = {} if extra is None else msgspec.json.decode(extra, type=dict[str, Any])
        return _with_extra(memory.id, to_row(memory), unknown, _clocks_decoder.decode(clocks))
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _damaged(memory.id) from error


def _with_extra(key: str, data: Fields, extra: Fields, clocks: Clocks) -> Row:
    if extra:
        data = dict(sorted((data | extra).items()))
    return Row(kind="memory", id=key, data=data, clocks=clocks)


def _column_values(tx: Transaction, memory: Memory, row: Row) -> list[Any]:
    if memory.expires_at is not None:
        tx.cache.next_expiry = min(tx.cache.next_expiry, memory.expires_at)
    values = list(_row_values(memory))
    metadata = memory.metadata
    plain = not (metadata.urls or metadata.commands or metadata.paths)
    values[_AT_TAGS] = to_json(memory.tags) if memory.tags else "[]"
    values[_AT_METADATA] = _NO_METADATA if plain else to_json(metadata)
    values[_AT_DATA] = None if memory.data is None else to_json(memory.data)
    unknown = None
    if not row.data.keys() <= ROW_FIELDS:
        unknown = to_json({name: row.data[name] for name in row.data.keys() - ROW_FIELDS})
    clocks = to_json(row.clocks)
    return [*values, clocks, unknown, record_size(memory), text_digest(memory.text)]


def _damaged(key: str) -> StoreDamaged:
    return StoreDamaged(f"cannot trust the memory '{key}': it is not what was written")


def _unindex(tx: Transaction, number: int, memory: Memory) -> None:
    index_new(tx)
    full_text.remove(tx.db, INDEX, number, indexed_columns(memory))
    names.remove_introduced(tx, number)


# The contribution of a merge to the kept memory, in the row of the retired one.
CONTRIBUTION: Final = "gave"
# Received values are not cut: other devices may allow longer texts.
_ANY_SIZE: Final = 1 << 62
_SHORT_TEXTS: Final = ("subject", "outcome", "source", "actor", "group", "writer", "event")
_short_texts: Final = attrgetter(*_SHORT_TEXTS)
_TIMES: Final = ("created_at", "updated_at", "last_accessed_at", "expires_at")


def select(db: sqlite3.Connection, where: str, *arguments: object) -> list[Memory]:
    """The memories that fit a condition in SQL, behind which may be an order and a limit."""
    rows = db.execute(f"{SELECT} WHERE {where}", arguments)
    return [from_row(row) for row in rows.fetchall()]


def fetch(db: sqlite3.Connection, key: str | None) -> Memory | None:
    """The memory with exactly this id, if it exists."""
    return next(iter(select(db, "id = ?", key)), None)


def is_forgotten(db: sqlite3.Connection, key: str) -> bool:
    """Whether a memory with this id, or this beginning of one, was forgotten."""
    begins = "id >= ?1 AND id < ?1 || char(1114111)"
    forgotten = f"SELECT 1 FROM rows WHERE kind = 'memory' AND {begins} AND NOT live LIMIT 1"
    return scalar(db, forgotten, key) is not None


def require(tx: Transaction, key: str) -> Memory:
    """The memory with exactly this id, which must exist."""
    memory = fetch(tx.db, key)
    assert memory is not None
    return memory


def rewrite(tx: Transaction, memory: Memory, *, why: str = "", stamp: Stamp | None = None) -> None:
    """Write the content of a memory, without an event."""
    rows.write(tx, KIND, memory.id, to_row(memory), why=why, stamp=stamp)


def clear_superseded(
    tx: Transaction, key: str, still: Callable[[Memory], bool] = lambda _: False
) -> None:
    """Clear `superseded_by` of the memories that a changed or deleted memory superseded.

    Those that it `still` supersedes keep it.
    """
    for older in select(tx.db, "superseded_by = ?", key):
        if not still(older):
            freed = msgspec.structs.replace(older, superseded_by=None)
            stamp = _just_after(tx, older.id, "superseded_by")
            rewrite(tx, freed, why="unlinked", stamp=stamp)


def release(tx: Transaction, target: str) -> None:
    """Restore all memories that were merged into a deleted memory."""
    for retired in select(tx.db, "merged_into = ?", target):
        restore_merged(tx, retired, repairs=True)
        tx.emit("memory.unmerged", id=retired.id, into=target, category=retired.category)


def restore_merged(tx: Transaction, retired: Memory, *, repairs: bool = False) -> Memory:
    """Restore a memory that is merged into another, which is left unchanged.

    With `repairs` it is an automatic repair: a merge made meanwhile by a user wins.
    """
    back = msgspec.structs.replace(retired, merged_into=None)
    stamp = _just_after(tx, retired.id, "merged_into") if repairs else None
    rows.write(tx, KIND, back.id, to_row(back), why="unmerged", stamp=stamp, without=CONTRIBUTION)
    tree_rows.touch(tx, retired.category)
    return require(tx, retired.id)


def _just_after(tx: Transaction, key: str, field: str) -> Stamp:
    """A stamp for an automatic repair of a field; any deliberate change wins over it."""
    row = rows.load(tx.db, KIND, key)
    assert row is not None
    return stamps(row, KIND.sets)[field][0][0] + 1, tx.device


def _uses_differ(tx: Transaction, before: Row | None, after: Row) -> bool:
    """Whether the uses in the table may differ from those that follow from the row."""
    if before is None or not KIND.lives(before):
        return uses.are_any(tx)
    return any(before.data.get(name) != after.data.get(name) for name in BROUGHT)


# The state files that show memories.
_FILES: Final[frozenset[StateFile]] = frozenset({"warm", "tree", "hot"})


def follow_new(tx: Transaction, row: Row) -> None:
    """Update what is derived from a memory whose id is new, and which is not merged."""
    tx.state_files |= _FILES
    tree_rows.ensure(tx, row.data.get("category", DEFAULT_CATEGORY))
    tx.enforce_warm = True


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    tx.state_files |= _FILES
    was = before.data.get("merged_into") if before is not None and KIND.lives(before) else None
    if not KIND.lives(after):
        if before is not None and KIND.lives(before):
            release(tx, after.id)
            clear_superseded(tx, after.id)
            if was is not None:
                uses.recount(tx, was)
            memory = memory_of(before)
            if not memory.expired(tx.now):
                earlier = column(tx.db, _EARLIER_TEXTS, KIND.name, after.id)
                tx.forgotten += [
                    DeletedMemory(text, memory.category)
                    for text in dict.fromkeys((memory.text, *earlier))
                ]
        return
    into = after.data.get("merged_into")
    tree_rows.ensure(tx, after.data.get("category", DEFAULT_CATEGORY))
    if into != was:
        # A merged memory is not searched, and takes no space among the warm ones.
        tx.db.execute(
            "UPDATE memories SET archived_at = iif(?1, coalesce(archived_at, ?2), NULL)"
            " WHERE id = ?3",
            (into is not None, tx.now, after.id),
        )
    elif after.data.get("pinned") and into is None:
        # A pinned memory leaves the archive, and is the last to leave warm.
        tx.db.execute("UPDATE memories SET archived_at = NULL WHERE id = ?", (after.id,))
    if into != was or _uses_differ(tx, before, after):
        uses.recount(tx, after.id)
    if was is not None and into != was:
        uses.recount(tx, was)
    if into is None:
        tx.enforce_warm = True


# Many memories share few categories.
_check_category: Final = lru_cache(256)(checks.check_category)


def _check(row: Row) -> Memory:
    memory = memory_of(row)
    checks.check_text(memory.id, _ANY_SIZE, field="id")
    checks.check_text(memory.text, _ANY_SIZE)
    checks.check_importance(memory.importance)
    if memory.data is not None:
        checks.check_data(memory.data, _ANY_SIZE)
    _check_category(memory.category, checks.CATEGORY_CHARS)
    for name in _TIMES:
        if (time := getattr(memory, name)) is not None:
            checks.check_time(time, field=name)
    if "\0" in "".join(_short_texts(memory)):
        raise InvalidInput(f"cannot take '{row.id}': NUL character in one of its names")
    return memory


KIND: Final = Kind(
    name="memory",
    fields=ROW_FIELDS,
    liveness_fields=("text",),
    sets=frozenset({"tags"}),
    check=_check,
    applied=_applied,
    table=MemoryTable(),
    reindex=reindex,
)
