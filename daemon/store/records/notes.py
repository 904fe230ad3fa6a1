"""Notes and logs of the workspace: their rows, and the content of their files on the disk.

Disk and rows change independently. `take` brings changed files into the rows, `waiting` lists rows
not yet written to the disk, and `placed` records that they are written.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import astuple

from thermocline.sync import Row, Stamp

from ...errors import InvalidInput
from ...memory import agent_files, lines
from ...memory.checks import check_time
from ...runtime.fingerprint import NOWHERE, Fingerprint
from ..database import rows
from ..database.connection import scalar
from ..database.rows import JoinResult, Kind
from ..database.transaction import Transaction
from .history import CONFLICT

# The columns of a fingerprint.
_STATUS: Final = ", ".join(Fingerprint.__struct_fields__)


class Note(msgspec.Struct, frozen=True):
    """The data of a row. `modified_at` is in seconds since the epoch."""

    text: str
    modified_at: float = 0.0


class ReadNote(msgspec.Struct, frozen=True):
    """A file that differs from its recorded status."""

    path: str
    fingerprint: Fingerprint
    text: str


class WaitingNote(msgspec.Struct, frozen=True):
    """A row not yet written to the disk."""

    path: str
    note: Note | None  # the new content of the file; None: the file is to be removed
    # The status of the file that may be replaced; with another status, it was written since.
    fingerprint: Fingerprint


def known(db: sqlite3.Connection) -> dict[str, Fingerprint]:
    """The status of every file when it was last compared with its row."""
    files = db.execute(f"SELECT path, {_STATUS} FROM notes_on_disk")
    return {path: Fingerprint(*status) for path, *status in files}


def take(tx: Transaction, files: Iterable[ReadNote], vanished: Iterable[str]) -> int:
    """Bring changed files into the rows; return the number of changed rows.

    If a row has changed too, both are joined, against the text that the file had before. `files`
    are new, or have another status than the recorded one; `vanished` existed and no longer do.
    """
    changed = sum(_take(tx, file) for file in files)
    return changed + sum(_vanish(tx, path) for path in vanished)


def waiting(db: sqlite3.Connection, after: str, limit: int) -> list[WaitingNote]:
    """Rows not yet written to the disk, by path, for paths after `after`."""
    files = db.execute(
        f"SELECT path, {_STATUS} FROM notes_on_disk WHERE shown IS NOT NULL AND path > ?"
        " ORDER BY path LIMIT ?",
        (after, limit),
    ).fetchall()
    waiting = []
    for path, *status in files:
        row = rows.load(db, KIND, path)
        note = None if row is None else msgspec.convert(row.data, Note)
        waiting.append(WaitingNote(path, note, Fingerprint(*status)))
    return waiting


def shown(db: sqlite3.Connection, path: str) -> str | None:
    """The text of a file from which its row differs; None if they agree."""
    text: str | None = scalar(db, "SELECT shown FROM notes_on_disk WHERE path = ?", path)
    return text


def set_shown(tx: Transaction, path: str, text: str) -> None:
    """Record the text of a file that was changed since it was read, and is to be read again."""
    tx.db.execute("UPDATE notes_on_disk SET shown = ? WHERE path = ?", (text, path))


def placed(tx: Transaction, written: Iterable[tuple[WaitingNote, Fingerprint]]) -> None:
    """Record the status of files that were written or removed.

    A row that has changed since stays waiting, and may replace the file with this status.
    """
    for write, fingerprint in written:
        _record(tx, write.path, fingerprint, "" if write.note is None else write.note.text)


def _take(tx: Transaction, file: ReadNote) -> bool:
    row = rows.load(tx.db, KIND, file.path)
    before = shown(tx.db, file.path)
    if row is None and before == file.text and file.text:
        # Only the file's time changed, and its row was deleted on another device.
        _record(tx, file.path, file.fingerprint, file.text)
        return False
    text = file.text
    if row is not None and before is not None:
        joined = _joined(file.path, before, row.data["text"], file.text)
        text = joined.text
        if joined.contradicts:
            rows.save_version(tx, KIND, row, why=CONFLICT, device=_changed_at(row)[1])
            _keep_beside(tx, row)
    changed = row is None or row.data["text"] != text
    if changed:
        modified_at = max(0.0, min(file.fingerprint.mtime / 1e9, tx.now))
        rows.write(tx, KIND, file.path, {"text": text, "modified_at": modified_at})
    _record(tx, file.path, file.fingerprint, file.text)
    return changed


def _vanish(tx: Transaction, path: str) -> bool:
    agreed = "SELECT shown IS NULL FROM notes_on_disk WHERE path = ?"
    is_deleted = bool(scalar(tx.db, agreed, path))
    if is_deleted:
        rows.write(tx, KIND, path, None)
    # A version from another device is written to the file again.
    _record(tx, path, NOWHERE, "")
    return is_deleted


def _record(tx: Transaction, path: str, fingerprint: Fingerprint, shows: str) -> None:
    """Record the status of a file, and its text if the row differs."""
    row = rows.load(tx.db, KIND, path)
    if row is None and fingerprint == NOWHERE:
        tx.db.execute("DELETE FROM notes_on_disk WHERE path = ?", (path,))
        return
    agrees = row is not None and fingerprint != NOWHERE and row.data["text"] == shows
    tx.db.execute(
        "INSERT OR REPLACE INTO notes_on_disk VALUES (?, ?, ?, ?, ?, ?)",
        (path, *astuple(fingerprint), None if agrees else shows),
    )


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    """Record that the file no longer shows the row."""
    was = before.data["text"] if before is not None and KIND.lives(before) else None
    if was == after.data.get("text"):
        return
    tx.db.execute(
        "INSERT INTO notes_on_disk VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET shown = coalesce(shown, excluded.shown)",
        (after.id, *astuple(NOWHERE), was or ""),
    )


def _join(tx: Transaction, base: Row | None, ours: Row, theirs: Row) -> JoinResult | None:
    earlier, later = sorted((ours, theirs), key=_changed_at)
    was = base.data.get("text", "") if base is not None else ""
    joined = _joined(ours.id, was, earlier.data["text"], later.data["text"])
    if joined.contradicts:
        _keep_beside(tx, earlier)
    modified_at = max(row.data.get("modified_at", 0.0) for row in (ours, theirs))
    data = {"text": joined.text, "modified_at": modified_at}
    return JoinResult(data, earlier if joined.contradicts else None)


def _joined(path: str, base: str, earlier: str, later: str) -> lines.Joined:
    if path == agent_files.SKILLS:
        return lines.Joined(agent_files.join_index(base, earlier, later) or later)
    # A version that is only the initial content counts as the base.
    seed = agent_files.SEEDS.get(path, "")
    if seed in {earlier, later}:
        base = seed
    is_log = path.lower().endswith(agent_files.LOG)
    joined = lines.join(base, earlier, later, log=is_log)
    if len(joined.text.encode()) > agent_files.LARGEST:
        return lines.Joined(later, contradicts=True)
    return joined


def _keep_beside(tx: Transaction, row: Row) -> None:
    """Keep a version of which a join left lines out, as a separate note."""
    text = row.data["text"]
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    copy = agent_files.copy_path(row.id, _changed_at(row)[1], digest)
    if rows.load(tx.db, KIND, copy) is None:
        rows.write(tx, KIND, copy, dict(row.data))


def _changed_at(row: Row) -> Stamp:
    return row.clocks.fields.get("text", row.clocks.at)


def _check(row: Row) -> None:
    note = msgspec.convert(row.data, Note)
    if not agent_files.belongs(row.id) or len(note.text.encode()) > agent_files.LARGEST:
        raise InvalidInput(f"cannot take '{row.id}' for a file of the workspace")
    check_time(note.modified_at, field="modified_at")


KIND: Final = Kind(
    name="note",
    fields=frozenset(Note.__struct_fields__),
    liveness_fields=("text",),
    check=_check,
    applied=_applied,
    join=_join,
)
