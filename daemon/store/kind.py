"""The definition of a kind of row: one entry of the registry in `kinds`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from thermocline.sync import Row, decode_row, lives

from ..errors import StoreDamaged
from .database import in_pages
from .transaction import Transaction

# Called in the transaction after a row was written, with the versions before and after.
Applied: TypeAlias = Callable[[Transaction, Row | None, Row], None]
# For a row that two devices changed: from the common base, ours and theirs to the joined row.
Join: TypeAlias = Callable[[Transaction, Row | None, Row, Row], "Settled | None"]


class Table(Protocol):
    """The storage of the rows of a kind."""

    def load(self, db: sqlite3.Connection, kind: str, key: str) -> Row | None:
        """The current row, deleted or not."""

    def store(self, tx: Transaction, before: Row | None, row: Row, *, live: bool) -> None:
        """Write the row in place of the current version."""

    def add(self, tx: Transaction, rows: Sequence[Row]) -> None:
        """Store live rows of one kind that are not in `known`."""

    def known(self, db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> set[str]:
        """Those of the ids for which `load` finds a row."""

    def normal(self, row: Row) -> Row:
        """The row as `load` returns it once stored; another release may write it differently."""

    def every(self, db: sqlite3.Connection, kind: str) -> Iterator[Row]:
        """Each row, including deleted ones, a few hundred at a time; writing between is allowed."""


def stored_row(kind: str, key: str, data: str | None, clocks: str) -> Row:
    """The row in the columns of a table.

    Raises:
        StoreDamaged: the columns are not valid although SQLite reports no error.
    """
    try:
        return decode_row(kind, key, data, clocks)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise StoreDamaged(f"cannot trust the {kind} '{key}': it is not a row") from error


_STORE: Final = (
    "INSERT INTO rows VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " data = excluded.data, clocks = excluded.clocks, live = excluded.live"
)


class RowTable:
    """The table `rows`, for every kind that has no separate table."""

    def load(self, db: sqlite3.Connection, kind: str, key: str) -> Row | None:
        """The current row, deleted or not."""
        found = db.execute(
            "SELECT data, clocks FROM rows WHERE kind = ? AND id = ?", (kind, key)
        ).fetchone()
        return None if found is None else stored_row(kind, key, *found)

    def store(self, tx: Transaction, before: Row | None, row: Row, *, live: bool) -> None:  # noqa: ARG002
        """Write the row in place of the current version."""
        tx.db.execute(_STORE, (row.kind, row.id, *row.encoded(), live))

    def add(self, tx: Transaction, rows: Sequence[Row]) -> None:
        """Store live rows that are new."""
        tx.db.executemany(_STORE, [(*row.key, *row.encoded(), True) for row in rows])

    def normal(self, row: Row) -> Row:
        """The row itself."""
        return row

    def known(self, db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> set[str]:
        """Those of the ids for which a row exists."""
        found = db.execute(
            "SELECT id FROM rows WHERE kind = ? AND id IN (SELECT value FROM json_each(?))",
            (kind, msgspec.json.encode(keys).decode()),
        )
        return {key for (key,) in found}

    def every(self, db: sqlite3.Connection, kind: str) -> Iterator[Row]:
        """Each row, including deleted ones, a few hundred at a time."""
        sql = "SELECT id, data, clocks FROM rows WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        for found in in_pages(db, sql, kind, after=""):
            yield stored_row(kind, *found)


ROWS: Final = RowTable()


class Settled(msgspec.Struct, frozen=True):
    """The result of joining a row that two devices changed.

    Attributes:
        data: the fields; None: for each field the later value.
        lost: the version of which a part is left out, if any: a conflict.
    """

    data: dict[str, Any] | None = None
    lost: Row | None = None


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of row.

    Attributes:
        name: as stored in the row.
        fields: those that this release writes; fields of other releases are kept.
        vital: the fields whose later change restores a deleted row; empty: all.
        sets: the fields whose lists are sets, which join element by element.
        urgent: whether a change is sent within a second.
        history: whether replaced versions are kept.
        check: refuses, as `InvalidInput` or `MsgspecError`, a live row from elsewhere that is not
            valid.
        applied: updates what is derived from the row.
        join: joins the changes of two devices, if taking the later value of each field is not
            enough.
        table: the storage of the rows.
        reindex: rebuilds the full-text index of the kind, if there is one.
    """

    name: str
    fields: frozenset[str] | None = None
    vital: tuple[str, ...] = ()
    sets: frozenset[str] = frozenset()
    urgent: bool = False
    history: bool = True
    check: Callable[[Row], None] | None = None
    applied: Applied | None = None
    join: Join | None = None
    table: Table = ROWS
    reindex: Callable[[Transaction], None] | None = None

    def load(self, db: sqlite3.Connection, key: str) -> Row | None:
        """The current row, deleted or not."""
        return self.table.load(db, self.name, key)

    def lives(self, row: Row | None) -> bool:
        """Whether the row is not deleted."""
        return lives(row, self.vital)


def unknown(name: str) -> Kind:
    """A kind of another release; its rows are kept and passed on unchanged."""
    return Kind(name=name, history=False)
