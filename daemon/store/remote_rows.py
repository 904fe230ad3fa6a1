"""The archived memories that only the replica still holds in full, as this device notes them.

An id stands either among the memories or here, never in both. The uses that devices have counted
of such a memory stay in their table, so that they go on being counted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..errors import Unavailable
from ..memory.records import Memory
from ..memory.scoring import Scoring, score
from . import uses_rows
from .transaction import Transaction

# A mark of a move travels under the memory's own kind.
_MEMORY: Final = "memory"


class OnReplicaAlone(Unavailable):
    """The memory is on the replica only, and what was asked needs all of it.

    Attributes:
        id: its id.
    """

    def __init__(self, key: str, why: str = "") -> None:
        super().__init__(
            f"the memory '{key}' is on the replica only" + (f", and {why}" if why else ""),
            field="id",
            hint="it can be read and changed while the replica can be reached",
        )
        self.id = key


class Note(msgspec.Struct, frozen=True):
    """What is known here of a memory that is elsewhere.

    Attributes:
        accesses: those that it brought along; the uses are counted apart.
        size: what it took in this device's archive, in bytes.
        present: whether the replica that is followed now has it; a former one may.
    """

    id: str
    category: str
    original_category: str
    archived_at: float
    importance: float
    created_at: float
    updated_at: float
    accesses: int
    size: int
    clock: int
    device: str
    filed_clock: int
    filed_device: str
    present: bool

    @property
    def said(self) -> tuple[int, str]:
        """The version of what it says."""
        return self.clock, self.device

    @property
    def put(self) -> tuple[int, str]:
        """The version of where it is filed."""
        return self.filed_clock, self.filed_device


_FIELDS: Final = ", ".join(Note.__struct_fields__)


def find(db: sqlite3.Connection, key: str) -> Note | None:
    """The note under just this id, if there is one."""
    row = db.execute(f"SELECT {_FIELDS} FROM remote_only WHERE id = ?", (key,)).fetchone()
    return None if row is None else _note(row)


def beginning(db: sqlite3.Connection, prefix: str, limit: int) -> list[str]:
    """The ids, at most `limit`, that begin with `prefix` and are longer."""
    rows = db.execute(
        "SELECT id FROM remote_only WHERE id > ? AND id < ? LIMIT ?",
        (prefix, f"{prefix}\U0010ffff", limit),
    )
    return [key for (key,) in rows]


def count(db: sqlite3.Connection) -> int:
    """How many there are; no row of them is read."""
    return int(db.execute("SELECT remote_only FROM archive").fetchone()[0])


def left_behind(db: sqlite3.Connection) -> int:
    """How many the replica that is followed now has not."""
    return int(db.execute("SELECT count(*) FROM remote_only WHERE NOT present").fetchone()[0])


def latest(db: sqlite3.Connection) -> float | None:
    """When the youngest of them was created; None: there are none."""
    found: float | None = db.execute("SELECT max(created_at) FROM remote_only").fetchone()[0]
    return found


def among(db: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """Those of `ids` that are noted here, in their order."""
    rows = db.execute(
        "SELECT id FROM remote_only WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(ids).decode(),),
    )
    found = {key for (key,) in rows}
    return [key for key in ids if key in found]


def filed_under(db: sqlite3.Connection, path: str, limit: int) -> list[str]:
    """The ids of what is filed in a category or below it, the most important first."""
    rows = db.execute(
        "SELECT id FROM remote_only WHERE category = ? OR (category >= ? AND category < ?)"
        " ORDER BY importance DESC, created_at DESC LIMIT ?",
        (path, f"{path}/", f"{path}0", limit),
    )
    return [key for (key,) in rows]


def accesses(db: sqlite3.Connection, note: Note) -> int:
    """How often the memory was used, by all that is known here."""
    return note.accesses + uses_rows.total(db, note.id)


def score_of(db: sqlite3.Connection, note: Note, now: float, scoring: Scoring) -> float:
    """The score of the memory at `now`."""
    return score(note.importance, note.created_at, accesses(db, note), now, scoring)


def put(tx: Transaction, memory: Memory, size: int) -> None:
    """Note a memory that is about to leave this device, and was archived."""
    uses = uses_rows.total(tx.db, memory.id)
    assert memory.archived_at is not None
    note = Note(
        id=memory.id,
        category=memory.category,
        original_category=memory.original_category,
        archived_at=memory.archived_at,
        importance=memory.importance,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        accesses=memory.access_count - uses,
        size=size,
        clock=memory.clock,
        device=memory.device,
        filed_clock=memory.filed_clock,
        filed_device=memory.filed_device,
        present=True,
    )
    values = msgspec.structs.astuple(note)
    marks = ", ".join("?" * len(values))
    tx.db.execute(f"INSERT INTO remote_only ({_FIELDS}) VALUES ({marks})", values)
    tx.elsewhere = True


def drop(tx: Transaction, key: str) -> bool:
    """Take a note away, if there is one: the memory is here again, or nowhere."""
    if not tx.db.execute("DELETE FROM remote_only WHERE id = ?", (key,)).rowcount:
        return False
    tx.elsewhere = True
    tx.faces.add("tree")
    return True


def refile(tx: Transaction, note: Note, memory: Memory) -> None:
    """Note where a memory is filed by now, on this device or on another."""
    tx.db.execute(
        "UPDATE remote_only SET category = ?, original_category = ?, archived_at = ?,"
        " filed_clock = ?, filed_device = ? WHERE id = ?",
        (
            memory.category,
            memory.original_category,
            memory.archived_at,
            memory.filed_clock,
            memory.filed_device,
            note.id,
        ),
    )
    tx.faces.add("tree")


def relabel(tx: Transaction, old: str, new: str, clock: int) -> None:
    """File all of category `old` under `new`; the replica hears of the moves alone."""
    moved = tx.db.execute(
        "UPDATE remote_only SET category = ?1, filed_clock = ?2, filed_device = ?3,"
        " original_category ="
        " CASE original_category WHEN '' THEN ?4 WHEN ?1 THEN '' ELSE original_category END"
        " WHERE category = ?4 RETURNING id",
        (new, clock, tx.device, old),
    ).fetchall()
    for (key,) in moved:
        tx.changed(_MEMORY, key, clock, filed_only=True)


def seen(tx: Transaction, note: Note) -> None:
    """Note that the replica which is followed now has the memory."""
    if not note.present:
        tx.db.execute("UPDATE remote_only SET present = 1 WHERE id = ?", (note.id,))


def doubt(tx: Transaction) -> None:
    """Another replica is followed from now on: what it has of these will show."""
    tx.db.execute("UPDATE remote_only SET present = 0")


def _note(row: Sequence[Any]) -> Note:
    fields = dict(zip(Note.__struct_fields__, row, strict=True))
    return Note(**fields | {"present": bool(fields["present"])})
