"""The operations that join memories and part them again: merges, and links to what supersedes.

A memory that was merged into another stays as it was, out of the search; the record of the merge
stands beside it. What a memory was merged into may itself be merged into a third, and so on:
whatever is parted, all that stand above it are as if it had never been merged.
"""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from ..errors import Conflict
from ..memory import merging
from ..memory.merging import MergeRecord
from ..memory.pairing import judge_pair
from ..memory.records import Memory
from . import merge_rows, tree_rows
from .memory_rows import fetch, remove, rewrite
from .rows import SELECT, from_row
from .transaction import Transaction

# The kind of the marks on what somebody has taken out of a merge.
APART: Final = "apart"
# The source of memories that say what several others said, which are merged into them.
MADE_OF_OTHERS: Final = "consolidation"
# Which memories `mend_links` takes for gone: all that are not known here, or those alone that
# are known to be deleted, since others may still come.
NOT_HERE: Final = "NOT IN (SELECT id FROM memories UNION ALL SELECT id FROM remote_only)"
DELETED: Final = "IN (SELECT id FROM tombstones WHERE kind = 'memory')"


def merge(
    tx: Transaction, older: Memory, newer: Memory, share: float = merging.SHARE_OF_OLDER
) -> tuple[Memory, Memory]:
    """Retire `older` into `newer`, whatever they say; return both as they are now.

    `share` is how much of the older's importance the newer gains.

    Raises:
        Conflict: they are the same memory, or one of them is already retired.
    """
    merged = merging.merge(older, newer, tx.now, share)
    kept = rewrite(tx, newer, merged.kept)
    retired = rewrite(tx, older, merged.retired)
    merge_rows.put(tx, merged.record)
    _let_together(tx, older.id)
    tx.tell("memory.merged", id=retired.id, into=kept.id, category=kept.category)
    return retired, kept


def unmerge(tx: Transaction, retired: Memory) -> Memory:
    """Bring a merged memory back, and take off what it gave to others.

    One that was made of others alone, and never changed since, goes with the last of them.
    `merge_duplicate` leaves it alone from now on, until its text is another.

    Raises:
        Conflict: it is not merged into any.
    """
    kept = retired.merged_into
    if kept is None:
        raise Conflict(f"cannot unmerge '{retired.id}': it is not merged into another", field="id")
    record = merge_rows.find(tx.db, retired.id)
    back = part(tx, retired)
    _keep_apart(tx, back.id)
    tx.tell("memory.unmerged", id=back.id, kept=kept, category=back.category)
    _dissolve(tx, kept, record)
    return back


def kept_apart(db: sqlite3.Connection) -> set[str]:
    """The ids of the memories that somebody has brought back from a merge."""
    return {key for (key,) in db.execute("SELECT id FROM kept_apart")}


def merge_duplicate(tx: Transaction, older: str, newer: str) -> Memory | None:
    """Merge two memories by their ids, if they still say the same.

    Where `newer` was itself retired meanwhile, what it was merged into takes its place.

    Returns:
        The memory that was kept; None where nothing was to be done.
    """
    first, second = fetch(tx.db, older), _living(tx.db, newer)
    if first is None or second is None or first.id == second.id:
        return None
    if judge_pair(first, second).relation != "duplicate" or _stays_apart(tx.db, first.id):
        return None
    _, kept = merge(tx, first, second)
    return kept


def supersede(tx: Transaction, older: str, newer: str) -> Memory | None:
    """Mark a memory as superseded by another, by their ids, if they still contradict each other.

    As for `merge_duplicate`, what `newer` was merged into takes its place.

    Returns:
        The memory that supersedes; None where nothing was to be done.
    """
    first, second = fetch(tx.db, older), _living(tx.db, newer)
    if first is None or second is None or first.id == second.id:
        return None
    if first.superseded_by == second.id or judge_pair(first, second).relation != "contradiction":
        return None
    link = merging.supersede(first, second)
    if second.superseded_by == first.id:
        # Their times were changed since.
        second = rewrite(tx, second, msgspec.structs.replace(second, superseded_by=None))
    rewrite(tx, first, msgspec.structs.replace(first, superseded_by=link.newer))
    tx.tell("memory.superseded", id=link.older, by=link.newer, category=first.category)
    return second


def unlink(tx: Transaction, key: str) -> None:
    """Take back what was found out about a text which is another now, or is forgotten.

    What it superseded holds again, and it may be merged by itself.
    """
    _let_together(tx, key)
    rows = tx.db.execute(f"{SELECT} WHERE superseded_by = ?", (key,)).fetchall()
    for older in map(from_row, rows):
        rewrite(tx, older, msgspec.structs.replace(older, superseded_by=None))


def release(tx: Transaction, kept: str) -> tuple[str, ...]:
    """Bring back all that were merged into a memory which is about to go; return their ids."""
    rows = tx.db.execute(f"{SELECT} WHERE merged_into = ?", (kept,)).fetchall()
    for retired in map(from_row, rows):
        _come_back(tx, retired, merge_rows.find(tx.db, retired.id))
        tx.tell("memory.unmerged", id=retired.id, kept=kept, category=retired.category)
    return tuple(row[0] for row in rows)


def part(tx: Transaction, retired: Memory) -> Memory:
    """Undo a merge, told to nobody; return the memory that comes back.

    One that came merged out of a file may have no record; then it alone changes.
    """
    record = merge_rows.find(tx.db, retired.id)
    kept = fetch(tx.db, retired.merged_into)
    if record is None or kept is None or record.kept != kept.id:
        return _come_back(tx, retired, None)
    parted = merging.unmerge(kept, retired, record, merge_rows.later(tx.db, record))
    _keep(tx, parted.later)
    back = _come_back(tx, retired, record)
    _follow(tx, rewrite(tx, kept, parted.kept))
    return back


def mend_links(tx: Transaction, gone: str = NOT_HERE) -> None:
    """Free what is merged into, or superseded by, a memory that is gone; and break circles.

    Files, salvaged rows and those of other devices may stem from different moments; a memory
    that points to nothing would stay hidden for ever.

    Args:
        tx: the transaction.
        gone: `NOT_HERE` or `DELETED`.
    """
    superseded = tx.db.execute(
        "SELECT DISTINCT superseded_by FROM memories WHERE superseded_by IS NOT NULL"
        f" AND superseded_by {gone}"
    ).fetchall()
    for (missing,) in superseded:
        unlink(tx, missing)
    rows = tx.db.execute("SELECT id, merged_into FROM memories WHERE merged_into IS NOT NULL")
    merged = dict(rows.fetchall())
    lost = tx.db.execute(
        "SELECT DISTINCT merged_into FROM memories WHERE merged_into IS NOT NULL"
        f" AND merged_into {gone}"
    )
    living = {*merged.values()} - {key for (key,) in lost}
    for key in merging.stranded(merged, living):
        memory = fetch(tx.db, key)
        assert memory is not None
        _come_back(tx, memory, merge_rows.find(tx.db, key))


def _dissolve(tx: Transaction, key: str, record: MergeRecord | None) -> None:
    """Take away a memory that was made of others, now that none of them is merged into it."""
    made = fetch(tx.db, key)
    if made is None or record is None or made.source != MADE_OF_OTHERS:
        return
    others = tx.db.execute("SELECT 1 FROM memories WHERE merged_into = ?", (key,)).fetchone()
    if others is None and made.updated_at == record.merged_at:
        unlink(tx, key)
        remove(tx, made)
        tx.tell("memory.deleted", id=key, category=made.category)


def _come_back(tx: Transaction, retired: Memory, record: MergeRecord | None) -> Memory:
    archived_at = retired.archived_at if record is None else record.archived_at
    back = msgspec.structs.replace(retired, merged_into=None, archived_at=archived_at)
    merge_rows.drop(tx, retired.id)
    back = rewrite(tx, retired, back)
    tree_rows.touch(tx, back.category)
    return back


def _follow(tx: Transaction, changed: Memory) -> None:
    """Let what a changed memory was merged into change with it, and so on upwards."""
    passed = {changed.id}
    while changed.merged_into is not None and changed.merged_into not in passed:
        passed.add(changed.merged_into)
        record = merge_rows.find(tx.db, changed.id)
        above = fetch(tx.db, changed.merged_into)
        if record is None or above is None:
            return
        followed = merging.follow(above, changed, record, merge_rows.later(tx.db, record))
        _keep(tx, (followed.record, *followed.later))
        changed = rewrite(tx, above, followed.kept)


def _keep(tx: Transaction, records: tuple[MergeRecord, ...]) -> None:
    for record in records:
        merge_rows.put(tx, record)


def _keep_apart(tx: Transaction, key: str) -> None:
    clock = tx.version()
    tx.db.execute("INSERT OR REPLACE INTO kept_apart VALUES (?, ?, ?)", (key, clock, tx.device))
    tx.alive(APART, key)
    tx.changed(APART, key, clock)


def _let_together(tx: Transaction, key: str) -> None:
    if tx.db.execute("DELETE FROM kept_apart WHERE id = ?", (key,)).rowcount:
        tx.deleted(APART, key)


def _stays_apart(db: sqlite3.Connection, key: str) -> bool:
    return db.execute("SELECT 1 FROM kept_apart WHERE id = ?", (key,)).fetchone() is not None


def _living(db: sqlite3.Connection, key: str) -> Memory | None:
    """The memory, or the one at the end of its merges; None where that is gone."""
    memory = fetch(db, key)
    passed: set[str] = set()
    while memory is not None and memory.merged_into is not None and memory.id not in passed:
        passed.add(memory.id)
        memory = fetch(db, memory.merged_into)
    return memory
