"""Searches a whole memory for duplicates, contradictions, and frozen memories older than the limit.

The search uses readers and a thread; the writer gets only small groups of changes between other
writes. It can be interrupted and restarted at any time: each pair is judged again when it is
joined.
"""

from __future__ import annotations

import asyncio
import sqlite3
from array import array
from collections.abc import Collection, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Rules
from ..language.comparison import Judgement, RelatedPair, contradiction, find_duplicates, keys_of
from ..language.replacing import terms_to_look_up
from ..memory.records import Memory, outranks
from ..memory.scoring import COLD, YEAR
from ..schemas.memory import Tidied, TidyPair
from ..store import limits
from ..store.agent_store import AgentStore
from ..store.database import meta
from ..store.database.connection import batches, to_json
from ..store.database.transaction import Transaction
from ..store.records import memories, memory_rows, merging, similar
from ..store.records.selecting import living_after, living_at, teach_score

_READ_AT_ONCE: Final = 500
_COMPARED_AT_ONCE: Final = 50
# About ten milliseconds of the writer's time, which may delay a store.
_PAIRS_AT_ONCE: Final = 16
# Enough to read; the counts include all.
_PAIRS_SHOWN: Final = 500
# The number of short lists to sort, since sorting a long one would block other threads.
_SHELVES: Final = 64


class Survey:
    """The keys of all memories, as numbers without texts."""

    def __init__(self) -> None:
        self.replacing = array("q")  # the rows of memories that may replace others
        self._shelves = [(array("q"), array("q")) for _ in range(_SHELVES)]
        self.examined = 0  # the number of memories

    def add(self, page: Sequence[tuple[int, Memory]]) -> None:
        """Record some memories, each given with its row."""
        self.examined += len(page)
        for row, memory in page:
            if terms_to_look_up(memory.text)[0]:
                self.replacing.append(row)
            for key in keys_of(memory):
                keys, rows = self._shelves[key % _SHELVES]
                keys.append(key)
                rows.append(row)

    def suspects(self) -> list[int]:
        """The rows of memories that share a key with another."""
        suspects: set[int] = set()
        for keys, rows in self._shelves:
            shared = {key for key, following in pairwise(sorted(keys)) if key == following}
            suspects.update(row for key, row in zip(keys, rows, strict=True) if key in shared)
        return sorted(suspects)


async def tidy(store: AgentStore, *, dry_run: bool = False) -> Tidied:
    """Merge duplicates, mark superseded memories, archive faded ones.

    Nothing is forgotten, and every merge can be undone. Idempotent. With `dry_run` nothing is
    changed, and the changes are reported: duplicates first, each kind in order of time. After an
    error earlier changes are kept.
    """
    now = store.now
    survey = Survey()
    last = 0
    while page := await store.read(partial(living_after, row=last, now=now, limit=_READ_AT_ONCE)):
        await asyncio.to_thread(survey.add, page)
        last = page[-1][0]
    pairs = await _duplicates(store, await asyncio.to_thread(survey.suspects))
    pairs += await _contradictions(store, survey.replacing, {pair.older.id for pair in pairs})
    if dry_run:
        joined = [_viewed(pair, pair.newer) for pair in pairs]
        faded = await store.read(partial(limits.faded, now=store.now, rules=store.rules))
        archived = len(faded)
    else:
        joined = []
        for group in batches(pairs, _PAIRS_AT_ONCE):
            joined += await store.write(partial(_joined, pairs=group))
        archived = await store.write(limits.archive_faded)
    merged = sum(pair.relation == "duplicate" for pair in joined)
    shown = joined[:_PAIRS_SHOWN]
    return Tidied(merged, len(joined) - merged, archived, survey.examined, shown)


async def _duplicates(store: AgentStore, rows: Sequence[int]) -> list[RelatedPair]:
    now = store.now
    suspects: list[Memory] = []
    for part in batches(rows, _READ_AT_ONCE):
        suspects += await store.read(partial(living_at, rows=part, now=now))
    pairs = await asyncio.to_thread(find_duplicates, suspects)
    apart = await store.read(merging.merge_exclusions)
    return [pair for pair in pairs if pair.older.id not in apart]


async def _contradictions(
    store: AgentStore, rows: Sequence[int], retiring: Collection[str]
) -> list[RelatedPair]:
    """The memories that others replace, by their time; none that is about to be retired.

    What was inferred later gives way to what a user stated.
    """
    now = store.now

    def read(db: sqlite3.Connection, part: Sequence[int]) -> list[RelatedPair]:
        return [
            RelatedPair(older, newer, Judgement("contradiction", (contradiction(older, newer),)))
            for newer in living_at(db, rows=part, now=now)
            if newer.id not in retiring
            for older in similar.contradicted_by(db, newer, retiring=retiring)
            if older.id not in retiring
        ]

    pairs: dict[str, RelatedPair] = {}
    for part in batches(rows, _COMPARED_AT_ONCE):
        for pair in await store.read(partial(read, part=part)):
            if outranks(pair.older, pair.newer):
                if pair.newer.superseded_by is None:
                    pairs[pair.newer.id] = RelatedPair(pair.newer, pair.older, pair.judgement)
                continue
            known = pairs.get(pair.older.id)
            # The next that contradicts it.
            if known is None or pair.newer.created_at < known.newer.created_at:
                pairs[pair.older.id] = pair
    return sorted(pairs.values(), key=lambda pair: pair.older.created_at)


def _joined(tx: Transaction, pairs: Sequence[RelatedPair]) -> list[TidyPair]:
    joined = []
    for pair in pairs:
        repeats = pair.judgement.relation == "duplicate"
        join = merging.merge_duplicate if repeats else merging.supersede
        newer = join(tx, pair.older.id, pair.newer.id)
        if newer is not None:
            joined.append(_viewed(pair, newer))
    return joined


def _viewed(pair: RelatedPair, newer: Memory) -> TidyPair:
    older, (relation, reasons) = pair.older, msgspec.structs.astuple(pair.judgement)
    return TidyPair(older.id, newer.id, relation, reasons, older.text, newer.text)


# About ten milliseconds of the writer's time, which may delay a store.
_FORGOTTEN_AT_ONCE: Final = 64
# Excludes memories that others point to, since those would become current again, and those from
# before 2001: a clock that is not set yet begins in 1970 or 2000, so that they may be new.
_FORGETTABLE: Final = """
    SELECT created_at, id FROM memories AS old WHERE created_at < ?1
        AND updated_at BETWEEN 978307200 AND ?1
        AND score(importance, created_at, access_count, pinned) < ?2
        AND NOT EXISTS (SELECT 1 FROM memories WHERE merged_into = old.id)
        AND NOT EXISTS (SELECT 1 FROM memories WHERE superseded_by = old.id)
"""

# The creation time and id of a memory, where the search continues.
_Forgettable: TypeAlias = tuple[float, str]


async def clean(store: AgentStore, years: float, *, dry_run: bool = False) -> int:
    """Delete frozen memories created and last changed more than `years` ago; return their number.

    The last change counts, so that old notes stored today are not deleted tomorrow. Tombstones are
    kept for other devices. The target of a merge keeps the merged content, as after expiry. Each
    batch is a transaction; after an interruption the next call continues. `dry_run` deletes
    nothing, and so does a call within a day after the clock has jumped.
    """
    forgotten, before, now, rules = 0, store.now - years * YEAR, store.now, store.rules
    if not await store.read(partial(meta.clock_is_steady, now=now)):
        return 0
    after: _Forgettable = (float("-inf"), "")
    while frozen := await store.read(
        partial(_next_forgettable, before=before, now=now, rules=rules, after=after)
    ):
        after = frozen[-1]
        if dry_run:
            forgotten += len(frozen)
        else:
            forgotten += await store.write(partial(_forget, before=before, frozen=frozen))
    return forgotten


def _next_forgettable(
    db: sqlite3.Connection, before: float, now: float, rules: Rules, after: _Forgettable
) -> list[_Forgettable]:
    teach_score(db, now, rules.scoring)
    further = "AND (created_at, id) > (?3, ?4) ORDER BY created_at, id LIMIT ?5"
    return db.execute(_FORGETTABLE + further, (before, COLD, *after, _FORGOTTEN_AT_ONCE)).fetchall()


def _forget(tx: Transaction, before: float, frozen: Sequence[_Forgettable]) -> int:
    teach_score(tx.db, tx.now, tx.rules.scoring)
    ids = to_json([key for _, key in frozen])
    still = "AND id IN (SELECT value FROM json_each(?3))"
    keys = tx.db.execute(_FORGETTABLE + still, (before, COLD, ids)).fetchall()
    for _, key in keys:
        memories.expire(tx, memory_rows.require(tx, key))
    return len(keys)
