"""Forgetting what has been frozen for longer than the archive keeps it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from ..memory.records import Memory
from ..memory.scoring import COLD, DAY, score_of
from ..store import memories, memory_rows, remote_rows
from ..store.agent_store import AgentStore
from ..store.remote_rows import Note
from ..store.transaction import Rules, Transaction

_YEAR: Final = 365.2425 * DAY
_SECONDS: Final = DAY
_READ_AT_ONCE: Final = 512
# Some ten milliseconds of the writer's time, which a store may have to wait for.
_FORGOTTEN_AT_ONCE: Final = 64

# When it was created and its id, by which the search goes on.
_After: TypeAlias = tuple[float, str]
_START: Final[_After] = (float("-inf"), "")


class Cleaning:
    """Cleans the memories that it is called with, each at most once a day.

    Args:
        years: gives how long the archive keeps what is frozen; 0: for ever.
    """

    def __init__(self, years: Callable[[], float]) -> None:
        self._years = years
        self._cleaned: dict[str, float] = {}

    async def __call__(self, store: AgentStore) -> None:
        """Clean one agent's memory, if that is due.

        Raises:
            ThermoclineError: the memory cannot be read or written; the next call tries it again.
        """
        agent, years = store.place.agent, self._years()
        now = time.monotonic()
        if not years or now - self._cleaned.get(agent, float("-inf")) < _SECONDS:
            return
        await clean(store, years)
        self._cleaned[agent] = now


async def clean(store: AgentStore, years: float, *, dry_run: bool = False) -> int:
    """Forget what is frozen, and was created and last changed longer ago than `years`.

    That a memory was changed since counts, so that what is stored today and dated back, as old
    notes are, is not forgotten tomorrow. Tombstones stay, for the other devices. What the replica
    alone holds is forgotten likewise.

    As when a memory expires, what it was merged into keeps what it gained. What another one is
    merged into, or superseded by, stays as long as that one: without it the other would be
    taken for true again.

    It is done in batches, each a transaction by itself; what is interrupted is done by the next.

    Args:
        store: the agent's memory.
        years: how long the archive keeps what is frozen.
        dry_run: forget nothing.

    Returns:
        How many were forgotten, or would be.
    """
    forgotten = 0
    for find in (_old, _old_elsewhere):
        after = _START
        while page := await store.read(
            partial(find, before=store.now - years * _YEAR, after=after)
        ):
            after = page[-1]
            for start in range(0, len(page), _FORGOTTEN_AT_ONCE):
                ids = [key for _, key in page[start : start + _FORGOTTEN_AT_ONCE]]
                if dry_run:
                    count = partial(_count, ids=ids, years=years, now=store.now, rules=store.rules)
                    forgotten += await store.read(count)
                else:
                    forgotten += await store.write(partial(_forget, ids=ids, years=years))
    return forgotten


def _old(db: sqlite3.Connection, before: float, after: _After) -> list[_After]:
    rows = db.execute(
        "SELECT created_at, id FROM memories WHERE created_at < ?1 AND (created_at, id) > (?2, ?3)"
        " AND updated_at < ?1 ORDER BY created_at, id LIMIT ?4",
        (before, *after, _READ_AT_ONCE),
    )
    return rows.fetchall()


def _old_elsewhere(db: sqlite3.Connection, before: float, after: _After) -> list[_After]:
    rows = db.execute(
        "SELECT created_at, id FROM remote_only WHERE created_at < ?1"
        " AND (created_at, id) > (?2, ?3) AND updated_at < ?1 ORDER BY created_at, id LIMIT ?4",
        (before, *after, _READ_AT_ONCE),
    )
    return rows.fetchall()


def _count(db: sqlite3.Connection, ids: list[str], years: float, now: float, rules: Rules) -> int:
    return sum(_forgettable(db, key, years, now, rules) is not None for key in ids)


def _forget(tx: Transaction, ids: list[str], years: float) -> int:
    """Forget those that are frozen and still as old."""
    forgotten = 0
    for key in ids:
        found = _forgettable(tx.db, key, years, tx.now, tx.rules)
        if isinstance(found, Memory):
            memories.expire(tx, found)
        elif found is not None:
            memories.forget_note(tx, found)
        forgotten += found is not None
    return forgotten


def _is_pointed_to(db: sqlite3.Connection, key: str) -> bool:
    found = db.execute(
        "SELECT 1 FROM memories WHERE merged_into IS NOT NULL AND merged_into = ?1 UNION ALL"
        " SELECT 1 FROM memories WHERE superseded_by IS NOT NULL AND superseded_by = ?1 LIMIT 1",
        (key,),
    )
    return found.fetchone() is not None


def _forgettable(
    db: sqlite3.Connection, key: str, years: float, now: float, rules: Rules
) -> Memory | Note | None:
    """What is known of a memory that is frozen and old, and that no other one points to."""
    found = memory_rows.fetch(db, key) or remote_rows.find(db, key)
    if found is None or max(found.created_at, found.updated_at) >= now - years * _YEAR:
        return None
    if isinstance(found, Memory):
        value = score_of(found, now, rules.scoring)
    else:
        value = remote_rows.score_of(db, found, now, rules.scoring)
    return None if value >= COLD or _is_pointed_to(db, key) else found
