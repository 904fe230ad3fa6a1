"""The rows of memories, and what follows from each version: links, uses, categories."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import Final

import msgspec

from thermocline.sync import Row, Stamp, stamps

from ..errors import InvalidInput
from ..memory.checks import (
    CATEGORY_CHARS,
    check_category,
    check_data,
    check_importance,
    check_text,
    check_time,
)
from ..memory.records import Memory
from . import entity_rows, rows, tree_rows, uses
from .kind import Kind
from .memory_table import BROUGHT, SAID, SELECT, MemoryTable, from_row, memory_of, reindex, said
from .transaction import Transaction

# The contribution of a merge to the kept memory, in the row of the retired one.
GAVE: Final = "gave"
# Received values are not cut: other devices may allow longer texts.
_ANY_SIZE: Final = 1 << 62
_SHORT_TEXTS: Final = ("subject", "outcome", "source", "actor", "group", "writer", "event")
_TIMES: Final = ("created_at", "updated_at", "last_accessed_at", "expires_at")


def fetch(db: sqlite3.Connection, key: str | None) -> Memory | None:
    """The memory with exactly this id, if it exists."""
    row = db.execute(f"{SELECT} WHERE id = ?", (key,)).fetchone()
    return None if row is None else from_row(row)


def there(tx: Transaction, key: str) -> Memory:
    """The memory with exactly this id, which must exist."""
    found = fetch(tx.db, key)
    assert found is not None
    return found


def rewrite(tx: Transaction, memory: Memory, *, why: str = "", stamp: Stamp | None = None) -> None:
    """Write the content of a memory, without an event."""
    rows.write(tx, KIND, memory.id, said(memory), why=why, stamp=stamp)


def unlink(tx: Transaction, key: str) -> None:
    """Clear `superseded_by` of the memories that a changed or deleted memory superseded."""
    found = tx.db.execute(f"{SELECT} WHERE superseded_by = ?", (key,)).fetchall()
    for older in map(from_row, found):
        freed = msgspec.structs.replace(older, superseded_by=None)
        rewrite(tx, freed, why="unlinked", stamp=_just_after(tx, older.id, "superseded_by"))


def release(tx: Transaction, kept: str) -> None:
    """Restore all memories that were merged into a deleted memory."""
    found = tx.db.execute(f"{SELECT} WHERE merged_into = ?", (kept,)).fetchall()
    for retired in map(from_row, found):
        come_back(tx, retired, repairs=True)
        tx.tell("memory.unmerged", id=retired.id, kept=kept, category=retired.category)


def come_back(tx: Transaction, retired: Memory, *, repairs: bool = False) -> Memory:
    """Restore a memory that is merged into another, which is left unchanged.

    With `repairs` it is an automatic repair: a merge made meanwhile by a user wins.
    """
    back = msgspec.structs.replace(retired, merged_into=None)
    stamp = _just_after(tx, retired.id, "merged_into") if repairs else None
    rows.write(tx, KIND, back.id, said(back), why="unmerged", stamp=stamp, without=GAVE)
    tree_rows.touch(tx, retired.category)
    return there(tx, retired.id)


def _just_after(tx: Transaction, key: str, field: str) -> Stamp:
    """A stamp for an automatic repair of a field; any deliberate change wins over it."""
    row = rows.load(tx.db, KIND, key)
    assert row is not None
    return stamps(row, KIND.sets)[field][0][0] + 1, tx.device


def recount(tx: Transaction, key: str) -> None:
    """Compute a memory's uses again, and those of the memory that it is merged into."""
    passed: set[str] = set()
    above: str | None = key
    while above is not None and above not in passed:
        passed.add(above)
        row = KIND.load(tx.db, above)
        if row is None or not KIND.lives(row):
            return
        number, last = uses.counted(tx, above)
        brought = memory_of(row)
        below, below_last = tx.db.execute(
            "SELECT total(access_count), max(last_accessed_at) FROM memories WHERE merged_into = ?",
            (above,),
        ).fetchone()
        times = [at for at in (brought.last_accessed_at, last, below_last) if at is not None]
        tx.db.execute(
            "UPDATE memories SET access_count = ?, last_accessed_at = ? WHERE id = ?",
            (brought.access_count + number + int(below), max(times, default=None), above),
        )
        above = brought.merged_into


def _uses_differ(tx: Transaction, before: Row | None, after: Row) -> bool:
    """Whether the uses in the table differ from those that follow from the row."""
    if before is None or not KIND.lives(before):
        return _was_used(tx, after.id)
    return any(before.data.get(name) != after.data.get(name) for name in BROUGHT)


def _was_used(tx: Transaction, key: str) -> bool:
    """Whether a new memory already has uses other than those it brings."""
    if uses.counted(tx, key)[0]:
        return True
    if not uses.are_merged(tx):
        return False
    found = tx.db.execute("SELECT 1 FROM memories WHERE merged_into = ? LIMIT 1", (key,))
    return found.fetchone() is not None


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    tx.faces.update({"warm", "tree", "hot"})
    entity_rows.follow(tx, before, after)
    was = before.data.get("merged_into") if before is not None and KIND.lives(before) else None
    if not KIND.lives(after):
        if KIND.lives(before):
            release(tx, after.id)
            unlink(tx, after.id)
            if was is not None:
                recount(tx, was)
        return
    into = after.data.get("merged_into")
    tree_rows.ensure(tx, after.data.get("category", "general"))
    if into != was:
        tx.are_merged = None
        # A merged memory is not searched, and takes no space among the warm ones.
        tx.db.execute(
            "UPDATE memories SET archived_at = iif(?1, coalesce(archived_at, ?2), NULL)"
            " WHERE id = ?3",
            (into is not None, tx.now, after.id),
        )
    elif after.data.get("pinned") and into is None:
        # A pinned memory leaves the archive, and is the last to leave warm.
        tx.db.execute("UPDATE memories SET archived_at = NULL WHERE id = ?", (after.id,))
    if into != was or _uses_differ(tx, before, after):
        recount(tx, after.id)
    if was is not None and into != was:
        recount(tx, was)
    if into is None:
        tx.settle_warm = True


# Many memories share few categories.
_check_category: Final = lru_cache(256)(check_category)


def _check(row: Row) -> None:
    memory = memory_of(row)
    check_text(memory.id, _ANY_SIZE, field="id")
    check_text(memory.text, _ANY_SIZE)
    check_importance(memory.importance)
    if memory.data is not None:
        check_data(memory.data, _ANY_SIZE)
    _check_category(memory.category, CATEGORY_CHARS)
    for name in _TIMES:
        if (time := getattr(memory, name)) is not None:
            check_time(time, field=name)
    for name in _SHORT_TEXTS:
        if "\0" in getattr(memory, name):
            raise InvalidInput(f"cannot take '{row.id}': NUL character in '{name}'", field=name)


KIND: Final = Kind(
    name="memory",
    fields=SAID,
    vital=("text",),
    sets=frozenset({"tags"}),
    check=_check,
    applied=_applied,
    table=MemoryTable(),
    reindex=reindex,
)
