"""Earlier versions of rows."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import msgspec

from thermocline.sync import Row, decode_row, stamp_at

from . import uses
from .kind import Kind
from .transaction import Transaction

KEPT_DAYS: Final = 90.0
# The reason of a version that was never in force: another device's change was later.
CONFLICT: Final = "conflict"
_DAY: Final = 86_400.0
_AT_ONCE: Final = 200


class Version(msgspec.Struct, frozen=True):
    """A version that was replaced.

    Attributes:
        number: identifies it; numbers increase.
        at: when it was replaced, in seconds since the epoch.
        writer, device: who replaced it, and where.
        why: `merge:ID`, `merged`, `unmerged`, `refiled`, `undo`, …; empty: an edit. A `conflict` is
            a value that was lost when two devices changed one field.
    """

    number: int
    kind: str
    id: str
    at: float
    writer: str
    device: str
    why: str
    row: Row


def versions(db: sqlite3.Connection, kind: Kind, key: str, limit: int = 100) -> list[Version]:
    """The versions of a row, latest first."""
    return read(db, "kind = ? AND id = ? ORDER BY number DESC LIMIT ?", kind.name, key, limit)


def latest(db: sqlite3.Connection, limit: int, *, conflicts: bool = False) -> list[Version]:
    """The versions replaced last; with `conflicts`, only values lost in conflicts."""
    if conflicts:
        return read(db, "why = ? ORDER BY number DESC LIMIT ?", CONFLICT, limit)
    return read(db, "1 ORDER BY number DESC LIMIT ?", limit)


def replaced(
    db: sqlite3.Connection, kind: Kind, version: Version
) -> tuple[list[str], dict[str, Any]]:
    """The fields that the change after a version gave another value, and those values."""
    later = read(
        db,
        "kind = ? AND id = ? AND number > ? AND why != ? ORDER BY number LIMIT 2",
        *(kind.name, version.id, version.number, CONFLICT),
    )
    # A value lost in a conflict may also be in the version that the merge replaced.
    for row in (*(one.row for one in later), kind.load(db, version.id)):
        before, after = version.row.data or {}, (row and row.data) or {}
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if found := [name for name in names if name != "updated_at"]:
            return found, {name: after[name] for name in found if name in after}
    return [], {}


def find(db: sqlite3.Connection, number: int) -> Row | None:
    """The version with this number."""
    found = read(db, "number = ?", number)
    return found[0].row if found else None


def conflicts(db: sqlite3.Connection) -> int:
    """The number of values lost because another device changed the same field."""
    found = db.execute("SELECT count(*) FROM history WHERE why = ?", (CONFLICT,))
    return int(found.fetchone()[0])


def prune(tx: Transaction, max_bytes: int) -> int:
    """Drop versions that are too old or too many, and old deletions; return how many versions."""
    _forget_deletions(tx)
    bases = "number NOT IN (SELECT base FROM outbox WHERE base IS NOT NULL)"
    gone = tx.db.execute(
        f"DELETE FROM history WHERE at < ? AND {bases}", (tx.now - KEPT_DAYS * _DAY,)
    ).rowcount
    size = size_of(tx.db)
    while size > max_bytes:
        found = tx.db.execute(
            "DELETE FROM history WHERE number IN (SELECT number FROM history"
            f" WHERE {bases} ORDER BY number LIMIT ?) RETURNING length(data) + length(clocks)",
            (_AT_ONCE,),
        ).fetchall()
        if not found:
            break
        gone += len(found)
        size -= sum(length or 0 for (length,) in found)
    return gone


def _forget_deletions(tx: Transaction) -> None:
    """Remove tombstones, once no device in use can bring the rows back."""
    before = stamp_at(tx.now - KEPT_DAYS * _DAY)
    followed = tx.db.execute("SELECT 1 FROM meta WHERE key = 'link'").fetchone() is not None
    gone = tx.db.execute(
        "DELETE FROM rows WHERE NOT live AND data IS NULL AND clocks ->> '$.deleted[0]' < ?"
        # Tombstones not yet sent are kept, however long the replica is unreachable.
        " AND NOT (? AND EXISTS (SELECT 1 FROM outbox AS o WHERE o.kind = rows.kind"
        " AND o.id = rows.id)) RETURNING kind, id",
        (before, followed),
    ).fetchall()
    tx.db.executemany("DELETE FROM outbox WHERE kind = ? AND id = ?", gone)
    uses.forget(tx, frozenset(key for kind, key in gone if kind == "memory"))


def size_of(db: sqlite3.Connection) -> int:
    """The size of all versions in bytes."""
    found = db.execute("SELECT total(length(data) + length(clocks)) FROM history")
    return int(found.fetchone()[0])


def read(db: sqlite3.Connection, where: str, *values: object) -> list[Version]:
    """The versions that satisfy a condition in SQL."""
    found = db.execute(
        "SELECT number, kind, id, at, writer, device, why, data, clocks FROM history"
        f" WHERE {where}",
        values,
    )
    return [
        Version(number, kind, key, at, writer, device, why, decode_row(kind, key, data, clocks))
        for number, kind, key, at, writer, device, why, data, clocks in found
    ]
