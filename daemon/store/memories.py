"""The operations on memories. Each keeps row, full text, archive, tree and outbox in step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..errors import Conflict, NotFound
from ..memory.indexing import indexed_columns
from ..memory.records import Memory
from ..memory.scoring import score_of, tier_of
from ..memory.warm import record_size
from . import tree_rows
from .rows import INSERT, SELECT, UPDATE, from_row, to_row
from .transaction import SEGMENT_ROWS, Transaction

KIND: Final = "memory"
SHORTEST_PREFIX: Final = 4
_UNMERGED: Final = "words_to_forget"
# Pages of the index that one step merges, which keeps the writer busy for some milliseconds.
_PAGES: Final = 64


def find(db: sqlite3.Connection, key: str) -> Memory:
    """The memory with this id, or the only one whose id begins with `key` (4 characters or more).

    Raises:
        NotFound: there is none.
        Conflict: several ids begin so.
    """
    found = db.execute(f"{SELECT} WHERE id = ?", (key,)).fetchone()
    if found is None and len(key) >= SHORTEST_PREFIX:
        rows = db.execute(
            f"{SELECT} WHERE id > ? AND id < ? LIMIT 2", (key, f"{key}\U0010ffff")
        ).fetchall()
        if len(rows) > 1:
            raise Conflict(f"cannot tell which memory '{key}' is: several begin so", field="id")
        found = rows[0] if rows else None
    if found is None:
        raise NotFound(f"no memory has the id '{key}'", field="id")
    return from_row(found)


def insert(tx: Transaction, memory: Memory) -> Memory:
    """Store a new memory, under a fresh version unless it carries one.

    Raises:
        Conflict: its id is taken.
    """
    if not memory.clock:
        memory = msgspec.structs.replace(memory, clock=tx.version(), device=tx.device)
    memory = _filed(tx, memory)
    try:
        row = tx.db.execute(INSERT, to_row(memory)).lastrowid or 0
    except sqlite3.IntegrityError as error:
        raise Conflict(f"cannot store '{memory.id}': the id is taken", field="id") from error
    tx.db.execute(
        "INSERT INTO memory_fts(rowid, text, subject, tags) VALUES (?, ?, ?, ?)",
        (row, *indexed_columns(memory)),
    )
    tx.alive(KIND, memory.id)
    _touched(tx, row, memory, was_archived=False)
    tx.count("total_stored")
    tx.tell("memory.stored", **_brief(tx, memory))
    return memory


def replace(tx: Transaction, old: Memory, new: Memory) -> Memory:
    """Put `new` in the place of `old`, under a fresh version and the same id."""
    new = msgspec.structs.replace(new, id=old.id, clock=tx.version(), device=tx.device)
    if new.category != old.category:
        new = _filed(tx, msgspec.structs.replace(new, original_category=""))
    row = _row_of(tx, old.id)
    _reindex(tx, row, old, new)
    tx.db.execute(UPDATE, [*to_row(new), old.id])
    _touched(tx, row, new, was_archived=old.archived_at is not None)
    tx.tell("memory.updated", **_brief(tx, new))
    return new


def delete(tx: Transaction, memory: Memory) -> None:
    """Forget a memory: its text is overwritten on the disk, and a tombstone stays."""
    row = _row_of(tx, memory.id)
    _unindex(tx, row, memory)
    tx.db.execute("DELETE FROM memories WHERE row = ?", (row,))
    tx.deleted(KIND, memory.id)
    if memory.archived_at is None:
        tx.faces.add("warm")
    else:
        tx.archived(row)
    tx.faces.add("tree")
    tx.tell("memory.deleted", id=memory.id, category=memory.category)


def reinforce(tx: Transaction, ids: Sequence[str]) -> None:
    """Count one use of each memory. Unknown ids are passed over.

    A use is no edit: the version stays, so that two devices' uses never conflict.
    """
    clock = tx.version()
    for key in ids:
        used = tx.db.execute(
            "UPDATE memories SET access_count = access_count + 1, last_accessed_at = ?"
            " WHERE id = ? RETURNING category",
            (tx.now, key),
        ).fetchone()
        if used is not None:
            tx.db.execute("UPDATE tree SET last_access = ? WHERE path = ?", (tx.now, used[0]))
            tx.changed(KIND, key, clock)
    tx.count("reinforcements_today", len(ids))
    tx.faces.update({"warm", "tree", "hot"})


def count_answers(tx: Transaction, answers: Sequence[Sequence[str]]) -> None:
    """Count answers that were given, and one use of each memory for each answer it was in."""
    for used in answers:
        reinforce(tx, used)
    tx.count("retrieval_count", len(answers))
    tx.count("total_retrieved", sum(map(len, answers)))


def archive(tx: Transaction, ids: Iterable[str]) -> int:
    """Move memories from warm to the cold archive, and return how many."""
    moved = 0
    for key in ids:
        clock = tx.version()
        found = tx.db.execute(
            "UPDATE memories SET archived_at = ?, clock = ?, device = ?"
            " WHERE id = ? AND archived_at IS NULL RETURNING row",
            (tx.now, clock, tx.device, key),
        ).fetchone()
        if found is not None:
            moved += 1
            tx.archived(found[0])
            tx.changed(KIND, key, clock)
    if moved:
        tx.count("total_evicted", moved)
        tx.count("evictions_today", moved)
        tx.faces.update({"warm", "tree", "hot"})
        tx.tell("memory.archived", count=moved)
    return moved


def relabel(tx: Transaction, old: str, new: str) -> None:
    """File every memory of category `old` under `new`, and remember where it was filed first."""
    clock = tx.version()
    tx.db.execute(
        "INSERT OR REPLACE INTO outbox SELECT ?, id, ? FROM memories WHERE category = ?",
        (KIND, clock, old),
    )
    tx.db.execute(
        "INSERT OR REPLACE INTO stale_segments SELECT DISTINCT row / ?, ? FROM memories"
        " WHERE category = ? AND archived_at IS NOT NULL",
        (SEGMENT_ROWS, clock, old),
    )
    tx.db.execute(
        "UPDATE memories SET category = ?1, clock = ?2, device = ?3, original_category ="
        " CASE original_category WHEN '' THEN ?4 WHEN ?1 THEN '' ELSE original_category END"
        " WHERE category = ?4",
        (new, clock, tx.device, old),
    )
    warm = tx.db.execute(f"{SELECT} WHERE category = ? AND archived_at IS NULL", (new,)).fetchall()
    for memory in map(from_row, warm):
        tx.db.execute("UPDATE memories SET size = ? WHERE id = ?", (record_size(memory), memory.id))
    tx.settle_warm = True
    tx.faces.update({"warm", "tree", "hot"})
    tx.tell("category.merged", category=old, into=new)


def _filed(tx: Transaction, memory: Memory) -> Memory:
    category = tree_rows.resolve(tx, memory.category)
    tree_rows.ensure(tx, category)
    if category == memory.category:
        return memory
    original = memory.original_category or memory.category
    return msgspec.structs.replace(memory, category=category, original_category=original)


def _row_of(tx: Transaction, key: str) -> int:
    found = tx.db.execute("SELECT row FROM memories WHERE id = ?", (key,)).fetchone()
    if found is None:
        raise NotFound(f"no memory has the id '{key}'", field="id")
    return int(found[0])


def _reindex(tx: Transaction, row: int, old: Memory, new: Memory) -> None:
    if indexed_columns(old) == indexed_columns(new):
        return
    _unindex(tx, row, old)
    tx.db.execute(
        "INSERT INTO memory_fts(rowid, text, subject, tags) VALUES (?, ?, ?, ?)",
        (row, *indexed_columns(new)),
    )


def _unindex(tx: Transaction, row: int, memory: Memory) -> None:
    tx.db.execute(
        "INSERT INTO memory_fts(memory_fts, rowid, text, subject, tags)"
        " VALUES ('delete', ?, ?, ?, ?)",
        (row, *indexed_columns(memory)),
    )
    tx.db.execute(f"INSERT OR REPLACE INTO meta VALUES ('{_UNMERGED}', '')")


def remembers_words(db: sqlite3.Connection) -> bool:
    """Whether the index may still hold words of texts that were deleted or changed.

    It only marks their entries as deleted, until its parts are merged.
    """
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (_UNMERGED,)).fetchone() is not None


def forget_words(tx: Transaction) -> None:
    """Go one short step towards an index without such words."""
    before = tx.db.total_changes
    tx.db.execute("INSERT INTO memory_fts(memory_fts, rank) VALUES ('merge', ?)", (-_PAGES,))
    # By SQLite's documentation: fewer than two changes mean that nothing was left to merge.
    if tx.db.total_changes - before < 2:
        tx.db.execute("DELETE FROM meta WHERE key = ?", (_UNMERGED,))


def _touched(tx: Transaction, row: int, memory: Memory, *, was_archived: bool) -> None:
    tx.changed(KIND, memory.id, memory.clock)
    if was_archived or memory.archived_at is not None:
        tx.archived(row)
    if memory.archived_at is None:
        tx.settle_warm = True
    tree_rows.touch(tx, memory.category)
    tx.faces.update({"warm", "tree", "hot"})


def _brief(tx: Transaction, memory: Memory) -> dict[str, str]:
    value = score_of(memory, tx.now, tx.rules.scoring)
    return {
        "id": memory.id,
        "category": memory.category,
        "event": memory.event,
        "tier": tier_of(value),
    }
