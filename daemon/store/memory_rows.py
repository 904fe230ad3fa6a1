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
from . import tree_rows
from .rows import INSERT, SELECT, UPDATE, from_row, to_row
from .transaction import Transaction

KIND: Final = "memory"
# Set while the index may hold words of texts that are gone.
WORDS_TO_FORGET: Final = "words_to_forget"


def fetch(db: sqlite3.Connection, key: str | None) -> Memory | None:
    """The memory with just this id, if there is one."""
    row = db.execute(f"{SELECT} WHERE id = ?", (key,)).fetchone()
    return None if row is None else from_row(row)


def add(tx: Transaction, memory: Memory) -> Memory:
    """Write a new row, under a fresh version unless it carries one.

    Raises:
        Conflict: its id is taken.
    """
    if not memory.clock:
        memory = msgspec.structs.replace(memory, clock=tx.version(), device=tx.device)
    memory = _filed(tx, memory)
    try:
        row = tx.db.execute(INSERT, to_row(memory)).lastrowid or 0
    except sqlite3.IntegrityError as error:
        raise Conflict(f"cannot store '{memory.id}': the id is taken", field="id") from error
    tx.db.execute(
        "INSERT INTO memory_fts(rowid, text, subject, tags) VALUES (?, ?, ?, ?)",
        (row, *indexed_columns(memory)),
    )
    tx.alive(KIND, memory.id)
    _touched(tx, row, memory, was_archived=False)
    return memory


def rewrite(tx: Transaction, old: Memory, new: Memory) -> Memory:
    """Put `new` in the place of `old`, under a fresh version and the same id.

    What comes back from a merge is filed anew: its category may have gone meanwhile.
    """
    new = msgspec.structs.replace(new, id=old.id, clock=tx.version(), device=tx.device)
    if new.category != old.category:
        new = _filed(tx, msgspec.structs.replace(new, original_category=""))
    elif old.merged_into is not None and new.merged_into is None:
        new = _filed(tx, new)
    row = row_of(tx, old.id)
    _reindex(tx, row, old, new)
    tx.db.execute(UPDATE, [*to_row(new), old.id])
    _touched(tx, row, new, was_archived=old.archived_at is not None)
    return new


def remove(tx: Transaction, memory: Memory) -> None:
    """Take a row away: its text is overwritten on the disk, and a tombstone stays."""
    row = row_of(tx, memory.id)
    _unindex(tx, row, memory)
    tx.db.execute("DELETE FROM memories WHERE row = ?", (row,))
    tx.deleted(KIND, memory.id)
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
    if was_archived or memory.archived_at is not None:
        tx.archived(row)
    if memory.archived_at is None:
        tx.settle_warm = True
    tx.faces.update({"warm", "tree", "hot"})
