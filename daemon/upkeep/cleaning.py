"""Forgetting what has been frozen for longer than the archive keeps it."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Final, TypeAlias

from ..config.settings import Rules
from ..memory.records import Memory
from ..memory.scoring import COLD, DAY, score_of
from ..store import memories, memory_rows
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction

_YEAR: Final = 365.2425 * DAY
_READ_AT_ONCE: Final = 512
# About ten milliseconds of the writer's time, which a store may have to wait for.
_FORGOTTEN_AT_ONCE: Final = 64

# When it was created and its id, by which the search goes on.
_After: TypeAlias = tuple[float, str]


async def clean(store: AgentStore, years: float, *, dry_run: bool = False) -> int:
    """Forget what is frozen, and was created and last changed more than `years` ago.

    The last change counts, so that old notes that are stored today are not forgotten tomorrow.
    Tombstones stay, for the other devices. As when a memory expires, what it was merged into
    keeps what it gained. What another memory is merged into, or superseded by, stays as long as
    that one: without it the other would be taken for true again.

    Each batch is a transaction by itself; what is interrupted is done by the next call.

    Args:
        store: the agent's memory.
        years: how long the archive keeps what is frozen.
        dry_run: forget nothing.

    Returns:
        How many were forgotten, or would be.
    """
    forgotten, before = 0, store.now - years * _YEAR
    after: _After = (float("-inf"), "")
    while page := await store.read(partial(_old, before=before, after=after)):
        after = page[-1]
        for start in range(0, len(page), _FORGOTTEN_AT_ONCE):
            ids = [key for _, key in page[start : start + _FORGOTTEN_AT_ONCE]]
            if dry_run:
                now, rules = store.now, store.rules
                find = partial(_forgettable, ids=ids, before=before, now=now, rules=rules)
                forgotten += len(await store.read(find))
            else:
                forgotten += await store.write(partial(_forget, ids=ids, before=before))
    return forgotten


def _old(db: sqlite3.Connection, before: float, after: _After) -> list[_After]:
    rows = db.execute(
        "SELECT created_at, id FROM memories WHERE created_at < ?1 AND (created_at, id) > (?2, ?3)"
        " AND updated_at < ?1 ORDER BY created_at, id LIMIT ?4",
        (before, *after, _READ_AT_ONCE),
    )
    return rows.fetchall()


def _forget(tx: Transaction, ids: list[str], before: float) -> int:
    found = _forgettable(tx.db, ids, before, tx.now, tx.rules)
    for memory in found:
        memories.expire(tx, memory)
    return len(found)


def _forgettable(
    db: sqlite3.Connection, ids: list[str], before: float, now: float, rules: Rules
) -> list[Memory]:
    """The memories that are still frozen and old, and that no other one points to."""
    found = (memory_rows.fetch(db, key) for key in ids)
    return [
        memory
        for memory in found
        if memory is not None
        and max(memory.created_at, memory.updated_at) < before
        and score_of(memory, now, rules.scoring) < COLD
        and not _is_pointed_to(db, memory.id)
    ]


def _is_pointed_to(db: sqlite3.Connection, key: str) -> bool:
    found = db.execute(
        "SELECT 1 FROM memories WHERE merged_into IS NOT NULL AND merged_into = ?1 UNION ALL"
        " SELECT 1 FROM memories WHERE superseded_by IS NOT NULL AND superseded_by = ?1 LIMIT 1",
        (key,),
    )
    return found.fetchone() is not None
