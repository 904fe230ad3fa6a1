"""`/api/memory/tidy`, `…/merge` and `…/unmerge`: joining memories, and parting them again."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ..errors import Conflict
from ..memory.records import Memory
from ..store import memories, merging
from ..store.memory_rows import fetch
from ..store.transaction import Transaction
from ..upkeep.tidying import Finding, tidy
from .calls import Call, Reply, Route
from .views import MemoryView, memory_view

# Enough to look through; the counts tell of all.
_PAIRS_AT_MOST: Final = 500


class TidyWish(msgspec.Struct, forbid_unknown_fields=True):
    """Whether only to tell what would be done."""

    dry_run: bool = False


class PairView(msgspec.Struct):
    """Two memories by their ids, how they relate, and why."""

    older: str
    newer: str
    relation: Literal["duplicate", "contradiction"]
    reasons: tuple[str, ...]
    older_text: str
    newer_text: str


class Tidied(msgspec.Struct):
    """What was done, or would be. Of many pairs the first 500 are named."""

    merged: int
    superseded: int
    archived: int
    examined: int
    pairs: list[PairView]


class MergeWish(msgspec.Struct, forbid_unknown_fields=True):
    """The memory to merge into, by its id or the beginning of it."""

    into: str


class Merged(msgspec.Struct):
    """Both memories as they are now."""

    kept: MemoryView
    retired: MemoryView


class Unmerged(msgspec.Struct):
    """The memory that is back, and the one that it was merged into, if that is still there."""

    restored: MemoryView
    kept: MemoryView | None


async def tidy_up(call: Call) -> Reply:
    """Merge duplicates, mark what is superseded, archive what has faded."""
    wish = await call.body(TidyWish) if call.request.body_exists else TidyWish()
    async with call.store() as store:
        report = await tidy(store, dry_run=wish.dry_run)
    pairs = [_pair_view(finding) for finding in report.findings[:_PAIRS_AT_MOST]]
    return Reply(Tidied(report.merged, report.superseded, report.archived, report.examined, pairs))


async def merge(call: Call) -> Reply:
    """Retire a memory into another."""
    into = (await call.body(MergeWish)).into

    def apply(tx: Transaction) -> tuple[Memory, Memory]:
        memory = memories.find_living(tx.db, call.params["id"], tx.now)
        return _merged(tx, memory, memories.find_living(tx.db, into, tx.now), "into")

    async with call.store() as store:
        retired, kept = await store.write(apply)
        scoring = store.rules.scoring
    views = (memory_view(memory, call.now, scoring) for memory in (kept, retired))
    return Reply(Merged(*views))


async def unmerge(call: Call) -> Reply:
    """Bring a merged memory back."""

    def apply(tx: Transaction) -> tuple[Memory, Memory | None]:
        retired = memories.find(tx.db, call.params["id"])
        back = merging.unmerge(tx, retired)
        return back, fetch(tx.db, retired.merged_into)

    async with call.store() as store:
        back, kept = await store.write(apply)
        scoring = store.rules.scoring
    left = None if kept is None else memory_view(kept, call.now, scoring)
    return Reply(Unmerged(memory_view(back, call.now, scoring), left))


def joined(tx: Transaction, memory: Memory, into: str | None) -> Memory:
    """`memory`, merged into the one named, and into no other; parted from all where it is None.

    Raises:
        NotFound: there is no such memory.
        Conflict: they are the same, or the one named is itself merged into another.
    """
    target = None if into is None else memories.find_living(tx.db, into, tx.now)
    if memory.merged_into == (target and target.id):
        return memory
    if memory.merged_into is not None:
        memory = merging.unmerge(tx, memory)
    if target is None:
        return memory
    # Read again: parting may have changed it.
    target = memories.find(tx.db, target.id)
    return _merged(tx, memory, target, "merged_into")[0]


def _merged(tx: Transaction, older: Memory, newer: Memory, field: str) -> tuple[Memory, Memory]:
    try:
        return merging.merge(tx, older, newer)
    except Conflict as error:
        raise Conflict(error.message, field=field, hint=error.hint) from error


def _pair_view(finding: Finding) -> PairView:
    older, newer = finding.older, finding.newer
    return PairView(older.id, newer.id, finding.relation, finding.reasons, older.text, newer.text)


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/memory/tidy",
        handler=tidy_up,
        summary="Merge what repeats, mark what is contradicted, archive what has faded",
        role="write",
        body=TidyWish,
        answer=Tidied,
    ),
    Route(
        method="POST",
        path="/api/memory/{id}/merge",
        handler=merge,
        summary="Retire a memory into another",
        role="write",
        body=MergeWish,
        answer=Merged,
    ),
    Route(
        method="POST",
        path="/api/memory/{id}/unmerge",
        handler=unmerge,
        summary="Bring a merged memory back",
        role="write",
        answer=Unmerged,
    ),
)
