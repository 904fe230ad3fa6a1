"""The operations on memories. Each changes rows; the rest follows in `memory_rows`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from thermocline.sync import changed

from ...errors import Conflict, NotFound
from ...language.comparison import contradicts, is_duplicate
from ...memory.records import DEFAULT_CATEGORY, Memory
from ...memory.scoring import score_of, tier_of
from ..database import rows
from ..database.connection import column, to_json
from ..database.record_kind import SHORTEST_PREFIX
from ..database.transaction import Transaction
from . import merging, tree_rows, uses
from .memory_rows import (
    KIND,
    clear_superseded,
    fetch,
    follow_new,
    require,
    rewrite,
    select,
    to_row,
)
from .merging import merged_fields


def find(db: sqlite3.Connection, key: str) -> Memory:
    """The memory whose id is, or alone begins with, `key`; else `NotFound` or `Conflict`."""
    memory = fetch(db, key)
    if memory is not None:
        return memory
    alike: list[Memory] = []
    if len(key) >= SHORTEST_PREFIX:
        alike = select(db, "id > ? AND id < ? LIMIT 2", key, f"{key}\U0010ffff")
    if len(alike) > 1:
        raise Conflict(f"cannot tell which memory '{key}' is: several begin so", field="id")
    if not alike:
        hint = f"give at least its first {SHORTEST_PREFIX} characters"
        is_short = len(key) < SHORTEST_PREFIX
        raise NotFound(f"no memory has the id '{key}'", field="id", hint=hint if is_short else None)
    return alike[0]


def find_living(db: sqlite3.Connection, key: str, now: float) -> Memory:
    """The memory that `find` finds, with its errors; `NotFound` also if it has expired."""
    memory = find(db, key)
    if memory.expired(now):
        raise NotFound(f"the memory '{memory.id}' has expired", field="id")
    return memory


def insert(tx: Transaction, memory: Memory) -> Memory:
    """Store a memory under an id that may have been forgotten; `Conflict` if it is taken.

    Uses already counted by devices under its id are added to those that it brings.
    """
    before = KIND.load(tx.db, memory.id)
    if KIND.lives(before):
        raise Conflict(f"cannot store '{memory.id}': the id is taken", field="id")
    if before is not None:
        rows.write(tx, KIND, memory.id, to_row(memory, with_uses=True))
        tx.count("total_stored")
        return _reported(tx, memory.id, "memory.stored")
    add(tx, memory)
    uses.recount(tx, memory.id)
    return require(tx, memory.id)


def add(tx: Transaction, memory: Memory) -> Memory:
    """Store a memory under a new id, in the category that replaces its own in the tree, if merged.

    No row, use or merge knows the id: nothing is looked up for it, and nothing read back.
    """
    memory = msgspec.structs.replace(_filed(tx, memory), tags=tuple(sorted({*memory.tags})))
    row = changed(
        None, (KIND.name, memory.id), to_row(memory, with_uses=True), tx.stamp(), KIND.sets
    )
    KIND.table.add(tx, [row], [memory])
    follow_new(tx, row)
    rows.mark(tx, KIND, memory.id, None, None)
    tx.count("total_stored")
    _emit(tx, memory, "memory.stored")
    return memory


def strengthen(tx: Transaction, known: Memory, repeated: Memory) -> Memory:
    """Count a use of a memory that is stored once more, and add what `repeated` says beyond it.

    These are tags, references, subject, outcome and data, a pin, a later expiry, a higher
    importance, and a category in place of the default.
    """
    new = merged_fields(repeated, known, share=0.0)
    is_default = known.category == DEFAULT_CATEGORY != repeated.category
    filed = repeated if is_default else known
    new = msgspec.structs.replace(
        new,
        importance=max(known.importance, repeated.importance),
        category=filed.category,
        original_category=filed.original_category,
    )
    if new != known:
        replace(tx, known, msgspec.structs.replace(new, updated_at=tx.now))
    uses.reinforce(tx, [known.id])
    return require(tx, known.id)


def replace(tx: Transaction, old: Memory, new: Memory, *, why: str = "") -> Memory:
    """Replace the content of a memory, under the same id.

    If the text changes, its contradictions with other memories are cleared, unless it still has
    them. Without a change nothing is written.
    """
    new = msgspec.structs.replace(new, tags=tuple(sorted({*new.tags})))
    if msgspec.structs.replace(new, updated_at=old.updated_at) == old:
        return old
    if new.text != old.text:
        clear_superseded(tx, old.id, lambda older: contradicts(older, new))
        newer = fetch(tx.db, new.superseded_by)
        if newer is None or not contradicts(new, newer):
            new = msgspec.structs.replace(new, superseded_by=None)
    if new.category != old.category:
        if new.original_category == old.original_category:
            new = msgspec.structs.replace(new, original_category="")
        new = _filed(tx, new)
    rewrite(tx, new, why=why)
    tree_rows.touch(tx, new.category)
    return _reported(tx, old.id, "memory.updated")


def delete(tx: Transaction, memory: Memory) -> tuple[str, ...]:
    """Delete a memory; return the ids of the restored ones. Text and history are overwritten.

    A tombstone remains. Its contributions to the memory it was merged into are removed, and what
    may have passed them on is restored. Memories merged into it are deleted too if they say the
    same, else restored, so that deleting one statement never hides another.
    """
    freed: list[str] = []
    if memory.merged_into is not None:
        freed = merging.free(tx, memory)
        memory = require(tx, memory.id)
    merged = "SELECT id FROM memories WHERE merged_into = ?"
    for key in column(tx.db, merged, memory.id):
        # Deleting one before may have freed it.
        other = require(tx, key)
        if is_duplicate(msgspec.structs.replace(other, merged_into=None), memory):
            delete(tx, other)
    back = column(tx.db, merged, memory.id)
    rows.write(tx, KIND, memory.id, None)
    tx.emit("memory.deleted", id=memory.id, category=memory.category)
    return (*freed, *back)


def forget(tx: Transaction, key: str) -> tuple[str, tuple[str, ...]]:
    """Delete the memory that `find` finds; return its id, and those that `delete` restored."""
    memory = find(tx.db, key)
    return memory.id, delete(tx, memory)


def expire(tx: Transaction, memory: Memory) -> None:
    """Delete an expired memory; the memory it was merged into keeps what it gained.

    The merge gave that memory the later expiry of both. The uses, which are derived, are deleted.
    """
    rows.write(tx, KIND, memory.id, None)
    tx.emit("memory.deleted", id=memory.id, category=memory.category)


def archive(tx: Transaction, ids: Iterable[str]) -> int:
    """Move memories from warm to the cold archive of this device, and return how many."""
    moved = tx.db.execute(
        "UPDATE memories SET archived_at = ? WHERE archived_at IS NULL"
        " AND id IN (SELECT value FROM json_each(?))",
        (tx.now, to_json([*ids])),
    ).rowcount
    if moved:
        tx.count("total_evicted", moved)
        tx.count("evictions_today", moved)
        tx.state_files.update({"warm", "tree", "hot"})
        tx.emit("memory.archived", count=moved)
    return moved


def relabel(tx: Transaction, old: str, new: str) -> None:
    """File every memory of category `old` under `new`, and record the original category."""
    for memory in select(tx.db, "category = ?", old):
        refile(tx, memory, new, memory.original_category or old)
    tx.emit("category.merged", category=old, into=new)


def refile(tx: Transaction, memory: Memory, category: str, original: str) -> None:
    """File a memory elsewhere. `original`: the category its caller wanted, or ""."""
    original = "" if original == category else original
    moved = msgspec.structs.replace(memory, category=category, original_category=original)
    rewrite(tx, moved, why="refiled")


def _filed(tx: Transaction, memory: Memory) -> Memory:
    category = tree_rows.resolve(tx, memory.category)
    if category == memory.category:
        return memory
    original = memory.original_category or memory.category
    return msgspec.structs.replace(memory, category=category, original_category=original)


def _reported(tx: Transaction, key: str, event: str) -> Memory:
    memory = require(tx, key)
    _emit(tx, memory, event)
    return memory


def _emit(tx: Transaction, memory: Memory, event: str) -> None:
    tier = tier_of(score_of(memory, tx.now, tx.rules.scoring))
    tx.emit(event, id=memory.id, category=memory.category, event=memory.event, tier=tier)
