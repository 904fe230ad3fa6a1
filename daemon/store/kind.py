"""What a kind of row is: one entry of the registry in `kinds`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from thermocline.sync import Row, decode_row, lives

from ..errors import StoreDamaged
from .database import in_pages
from .transaction import Transaction

# Called in the transaction once a row was written, with the version before and the one after.
Applied: TypeAlias = Callable[[Transaction, Row | None, Row], None]
# Of a row that two devices changed: the common base, ours and theirs to what both say together.
Join: TypeAlias = Callable[[Transaction, Row | None, Row, Row], "Settled | None"]


class Table(Protocol):
    """Where the rows of a kind stand."""

    def load(self, db: sqlite3.Connection, kind: str, key: str) -> Row | None:
        """The row as it stands, deleted or not."""

    def store(self, tx: Transaction, before: Row | None, row: Row, *, live: bool) -> None:
        """Put the row in the place of the version that stands there."""

    def add(self, tx: Transaction, rows: Sequence[Row]) -> None:
        """Store live rows of one kind that `known` does not know."""

    def known(self, db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> set[str]:
        """Those of the ids for which `load` finds something."""

    def normal(self, row: Row) -> Row:
        """The row as `load` finds it once it was stored; another release may write it otherwise."""

    def every(self, db: sqlite3.Connection, kind: str) -> Iterator[Row]:
        """Each row, deleted ones included, a few hundred at a time; writing between is allowed."""


def stored_row(kind: str, key: str, data: str | None, clocks: str) -> Row:
    """The row in the columns of a table.

    Raises:
        StoreDamaged: they are not what was written, which SQLite does not notice by itself.
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
    """The table `rows`, which holds every kind that has no table of its own."""

    def load(self, db: sqlite3.Connection, kind: str, key: str) -> Row | None:
        """The row as it stands, deleted or not."""
        found = db.execute(
            "SELECT data, clocks FROM rows WHERE kind = ? AND id = ?", (kind, key)
        ).fetchone()
        return None if found is None else stored_row(kind, key, *found)

    def store(self, tx: Transaction, before: Row | None, row: Row, *, live: bool) -> None:  # noqa: ARG002
        """Put the row in the place of the version that stands there."""
        tx.db.execute(_STORE, (row.kind, row.id, *row.encoded(), live))

    def add(self, tx: Transaction, rows: Sequence[Row]) -> None:
        """Store live rows that are new."""
        tx.db.executemany(_STORE, [(*row.key, *row.encoded(), True) for row in rows])

    def normal(self, row: Row) -> Row:
        """The row itself."""
        return row

    def known(self, db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> set[str]:
        """Those of the ids for which there is a row."""
        found = db.execute(
            "SELECT id FROM rows WHERE kind = ? AND id IN (SELECT value FROM json_each(?))",
            (kind, msgspec.json.encode(keys).decode()),
        )
        return {key for (key,) in found}

    def every(self, db: sqlite3.Connection, kind: str) -> Iterator[Row]:
        """Each row, deleted ones included, a few hundred at a time."""
        sql = "SELECT id, data, clocks FROM rows WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        for found in in_pages(db, sql, kind, after=""):
            yield stored_row(kind, *found)


ROWS: Final = RowTable()


class Settled(msgspec.Struct, frozen=True):
    """What becomes of a row that two devices changed.

    Attributes:
        data: the fields that it shall say; None: the later of each.
        lost: the version of which something is left out, if any: a conflict.
    """

    data: dict[str, Any] | None = None
    lost: Row | None = None


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of row.

    Attributes:
        name: as it stands in the row.
        fields: those that this release writes; others are of another release, and stay.
        vital: the fields whose later change a row outlives its deletion by; none: all.
        sets: the fields whose lists are sets, which join element by element.
        urgent: whether a change is sent within a second.
        history: whether replaced versions are kept.
        check: refuses, as `InvalidInput` or `MsgspecError`, a live row from elsewhere that could
            not be used.
        applied: brings what is derived from the row in step.
        join: joins what two devices made of one base, where the later of two fields is not enough;
            None leaves it to that.
        table: where the rows stand.
        reindex: builds the full-text index of the kind anew, if there is one.
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
        """The row as it stands, deleted or not."""
        return self.table.load(db, self.name, key)

    def lives(self, row: Row | None) -> bool:
        """Whether the row says something."""
        return lives(row, self.vital)


def unknown(name: str) -> Kind:
    """A kind of another release, whose rows are kept and passed on as they are."""
    return Kind(name=name, history=False)
