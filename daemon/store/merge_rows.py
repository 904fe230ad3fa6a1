"""The records of merges, one for each memory that is merged into another."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from ..memory.merging import MergeRecord, Retirement
from .memory_rows import fetch, row_of
from .transaction import Transaction

KIND: Final = "merge"


def find(db: sqlite3.Connection, retired: str) -> MergeRecord | None:
    """What undoing the merge of a memory needs."""
    row = db.execute("SELECT record FROM merges WHERE id = ?", (retired,)).fetchone()
    return None if row is None else decode(row[0])


def later(db: sqlite3.Connection, record: MergeRecord) -> tuple[Retirement, ...]:
    """The merges into the same memory since that of `record`, in their order."""
    rows = db.execute(
        "SELECT record FROM merges WHERE kept = ?"
        " AND row > (SELECT row FROM merges WHERE id = ?) ORDER BY row",
        (record.kept, record.retired),
    )
    records = [decode(text) for (text,) in rows.fetchall()]
    found = ((fetch(db, each.retired), each) for each in records)
    return tuple(Retirement(memory, each) for memory, each in found if memory is not None)


def put(tx: Transaction, record: MergeRecord) -> None:
    """Keep a record, in the place of one of the same memory."""
    clock = tx.version()
    tx.db.execute(
        "INSERT INTO merges(id, kept, record, clock, device) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT(id) DO UPDATE SET kept = excluded.kept, record = excluded.record,"
        " clock = excluded.clock, device = excluded.device",
        (record.retired, record.kept, encode(record), clock, tx.device),
    )
    tx.alive(KIND, record.retired)
    tx.changed(KIND, record.retired, clock)
    # The archive shows the record beside the memory.
    tx.archived(row_of(tx, record.retired))


def drop(tx: Transaction, retired: str) -> None:
    """Take the record of a memory away, if there is one; a tombstone stays."""
    if tx.db.execute("DELETE FROM merges WHERE id = ?", (retired,)).rowcount:
        tx.deleted(KIND, retired)


def encode(record: MergeRecord) -> str:
    """A record as the table and the archive hold it."""
    return msgspec.json.encode(record).decode()


def decode(text: str | bytes) -> MergeRecord:
    """The record in a text that `encode` made.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return msgspec.json.decode(text, type=MergeRecord)
