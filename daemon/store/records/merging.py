"""Merging memories, undoing merges, and links to superseding memories.

A merge changes both rows under one stamp. The older memory is kept but no longer found; undoing the
merge reverts the changes with that stamp. The target of a merge may itself be merged into a third
memory, and so on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

import msgspec

from thermocline.sync import ABSENT, Fields, Row, Stamp, patched, stamps

from ...errors import Conflict
from ...language.comparison import contradicts, is_duplicate
from ...memory.checks import REFERENCES, TAGS
from ...memory.records import CONSOLIDATED, Memory, Metadata, outranks
from ..database import rows
from ..database.connection import column, scalar
from ..database.transaction import Transaction
from .entities import root_of
from .memory_rows import (
    CONTRIBUTION,
    KIND,
    clear_superseded,
    fetch,
    require,
    restore_merged,
    rewrite,
    to_row,
)

_NEVER: Final[Stamp] = (0, "")
# Tiny Claw's rule: a repeated statement is more important.
SHARE_OF_OLDER: Final = 0.2


class MergeContribution(msgspec.Struct, frozen=True):
    """What a merged memory gave to the kept one; stored in the row of the merged memory."""

    # The values of each changed cell of the kept memory before and after; None: absent.
    changes: dict[str, tuple[Any, Any]]
    gained: float  # the importance that the kept memory gained


def merge(
    tx: Transaction, older: Memory, newer: Memory, share: float = SHARE_OF_OLDER
) -> tuple[Memory, Memory]:
    """Retire `older` into `newer`, whatever their content; return both. Errors as `merged_fields`.

    `share` is the fraction of the older's importance that the newer gains.
    """
    memory = merged_fields(older, newer, share)
    before = rows.load(tx.db, KIND, newer.id)
    assert before is not None
    stamp = max(tx.stamp(before), tx.stamp(rows.load(tx.db, KIND, older.id)))
    after = rows.write(tx, KIND, newer.id, to_row(memory), why=f"merge:{older.id}", stamp=stamp)
    was, now = _values(before), {} if after is None else _values(after)
    changes = {
        name: (was.get(name), now.get(name))
        for name in was.keys() | now.keys()
        if was.get(name) != now.get(name)
    }
    merge_contribution = MergeContribution(changes, memory.importance - newer.importance)
    retired = to_row(msgspec.structs.replace(older, merged_into=newer.id))
    retired[CONTRIBUTION] = msgspec.to_builtins(merge_contribution)
    rows.write(tx, KIND, older.id, retired, why="merged", stamp=stamp)
    tx.emit("memory.merged", id=older.id, into=memory.id, category=memory.category)
    return require(tx, older.id), require(tx, memory.id)


def unmerge(tx: Transaction, retired: Memory) -> Memory:
    """Restore a merged memory, and remove its contribution to its target; `Conflict` if not merged.

    A memory that was made only from merged ones, and never changed, is removed with the last of
    them. `merge_duplicate` ignores the restored memory until its text changes.
    """
    target = retired.merged_into
    if target is None:
        raise Conflict(f"cannot unmerge '{retired.id}': it is not merged into another", field="id")
    back = undo_merge(tx, retired)
    tx.emit("memory.unmerged", id=back.id, into=target, category=back.category)
    _dissolve(tx, target)
    return back


def merge_duplicate(tx: Transaction, older: str, newer: str) -> Memory | None:
    """Merge two memories by their ids, if they still say the same; return the survivor, if merged.

    If `newer` was itself merged meanwhile, the memory it was merged into takes its place.
    """
    first, second = fetch(tx.db, older), successor(tx.db, newer)
    if first is None or second is None or first.id == second.id or first.merged_into is not None:
        return None
    if not is_duplicate(first, second) or _has_exclusion(tx.db, first.id):
        return None
    _, survivor = merge(tx, first, second)
    return survivor


def merge_exclusions(db: sqlite3.Connection) -> set[str]:
    """The ids of memories restored from a merge by a user."""
    restored = "merged_into IS NULL AND instr(clocks, '\"merged_into\"')"
    keys = column(db, f"SELECT id FROM memories WHERE {restored}")
    return {key for key in keys if _has_exclusion(db, key)}


def supersede(tx: Transaction, older: str, newer: str) -> Memory | None:
    """Mark a memory as superseded by another, if they still contradict each other; return that one.

    As for `merge_duplicate`, the memory that `newer` was merged into takes its place. None: nothing
    was marked.
    """
    first, second = fetch(tx.db, older), successor(tx.db, newer)
    if first is None or second is None or first.id == second.id:
        return None
    if first.superseded_by == second.id or not contradicts(first, second):
        return None
    mark_superseded(tx, first, second)
    return second


def mark_superseded(tx: Transaction, older: Memory, newer: Memory) -> None:
    """Mark a memory as superseded by another that contradicts it; errors as `check_apart`."""
    check_apart(older, newer, "supersede")
    if newer.superseded_by == older.id:
        # Their times have changed since.
        rewrite(tx, msgspec.structs.replace(newer, superseded_by=None), why="superseded")
    rewrite(tx, msgspec.structs.replace(older, superseded_by=newer.id), why="superseded")
    tx.emit("memory.superseded", id=older.id, by=newer.id, category=older.category)


def undo_merge(tx: Transaction, retired: Memory) -> Memory:
    """Undo the two updates of a merge, without an event; return the restored memory.

    What has another value in the kept memory since stays, and so does what that gave to another.
    """
    row = rows.load(tx.db, KIND, retired.id)
    target = (
        rows.load(tx.db, KIND, retired.merged_into) if retired.merged_into is not None else None
    )
    if row is not None and target is not None and CONTRIBUTION in row.data:
        merge_contribution = msgspec.convert(row.data[CONTRIBUTION], MergeContribution)
        cells, back = _values(target), Fields()
        for name, (before, after) in merge_contribution.changes.items():
            value = cells.get(name)
            if value == after:
                back[name] = ABSENT if before is None else before
            elif name == "importance" and isinstance(value, int | float):
                # It was changed later: only this merge's contribution is removed.
                back[name] = max(0.0, value - merge_contribution.gained)
        rows.write(tx, KIND, target.id, patched(target.data, back, KIND.sets), why="unmerged")
    return restore_merged(tx, retired)


def free(tx: Transaction, retired: Memory) -> list[str]:
    """Undo a merge and all that may have passed on what it gave; return the other restored ids.

    These are the merges of the kept memory into others, and the later ones into any of them. The
    earlier versions of all these memories are deleted.
    """
    memory = fetch(tx.db, retired.merged_into)
    freed: list[str] = []
    if memory is not None and memory.merged_into is not None:
        freed += [*free(tx, memory), memory.id]
    merged = column(tx.db, "SELECT id FROM memories WHERE merged_into = ?", retired.merged_into)
    for at, key in sorted(((_merged_at(tx.db, key), key) for key in merged), reverse=True):
        if at >= _merged_at(tx.db, retired.id) and key != retired.id:
            undo_merge(tx, require(tx, key))
            freed.append(key)
    undo_merge(tx, retired)
    for key in (*freed, retired.id, *(() if memory is None else (memory.id,))):
        rows.erase(tx, KIND, key)
    return freed


def _merged_at(db: sqlite3.Connection, key: str) -> Stamp:
    row = rows.load(db, KIND, key)
    return stamps(row)["merged_into"][0] if row is not None else _NEVER


def repair_links(tx: Transaction) -> None:
    """Free memories merged into or superseded by a deleted memory, and break circles.

    Merges on two devices at the same time may form a circle; a memory with a dangling link would
    stay hidden for ever.
    """
    gone = "IN (SELECT id FROM rows WHERE kind = 'memory')"
    dangling = f"SELECT DISTINCT superseded_by FROM memories WHERE superseded_by {gone}"
    for missing in column(tx.db, dangling):
        clear_superseded(tx, missing)
    merges = "SELECT id, merged_into FROM memories WHERE merged_into IS NOT NULL"
    merged = dict(tx.db.execute(merges).fetchall())
    lost = column(tx.db, f"SELECT DISTINCT merged_into FROM memories WHERE merged_into {gone}")
    for key in stranded(merged, {*merged.values()}.difference(lost)):
        restore_merged(tx, require(tx, key), repairs=True)


def _values(row: Row) -> dict[str, Any]:
    cells = stamps(row, KIND.sets).items()
    return {name: value for name, (_, value) in cells if value is not ABSENT}


def _has_exclusion(db: sqlite3.Connection, key: str) -> bool:
    """Whether a user restored a memory from a merge and its text is unchanged since."""
    row = rows.load(db, KIND, key)
    if row is None:
        return False
    cells = stamps(row)
    at, into = cells.get("merged_into", ((0, ""), None))
    return into is ABSENT and at > cells["text"][0]


def _dissolve(tx: Transaction, key: str) -> None:
    """Remove a memory made from merged ones, after the last of them was restored."""
    made = fetch(tx.db, key)
    row = rows.load(tx.db, KIND, key)
    if made is None or row is None or made.source != CONSOLIDATED:
        return
    if stamps(row)["text"][0] != row.clocks.at:
        # Its text was changed later.
        return
    if not scalar(tx.db, "SELECT 1 FROM memories WHERE merged_into = ?", key):
        rows.write(tx, KIND, key, None)
        tx.emit("memory.deleted", id=key, category=made.category)


def successor(db: sqlite3.Connection, key: str) -> Memory | None:
    """The memory, or the one at the end of its merges; None if that is deleted."""
    return fetch(db, root_of(db, key))


def merged_fields(older: Memory, newer: Memory, share: float) -> Memory:
    """`newer` with the additional content of `older`.

    It has the text and times of the newer one, its importance plus a `share` of the older's (at
    most 1), the tags and references of both up to their limits, `pinned` and `standing` of either,
    the later expiry (or none), the older's subject, outcome and data if its own are empty, and the
    older's source and actor if only that was stated by a user. Uses are not merged here: they
    follow from `merged_into`.

    Raises:
        Conflict: they are the same memory, or one of them is already retired.
    """
    check_apart(older, newer, "merge")
    stated = older if outranks(older, newer) else newer
    return msgspec.structs.replace(
        newer,
        subject=newer.subject or older.subject,
        outcome=newer.outcome or older.outcome,
        source=stated.source,
        actor=stated.actor,
        tags=_union(newer.tags, older.tags, TAGS),
        importance=min(1.0, newer.importance + share * older.importance),
        pinned=newer.pinned or older.pinned,
        standing=newer.standing or older.standing,
        metadata=Metadata(
            *(
                _union(getattr(newer.metadata, name), getattr(older.metadata, name), REFERENCES)
                for name in Metadata.__struct_fields__
            )
        ),
        data=older.data if newer.data is None else newer.data,
        expires_at=None
        if newer.expires_at is None or older.expires_at is None
        else max(newer.expires_at, older.expires_at),
    )


def stranded(merged: Mapping[str, str], living: Container[str]) -> list[str]:
    """The memories to release so that every merge ends at an existing memory.

    `merged` is the target of each merged memory.
    """
    free: list[str] = []
    sound: set[str] = set()
    for start in sorted(merged):
        path: dict[str, None] = {}
        key = start
        while key in merged and key not in sound and key not in path:
            path[key] = None
            key = merged[key]
        if key in path:
            free.append(key)
        elif path and key not in sound and key not in living:
            free.append(next(reversed(path)))
        sound.update(path)
    return free


def check_apart(older: Memory, newer: Memory, verb: str) -> None:
    """Raise `Conflict` if they are the same memory, or one is merged into another."""
    if older.id == newer.id:
        raise Conflict(f"cannot {verb} '{older.id}' by itself: give two memories")
    for memory in (older, newer):
        if memory.merged_into is not None:
            raise Conflict(
                f"cannot {verb} '{memory.id}': it is merged into '{memory.merged_into}'",
                hint="undo that merge first, or use the memory it was merged into",
            )


def _union(first: Iterable[str], second: Iterable[str], limit: int) -> tuple[str, ...]:
    items = tuple(first)
    return tuple(dict.fromkeys((*items, *second)))[: max(limit, len(items))]
