"""Kinds of rows whose content is a struct: reading, paging, checking and full text, from data."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from thermocline.sync import Fields, Row

from ...errors import Conflict, NotFound
from ...memory.checks import check_data, check_short, check_text, check_time
from . import full_text, rows
from .connection import column, scalar, to_json, upsert
from .rows import Kind
from .transaction import IndexEntry, Transaction

T = TypeVar("T", bound=msgspec.Struct)
# Called with a value that another device or program wrote and the name of its field.
Check = Callable[[Any, str], object]
# The characters that a shortened id has at least.
SHORTEST_PREFIX: Final = 4
# Received values are not cut: other devices may allow longer texts.
_ANY_SIZE: Final = 1 << 62


def is_text(value: str, field: str) -> None:
    """Refuse what is not a text that says something."""
    check_text(value, _ANY_SIZE, field=field)


def is_short(value: str, field: str) -> None:
    """Refuse what is not a name, which may be blank."""
    check_short(value, field, _ANY_SIZE)


def is_json(value: Any, field: str) -> None:
    """Refuse what is not JSON that can be stored."""
    check_data(value, _ANY_SIZE, field=field)


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """A table with the values by which recall and lists select records, and their full text."""

    table: str  # its column `row` numbers the texts of the index
    index: str
    # The columns besides `row` and the id, which are attributes of the record.
    columns: tuple[str, ...]
    texts: tuple[str, ...]  # the attributes that are indexed: texts, or lists of texts
    told_at: str  # the attribute with the time that "tomorrow" in the texts is relative to
    includes: Callable[[Any], bool] = lambda _: True  # whether a record is in the table
    before: Callable[[Transaction], None] = lambda _: None  # called before a record is projected


class RecordKind(Generic[T]):
    """A kind of row that holds structs `T`, whose first field is the id of the row.

    Args:
        name: of the kind.
        struct: the type of a record; fields that a row lacks have their defaults.
        missing: the message of `NotFound`, with `{}` for the id; `field`: the field at fault.
        checks: by field, what refuses a value that came from elsewhere. Times are always checked.
        projection: the table of the records that recall finds, if it finds any.
        emits: whether `put` and `delete` emit the events `NAME.stored` and `NAME.deleted`.
        shortened: whether ids are random, so that their beginning may name a record.
        **kind: more of `Kind`.
    """

    def __init__(
        self,
        name: str,
        struct: type[T],
        *,
        missing: str = "no {} is stored",
        field: str = "id",
        checks: Mapping[str, Check] | None = None,
        projection: Projection | None = None,
        emits: bool = False,
        shortened: bool = False,
        **kind: Any,
    ) -> None:
        self._struct, self._missing, self._field = struct, missing, field
        self._key, *self._fields = struct.__struct_fields__
        self._emits = emits
        self._shortened = shortened
        self._checks: dict[str, Check] = {
            field_name: _check_time
            for field_name in self._fields
            if field_name == "at" or field_name.endswith("_at")
        } | dict(checks or {})
        self.projection = projection
        self._from = f"rows WHERE kind = '{name}' AND live AND"
        if projection is not None:
            kind |= {"applied": self._project, "reindex": self.reindex, "clears_secrets": True}
            # A plain join would read all rows; unless a condition needs it, this one is left out.
            self._from = (
                f"{projection.table} AS t LEFT JOIN rows"
                f" ON kind = '{name}' AND rows.id = t.{self._key} WHERE"
            )
        self.kind = Kind(name=name, fields=frozenset(self._fields), check=self._check, **kind)

    def of(self, key: str, data: Fields) -> T:
        """The record in a row."""
        fields = {name: data[name] for name in self._fields if name in data}
        return msgspec.convert({**fields, self._key: key}, self._struct)

    def find(self, db: sqlite3.Connection, key: str) -> T | None:
        """The record with this id, if it exists."""
        row = rows.load(db, self.kind, key)
        return None if row is None else self.of(key, row.data)

    def get(self, db: sqlite3.Connection, key: str) -> T:
        """The record with this id, which may be shortened; `NotFound` if it does not exist."""
        record = self.find(db, key)
        if record is None and self._shortened and len(key) >= SHORTEST_PREFIX:
            between = "SELECT id FROM rows WHERE kind = ? AND live AND id > ? AND id < ? LIMIT 2"
            alike = column(db, between, self.kind.name, key, f"{key}\U0010ffff")
            if len(alike) > 1:
                message = f"cannot tell which {self.kind.name} '{key}' is: several begin so"
                raise Conflict(message, field=self._field)
            record = self.find(db, alike[0]) if alike else None
        if record is None:
            raise NotFound(self._missing.format(key), field=self._field)
        return record

    def select(
        self, db: sqlite3.Connection, where: str, order: str = "rows.id", **values: object
    ) -> list[T]:
        """The records that fit a condition in SQL on `rows`, and on `t`, the projection."""
        cursor = db.execute(
            f"SELECT rows.id, data FROM {self._from} {where} ORDER BY {order}", values
        )
        return [self.of(key, msgspec.json.decode(data)) for key, data in cursor]

    def count(self, db: sqlite3.Connection, where: str = "true", **values: object) -> int:
        """The number of records that fit a condition."""
        cursor = db.execute(f"SELECT count(*) FROM {self._from} {where}", values)
        return int(cursor.fetchone()[0])

    def page(
        self,
        db: sqlite3.Connection,
        where: str,
        order: str,
        limit: int,
        offset: int,
        **values: object,
    ) -> tuple[list[T], int]:
        """A page of the records that fit a condition, and the number of all that fit."""
        paged = f"{order} LIMIT :limit OFFSET :offset"
        records = self.select(db, where, paged, limit=limit, offset=offset, **values)
        return records, self.count(db, where, **values)

    def at_rows(self, db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, T]:
        """The records in these rows of the full-text index, by row."""
        cursor = db.execute(
            f"SELECT row, rows.id, data FROM {self._from} row IN (SELECT value FROM json_each(?))",
            (to_json(numbers),),
        )
        return {row: self.of(key, msgspec.json.decode(data)) for row, key, data in cursor}

    def put(self, tx: Transaction, record: T, *, new: bool = False, why: str = "") -> T:
        """Store a record without the fields that are None; with `new`, `Conflict` if it exists."""
        key = getattr(record, self._key)
        values = {name: getattr(record, name) for name in self._fields}
        data = {name: value for name, value in values.items() if value is not None}
        rows.write(tx, self.kind, key, msgspec.to_builtins(data), new=new, why=why)
        if self._emits and not why:
            tx.emit(f"{self.kind.name}.stored", id=key)
        return record

    def delete(self, tx: Transaction, key: str) -> str:
        """Delete a record; return its id. `NotFound` if it does not exist."""
        key = getattr(self.get(tx.db, key), self._key)
        rows.write(tx, self.kind, key, None)
        if self._emits:
            tx.emit(f"{self.kind.name}.deleted", id=key)
        return key

    def text_of_row(self) -> str:
        """SQL, of a row of the projection: the texts of its record that are indexed."""
        assert self.projection is not None
        row, texts = f"{self.projection.table}.{self._key}", self.projection.texts
        columns = {name: f"coalesce(data ->> '{name}', '')" for name in texts} | {self._key: "id"}
        joined = " || ' ' || ".join(columns[name] for name in texts)
        record = f"rows WHERE kind = '{self.kind.name}' AND rows.id = {row}"
        return f"(SELECT {joined} FROM {record})"

    def reindex(self, tx: Transaction) -> None:
        """Rebuild the projection and its full text."""
        assert self.projection is not None
        full_text.clear(tx.db, self.projection.index)
        tx.db.execute(f"DELETE FROM {self.projection.table}")
        for row in self.kind.table.every(tx.db, self.kind.name):
            self._project(tx, None, row)

    def _project(self, tx: Transaction, before: Row | None, after: Row) -> None:
        projection = self.projection
        assert projection is not None
        projection.before(tx)
        table, index = projection.table, projection.index
        old, new = self._included(before), self._included(after)
        was = None if old is None else self._texts(old)
        if new is not None:
            names = (self._key, *projection.columns)
            number = upsert(tx.db, table, {name: getattr(new, name) for name in names})
            told_at = getattr(new, projection.told_at)
            full_text.put(tx.db, index, IndexEntry(number, self._texts(new), told_at), was)
        elif was is not None:
            sql = f"DELETE FROM {table} WHERE {self._key} = ? RETURNING row"
            full_text.remove(tx.db, index, scalar(tx.db, sql, after.id), was)

    def _included(self, row: Row | None) -> T | None:
        if row is None or not self.kind.lives(row):
            return None
        record = self.of(row.id, row.data)
        assert self.projection is not None
        return record if self.projection.includes(record) else None

    def _texts(self, record: T) -> tuple[str, ...]:
        assert self.projection is not None
        values = (getattr(record, name) for name in self.projection.texts)
        return tuple(value if isinstance(value, str) else " ".join(value) for value in values)

    def _check(self, row: Row) -> None:
        record = self.of(row.id, row.data)
        for name, check in self._checks.items():
            check(getattr(record, name), name)


def _check_time(value: float | None, field: str) -> None:
    if value is not None:
        check_time(value, field=field)
