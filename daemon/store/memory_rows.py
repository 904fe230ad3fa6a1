"""A memory's row and all that hangs on it: full text, archive, tree, outbox, kept in step.

What an operation means, and what it tells, is for the modules that use this one.
"""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from ..errors import Conflict, NotFound
from ..memory.indexing import indexed_columns
from ..memory.records import Memory
from . import remote_rows, tree_rows, uses_rows
from .rows import INSERT, SELECT, UPDATE, from_row, to_row
from .transaction import Transaction

KIND: Final = "memory"
# Set while the index may hold words of texts that are gone.
WORDS_TO_FORGET: Final = "words_to_forget"


def fetch(db: sqlite3.Connection, key: str | None) -> Memory | None:
    """The memory with just this id, if there is one."""
    row = db.execute(f"{SELECT} WHERE id = ?", (key,)).fetchone()
    return None if row is None else from_row(row)


def known(db: sqlite3.Connection, key: str) -> bool:
    """Whether there is a memory with this id, here or on the replica alone."""
    found = db.execute(
        "SELECT 1 FROM memories WHERE id = ?1 UNION ALL SELECT 1 FROM remote_only WHERE id = ?1",
        (key,),
    )
    return found.fetchone() is not None


def add(tx: Transaction, memory: Memory) -> Memory:
    """Write a new row, under a fresh version unless it carries one.

    Raises:
        Conflict: its id is taken.
    """
    if not memory.clock:
        memory = msgspec.structs.replace(memory, clock=tx.version(), device=tx.device)
    if not memory.filed_clock:
        memory = filed_at(memory, memory.clock, memory.device)
    if (last := uses_rows.latest(tx.db, memory.id)) is not None:
        # It was here before: its uses are counted on.
        memory = msgspec.structs.replace(
            memory,
            access_count=memory.access_count + uses_rows.total(tx.db, memory.id),
            last_accessed_at=max(memory.last_accessed_at or 0.0, last),
        )
    memory = _filed(tx, memory)
    row = put_new(tx, memory)
    _touched(tx, row, memory, was_archived=False)
    return memory


def put_new(tx: Transaction, memory: Memory) -> int:
    """Write a new row just as it is, for the caller to tell of; return its number.

    Raises:
        Conflict: its id is taken.
    """
    try:
        row = tx.db.execute(INSERT, to_row(memory)).lastrowid or 0
    except sqlite3.IntegrityError as error:
        raise Conflict(f"cannot store '{memory.id}': the id is taken", field="id") from error
    tx.db.execute(
        "INSERT INTO memory_fts(rowid, text, subject, tags) VALUES (?, ?, ?, ?)",
        (row, *indexed_columns(memory)),
    )
    tx.alive(KIND, memory.id)
    remote_rows.drop(tx, memory.id)
    return row


def rewrite(tx: Transaction, old: Memory, new: Memory) -> Memory:
    """Put `new` in the place of `old`, under a fresh version and the same id.

    What comes back from a merge is filed anew: its category may have gone meanwhile.
    """
    new = msgspec.structs.replace(new, id=old.id, clock=tx.version(), device=tx.device)
    if new.last_accessed_at != old.last_accessed_at:
        # Undoing a merge takes off the times of another memory, but not those of this one.
        last = max(new.last_accessed_at or 0.0, uses_rows.latest(tx.db, new.id) or 0.0)
        new = msgspec.structs.replace(new, last_accessed_at=last or None)
    if new.category != old.category:
        new = _filed(tx, msgspec.structs.replace(new, original_category=""))
    elif old.merged_into is not None and new.merged_into is None:
        new = _filed(tx, new)
    if _place(new) != _place(old):
        new = filed_at(new, new.clock, new.device)
    row = put_over(tx, old, new)
    _touched(tx, row, new, was_archived=old.archived_at is not None)
    return new


def put_over(tx: Transaction, old: Memory, new: Memory) -> int:
    """Write `new` over `old` just as it is, for the caller to tell of; return the row's number."""
    row = row_of(tx, old.id)
    _reindex(tx, row, old, new)
    tx.db.execute(UPDATE, [*to_row(new), old.id])
    return row


def remove(tx: Transaction, memory: Memory) -> None:
    """Take a row away: its text is overwritten on the disk, and a tombstone stays."""
    take_away(tx, memory)
    bury(tx, memory.id)


def bury(tx: Transaction, key: str) -> None:
    """Leave the tombstone of a memory that is gone.

    Its uses stay counted until the tombstone goes: an edit that another device has made since
    brings the memory back, as often used as it was.
    """
    tx.deleted(KIND, key)


def take_away(tx: Transaction, memory: Memory) -> None:
    """Take a row away, and leave the tombstone to the caller."""
    row = row_of(tx, memory.id)
    _unindex(tx, row, memory)
    tx.db.execute("DELETE FROM memories WHERE row = ?", (row,))
    if memory.archived_at is None:
        tx.faces.add("warm")
    else:
        tx.archived(row)
    tx.faces.add("tree")


def row_of(tx: Transaction, key: str) -> int:
    """The number of a memory's row.

    Raises:
        NotFound: there is none.
    """
    found = tx.db.execute("SELECT row FROM memories WHERE id = ?", (key,)).fetchone()
    if found is None:
        raise NotFound(f"no memory has the id '{key}'", field="id")
    return int(found[0])


def filed_at(memory: Memory, clock: int, device: str) -> Memory:
    """The memory, its place in the tree and the tiers decided at this version."""
    return msgspec.structs.replace(memory, filed_clock=clock, filed_device=device)


def show(tx: Transaction, row: int, memory: Memory, *, was_archived: bool) -> None:
    """Have the state files and the caps take note of a row that was written."""
    if was_archived or memory.archived_at is not None:
        tx.archived(row)
    if memory.archived_at is None:
        tx.settle_warm = True
    tx.faces.update({"warm", "tree", "hot"})


def _place(memory: Memory) -> tuple[str, str, float | None]:
    return memory.category, memory.original_category, memory.archived_at


def _filed(tx: Transaction, memory: Memory) -> Memory:
    category = tree_rows.resolve(tx, memory.category)
    tree_rows.ensure(tx, category)
    if category == memory.category:
        return memory
    original = memory.original_category or memory.category
    return msgspec.structs.replace(memory, category=category, original_category=original)


def _reindex(tx: Transaction, row: int, old: Memory, new: Memory) -> None:
    if indexed_columns(old) == indexed_columns(new):
        return
    _unindex(tx, row, old)
    tx.db.execute(
        "INSERT INTO memory_fts(rowid, text, subject, tags) VALUES (?, ?, ?, ?)",
        (row, *indexed_columns(new)),
    )


def _unindex(tx: Transaction, row: int, memory: Memory) -> None:
    tx.db.execute(
        "INSERT INTO memory_fts(memory_fts, rowid, text, subject, tags)"
        " VALUES ('delete', ?, ?, ?, ?)",
        (row, *indexed_columns(memory)),
    )
    tx.db.execute(f"INSERT OR REPLACE INTO meta VALUES ('{WORDS_TO_FORGET}', '')")


def _touched(tx: Transaction, row: int, memory: Memory, *, was_archived: bool) -> None:
    tx.changed(KIND, memory.id, memory.clock)
    show(tx, row, memory, was_archived=was_archived)
