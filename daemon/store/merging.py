"""The operations that join memories and part them again: merges, and links to what supersedes.

A memory that was merged into another stays as it was, out of the search; the record of the merge
stands beside it. What a memory was merged into may itself be merged into a third, and so on:
whatever is parted, all that stand above it are as if it had never been merged.
"""

from __future__ import annotations

import sqlite3

import msgspec

from ..errors import Conflict
from ..memory import merging
from ..memory.merging import MergeRecord
from ..memory.pairing import judge_pair
from ..memory.records import Memory
from . import merge_rows, tree_rows
from .memory_rows import fetch, rewrite
from .rows import SELECT, from_row
from .transaction import Transaction


def merge(tx: Transaction, older: Memory, newer: Memory) -> tuple[Memory, Memory]:
    """Retire `older` into `newer`, whatever they say; return both as they are now.

    Raises:
        Conflict: they are the same memory, or one of them is already retired.
    """
    merged = merging.merge(older, newer, tx.now)
    kept = rewrite(tx, newer, merged.kept)
    retired = rewrite(tx, older, merged.retired)
    merge_rows.put(tx, merged.record)
    tx.db.execute("DELETE FROM kept_apart WHERE id = ?", (older.id,))
    tx.tell("memory.merged", id=retired.id, into=kept.id, category=kept.category)
    return retired, kept


def unmerge(tx: Transaction, retired: Memory) -> Memory:
    """Bring a merged memory back, and take off what it gave to others.

    `merge_duplicate` leaves it alone from now on, until its text is another.

    Raises:
        Conflict: it is not merged into any.
    """
    kept = retired.merged_into
    if kept is None:
        raise Conflict(f"cannot unmerge '{retired.id}': it is not merged into another", field="id")
    back = part(tx, retired)
    tx.db.execute("INSERT OR IGNORE INTO kept_apart VALUES (?)", (back.id,))
    tx.tell("memory.unmerged", id=back.id, kept=kept, category=back.category)
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
    tx.db.execute("DELETE FROM kept_apart WHERE id = ?", (key,))
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


def mend_links(tx: Transaction) -> None:
    """Free what is merged into, or superseded by, a memory that is not there; and break circles.

    Files and salvaged rows may stem from different moments; a memory that points to nothing
    would stay hidden for ever.
    """
    superseded = tx.db.execute(
        "SELECT DISTINCT superseded_by FROM memories WHERE superseded_by IS NOT NULL"
        " AND superseded_by NOT IN (SELECT id FROM memories)"
    ).fetchall()
    for (missing,) in superseded:
        unlink(tx, missing)
    rows = tx.db.execute("SELECT id, merged_into FROM memories WHERE merged_into IS NOT NULL")
    merged = dict(rows.fetchall())
    living = tx.db.execute(
        "SELECT id FROM memories WHERE merged_into IS NULL"
        " AND id IN (SELECT merged_into FROM memories)"
    )
    for key in merging.stranded(merged, {key for (key,) in living}):
        memory = fetch(tx.db, key)
        assert memory is not None
        _come_back(tx, memory, merge_rows.find(tx.db, key))


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
