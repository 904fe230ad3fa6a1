"""Restoring earlier versions of rows, through the normal write path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from thermocline.sync import ABSENT, COUNTER_BITS, Fields, Row, moment_of, patched, stamps

from ..errors import Conflict, NotFound
from ..memory.agent_files import PATHS
from ..memory.records import Undoing
from .database import rows
from .database.rows import Kind
from .database.transaction import Transaction
from .kinds import kind_of
from .records import memories, memory_rows, merging, tree_rows
from .records.history import CONFLICT, WRITTEN_BY, Version, mark_seen, read, versions
from .records.memory_rows import CONTRIBUTION, fetch

# Kinds of marks that are about lines of files, by their digest, and about skills.
FILED: Final = frozenset(PATHS)
# A clock that is further ahead is not followed.
_AHEAD: Final = 86_400.0
_MERGE: Final = "merge:"
_LINK: Final = ("merged_into", CONTRIBUTION)


def undo(tx: Transaction, kind: Kind, key: str, number: int | None = None) -> Row:
    """Restore the version of a row before its last change, or the one with a number.

    A merge that the change made is undone, a merge that it undid is repeated. Undoing twice redoes.
    `NotFound`: no such version; `Conflict`: the row already has that content.
    """
    row = rows.load(tx.db, kind, key)
    version = _version(tx, kind, key, number)
    if version is None or row is None:
        of_kind = "" if kind is memory_rows.KIND else f" --kind {kind.name}"
        raise NotFound(
            f"no {'earlier version' if number is None else f'version {number}'} of '{key}' is kept",
            field="id",
            hint="forgetting erases the versions of a memory too"
            if number is None
            else f"`thermocline history {key}{of_kind}` lists the versions with their numbers",
        )
    if version.why == CONFLICT:
        mark_seen(tx, [version.number])
    fields = dict(version.row.data)
    if fetch(tx.db, into := fields.get("merged_into")) is None:
        # The memory it was merged into is deleted.
        into = None
        fields = {name: value for name, value in fields.items() if name not in _LINK}
    if number is None and (retired := _merged(version)) is not None:
        merging.unmerge(tx, memories.find(tx.db, retired))
    elif into is not None and "merged_into" not in row.data:
        merging.merge(tx, memories.find(tx.db, key), memories.find(tx.db, into))
    elif rows.write(tx, kind, key, fields, why="undo") == row:
        raise Conflict(f"'{key}' says what that version said already", field="number")
    after = rows.load(tx.db, kind, key)
    assert after is not None
    return after


def undo_by(tx: Transaction, by: str, since: float) -> list[tuple[str, str, Undoing]]:
    """Revert what an author changed since a time, and delete what the author made since.

    Later changes by others in the same rows stay, field by field, and so do rows that others have
    changed since. `by` is as in `WRITTEN_BY`, `since` in seconds since the epoch.

    Returns:
        Kind and id of each row, and what became of it. Lines and skills, which are in files, are to
        be removed there by the caller.
    """
    changed: dict[tuple[str, str], list[Version]] = {}
    since_then = f"{WRITTEN_BY} AND at >= ? AND why <> ? ORDER BY number"
    for version in read(tx.db, since_then, by, since, CONFLICT):
        changed.setdefault((version.kind, version.id), []).append(version)
    marked = rows.marks(tx.db, f"{WRITTEN_BY} AND at >= ?", by, since)
    created = {(memory_rows.KIND.name, key): 0 for key in _stored(tx, by, since)}
    made = {(mark.kind, mark.id): mark.number for mark in marked if mark.why == rows.CREATED}
    # A category was made before those below it.
    created |= dict(reversed(made.items()))
    outcomes: dict[tuple[str, str], Undoing] = {}
    # A memory goes back before the category that was made for it is deleted.
    for name, versions_ in changed.items():
        if name not in created:
            outcomes |= _reverted(tx, versions_, by)
    for name, number in created.items():
        if (outcome := _unmake(tx, *name, number, by)) is not None:
            outcomes[name] = outcome
        outcomes |= _reverted(tx, changed.get(name, ()), by)
    for mark in marked:
        if mark.why == rows.DELETED and mark.born < since:
            earlier = outcomes.setdefault((mark.kind, mark.id), "cannot come back: forgotten")
            if earlier == "deleted":
                outcomes[mark.kind, mark.id] = (
                    "deleted; what it replaced cannot come back: forgotten"
                )
    return [(*name, outcome) for name, outcome in outcomes.items()]


def _stored(tx: Transaction, by: str, since: float) -> list[str]:
    """The ids of the memories that an author stored since a time, whenever they say they are from.

    Of memories from other devices only their stamps tell, whose clock may be a day ahead.
    """
    stamped = "(json_extract(clocks, '$.at[0]') >> ?) / 1000.0"
    memory_stamps = tx.db.execute(
        f"SELECT id, stored_at, created_at FROM memories WHERE {WRITTEN_BY}"
        f" AND coalesce(stored_at, max(created_at, {stamped})) >= ?",
        (by, COUNTER_BITS, since),
    ).fetchall()
    return [
        key
        for key, stored_at, created_at in memory_stamps
        if stored_at is not None or _written_at(tx, key, created_at) >= since
    ]


def _written_at(tx: Transaction, key: str, created_at: float) -> float:
    row = rows.load(tx.db, memory_rows.KIND, key)
    assert row is not None
    stamped = moment_of(min(stamp for stamp, _ in stamps(row, memory_rows.KIND.sets).values())[0])
    return stamped if abs(stamped - created_at) > _AHEAD else created_at


def _unmake(tx: Transaction, kind_name: str, key: str, number: int, by: str) -> Undoing | None:
    """Delete a row that an author made; None: it is gone already."""
    others = _changed_since(tx, kind_name, key, number, by, whys=("", "undo"))
    if kind_name in FILED:
        tx.db.execute("DELETE FROM history WHERE number = ?", (number,))
        return "deleted"
    kind = kind_of(kind_name)
    if rows.load(tx.db, kind, key) is None:
        return None
    if others:
        return "left: others have changed it since"
    if kind is memory_rows.KIND:
        memories.delete(tx, memories.find(tx.db, key))
        return "deleted"
    if kind is tree_rows.KIND and tree_rows.is_used(tx.db, key):
        return "left: it is in use"
    rows.write(tx, kind, key, None)
    return "deleted"


def _changed_since(
    tx: Transaction, kind: str, key: str, number: int, by: str, whys: Sequence[str] = ("",)
) -> bool:
    """Whether somebody else has changed a row after an entry of the history, for such a reason."""
    later = f"NOT {WRITTEN_BY} AND writer <> '' AND kind = ? AND id = ? AND number > ?"
    versions = read(tx.db, later, by, kind, key, number)
    return any(version.why in whys for version in versions)


def _reverted(
    tx: Transaction, replaced: Sequence[Version], by: str
) -> dict[tuple[str, str], Undoing]:
    """What became of a row whose versions a writer has replaced, by its name."""
    if not replaced:
        return {}
    last = replaced[-1]
    if _put_back(tx, replaced):
        return {(last.kind, last.id): "put back"}
    if _changed_since(tx, last.kind, last.id, last.number, by):
        return {(last.kind, last.id): "left: others have changed it since"}
    return {}


def _put_back(tx: Transaction, replaced: Sequence[Version]) -> bool:
    """Restore the fields that a writer's changes of a row set and that still have those values."""
    kind, key = kind_of(replaced[0].kind), replaced[0].id
    row = rows.load(tx.db, kind, key)
    if row is None:
        return False
    now = stamps(row, kind.sets)
    cells: Fields = {}
    for version in reversed(replaced):
        was, after = stamps(version.row, kind.sets), stamps(_after(tx, version) or row, kind.sets)
        for name, (stamp, _) in after.items():
            # Of several changes of a field, the value before the first is restored.
            if was.get(name, (None,))[0] != stamp and (
                stamp == now.get(name, (None,))[0] or name in cells
            ):
                cells[name] = was[name][1] if name in was else ABSENT
    rows.write(tx, kind, key, patched(row.data, cells, kind.sets), why="undo")
    return bool(cells)


def _version(tx: Transaction, kind: Kind, key: str, number: int | None) -> Version | None:
    if number is None:
        matches = versions(tx.db, kind, key, 1)
    else:
        matches = read(tx.db, "kind = ? AND id = ? AND number = ?", kind.name, key, number)
    return matches[0] if matches else None


def _after(tx: Transaction, version: Version) -> Row | None:
    """The version that replaced another; None: the current one."""
    later = "kind = ? AND id = ? AND number > ? AND why <> ? ORDER BY number LIMIT 1"
    replacements = read(tx.db, later, version.kind, version.id, version.number, CONFLICT)
    return replacements[0].row if replacements else None


def _merged(version: Version) -> str | None:
    """The memory that is restored when the change that replaced a version is undone."""
    if version.why.startswith(_MERGE):
        return version.why.removeprefix(_MERGE)
    return version.id if version.why == "merged" else None
