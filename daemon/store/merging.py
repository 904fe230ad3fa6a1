"""Merging memories, undoing merges, and links to superseding memories.

A merge changes both rows under one stamp. The older memory is kept but no longer found; undoing the
merge reverts the changes with that stamp and repeats the other merges into the same memory. The
target of a merge may itself be merged into a third memory, and so on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from thermocline.sync import ABSENT, Fields, Row, Stamp, patched, stamps

from ..errors import Conflict
from ..language.pairing import is_duplicate, judge_pair
from ..memory import merging
from ..memory.records import CONSOLIDATED, Memory
from . import rows
from .memory_rows import GAVE, KIND, come_back, fetch, rewrite, there, unlink
from .memory_table import said
from .transaction import Transaction

_NEVER: Final[Stamp] = (0, "")
_IMPORTANCE: Final = 0.5


class Gave(msgspec.Struct, frozen=True):
    """What a merged memory gave to the kept one; stored in the row of the merged memory.

    Attributes:
        before: stamp and value of each changed cell of the kept memory before the merge; None:
            absent.
        gained: the importance that the kept memory gained.
        share: the fraction of the merged memory's importance that counts.
    """

    before: dict[str, tuple[Stamp | None, Any]]
    gained: float
    share: float = merging.SHARE_OF_OLDER


def merge(
    tx: Transaction, older: Memory, newer: Memory, share: float = merging.SHARE_OF_OLDER
) -> tuple[Memory, Memory]:
    """Retire `older` into `newer`, whatever their content; return both.

    `share` is the fraction of the older's importance that the newer gains.

    Raises:
        Conflict: they are the same memory, or one of them is already retired.
    """
    kept = merging.merge(older, newer, share)
    _write(tx, older, newer, said(kept), share, why=f"merge:{older.id}")
    tx.tell("memory.merged", id=older.id, into=kept.id, category=kept.category)
    return there(tx, older.id), there(tx, kept.id)


def unmerge(tx: Transaction, retired: Memory) -> Memory:
    """Restore a merged memory, and remove its contribution to the memory it was merged into.

    A memory that was made only from merged ones, and never changed, is removed with the last of
    them. `merge_duplicate` ignores the restored memory until its text changes.

    Raises:
        Conflict: it is not merged.
    """
    kept = retired.merged_into
    if kept is None:
        raise Conflict(f"cannot unmerge '{retired.id}': it is not merged into another", field="id")
    back = part(tx, retired)
    tx.tell("memory.unmerged", id=back.id, kept=kept, category=back.category)
    _dissolve(tx, kept)
    return back


def merge_duplicate(tx: Transaction, older: str, newer: str) -> Memory | None:
    """Merge two memories by their ids, if they still say the same.

    If `newer` was itself merged meanwhile, the memory it was merged into takes its place.

    Returns:
        The kept memory; None if nothing was merged.
    """
    first, second = fetch(tx.db, older), successor(tx.db, newer)
    if first is None or second is None or first.id == second.id or first.merged_into is not None:
        return None
    if not is_duplicate(first, second) or _is_kept_apart(tx.db, first.id):
        return None
    _, kept = merge(tx, first, second)
    return kept


def kept_apart(db: sqlite3.Connection) -> set[str]:
    """The ids of memories restored from a merge by a user."""
    found = db.execute(
        "SELECT id FROM memories WHERE merged_into IS NULL AND instr(clocks, '\"merged_into\"')"
    ).fetchall()
    return {key for (key,) in found if _is_kept_apart(db, key)}


def supersede(tx: Transaction, older: str, newer: str) -> Memory | None:
    """Mark a memory as superseded by another, by their ids, if they still contradict each other.

    As for `merge_duplicate`, the memory that `newer` was merged into takes its place.

    Returns:
        The superseding memory; None if nothing was marked.
    """
    first, second = fetch(tx.db, older), successor(tx.db, newer)
    if first is None or second is None or first.id == second.id:
        return None
    if first.superseded_by == second.id or judge_pair(first, second).relation != "contradiction":
        return None
    link = merging.supersede(first, second)
    if second.superseded_by == first.id:
        # Their times have changed since.
        rewrite(tx, msgspec.structs.replace(second, superseded_by=None), why="superseded")
    rewrite(tx, msgspec.structs.replace(first, superseded_by=link.newer), why="superseded")
    tx.tell("memory.superseded", id=link.older, by=link.newer, category=first.category)
    return second


def part(tx: Transaction, retired: Memory) -> Memory:
    """Undo a merge without an event; return the restored memory.

    The target is then as if the merge had never been, except for later changes; so is the memory
    that the target is merged into, and so on.
    """
    for key in above(tx.db, retired):
        _remake(tx, key, without=retired)
    return there(tx, retired.id)


def above(db: sqlite3.Connection, memory: Memory) -> list[str]:
    """The ids of the memory that a memory is merged into, of that one's target, and so on."""
    passed: dict[str, None] = {}
    one: Memory | None = memory
    while one is not None and one.merged_into is not None and one.merged_into not in passed:
        passed[one.merged_into] = None
        one = fetch(db, one.merged_into)
    return list(passed)


def repair_links(tx: Transaction) -> None:
    """Free memories merged into or superseded by a deleted memory, and break circles.

    Merges on two devices at the same time may form a circle; a memory with a dangling link would
    stay hidden for ever.
    """
    gone = "IN (SELECT id FROM rows WHERE kind = 'memory')"
    superseded = tx.db.execute(
        f"SELECT DISTINCT superseded_by FROM memories WHERE superseded_by {gone}"
    ).fetchall()
    for (missing,) in superseded:
        unlink(tx, missing)
    merged = dict(
        tx.db.execute(
            "SELECT id, merged_into FROM memories WHERE merged_into IS NOT NULL"
        ).fetchall()
    )
    lost = tx.db.execute(
        f"SELECT DISTINCT merged_into FROM memories WHERE merged_into {gone}"
    ).fetchall()
    living = {*merged.values()} - {key for (key,) in lost}
    for key in merging.stranded(merged, living):
        come_back(tx, there(tx, key), repairs=True)


def _write(
    tx: Transaction, older: Memory, newer: Memory, data: Fields, share: float, *, why: str
) -> None:
    """Write `data` to the newer, with the older's contribution, and retire the older."""
    row = rows.load(tx.db, KIND, newer.id)
    stamp = max(tx.stamp(row), tx.stamp(rows.load(tx.db, KIND, older.id)))
    after = rows.write(tx, KIND, newer.id, data, why=why, stamp=stamp)
    gained = there(tx, newer.id).importance - newer.importance
    gave = Gave(_before(row, after), gained, share)
    retired = said(msgspec.structs.replace(older, merged_into=newer.id))
    data = retired | {GAVE: msgspec.to_builtins(gave)}
    rows.write(tx, KIND, older.id, data, why="merged", stamp=stamp)


def _remake(tx: Transaction, key: str, without: Memory) -> None:
    """Remove all contributions from a memory, and repeat its merges except one."""
    kept = rows.load(tx.db, KIND, key)
    if kept is None:
        return
    merges = _merges(tx.db, key)
    made = {at for at, _, _ in merges}
    cells = _plain(kept, merges)
    edited = {
        name: value
        for name, (at, value) in cells.items()
        if at > min(made, default=at) and at not in made and name != "importance"
    }
    values = {name: value for name, (_, value) in cells.items()}
    rows.write(tx, KIND, key, patched(kept.data, values, KIND.sets), why="unmerged")
    if without.merged_into == key:
        come_back(tx, without)
    for _, gave, one in merges:
        if one != without.id:
            older, newer = there(tx, one), there(tx, key)
            first, second = (msgspec.structs.replace(m, merged_into=None) for m in (older, newer))
            again = merging.merge(first, second, gave.share)
            again = msgspec.structs.replace(again, merged_into=newer.merged_into)
            data = patched(said(again), edited, KIND.sets)
            _write(tx, older, newer, data, gave.share, why="unmerged")


def _merges(db: sqlite3.Connection, key: str) -> list[tuple[Stamp, Gave, str]]:
    """The merges into a memory: the time, the contribution, and the id; earliest first."""
    found: list[tuple[Stamp, Gave, str]] = []
    for (one,) in db.execute("SELECT id FROM memories WHERE merged_into = ?", (key,)).fetchall():
        row = rows.load(db, KIND, one)
        if row is not None and GAVE in row.data:
            gave = msgspec.convert(row.data[GAVE], Gave)
            found.append((stamps(row)[GAVE][0], gave, one))
    return sorted(found, key=lambda merge: merge[0])


def _plain(kept: Row, merges: Iterable[tuple[Stamp, Gave, str]]) -> dict[str, tuple[Stamp, Any]]:
    """The cells of a memory without the contributions of merges."""
    cells = stamps(kept, KIND.sets)
    for at, gave, _ in sorted(merges, reverse=True, key=lambda merge: merge[0]):
        for name, (was, before) in gave.before.items():
            now, value = cells.get(name, (at, ABSENT))
            if now == at:
                cells[name] = (was or _NEVER, ABSENT if before is None else before)
            elif name == "importance":
                # It was changed later: only this merge's contribution is removed.
                importance = value if isinstance(value, int | float) else _IMPORTANCE
                cells[name] = (now, max(0.0, importance - gave.gained))
    return cells


def _before(before: Row | None, after: Row | None) -> dict[str, tuple[Stamp | None, Any]]:
    """The previous values of the cells that a change has changed."""
    was = stamps(before, KIND.sets) if before is not None else {}
    now = stamps(after, KIND.sets) if after is not None else {}
    cells = {name: was.get(name, (None, ABSENT)) for name in now if now[name] != was.get(name)}
    return {name: (at, None if v is ABSENT else v) for name, (at, v) in cells.items()}


def _is_kept_apart(db: sqlite3.Connection, key: str) -> bool:
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
    if not tx.db.execute("SELECT 1 FROM memories WHERE merged_into = ?", (key,)).fetchone():
        rows.write(tx, KIND, key, None)
        tx.tell("memory.deleted", id=key, category=made.category)


def successor(db: sqlite3.Connection, key: str) -> Memory | None:
    """The memory, or the one at the end of its merges; None if that is deleted."""
    memory = fetch(db, key)
    passed: set[str] = set()
    while memory is not None and memory.merged_into is not None and memory.id not in passed:
        passed.add(memory.id)
        memory = fetch(db, memory.merged_into)
    return memory
