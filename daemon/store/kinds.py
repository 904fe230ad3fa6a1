"""The registry: every kind of row, once; and the full-text indexes of all kinds.

Restored memories that are not in the full text yet are a backlog, indexed later, the newest first:
indexing takes several times as long as storing. A memory in it is listed, and found by its id,
category or time, but not by its words; a changed memory is indexed at once.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from .database import full_text, meta
from .database.connection import scalar
from .database.full_text import BACKLOG
from .database.rows import Kind, unknown
from .database.transaction import Transaction
from .records import (
    agent_entries,
    entity_rows,
    experiences,
    history,
    hot_rows,
    key_values,
    memory_rows,
    notes,
    sessions,
    tree_rows,
    uses,
    watched,
)
from .records.memory_rows import FIELDS, INDEX, entry_of, from_row, index

KINDS: Final = {
    kind.name: kind
    for kind in (
        memory_rows.KIND,
        hot_rows.KIND,
        tree_rows.KIND,
        key_values.PAIRS.kind,
        notes.KIND,
        experiences.EXPERIENCES.kind,
        sessions.SESSIONS.kind,
        entity_rows.KIND,
        uses.KIND,
        meta.COUNTERS,
        watched.PATHS.kind,
        history.LOST,
    )
}
# The kinds that make up the critical state.
URGENT: Final = frozenset(kind.name for kind in KINDS.values() if kind.urgent)


def kind_of(name: str) -> Kind:
    """The kind of a row; that of another release is kept and passed on unchanged."""
    return KINDS.get(name) or unknown(name)


def rebuild_indexes(tx: Transaction) -> None:
    """Rebuild the full-text indexes of all kinds."""
    for kind in KINDS.values():
        if kind.reindex is not None:
            kind.reindex(tx)
    agent_entries.clear(tx)
    clear_backlog(tx)
    full_text.note_current(tx.db)


# With a larger number another write would wait longer for its commit.
AT_ONCE: Final = 100
_WAITING: Final = (
    "FROM memories WHERE row <= ?"
    f" AND NOT EXISTS (SELECT 1 FROM {INDEX}_terms AS t WHERE t.row = memories.row)"
)
_LAST: Final = 1 << 62


def begin_backlog(tx: Transaction) -> None:
    """From here on new memories join the backlog of this database."""
    meta.write(tx, BACKLOG, _LAST)


def backlog_count(db: sqlite3.Connection) -> int:
    """The number of memories in the backlog."""
    last = meta.read(db, BACKLOG, int)
    if last is None:
        return 0
    return int(scalar(db, f"SELECT count(*) {_WAITING}", last))


def reduce_backlog(tx: Transaction, most: int = AT_ONCE) -> bool:
    """Index the newest memories of the backlog; False: none is left."""
    last = meta.read(tx.db, BACKLOG, int)
    if last is None:
        return False
    sql = f"SELECT row, {', '.join(FIELDS)} {_WAITING} ORDER BY row DESC LIMIT ?"
    rows = tx.db.execute(sql, (last, most)).fetchall()
    index(tx, (entry_of(number, from_row(rest)) for number, *rest in rows))
    if len(rows) < most:
        clear_backlog(tx)
        return False
    meta.write(tx, BACKLOG, rows[-1][0] - 1)
    return True


def clear_backlog(tx: Transaction) -> None:
    """Note that all memories are indexed."""
    tx.db.execute("DELETE FROM meta WHERE key = ?", (BACKLOG,))
