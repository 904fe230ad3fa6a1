"""Earlier versions of rows, who replaced them, and the values that lost a conflict.

A lost value is a row of its own, so that every device shows it.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from thermocline.sync import Row, decode_row, stamp_at

from ...memory.checks import check_time
from ..database import meta, rows
from ..database.connection import column, scalar
from ..database.rows import Kind
from ..database.transaction import Transaction
from . import uses

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9._-]+")
_LONGEST: Final = 64


def author(uid: int, program: str) -> str:
    """The author of what a user's program writes; any text may be given as its name."""
    name = _NOT_IN_NAMES.sub("-", program.lower()).strip("-")[:_LONGEST]
    return f"uid:{uid} {name}" if name else f"uid:{uid}"


# SQL: whether a writer is meant by its first argument: a program (`claude-code`), a user with all
# programs (`uid:1000`), or both.
WRITTEN_BY: Final = (
    "(writer = ?1 OR substr(writer, 1, instr(writer, ' ') - 1) = ?1"
    " OR substr(writer, instr(writer, ' ') + 1) = lower(?1))"
)
KEPT_DAYS: Final = 90.0
# The reason of a version that was never in force: another device's change was later.
CONFLICT: Final = "conflict"
_DAY: Final = 86_400.0


class Version(msgspec.Struct, frozen=True):
    """A version that was replaced."""

    number: int  # identifies it; numbers increase
    kind: str
    id: str
    at: float  # when it was replaced, in seconds since the epoch
    # Who replaced it, and where.
    writer: str
    device: str
    # `merge:ID`, `merged`, `unmerged`, `refiled`, `undo`, …; empty: an edit. A `conflict` is a
    # value that was lost when two devices changed one field.
    why: str
    row: Row
    seen_at: float | None = None  # of a conflict, when somebody looked at it, on any device


def versions(db: sqlite3.Connection, kind: Kind, key: str, limit: int = 100) -> list[Version]:
    """The versions of a row, latest first."""
    return read(db, "kind = ? AND id = ? ORDER BY number DESC LIMIT ?", kind.name, key, limit)


def latest(
    db: sqlite3.Connection, limit: int, kind: str | None = None, *, conflicts: bool = False
) -> list[Version]:
    """The versions replaced last, of one kind or all; with `conflicts`, only lost values."""
    where = "kind = coalesce(?, kind) AND why = coalesce(?, why) ORDER BY number DESC LIMIT ?"
    return read(db, where, kind, CONFLICT if conflicts else None, limit)


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
    for row in (*(next_version.row for next_version in later), kind.load(db, version.id)):
        before, after = version.row.data or {}, (row and row.data) or {}
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if fields := [name for name in names if name != "updated_at"]:
            return fields, {name: after[name] for name in fields if name in after}
    return [], {}


def conflicts(db: sqlite3.Connection) -> int:
    """The number of values lost to another device's change that nobody has looked at yet."""
    unseen = "SELECT count(*) FROM history WHERE why = ? AND seen_at IS NULL"
    return int(scalar(db, unseen, CONFLICT))


def mark_seen(tx: Transaction, numbers: Sequence[int]) -> int:
    """Record on all devices that somebody looked at these lost values; count the new ones.

    A note's lost version is recorded on this device only, as it is in the history of no other.
    """
    seen = 0
    for number in numbers:
        for version in read(tx.db, "number = ? AND why = ? AND seen_at IS NULL", number, CONFLICT):
            seen += 1
            tx.db.execute("UPDATE history SET seen_at = ? WHERE number = ?", (tx.now, number))
            if lost := rows.load(tx.db, LOST, _lost_key(version.row)):
                rows.write(tx, LOST, lost.id, lost.data | {"seen_at": tx.now})
    return seen


def prune(tx: Transaction, max_bytes: int) -> None:
    """Drop versions that are too old or take too much, old lost values, and old deletions."""
    bases = "number NOT IN (SELECT base FROM outbox WHERE base IS NOT NULL)"
    meta.note_steady_clock(tx)
    if meta.clock_is_steady(tx.db, tx.now):
        _forget_deletions(tx)
        oldest = tx.now - KEPT_DAYS * _DAY
        old = "SELECT id FROM rows WHERE kind = ? AND live AND data ->> '$.at' < ?"
        for key in column(tx.db, old, LOST.name, oldest):
            rows.write(tx, LOST, key, None)
        tx.db.execute(f"DELETE FROM history WHERE at < ? AND {bases}", (oldest,))
    beyond = (
        "SELECT max(number) FROM (SELECT number, sum(length(data) + length(clocks))"
        " OVER (ORDER BY number DESC) AS size FROM history) WHERE size > ?"
    )
    tx.db.execute(f"DELETE FROM history WHERE number <= ({beyond}) AND {bases}", (max_bytes,))


def _forget_deletions(tx: Transaction) -> None:
    """Remove tombstones, once no device in use can bring the rows back."""
    before = stamp_at(tx.now - KEPT_DAYS * _DAY)
    gone = tx.db.execute(
        "DELETE FROM rows WHERE NOT live AND data IS NULL AND clocks ->> '$.at[0]' < ?"
        # Tombstones not yet sent are kept, however long the replica is unreachable.
        " AND NOT (? AND EXISTS (SELECT 1 FROM outbox AS o WHERE o.kind = rows.kind"
        " AND o.id = rows.id)) RETURNING kind, id",
        (before, meta.has_replica(tx.db)),
    ).fetchall()
    tx.db.executemany("DELETE FROM outbox WHERE kind = ? AND id = ?", gone)
    for kind, key in gone:
        if kind == "memory":
            rows.write(tx, uses.KIND, f"{key}/{tx.device}", None)


def read(db: sqlite3.Connection, where: str, *values: object) -> list[Version]:
    """The versions that satisfy a condition in SQL."""
    rows = db.execute(
        "SELECT number, kind, id, at, writer, device, why, seen_at, data, clocks FROM history"
        # Without data it is a mark.
        f" WHERE data IS NOT NULL AND {where}",
        values,
    )
    return [
        Version(number, kind, key, at, writer, device, why, decode_row(kind, key, *row), seen_at)
        for number, kind, key, at, writer, device, why, seen_at, *row in rows
    ]


_FIELDS: Final = frozenset({"of", "row", "device", "at", "data", "clocks", "seen_at"})


def record_lost(tx: Transaction, kind: Kind, lost: Row) -> None:
    """Record a version that lost, on all devices."""
    data, clocks = lost.encoded()
    device = lost.clocks.latest[1]
    version = {"of": kind.name, "row": lost.id, "device": device, "at": tx.now}
    rows.write(tx, LOST, _lost_key(lost), version | {"data": data, "clocks": clocks})


def _lost_key(lost: Row) -> str:
    data, clocks = lost.encoded()
    return hashlib.sha256(f"{lost.kind}\0{lost.id}\0{clocks}\0{data}".encode()).hexdigest()[:16]


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:  # noqa: ARG001 - as others
    """Add the version to the history, unless its row was forgotten here."""
    if not LOST.lives(after):
        return
    lost = after.data
    key = (lost["of"], lost["row"])
    if scalar(tx.db, "SELECT 1 FROM rows WHERE kind = ? AND id = ? AND NOT live", *key):
        rows.write(tx, LOST, after.id, None)
        return
    version = (*key, CONFLICT, lost["data"], lost["clocks"])
    tx.db.execute(
        "INSERT INTO history (kind, id, at, writer, device, why, data, clocks)"
        " SELECT ?1, ?2, ?6, '', ?7, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM history"
        " WHERE kind = ?1 AND id = ?2 AND why = ?3 AND data IS ?4 AND clocks = ?5)",
        (*version, lost["at"], lost["device"]),
    )
    tx.db.execute(
        "UPDATE history SET seen_at = ?6 WHERE kind = ?1 AND id = ?2 AND why = ?3"
        " AND data IS ?4 AND clocks = ?5",
        (*version, lost.get("seen_at")),
    )


def _check(row: Row) -> None:
    data = row.data
    decode_row(data["of"], data["row"], data["data"], data["clocks"])
    check_time(data["at"], field="at")
    if data.get("seen_at") is not None:
        check_time(data["seen_at"], field="seen_at")
    str.encode(data["device"])


LOST: Final = Kind(
    name=rows.CONFLICTS,
    fields=_FIELDS,
    liveness_fields=("data",),
    history=False,
    check=_check,
    applied=_applied,
)
