"""Merging memories, and undoing a merge."""

from __future__ import annotations

from typing import Final

from ..errors import Conflict
from ..memory.records import Memory
from ..shapes.common import MemoryId
from ..shapes.memory import MergeBody, Merged, Tidied, TidyBody, TidyPair, Unmerged
from ..store import memories, merging
from ..store.memory_rows import fetch
from ..store.transaction import Transaction
from ..upkeep.tidying import Finding, tidy
from .operation import Operation
from .scope import Scope
from .views import memory_view

# Enough to read; the counts include all.
_PAIRS_AT_MOST: Final = 500


@Operation("POST", "/api/memory/tidy", role="write")
async def tidy_up(scope: Scope, body: TidyBody | None = None) -> Tidied:
    """Merge duplicates, mark contradicted memories, archive faded ones."""
    async with scope.store() as store:
        report = await tidy(store, dry_run=body is not None and body.dry_run)
    pairs = [_pair(finding) for finding in report.findings[:_PAIRS_AT_MOST]]
    return Tidied(report.merged, report.superseded, report.archived, report.examined, pairs)


@Operation("POST", "/api/memory/{id}/merge", role="write")
async def merge(scope: Scope, id: MemoryId, body: MergeBody) -> Merged:  # noqa: A002
    """Merge a memory into another."""

    def apply(tx: Transaction) -> tuple[Memory, Memory]:
        memory = memories.find_living(tx.db, id, tx.now)
        return _merged(tx, memory, memories.find_living(tx.db, body.into, tx.now), "into")

    retired, kept = await scope.write(apply)
    return Merged(memory_view(scope, kept), memory_view(scope, retired))


@Operation("POST", "/api/memory/{id}/unmerge", role="write")
async def unmerge(scope: Scope, id: MemoryId) -> Unmerged:  # noqa: A002
    """Undo the merge of a memory into another."""

    def apply(tx: Transaction) -> tuple[Memory, Memory | None]:
        retired = memories.find(tx.db, id)
        back = merging.unmerge(tx, retired)
        return back, fetch(tx.db, retired.merged_into)

    back, kept = await scope.write(apply)
    return Unmerged(memory_view(scope, back), None if kept is None else memory_view(scope, kept))


def joined(tx: Transaction, memory: Memory, into: str | None) -> Memory:
    """`memory`, merged into `into` in place of any earlier merge; with None, not merged.

    Raises:
        NotFound: `into` does not exist.
        Conflict: both are the same memory, or `into` is itself merged into another.
    """
    target = None if into is None else memories.find_living(tx.db, into, tx.now)
    if memory.merged_into == (target and target.id):
        return memory
    if memory.merged_into is not None:
        memory = merging.unmerge(tx, memory)
    if target is None:
        return memory
    # Read again: undoing the earlier merge may have changed it.
    target = memories.find(tx.db, target.id)
    return _merged(tx, memory, target, "merged_into")[0]


def _merged(tx: Transaction, older: Memory, newer: Memory, field: str) -> tuple[Memory, Memory]:
    try:
        return merging.merge(tx, older, newer)
    except Conflict as error:
        raise Conflict(error.message, field=field, hint=error.hint) from error


def _pair(finding: Finding) -> TidyPair:
    older, newer = finding.older, finding.newer
    return TidyPair(older.id, newer.id, finding.relation, finding.reasons, older.text, newer.text)
