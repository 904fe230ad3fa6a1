"""A copy of the agent's own files in the database, which recall and the context block read.

The files are authoritative. The copy is not replicated or backed up: what is missing is read again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from ..memory.own_files import EpisodeLine, Reflection, Skill
from . import full_text
from .schema import OWN
from .transaction import Transaction

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
    """A line of a log, or a skill.

    Attributes:
        id: of a skill its own; of a line a digest of its content.
        position: its place among the lines that are not blank, or among the skills.
        created_at: in seconds since the epoch; of a skill the time of its file.
    """

    id: str
    position: int
    created_at: float
    item: Item


class OwnPart(msgspec.Struct, frozen=True):
    """One of the files, or the skills, as read.

    Attributes:
        name: `knowledge`, `reflections`, `episodes` or `skills`.
        stands: the status of each file, by path; "" if it does not exist.
        changed_at: the newest of their times.
        lines: the number of lines that are not blank; of knowledge, of all lines.
        text: of the knowledge.
    """

    name: str
    stands: Mapping[str, str]
    changed_at: float = 0.0
    lines: int = 0
    text: str = ""
    entries: tuple[OwnEntry, ...] = ()


def stands(db: sqlite3.Connection) -> dict[str, str]:
    """The status of every file when it was last read."""
    return dict(db.execute("SELECT path, stand FROM own_files").fetchall())


def part(db: sqlite3.Connection, name: str) -> OwnPart:
    """A part without its entries."""
    found = db.execute("SELECT changed_at, lines, text FROM own_parts WHERE name = ?", (name,))
    return OwnPart(name, {}, *(found.fetchone() or (0.0, 0, "")))


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
    return int(db.execute(f"SELECT count(*) FROM {name} {where}", arguments).fetchone()[0])


def every(db: sqlite3.Connection, name: str) -> list[OwnEntry]:
    """All entries, in the order of their file."""
    return _entries(db, name, "ORDER BY position", ())


def last_lines(db: sqlite3.Connection, name: str, lines: int) -> list[OwnEntry]:
    """The entries in the last lines of a file that are not blank; a torn line counts as one."""
    first = part(db, name).lines - lines
    return _entries(db, name, "WHERE position >= ? ORDER BY position", (first,))


def skill(db: sqlite3.Connection, skill_id: str) -> OwnEntry | None:
    """A skill."""
    found = _entries(db, "skills", "WHERE id = ?", (skill_id,))
    return found[0] if found else None


def shown_by(name: str) -> Callable[[sqlite3.Connection, Sequence[int]], dict[int, OwnEntry]]:
    """The entries of a kind in some rows."""

    def at_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, OwnEntry]:
        found = db.execute(
            f"SELECT row, {_COLUMNS} FROM {name} WHERE row IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(numbers).decode(),),
        )
        return {row: _entry(name, *rest) for row, *rest in found}

    return at_rows


def take(tx: Transaction, read: Sequence[OwnPart]) -> None:
    """Write what was read of the disk into the tables and their indexes."""
    for one in read:
        tx.db.execute("DELETE FROM own_files WHERE part = ?", (one.name,))
        tx.db.executemany(
            "INSERT OR REPLACE INTO own_files VALUES (?, ?, ?)",
            [(path, one.name, stand) for path, stand in one.stands.items()],
        )
        tx.db.execute(
            "INSERT OR REPLACE INTO own_parts VALUES (?, ?, ?, ?)",
            (one.name, one.changed_at, one.lines, one.text),
        )
        if one.name in OWN:
            _replace(tx, one.name, one.entries)


def clear(tx: Transaction) -> None:
    """Remove the copy, so that it is read again."""
    for name in OWN:
        full_text.clear(tx, INDEXES[name])
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
    found = db.execute(f"SELECT {_COLUMNS} FROM {name} {rest}", arguments)
    return [_entry(name, *row) for row in found]


def _entry(name: str, key: str, position: int, created_at: float, data: str) -> OwnEntry:
    return OwnEntry(key, position, created_at, msgspec.json.decode(data, type=_ITEMS[name]))


def _replace(tx: Transaction, name: str, entries: Sequence[OwnEntry]) -> None:
    known = {
        key: (row, position, data)
        for row, key, position, data in tx.db.execute(f"SELECT row, id, position, data FROM {name}")
    }
    wanted = {one.id: (one, msgspec.json.encode(one.item).decode()) for one in entries}
    for key, (row, _, data) in known.items():
        if key not in wanted or wanted[key][1] != data:
            old = msgspec.json.decode(data, type=_ITEMS[name])
            tx.db.execute(f"DELETE FROM {name} WHERE row = ?", (row,))
            full_text.remove(tx, INDEXES[name], row, (_indexed(old),))
    added = []
    row = tx.db.execute(f"SELECT coalesce(max(row), 0) FROM {name}").fetchone()[0]
    for key, (one, data) in wanted.items():
        if key in known and known[key][2] == data:
            if known[key][1] != one.position:
                tx.db.execute(f"UPDATE {name} SET position = ? WHERE id = ?", (one.position, key))
            continue
        row += 1
        text = one.item.text
        tx.db.execute(
            f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)",
            (row, key, one.position, one.created_at, len(text), data),
        )
        added.append(full_text.IndexEntry(row, (_indexed(one.item),), one.created_at))
    full_text.add(tx, INDEXES[name], added)


def _indexed(item: Item) -> str:
    if isinstance(item, Skill):
        # The rest of its file is found like that of any watched file.
        return f"{item.id} {item.description}\n{item.text[:_INDEXED]}"
    return item.text
