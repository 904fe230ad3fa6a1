"""Deletes frozen memories that are older than the archive keeps them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Rules
from ..memory.scoring import COLD, YEAR
from ..store import memories, memory_rows
from ..store.agent_store import AgentStore
from ..store.selecting import teach_score
from ..store.transaction import Transaction

# About ten milliseconds of the writer's time, which may delay a store.
_AT_ONCE: Final = 64
# Excludes memories that others point to, since those would become current again.
_FORGETTABLE: Final = """
    SELECT created_at, id FROM memories AS old WHERE created_at < ?1 AND updated_at < ?1
        AND score(importance, created_at, access_count, pinned) < ?2
        AND NOT EXISTS (SELECT 1 FROM memories WHERE merged_into = old.id)
        AND NOT EXISTS (SELECT 1 FROM memories WHERE superseded_by = old.id)
"""

# The creation time and id of a memory, where the search continues.
_Found: TypeAlias = tuple[float, str]


async def clean(store: AgentStore, years: float, *, dry_run: bool = False) -> int:
    """Delete frozen memories that were created and last changed more than `years` ago.

    The last change counts, so that old notes stored today are not deleted tomorrow. Tombstones are
    kept for other devices. The target of a merge keeps the merged content, as after expiry.

    Each batch is a transaction; after an interruption the next call continues.

    Args:
        store: the agent's memory.
        years: how long frozen memories are kept.
        dry_run: delete nothing.

    Returns:
        The number of memories that were deleted, or would be.
    """
    forgotten, before, now, rules = 0, store.now - years * YEAR, store.now, store.rules
    after: _Found = (float("-inf"), "")
    while found := await store.read(
        partial(_next, before=before, now=now, rules=rules, after=after)
    ):
        after = found[-1]
        if dry_run:
            forgotten += len(found)
        else:
            forgotten += await store.write(partial(_forget, before=before, found=found))
    return forgotten


def _next(
    db: sqlite3.Connection, before: float, now: float, rules: Rules, after: _Found
) -> list[_Found]:
    teach_score(db, now, rules.scoring)
    further = "AND (created_at, id) > (?3, ?4) ORDER BY created_at, id LIMIT ?5"
    return db.execute(_FORGETTABLE + further, (before, COLD, *after, _AT_ONCE)).fetchall()


def _forget(tx: Transaction, before: float, found: Sequence[_Found]) -> int:
    """Delete those of the memories that have not changed meanwhile."""
    teach_score(tx.db, tx.now, tx.rules.scoring)
    ids = msgspec.json.encode([key for _, key in found]).decode()
    still = "AND id IN (SELECT value FROM json_each(?3))"
    keys = tx.db.execute(_FORGETTABLE + still, (before, COLD, ids)).fetchall()
    for _, key in keys:
        memories.expire(tx, memory_rows.there(tx, key))
    return len(keys)
