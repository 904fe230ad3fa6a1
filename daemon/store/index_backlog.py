"""Restored memories that are not in the full text yet: they are indexed later, the newest first.

Indexing takes several times as long as storing. A memory in the backlog is listed, and found by
its id, category or time, but not by its words; a changed memory is indexed at once.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from . import meta
from .full_text import BACKLOG
from .memory_rows import FIELDS, INDEX, entry_of, from_row, index
from .transaction import Transaction

# With a larger number another write would wait longer for its commit.
AT_ONCE: Final = 100
_WAITING: Final = (
    "FROM memories WHERE row <= ?"
    f" AND NOT EXISTS (SELECT 1 FROM {INDEX}_terms AS t WHERE t.row = memories.row)"
)
_LAST: Final = 1 << 62


def begin(tx: Transaction) -> None:
    """From here on new memories join the backlog of this database."""
    meta.write(tx, BACKLOG, _LAST)


def count(db: sqlite3.Connection) -> int:
    """The number of memories in the backlog."""
    last = meta.read(db, BACKLOG, int)
    if last is None:
        return 0
    return int(db.execute(f"SELECT count(*) {_WAITING}", (last,)).fetchone()[0])


def reduce(tx: Transaction, most: int = AT_ONCE) -> bool:
    """Index the newest memories of the backlog; False: none is left."""
    last = meta.read(tx.db, BACKLOG, int)
    if last is None:
        return False
    sql = f"SELECT row, {', '.join(FIELDS)} {_WAITING} ORDER BY row DESC LIMIT ?"
    rows = tx.db.execute(sql, (last, most)).fetchall()
    index(tx, (entry_of(number, from_row(rest)) for number, *rest in rows))
    if len(rows) < most:
        clear(tx)
        return False
    meta.write(tx, BACKLOG, rows[-1][0] - 1)
    return True


def clear(tx: Transaction) -> None:
    """Note that all memories are indexed."""
    tx.db.execute("DELETE FROM meta WHERE key = ?", (BACKLOG,))
