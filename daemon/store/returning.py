"""What comes in of memories that the replica alone held: which come back, and which stay there."""

from __future__ import annotations

import sqlite3

import msgspec

from thermocline.sync import Row

from ..memory.records import Memory
from . import link, memory_rows, remote_rows, tree_rows, understood, uses_rows
from .remote_rows import Note
from .transaction import Transaction


def decoded(db: sqlite3.Connection, row: Row) -> Memory:
    """The memory in a row, with the uses that are counted here.

    Raises:
        MsgspecError, InvalidInput: it is none.
    """
    came = understood.memory(row)
    last = uses_rows.latest(db, row.id)
    return msgspec.structs.replace(
        came,
        access_count=came.access_count + uses_rows.total(db, row.id),
        last_accessed_at=max(came.last_accessed_at or 0.0, last or 0.0) or None,
    )


def placed(came: Memory, note: Note) -> Memory:
    """What came, filed where the note has it, if that was decided later."""
    if came.put >= note.put:
        return came
    return msgspec.structs.replace(
        came,
        category=note.category,
        original_category=note.original_category,
        archived_at=note.archived_at,
        filed_clock=note.filed_clock,
        filed_device=note.filed_device,
    )


def refile(tx: Transaction, row: Row, came: Memory, note: Note) -> bool:
    """Leave with the replica what says nothing new; True: it is filed elsewhere now.

    Args:
        tx: the transaction.
        row: what came.
        came: the memory in it, `placed`.
        note: what is known here.
    """
    if came.put > (row.place_clock, row.place_device):
        tx.changed(row.kind, row.id, came.filed_clock, filed_only=True)
    else:
        link.heard(tx, row)
    if came.put == note.put:
        return False
    remote_rows.refile(tx, note, came)
    tree_rows.ensure(tx, came.category)
    return True


def take_back(tx: Transaction, row: Row) -> Memory | None:
    """Hold in full again what the replica alone held; None: it is here again, or gone.

    Raises:
        MsgspecError, InvalidInput: the row is no memory.
    """
    note = remote_rows.find(tx.db, row.id)
    if note is None:
        return None
    back = placed(decoded(tx.db, row), note)
    number = memory_rows.put_new(tx, back)
    memory_rows.show(tx, number, back, was_archived=False)
    tree_rows.ensure(tx, back.category)
    return back
