"""A copy of the agent's own files in the database, which recall and the context block read.

The files are authoritative. The copy is not replicated or backed up: what is missing is read again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import astuple

from ...memory.agent_files import EpisodeLine, Reflection, Skill
from ...runtime.fingerprint import Fingerprint
from ..database import full_text
from ..database.connection import scalar, to_json
from ..database.schema import OWN
from ..database.transaction import IndexEntry, Transaction

Item: TypeAlias = Reflection | EpisodeLine | Skill
KNOWLEDGE: Final = "knowledge"
# The kinds of entries, which are also the names of their tables, with the type of an entry.
_ITEMS: Final[dict[str, Any]] = {
    "reflections": Reflection,
    "episodes": EpisodeLine,
    "skills": Skill,
}
_INDEXED: Final = 1_000
# SQL of the text of an entry.
TEXT: Final = {
    "reflections": (
        "(data ->> 'context') || ' ' || (data ->> 'lesson') || ' ' ||"
        " coalesce(data ->> 'action', '')"
    ),
    "episodes": "data ->> 'summary'",
    "skills": "id || ' ' || (data ->> 'description')",
}
INDEXES: Final = {name: f"{name}_fts" for name in OWN}


class OwnEntry(msgspec.Struct, frozen=True):
    """A line of a log, or a skill."""

    id: str  # of a skill its own; of a line a digest of its content
    position: int  # its place among the lines that are not blank, or among the skills
    created_at: float  # in seconds since the epoch; of a skill the time of its file
    item: Item


class OwnPart(msgspec.Struct, frozen=True):
    """One of the files, or the skills, as read."""

    name: str  # `knowledge`, `reflections`, `episodes` or `skills`
    fingerprints: Mapping[str, Fingerprint]  # of each file, by path
    changed_at: float = 0.0  # the newest of their times
    lines: int = 0  # the number of lines that are not blank; of knowledge, of all lines
    text: str = ""  # of the knowledge; of a log what is wrong with it
    entries: tuple[OwnEntry, ...] = ()


def fingerprints(db: sqlite3.Connection) -> dict[str, Fingerprint]:
    """The fingerprint of every file when it was last read."""
    files = db.execute("SELECT path, size, mtime, ctime, inode FROM own_files")
    return {path: Fingerprint(*status) for path, *status in files}


def part(db: sqlite3.Connection, name: str) -> OwnPart:
    """A part without its entries."""
    rows = db.execute("SELECT changed_at, lines, text FROM own_parts WHERE name = ?", (name,))
    return OwnPart(name, {}, *(rows.fetchone() or (0.0, 0, "")))


def newest(
    db: sqlite3.Connection, name: str, limit: int, offset: int = 0, kind: str | None = None
) -> list[OwnEntry]:
    """The last entries of a kind, last first; with `kind` only of that `type` or `outcome`."""
    where, arguments = _of_kind(kind)
    return _entries(
        db, name, f"{where} ORDER BY position DESC LIMIT ? OFFSET ?", (*arguments, limit, offset)
    )


def count(db: sqlite3.Connection, name: str, kind: str | None = None) -> int:
    """The number of entries."""
    where, arguments = _of_kind(kind)
    return int(scalar(db, f"SELECT count(*) FROM {name} {where}", *arguments))


def every(db: sqlite3.Connection, name: str) -> list[OwnEntry]:
    """All entries, in the order of their file."""
    return _entries(db, name, "ORDER BY position", ())


def last_lines(db: sqlite3.Connection, name: str, lines: int) -> list[OwnEntry]:
    """The entries in the last lines of a file that are not blank; a torn line counts as one."""
    first = part(db, name).lines - lines
    return _entries(db, name, "WHERE position >= ? ORDER BY position", (first,))


def skill(db: sqlite3.Connection, skill_id: str) -> OwnEntry | None:
    """A skill."""
    entries = _entries(db, "skills", "WHERE id = ?", (skill_id,))
    return entries[0] if entries else None


def shown_by(name: str) -> Callable[[sqlite3.Connection, Sequence[int]], dict[int, OwnEntry]]:
    """The entries of a kind in some rows."""

    def at_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, OwnEntry]:
        rows = db.execute(
            f"SELECT row, {_COLUMNS} FROM {name} WHERE row IN (SELECT value FROM json_each(?))",
            (to_json(numbers),),
        )
        return {row: _entry(name, *rest) for row, *rest in rows}

    return at_rows


def take(tx: Transaction, read: Sequence[OwnPart]) -> None:
    """Write what was read of the disk into the tables and their indexes."""
    for read_part in read:
        tx.db.execute("DELETE FROM own_files WHERE part = ?", (read_part.name,))
        tx.db.executemany(
            "INSERT OR REPLACE INTO own_files VALUES (?, ?, ?, ?, ?, ?)",
            [
                (path, read_part.name, *astuple(fingerprint))
                for path, fingerprint in read_part.fingerprints.items()
            ],
        )
        tx.db.execute(
            "INSERT OR REPLACE INTO own_parts VALUES (?, ?, ?, ?)",
            (read_part.name, read_part.changed_at, read_part.lines, read_part.text),
        )
        if read_part.name in OWN:
            keep_only(tx, read_part.name, read_part.entries)
    tx.emit("entries.read", parts=[read_part.name for read_part in read])


def clear(tx: Transaction) -> None:
    """Remove the copy, so that it is read again."""
    for name in OWN:
        full_text.clear(tx.db, INDEXES[name])
        tx.db.execute(f"DELETE FROM {name}")
    tx.db.execute("DELETE FROM own_files")


_COLUMNS: Final = "id, position, created_at, data"


def _of_kind(kind: str | None) -> tuple[str, tuple[str, ...]]:
    if kind is None:
        return "", ()
    return "WHERE coalesce(data ->> 'type', data ->> 'outcome') = ?", (kind,)


def _entries(
    db: sqlite3.Connection, name: str, rest: str, arguments: Sequence[object]
) -> list[OwnEntry]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM {name} {rest}", arguments)
    return [_entry(name, *row) for row in rows]


def _entry(name: str, key: str, position: int, created_at: float, data: str) -> OwnEntry:
    return OwnEntry(key, position, created_at, msgspec.json.decode(data, type=_ITEMS[name]))


def keep_only(tx: Transaction, name: str, entries: Sequence[OwnEntry]) -> None:
    """Let these be the entries of a kind; others are removed."""
    known = {
        key: (row, position, data)
        for row, key, position, data in tx.db.execute(f"SELECT row, id, position, data FROM {name}")
    }
    new = {entry.id: (entry, to_json(entry.item)) for entry in entries}
    for key, (row, _, data) in known.items():
        if key not in new or new[key][1] != data:
            old = msgspec.json.decode(data, type=_ITEMS[name])
            tx.db.execute(f"DELETE FROM {name} WHERE row = ?", (row,))
            full_text.remove(tx.db, INDEXES[name], row, (_indexed(old),))
    added = []
    row = scalar(tx.db, f"SELECT coalesce(max(row), 0) FROM {name}")
    for key, (entry, data) in new.items():
        if key in known and known[key][2] == data:
            if known[key][1] != entry.position:
                tx.db.execute(f"UPDATE {name} SET position = ? WHERE id = ?", (entry.position, key))
            continue
        row += 1
        text = entry.item.text
        tx.db.execute(
            f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)",
            (row, key, entry.position, entry.created_at, len(text), data),
        )
        added.append(IndexEntry(row, (_indexed(entry.item),), entry.created_at))
    full_text.add(tx.db, INDEXES[name], added)


def _indexed(item: Item) -> str:
    if isinstance(item, Skill):
        # The rest of its file is found like that of any watched file.
        return f"{item.id} {item.description}\n{item.text[:_INDEXED]}"
    return item.text
