"""The operations on memories. Each keeps row, full text, archive, tree and outbox in step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..errors import Conflict, NotFound
from ..memory.ageing import fit_for_archive
from ..memory.records import Memory
from ..memory.scoring import score_of, tier_of
from ..memory.warm import record_size
from . import memory_rows, merge_rows, merging, remote_rows, tree_rows, uses_rows
from .remote_rows import Note, OnReplicaAlone
from .rows import SELECT, from_row
from .transaction import SEGMENT_ROWS, Transaction

KIND: Final = memory_rows.KIND
SHORTEST_PREFIX: Final = 4
# Pages of the index that one step merges, which keeps the writer busy for some milliseconds.
_PAGES: Final = 64


def find(db: sqlite3.Connection, key: str) -> Memory:
    """The memory with this id, or the only one whose id begins with `key` (4 characters or more).

    Raises:
        NotFound: there is none.
        Conflict: several ids begin so.
        OnReplicaAlone: the replica has it, and this device has not.
    """
    found = memory_rows.fetch(db, key)
    if found is not None:
        return found
    if remote_rows.find(db, key) is not None:
        raise OnReplicaAlone(key)
    if len(key) >= SHORTEST_PREFIX:
        return _find_beginning(db, key)
    raise NotFound(f"no memory has the id '{key}'", field="id")


def _find_beginning(db: sqlite3.Connection, prefix: str) -> Memory:
    rows = db.execute(
        f"{SELECT} WHERE id > ? AND id < ? LIMIT 2", (prefix, f"{prefix}\U0010ffff")
    ).fetchall()
    elsewhere = remote_rows.beginning(db, prefix, 2)
    if len(rows) + len(elsewhere) > 1:
        raise Conflict(f"cannot tell which memory '{prefix}' is: several begin so", field="id")
    if elsewhere:
        raise OnReplicaAlone(elsewhere[0])
    if not rows:
        raise NotFound(f"no memory has the id '{prefix}'", field="id")
    return from_row(rows[0])


def find_living(db: sqlite3.Connection, key: str, now: float) -> Memory:
    """The memory that `find` finds, unless its time has passed.

    Raises:
        NotFound: there is none, or it has expired.
        Conflict: several ids begin so.
        OnReplicaAlone: the replica has it, and this device has not.
    """
    memory = find(db, key)
    if memory.expired(now):
        raise NotFound(f"the memory '{memory.id}' has expired", field="id")
    return memory


def insert(tx: Transaction, memory: Memory) -> Memory:
    """Store a new memory, under a fresh version unless it carries one.

    Raises:
        Conflict: its id is taken.
    """
    memory = memory_rows.add(tx, memory)
    tree_rows.touch(tx, memory.category)
    tx.count("total_stored")
    tx.tell("memory.stored", **_brief(tx, memory))
    return memory


def replace(tx: Transaction, old: Memory, new: Memory) -> Memory:
    """Put `new` in the place of `old`, under a fresh version and the same id.

    Where the text is another, what it contradicted, and what contradicted it, is open again.
    """
    if new.text != old.text:
        merging.unlink(tx, old.id)
        new = msgspec.structs.replace(new, superseded_by=None)
    new = memory_rows.rewrite(tx, old, new)
    tree_rows.touch(tx, new.category)
    tx.tell("memory.updated", **_brief(tx, new))
    return new


def delete(tx: Transaction, memory: Memory) -> tuple[str, ...]:
    """Forget a memory: its text is overwritten on the disk, and a tombstone stays.

    Nothing of it is left in what it was merged into. Those that were merged into it come back,
    so that forgetting one statement hides no other for ever.

    Returns:
        The ids of those that come back.
    """
    if memory.merged_into is not None:
        memory = merging.part(tx, memory)
    return _forget(tx, memory)


def forget(tx: Transaction, key: str) -> tuple[str, tuple[str, ...]]:
    """Forget the memory that `find` finds, or that the replica alone holds; as `delete`.

    Returns:
        Its id, and the ids of those that come back.

    Raises:
        NotFound: there is none.
        Conflict: several ids begin so.
    """
    try:
        memory = find(tx.db, key)
    except OnReplicaAlone as absent:
        note = remote_rows.find(tx.db, absent.id)
        assert note is not None
        return note.id, forget_note(tx, note)
    return memory.id, delete(tx, memory)


def expire(tx: Transaction, memory: Memory) -> None:
    """Forget a memory whose time has passed; what it was merged into keeps what it gained.

    A merge gave that the later expiry of both.
    """
    _forget(tx, memory)


def forget_note(tx: Transaction, note: Note) -> tuple[str, ...]:
    """Forget a memory that the replica alone holds, where the tombstone removes it; as `delete`."""
    back = _detach(tx, note.id)
    remote_rows.drop(tx, note.id)
    memory_rows.bury(tx, note.id)
    tx.tell("memory.deleted", id=note.id, category=note.category)
    return back


def _forget(tx: Transaction, memory: Memory) -> tuple[str, ...]:
    back = _detach(tx, memory.id)
    memory_rows.remove(tx, memory)
    tx.tell("memory.deleted", id=memory.id, category=memory.category)
    return back


def _detach(tx: Transaction, key: str) -> tuple[str, ...]:
    back = merging.release(tx, key)
    merging.unlink(tx, key)
    merge_rows.drop(tx, key)
    return back


def reinforce(tx: Transaction, ids: Sequence[str]) -> None:
    """Count one use of each memory. Unknown ids are passed over.

    A use is no edit: the version stays, and each device counts its own, so that two devices'
    uses never conflict.
    """
    clock = tx.version()
    for key in ids:
        used = tx.db.execute(
            "UPDATE memories SET access_count = access_count + 1,"
            " last_accessed_at = max(coalesce(last_accessed_at, 0), ?)"
            " WHERE id = ? RETURNING category",
            (tx.now, key),
        ).fetchone()
        if used is not None:
            tx.db.execute("UPDATE tree SET last_access = ? WHERE path = ?", (tx.now, used[0]))
        if used is not None or remote_rows.find(tx.db, key) is not None:
            uses_rows.count(tx, key, clock)
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
            "UPDATE memories SET archived_at = ?, filed_clock = ?, filed_device = ?"
            " WHERE id = ? AND archived_at IS NULL RETURNING row",
            (tx.now, clock, tx.device, key),
        ).fetchone()
        if found is not None:
            moved += 1
            tx.archived(found[0])
            tx.changed(KIND, key, clock, filed_only=True)
    if moved:
        tx.count("total_evicted", moved)
        tx.count("evictions_today", moved)
        tx.faces.update({"warm", "tree", "hot"})
        tx.tell("memory.archived", count=moved)
    return moved


def archive_unused(tx: Transaction, ids: Iterable[str]) -> int:
    """Archive those of some memories that have faded unused; return how many."""
    found = (memory_rows.fetch(tx.db, key) for key in ids)
    return archive(tx, [m.id for m in found if m is not None and fit_for_archive(m, tx.now)])


def relabel(tx: Transaction, old: str, new: str) -> None:
    """File every memory of category `old` under `new`, and remember where it was filed first."""
    clock = tx.version()
    tx.db.execute(
        "INSERT INTO outbox SELECT ?, id, ?, 1 FROM memories WHERE category = ?"
        " ON CONFLICT DO UPDATE SET clock = excluded.clock",
        (KIND, clock, old),
    )
    tx.db.execute(
        "INSERT OR REPLACE INTO stale_segments SELECT DISTINCT row / ?, ? FROM memories"
        " WHERE category = ? AND archived_at IS NOT NULL",
        (SEGMENT_ROWS, clock, old),
    )
    tx.db.execute(
        "UPDATE memories SET category = ?1, filed_clock = ?2, filed_device = ?3,"
        " original_category ="
        " CASE original_category WHEN '' THEN ?4 WHEN ?1 THEN '' ELSE original_category END"
        " WHERE category = ?4",
        (new, clock, tx.device, old),
    )
    warm = tx.db.execute(f"{SELECT} WHERE category = ? AND archived_at IS NULL", (new,)).fetchall()
    for memory in map(from_row, warm):
        tx.db.execute("UPDATE memories SET size = ? WHERE id = ?", (record_size(memory), memory.id))
    remote_rows.relabel(tx, old, new, clock)
    tx.outgoing.add(KIND)
    tx.settle_warm = True
    tx.faces.update({"warm", "tree", "hot"})
    tx.tell("category.merged", category=old, into=new)


def remembers_words(db: sqlite3.Connection) -> bool:
    """Whether the index may still hold words of texts that were deleted or changed.

    It only marks their entries as deleted, until its parts are merged.
    """
    return (
        db.execute("SELECT 1 FROM meta WHERE key = ?", (memory_rows.WORDS_TO_FORGET,)).fetchone()
        is not None
    )


def forget_words(tx: Transaction) -> None:
    """Go one short step towards an index without such words."""
    before = tx.db.total_changes
    tx.db.execute("INSERT INTO memory_fts(memory_fts, rank) VALUES ('merge', ?)", (-_PAGES,))
    # By SQLite's documentation: fewer than two changes mean that nothing was left to merge.
    if tx.db.total_changes - before < 2:
        tx.db.execute("DELETE FROM meta WHERE key = ?", (memory_rows.WORDS_TO_FORGET,))


def _brief(tx: Transaction, memory: Memory) -> dict[str, str]:
    value = score_of(memory, tx.now, tx.rules.scoring)
    return {
        "id": memory.id,
        "category": memory.category,
        "event": memory.event,
        "tier": tier_of(value),
    }
