"""Restoring earlier versions of rows, through the normal write path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from thermocline.sync import ABSENT, Fields, Row, patched, stamps

from ..errors import Conflict, NotFound
from . import memories, merging, rows
from .history import CONFLICT, Version, read, versions
from .kind import Kind
from .kinds import kind_of
from .memory_rows import GAVE, fetch
from .transaction import Transaction

_MERGE: Final = "merge:"
_LINK: Final = ("merged_into", GAVE)


def undo(tx: Transaction, kind: Kind, key: str, number: int | None = None) -> Row:
    """Restore the version of a row before its last change, or the one with a number.

    A merge that the change made is undone, one that it undid is made again. Undoing twice redoes.

    Raises:
        NotFound: the version is not in the history.
        Conflict: the row already has that content.
    """
    row = rows.load(tx.db, kind, key)
    version = _version(tx, kind, key, number)
    if version is None or row is None:
        raise NotFound(
            f"no earlier version of '{key}' is kept",
            field="id",
            hint="forgetting erases the versions of a memory too"
            if number is None
            else f"`thermocline history {key}` lists the versions with their numbers",
        )
    said = dict(version.row.data)
    if fetch(tx.db, into := said.get("merged_into")) is None:
        # The memory it was merged into is deleted.
        into = None
        said = {name: value for name, value in said.items() if name not in _LINK}
    if number is None and (retired := _merged(version)) is not None:
        merging.unmerge(tx, memories.find(tx.db, retired))
    elif into is not None and "merged_into" not in row.data:
        merging.merge(tx, memories.find(tx.db, key), memories.find(tx.db, into))
    elif rows.write(tx, kind, key, said, why="undo") == row:
        raise Conflict(f"'{key}' says what that version said already", field="number")
    after = rows.load(tx.db, kind, key)
    assert after is not None
    return after


def undo_by(tx: Transaction, writer: str, since: float) -> list[tuple[str, str]]:
    """Revert what a writer changed since a time, and delete what the writer stored since.

    Later changes by other writers in the same rows stay, field by field.

    Returns:
        Kind and id of each row that was restored or deleted.
    """
    stored = tx.db.execute(
        "SELECT id FROM memories WHERE writer = ? AND created_at >= ?", (writer, since)
    ).fetchall()
    for (key,) in stored:
        memories.delete(tx, memories.find(tx.db, key))
    changed: dict[tuple[str, str], list[Version]] = {}
    theirs = "writer = ? AND at >= ? AND why <> ? ORDER BY number"
    for version in read(tx.db, theirs, writer, since, CONFLICT):
        changed.setdefault((version.kind, version.id), []).append(version)
    back = [name for name, theirs in changed.items() if _put_back(tx, theirs)]
    return [("memory", key) for (key,) in stored] + back


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
        found = versions(tx.db, kind, key, 1)
    else:
        found = read(tx.db, "kind = ? AND id = ? AND number = ?", kind.name, key, number)
    return found[0] if found else None


def _after(tx: Transaction, version: Version) -> Row | None:
    """The version that replaced another; None: the current one."""
    later = "kind = ? AND id = ? AND number > ? AND why <> ? ORDER BY number LIMIT 1"
    found = read(tx.db, later, version.kind, version.id, version.number, CONFLICT)
    return found[0].row if found else None


def _merged(version: Version) -> str | None:
    """The memory that is restored when the change that replaced a version is undone."""
    if version.why.startswith(_MERGE):
        return version.why.removeprefix(_MERGE)
    return version.id if version.why == "merged" else None
