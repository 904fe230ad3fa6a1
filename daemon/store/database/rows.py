"""Rows: their kinds and tables, and the single write path of this device's changes.

A change writes the row, the replaced version into the history, what is derived from the row, and
the mark in the outbox. The registry of the kinds is in `kinds`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from thermocline.sync import (
    Fields,
    Row,
    Stamp,
    changed,
    decode_row,
    deletion,
    lives,
    moment_of,
    stamps,
    version_of,
)

from ...errors import Conflict, StoreDamaged
from .connection import column, scalar, to_json
from .memory_database import in_pages
from .transaction import Transaction

# In place of the base of a pending row: it is as other devices know it.
UNCHANGED: Final = 0
# Called in the transaction after a row was written, with the versions before and after.
Applied: TypeAlias = Callable[[Transaction, Row | None, Row], None]
# For a row that two devices changed: from the common base, ours and theirs to the joined row.
Join: TypeAlias = Callable[[Transaction, Row | None, Row, Row], "JoinResult | None"]


def stored_row(kind: str, key: str, data: str | None, clocks: str) -> Row:
    """The row in the columns of a table; `StoreDamaged` if they are not valid."""
    try:
        return decode_row(kind, key, data, clocks)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise StoreDamaged(f"cannot trust the {kind} '{key}': it is not a row") from error


_STORE: Final = (
    "INSERT INTO rows VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " data = excluded.data, clocks = excluded.clocks, live = excluded.live"
)


class RowTable:
    """The table `rows`; the storage of every kind that has no table of its own."""

    def load(self, db: sqlite3.Connection, kind: str, key: str) -> Row | None:
        """The current row, deleted or not."""
        row = db.execute(
            "SELECT data, clocks FROM rows WHERE kind = ? AND id = ?", (kind, key)
        ).fetchone()
        return None if row is None else stored_row(kind, key, *row)

    def load_all(self, db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> dict[str, Row]:
        """The current rows of those ids for which `load` finds one, by id."""
        rows = db.execute(
            "SELECT id, data, clocks FROM rows"
            " WHERE kind = ? AND id IN (SELECT value FROM json_each(?))",
            (kind, to_json(keys)),
        )
        return {row[0]: stored_row(kind, *row) for row in rows}

    def store(self, tx: Transaction, before: Row | None, row: Row, *, live: bool) -> None:  # noqa: ARG002
        """Write the row in place of the current version."""
        tx.db.execute(_STORE, (row.kind, row.id, *row.encoded(), live))

    def add(self, tx: Transaction, rows: Sequence[Row], values: Sequence[Any]) -> None:  # noqa: ARG002
        """Store live rows of one kind that are new; `values` are those of `check`."""
        tx.db.executemany(_STORE, [(*row.key, *row.encoded(), True) for row in rows])

    def normal(self, row: Row) -> Row:
        """The row as `load` returns it once stored; another release may write it differently."""
        return row

    def every(self, db: sqlite3.Connection, kind: str) -> Iterator[Row]:
        """Each row, including deleted ones, a few hundred at a time; writing between is allowed."""
        sql = "SELECT id, data, clocks FROM rows WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        for in_page in in_pages(db, sql, kind, after=""):
            yield stored_row(kind, *in_page)


class JoinResult(msgspec.Struct, frozen=True):
    """The result of joining a row that two devices changed."""

    data: dict[str, Any] | None = None  # the fields; None: for each field the later value
    lost: Row | None = None  # the version of which a part is left out, if any: a conflict


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of row."""

    name: str  # as stored in the row
    # Those that this release writes; fields of other releases are kept.
    fields: frozenset[str] | None = None
    # The fields whose later change restores a deleted row; empty: all.
    liveness_fields: tuple[str, ...] = ()
    # The fields whose lists are sets, which join element by element.
    sets: frozenset[str] = frozenset()
    urgent: bool = False  # whether a change is sent within a second
    history: bool = True  # whether replaced versions are kept
    clears_secrets: bool = False  # whether secrets are looked for in its rows, and replaced
    # Refuses, as `InvalidInput` or `MsgspecError`, a live row from elsewhere that is not valid, and
    # returns its content.
    check: Callable[[Row], Any] | None = None
    applied: Applied | None = None  # updates what is derived from the row
    # Joins the changes of two devices, if taking the later value of each field is not enough.
    join: Join | None = None
    table: RowTable = RowTable()  # the storage of the rows
    # Rebuilds the full-text index of the kind, if there is one.
    reindex: Callable[[Transaction], None] | None = None

    def load(self, db: sqlite3.Connection, key: str) -> Row | None:
        """The current row, deleted or not."""
        return self.table.load(db, self.name, key)

    def lives(self, row: Row | None) -> bool:
        """Whether the row is not deleted."""
        return lives(row, self.liveness_fields)


def unknown(name: str) -> Kind:
    """A kind of another release; its rows are kept and passed on unchanged."""
    return Kind(name=name, history=False)


CREATED: Final = "created"
DELETED: Final = "deleted"


class Mark(msgspec.Struct, frozen=True):
    """A row that a writer made, or deleted.

    `born` is when the one who deleted it had made it; 0 if somebody else had.
    """

    number: int
    kind: str
    id: str
    why: str
    born: float


def note_mark(tx: Transaction, kind: str, key: str, why: str, born: float = 0.0) -> None:
    """Record that a caller makes or deletes a row. What the daemon does by itself is not marked."""
    if tx.writer:
        tx.db.execute(
            "INSERT INTO history (kind, id, at, writer, device, why, data, clocks)"
            " VALUES (?, ?, ?, ?, ?, ?, NULL, ?)",
            (kind, key, tx.now, tx.writer, tx.device, why, str(born)),
        )


def marks(db: sqlite3.Connection, where: str, *values: object) -> list[Mark]:
    """The marks that satisfy a condition in SQL, in their order."""
    result = db.execute(
        "SELECT number, kind, id, why, CAST(clocks AS REAL) FROM history"
        f" WHERE data IS NULL AND {where} ORDER BY number",
        values,
    )
    return [Mark(*row) for row in result]


# The kind of the rows of versions that lost a conflict; see `conflicts`.
CONFLICTS: Final = "conflict"
_MEMORY: Final = "memory"


def load(db: sqlite3.Connection, kind: Kind, key: str) -> Row | None:
    """The row, unless it is deleted or does not exist."""
    row = kind.load(db, key)
    return row if kind.lives(row) else None


def write(
    tx: Transaction,
    kind: Kind,
    key: str,
    data: Fields | None,
    *,
    why: str = "",
    stamp: Stamp | None = None,
    without: str = "",
    new: bool = False,
) -> Row | None:
    """Write `data` as the row's content and return the row; None deletes it, and is returned.

    Fields that this release does not know are kept. Unchanged rows are not written. `stamp` is that
    of a change of several rows, or an older one to which other changes are preferred; `without` is
    a field to remove, though this release does not write it; with `new`, `Conflict` if the row
    exists.
    """
    before = kind.load(tx.db, key)
    if new and kind.lives(before):
        raise Conflict(f"cannot store '{key}': the id is taken", field="id")
    if data is None:
        if not kind.lives(before):
            return None
        now = tx.stamp(before)
        after = deletion((kind.name, key), stamp or now, now)
    else:
        if before is not None and kind.fields is not None:
            others = before.data.keys() - kind.fields - {without}
            data = {name: before.data[name] for name in others} | data
        own_stamp = stamp or tx.stamp(before)
        after = changed(before, (kind.name, key), data, own_stamp, kind.sets)
        if before is not None and after == before:
            return before
    number = save_version(tx, kind, before, why=why) if data is not None else None
    born = _own_birth(tx, before) if before is not None and data is None else 0.0
    put(tx, kind, before, after)
    mark(tx, kind, key, before, number)
    if kind.history and data is None:
        note_mark(tx, *after.key, DELETED, born)
    # The author of a memory is in its table. What only follows from something else, as a category
    # from a memory, has one of the first stamps of all, and goes with it.
    elif (
        kind.history
        and not kind.lives(before)
        and after.kind != _MEMORY
        and moment_of(after.clocks.latest[0])
    ):
        note_mark(tx, *after.key, CREATED)
    return after if data is not None else None


def _own_birth(tx: Transaction, row: Row) -> float:
    """When this writer made a row; 0 if another one did."""
    made = "SELECT writer, at FROM history WHERE kind = ? AND id = ? AND why = ?"
    stored = "SELECT writer, stored_at FROM memories WHERE ? = 'memory' AND id = ?"
    known = tx.db.execute(f"{made} UNION ALL {stored}", (*row.key, CREATED, *row.key)).fetchone()
    author, at = known or (None, None)
    if author is not None and author != tx.writer:
        return 0.0
    # What was imported has the stamps of its source.
    return moment_of(min(stamp for stamp, _ in stamps(row).values())[0]) if at is None else at


def put(tx: Transaction, kind: Kind, before: Row | None, after: Row) -> None:
    """Store a version and update what is derived from it, without history or outbox."""
    live = kind.lives(after)
    kind.table.store(tx, before, after, live=live)
    if kind.applied is not None:
        kind.applied(tx, before, after)
    # `applied` reads the earlier versions.
    if not live:
        erase(tx, kind, after.id)


def mark(tx: Transaction, kind: Kind, key: str, seen: Row | None, base: int | None) -> None:
    """Mark the row as pending: the replica does not have this version.

    `seen` is the version that the replica may have; ignored if the row is already marked. `base` is
    the entry of the history that holds this version.
    """
    tx.outgoing.add(kind.name)
    tx.db.execute(
        "INSERT INTO outbox VALUES (?, ?, ?, ?, NULL)"
        " ON CONFLICT DO UPDATE SET refused = NULL,"
        f" base = CASE base WHEN {UNCHANGED} THEN excluded.base ELSE base END"
        f" WHERE refused IS NOT NULL OR base = {UNCHANGED}",
        (kind.name, key, version_of(seen), base),
    )


def save_version(
    tx: Transaction, kind: Kind, row: Row | None, *, why: str, device: str = ""
) -> int | None:
    """Add a version that will be replaced to the history; return its number."""
    if row is None or not kind.history or not kind.lives(row):
        return None
    writer = "" if device else tx.writer
    return tx.db.execute(
        "INSERT INTO history (kind, id, at, writer, device, why, data, clocks)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (kind.name, row.id, tx.now, writer, device or tx.device, why, *row.encoded()),
    ).lastrowid


def version_number(tx: Transaction, kind: Kind, row: Row) -> int | None:
    """The number of a version in the history, to which it is added if missing."""
    same = "kind = ? AND id = ? AND data IS ? AND clocks = ?"
    number: int | None = scalar(
        tx.db, f"SELECT max(number) FROM history WHERE {same}", *row.key, *row.encoded()
    )
    if number is not None:
        return number
    return save_version(tx, kind, row, why="received", device=row.clocks.latest[1])


def erase(tx: Transaction, kind: Kind, key: str) -> None:
    """Delete the earlier versions of a row: no copy of its content is left."""
    tx.erased = True
    tx.db.execute("DELETE FROM history WHERE kind = ? AND id = ?", (kind.name, key))
    # The number may be reused for another version.
    tx.db.execute("UPDATE outbox SET base = NULL WHERE kind = ? AND id = ?", (kind.name, key))
    lost = (
        "SELECT id FROM rows WHERE kind = ? AND live AND data ->> 'of' = ? AND data ->> 'row' = ?"
    )
    for conflict in column(tx.db, lost, CONFLICTS, kind.name, key):
        write(tx, unknown(CONFLICTS), conflict, None)


def live_rows(db: sqlite3.Connection, kind: Kind) -> list[tuple[Any, ...]]:
    """The id and data of the live rows of a kind without a separate table, by id."""
    sql = "SELECT id, data FROM rows WHERE kind = ? AND live ORDER BY id"
    return db.execute(sql, (kind.name,)).fetchall()
