"""The single write path of this device's changes: row, history, outbox, derived data."""

from __future__ import annotations

import sqlite3
from typing import Any

from thermocline.sync import Fields, Row, Stamp, changed, deletion, version_of

from ..errors import Conflict
from .kind import Kind
from .transaction import Transaction


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
    """Write `data` as the row's content, or delete the row if `data` is None.

    Fields that this release does not know are kept. Unchanged rows are not written.

    Args:
        tx: the transaction.
        kind: of the row.
        key: its id.
        data: all its fields.
        why: the reason to record in the history.
        stamp: of a change that consists of several rows; by default a new one.
        without: a field to remove, though this release does not write it.
        new: the row must not exist yet.

    Returns:
        The row; None if it was deleted.

    Raises:
        Conflict: it exists, and should be new.
    """
    before = kind.load(tx.db, key)
    if new and kind.lives(before):
        raise Conflict(f"cannot store '{key}': the id is taken", field="id")
    if data is None:
        if not kind.lives(before):
            return None
        after = deletion((kind.name, key), stamp or tx.stamp(before))
    else:
        if before is not None and kind.fields is not None:
            others = before.data.keys() - kind.fields - {without}
            data = {name: before.data[name] for name in others} | data
        given = stamp or tx.stamp(before)
        after = changed(before, (kind.name, key), data, given, kind.sets)
        if before is not None and after == before:
            return before
    number = keep(tx, kind, before, why=why) if data is not None else None
    put(tx, kind, before, after)
    mark(tx, kind, key, before, number)
    return after if data is not None else None


def put(tx: Transaction, kind: Kind, before: Row | None, after: Row) -> None:
    """Store a version and update what is derived from it, without history or outbox."""
    live = kind.lives(after)
    if not live:
        erase(tx, kind, after.id)
    kind.table.store(tx, before, after, live=live)
    if kind.applied is not None:
        kind.applied(tx, before, after)


def mark(tx: Transaction, kind: Kind, key: str, seen: Row | None, base: int | None) -> None:
    """Mark the row as pending: the replica does not have this version.

    Args:
        tx: the transaction.
        kind: of the row.
        key: its id.
        seen: the version that the replica may have; ignored if the row is already marked.
        base: the entry of the history that holds this version.
    """
    tx.outgoing.add(kind.name)
    tx.db.execute(
        "INSERT INTO outbox VALUES (?, ?, ?, ?, NULL)"
        " ON CONFLICT DO UPDATE SET refused = NULL WHERE refused IS NOT NULL",
        (kind.name, key, version_of(seen), base),
    )


def keep(tx: Transaction, kind: Kind, row: Row | None, *, why: str, device: str = "") -> int | None:
    """Add a version that will be replaced to the history; return its number."""
    if row is None or not kind.history or not kind.lives(row):
        return None
    writer = "" if device else tx.writer
    return tx.db.execute(
        "INSERT INTO history (kind, id, at, writer, device, why, data, clocks)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (kind.name, row.id, tx.now, writer, device or tx.device, why, *row.encoded()),
    ).lastrowid


def kept(tx: Transaction, kind: Kind, row: Row) -> int | None:
    """The number of a version in the history, to which it is added if missing."""
    found = tx.db.execute(
        "SELECT max(number) FROM history WHERE kind = ? AND id = ? AND data IS ? AND clocks = ?",
        (*row.key, *row.encoded()),
    ).fetchone()[0]
    device = row.clocks.latest[1]
    return found if found is not None else keep(tx, kind, row, why="received", device=device)


def erase(tx: Transaction, kind: Kind, key: str) -> None:
    """Delete the earlier versions of a row: no copy of its content is left."""
    tx.db.execute("DELETE FROM history WHERE kind = ? AND id = ?", (kind.name, key))
    # The number may be reused for another version.
    tx.db.execute("UPDATE outbox SET base = NULL WHERE kind = ? AND id = ?", (kind.name, key))


def live_rows(db: sqlite3.Connection, kind: Kind) -> list[tuple[Any, ...]]:
    """The id and data of the live rows of a kind without a separate table, by id."""
    sql = "SELECT id, data FROM rows WHERE kind = ? AND live ORDER BY id"
    return db.execute(sql, (kind.name,)).fetchall()
