"""Keeping a memory within its limits, as the last step before every commit."""

from __future__ import annotations

import math
import sqlite3
from heapq import nlargest

from ..config.settings import Rules
from ..memory import tree as trees
from ..memory import tree_nodes
from ..memory.scoring import WarmEntry, expired_from_warm, overflow, score_of
from . import erasure
from .database import meta
from .database.connection import column, scalar, to_json
from .database.transaction import Transaction
from .records import experiences, hot_rows, memories, tree_rows
from .records.memory_rows import index_new

# A larger number would delay the other callers of the commit.
_EXPIRED_AT_ONCE = 500
_EXPIRED = "FROM memories WHERE expires_at IS NOT NULL AND expires_at <= ?"
# Beyond the cap some extra room is made, so that not every commit has to make some.
_FILL = 0.9
# Every record is longer, with its names and numbers alone.
_LEAST_SIZE = 100


def enforce_limits(tx: Transaction) -> None:
    """Enforce the caps that the transaction may have exceeded, and write the clock.

    No memory is dropped: what leaves warm is archived, what leaves the tree is filed under its
    parent. Only expired memories are deleted.
    """
    forget_expired(tx)
    if tx.forgotten:
        erasure.erase(tx)
    if tx.enforce_hot:
        hot_rows.save(tx, hot_rows.load(tx.db))
    # While rows are added in bulk nothing is counted for the tree.
    if tx.enforce_tree and not tx.is_bulk:
        _enforce_tree(tx)
    if tx.enforce_warm and warm_bytes(tx.db) > tx.rules.warm.max_bytes:
        room = int(tx.rules.warm.max_bytes * _FILL)
        memories.archive(tx, overflow(warm_entries(tx.db), room, tx.now, tx.rules.scoring))
    if tx.ticked or tx.counted or tx.has_changed:
        # The clock too, so that no stamp is issued twice, even if the wall clock is set back.
        meta.note_clock_state(tx)
    index_new(tx)


def forget_expired(tx: Transaction) -> int:
    """Delete expired memories, and return how many; within a day after a clock's jump none."""
    if tx.now < tx.cache.next_expiry or meta.clock_has_jumped(tx.db, tx.now):
        return 0
    expired = column(tx.db, f"SELECT id {_EXPIRED} LIMIT ?", tx.now, _EXPIRED_AT_ONCE)
    for key in expired:
        memories.expire(tx, memories.find(tx.db, key))
    first = scalar(tx.db, "SELECT min(expires_at) FROM memories WHERE expires_at IS NOT NULL")
    tx.cache.next_expiry = math.inf if first is None else first
    return len(expired)


def warm_bytes(db: sqlite3.Connection) -> int:
    """The size of all warm memories as compact JSON, which their cap limits."""
    total, number = db.execute(
        "SELECT total(size), count(*) FROM memories WHERE archived_at IS NULL"
    ).fetchone()
    # A list of n records: brackets around, commas between.
    return int(total + max(0, number - 1) + 2)


def fill_warm(tx: Transaction) -> None:
    """Choose the warm memories from all, which were archived as they were added."""
    most = tx.rules.warm.max_bytes // _LEAST_SIZE
    best = nlargest(
        most,
        warm_entries(tx.db, "merged_into IS NULL"),
        key=lambda entry: score_of(entry, tx.now, tx.rules.scoring),
    )
    tx.db.execute(
        "UPDATE memories SET archived_at = NULL WHERE id IN (SELECT value FROM json_each(?))",
        (to_json([entry.id for entry in best]),),
    )
    tx.enforce_warm = True


def archive_faded(tx: Transaction) -> int:
    """Archive memories past the retention with scores below the threshold; return how many."""
    return memories.archive(tx, faded(tx.db, tx.now, tx.rules))


def enforce_all_limits(tx: Transaction) -> int:
    """Apply all limits in force, which may have changed; return how many memories were archived."""
    archived = archive_faded(tx)
    experiences.follow_settings(tx)
    hot_rows.save(tx, hot_rows.load(tx.db))
    tx.enforce_warm = tx.enforce_tree = True
    return archived


def is_due(db: sqlite3.Connection, now: float, rules: Rules) -> bool:
    """Whether a memory has faded out of warm, or expired."""
    expired = scalar(db, f"SELECT 1 {_EXPIRED} LIMIT 1", now) is not None
    return (expired and not meta.clock_has_jumped(db, now)) or bool(faded(db, now, rules))


def faded(db: sqlite3.Connection, now: float, rules: Rules) -> list[str]:
    """The ids of the warm memories past the retention that score below the threshold."""
    return expired_from_warm(warm_entries(db), now, rules.scoring, rules.warm)


def warm_entries(db: sqlite3.Connection, where: str = "archived_at IS NULL") -> list[WarmEntry]:
    """The data of each warm memory that the warm cap needs."""
    rows = db.execute(
        f"SELECT id, size, importance, created_at, access_count, pinned FROM memories WHERE {where}"
    )
    return [
        WarmEntry(key, size, importance, at, count, pinned=bool(pinned))
        for key, size, importance, at, count, pinned in rows
    ]


def _enforce_tree(tx: Transaction) -> None:
    before = tree_rows.load(tx.db)
    fitted = trees.fit(before, tx.rules.tree, tx.now, keep=tx.keep_category)
    if not fitted.merges:
        return
    for old, new in fitted.merges:
        if new != tree_nodes.ROOT:
            tree_rows.ensure(tx, new)
        memories.relabel(tx, old, new)
    tree_rows.save(tx, before, fitted.tree)
