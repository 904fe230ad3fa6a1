"""What came from a replica, row by row, as a restore notes it beside the rows themselves.

The notes stand in the database that is being filled, so that a page of rows and what is known of
them are on the disk together or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from thermocline.sync import Row

from . import fingerprints

# A row of ours, the trace of a deleted one, or a statement that another tool wrote: in the table
# that is ours as well, or left in one of its own.
Kind: TypeAlias = Literal["row", "gone", "view", "left"]
Why: TypeAlias = Literal["damaged", "unknown"]

_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS received (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        came_as TEXT NOT NULL,
        clock INTEGER NOT NULL,
        device TEXT NOT NULL,
        place_clock INTEGER NOT NULL,
        place_device TEXT NOT NULL,
        seq INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        PRIMARY KEY (kind, id)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS not_taken (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        why TEXT NOT NULL,
        PRIMARY KEY (kind, id)
    ) STRICT, WITHOUT ROWID
    """,
)
_NAMES: Final = ("received", "not_taken")
_FIELDS: Final = "came_as, clock, device, place_clock, place_device, seq, fingerprint"


class Note(msgspec.Struct, frozen=True):
    """What came of one row, last."""

    came_as: Kind
    clock: int
    device: str
    place_clock: int
    place_device: str
    seq: int
    fingerprint: bytes

    @property
    def said(self) -> tuple[int, str]:
        """The version of what it says."""
        return self.clock, self.device

    @property
    def put(self) -> tuple[int, str]:
        """The version of where it is filed."""
        return self.place_clock, self.place_device


def make(db: sqlite3.Connection) -> None:
    """Make the tables of the notes, unless they are there."""
    for sql in _TABLES:
        db.execute(sql)


def drop(db: sqlite3.Connection) -> None:
    """Remove all notes."""
    for name in _NAMES:
        db.execute(f"DROP TABLE IF EXISTS {name}")


def exist(db: sqlite3.Connection) -> bool:
    """Whether there are notes."""
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_NAMES[0],))
    return found.fetchone() is not None


def take(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Note rows of ours, and what other tools wrote in our table.

    Raises:
        MsgspecError, InvalidInput: one of them cannot be taken over.
    """
    lines = [
        (
            row.kind,
            row.id,
            _kind_of(row),
            row.clock,
            row.device,
            row.place_clock,
            row.place_device,
            row.seq,
            _fingerprint(row),
        )
        for row in rows
    ]
    db.executemany(f"INSERT OR REPLACE INTO received VALUES ({', '.join('?' * 9)})", lines)
    db.executemany("DELETE FROM not_taken WHERE kind = ? AND id = ?", [line[:2] for line in lines])


def take_left(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Note what other tools left in tables of their own; an id that is known stays as it is."""
    db.executemany(
        "INSERT OR IGNORE INTO received VALUES (?, ?, 'left', -1, '', 0, '', 0, ?)",
        [(row.kind, row.id, _fingerprint(row)) for row in rows],
    )


def refuse(db: sqlite3.Connection, names: Iterable[tuple[str, str]], why: Why) -> None:
    """Note rows that are there, but were not taken over."""
    db.executemany(
        "INSERT OR REPLACE INTO not_taken VALUES (?, ?, ?)",
        [(kind, key, why) for kind, key in names],
    )


def refused(db: sqlite3.Connection, why: Why, limit: int) -> tuple[int, list[str]]:
    """How many rows were not taken over for a reason, and the names of the first of them."""
    [number] = db.execute("SELECT count(*) FROM not_taken WHERE why = ?", (why,)).fetchone()
    names = db.execute("SELECT kind, id FROM not_taken WHERE why = ? LIMIT ?", (why, limit))
    return int(number), [f"{kind} {key}" for kind, key in names]


def damaged(db: sqlite3.Connection, limit: int) -> list[tuple[str, str]]:
    """Kind and id of rows that were not as they were sent."""
    names = "SELECT kind, id FROM not_taken WHERE why = 'damaged' LIMIT ?"
    return db.execute(names, (limit,)).fetchall()


def find(db: sqlite3.Connection, kind: str, key: str) -> Note | None:
    """What is noted of a row."""
    line = db.execute(
        f"SELECT {_FIELDS} FROM received WHERE kind = ? AND id = ?", (kind, key)
    ).fetchone()
    return None if line is None else Note(*line)


def all_of(db: sqlite3.Connection, came_as: Sequence[Kind]) -> Iterator[tuple[str, str, Note]]:
    """Kind, id and note of all rows that came so."""
    lines = db.execute(
        f"SELECT kind, id, {_FIELDS} FROM received"
        f" WHERE came_as IN ({', '.join('?' * len(came_as))})",
        came_as,
    )
    return ((kind, key, Note(*line)) for kind, key, *line in lines)


def count(db: sqlite3.Connection) -> int:
    """How many rows came, the traces of deletions included."""
    return int(db.execute("SELECT count(*) FROM received").fetchone()[0])


def living(db: sqlite3.Connection) -> dict[str, int]:
    """How many rows of each kind the replica has by what came, taken over or not."""
    lines = db.execute(
        "SELECT kind, count(*) FROM (SELECT kind, id FROM received WHERE came_as IN ('row', 'view')"
        " UNION SELECT kind, id FROM not_taken) GROUP BY kind"
    )
    return dict(lines.fetchall())


def _kind_of(row: Row) -> Kind:
    if row.deleted:
        return "gone"
    return "view" if row.data is None else "row"


def _fingerprint(row: Row) -> bytes:
    if row.data is None and row.view is not None:
        return fingerprints.of_text(row.id, row.view.text)
    return fingerprints.of_received(row)
