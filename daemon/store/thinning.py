"""Which memories leave an archive that has outgrown its device, and which may come back.

What is measured is the sum of `memories.size` over the archive: the bytes that text, metadata and
all else of each memory take as compact JSON. The index and the archive's files take as much again
and shrink with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from thermocline.sync import Row

from ..memory.scoring import Scoring
from . import link, memory_rows, remote_rows
from .selecting import teach_score
from .transaction import Transaction

# Once the limit is met, a little more room is made, so that not every memory has to make some;
# and only where there is much more do memories come back.
_FILL: Final = 0.96
_COMES_BACK_BELOW: Final = 0.8
_COMES_BACK_UP_TO: Final = 0.9
# Merged and superseded memories, and what they point to, stay: undoing and ranking need them here.
# So does what will expire, since nobody would look at it when its time has come.
_FREE: Final = """
    archived_at IS NOT NULL AND expires_at IS NULL
    AND merged_into IS NULL AND superseded_by IS NULL
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.merged_into = memories.id
        AND m.merged_into IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.superseded_by = memories.id
        AND m.superseded_by IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM merges WHERE merges.id = memories.id)
    AND NOT EXISTS (SELECT 1 FROM merges WHERE merges.kept = memories.id)
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE kind = 'memory' AND outbox.id = memories.id)
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE kind = 'use'
        AND outbox.id > memories.id || '/' AND outbox.id < memories.id || '0')
"""


def local_bytes(db: sqlite3.Connection) -> int:
    """How large the part of the archive is that is on this device; no row is read."""
    return int(db.execute("SELECT local_bytes FROM archive").fetchone()[0])


def is_beyond(db: sqlite3.Connection, most: float) -> bool:
    """Whether more than `most` bytes of the archive are on this device."""
    return local_bytes(db) > most


def leaving(
    db: sqlite3.Connection, most: float, limit: int, now: float, scoring: Scoring
) -> list[str]:
    """The ids of what should leave for a little room below `most` bytes, the lowest score first.

    All of them are free to go: nothing points to them, and the replica was told of all.
    """
    surplus = local_bytes(db) - most * _FILL
    teach_score(db, now, scoring)
    rows = db.execute(
        f"SELECT id, size FROM memories WHERE {_FREE}"
        " ORDER BY score(importance, created_at, access_count), row LIMIT ?",
        (limit,),
    )
    found: list[str] = []
    for key, size in rows:
        if surplus <= 0:
            break
        found.append(key)
        surplus -= size
    return found


def leave(tx: Transaction, rows: Sequence[Row], epoch: str) -> int:
    """Leave memories to the replica alone, no tombstone behind them; return how many.

    Args:
        tx: the transaction.
        rows: what the replica has shown just now, whole.
        epoch: of that replica.
    """
    if link.load(tx.db).epoch != epoch:
        return 0
    return sum(_leave(tx, row) for row in rows)


def _leave(tx: Transaction, row: Row) -> bool:
    found = tx.db.execute(
        f"SELECT size FROM memories WHERE id = ? AND {_FREE}", (row.id,)
    ).fetchone()
    memory = memory_rows.fetch(tx.db, row.id)
    if found is None or memory is None:
        return False
    same = memory.said == (row.clock, row.device)
    if not same or memory.put != (row.place_clock, row.place_device):
        return False
    memory_rows.take_away(tx, memory)
    remote_rows.put(tx, memory, found[0])
    return True


def coming_back(
    db: sqlite3.Connection, most: float | None, limit: int, now: float, scoring: Scoring
) -> list[str]:
    """The ids of what this device has room for again, the highest score first.

    Args:
        db: the database.
        most: the bytes that the archive may take; None: any number.
        limit: at most so many.
        now: the time, by which memories have aged.
        scoring: the constants of the score.
    """
    if not remote_rows.count(db):
        return []
    here = local_bytes(db)
    if most is not None and here >= most * _COMES_BACK_BELOW:
        return []
    teach_score(db, now, scoring)
    rows = db.execute(
        "SELECT id, size FROM remote_only WHERE present"
        " ORDER BY score(importance, created_at, accesses) DESC, id LIMIT ?",
        (limit,),
    )
    found: list[str] = []
    for key, size in rows:
        here += size
        if most is not None and here > most * _COMES_BACK_UP_TO:
            break
        found.append(key)
    return found
