"""Whether what was restored is what the replica holds, row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..store import fingerprints, link, outgoing, received
from ..store.database import translate
from ..store.fingerprints import Standing
from ..store.received import Note
from .staging import Staging

_NAMED: Final = 5
_LONGEST_NAME: Final = 80


class Verdict(msgspec.Struct, frozen=True):
    """What a comparison of all rows has found.

    Attributes:
        rows: those that are as they came.
        fingerprint: of all of them together, whatever their order.
        faults: what is wrong, a line each; none where nothing is.
        lost: those of the faults that are the replica's own: nothing that is done here helps.
    """

    rows: int
    fingerprint: str
    faults: tuple[str, ...]
    lost: tuple[str, ...]


def verify(staging: Staging, counts: Mapping[str, int]) -> Verdict:
    """Read the finished database back and compare all of it with what came. Blocking.

    Args:
        staging: the database, with the notes of what came.
        counts: how many rows of each kind the replica says that it has.

    Raises:
        StoreDamaged: a page of it is not as it was written.
        ThermoclineError: the disk refuses.
    """
    staging.check()
    try:
        return _verify(staging.db, counts)
    except sqlite3.Error as error:
        raise translate(error, staging.path) from error


def _verify(db: sqlite3.Connection, counts: Mapping[str, int]) -> Verdict:
    faults = _count_faults(received.living(db), counts)
    compared = _Compared(db)
    for row in fingerprints.everything(db):
        compared.add(row)
    compared.finish()
    faults += named(compared.different, "not as received")
    faults += named(compared.extra, "there, though never received")
    faults += named(compared.missing, "not there, though received")
    if not faults and compared.total != _total_of_notes(db, compared.changed):
        faults.append("the rows together are not those that came")
    return Verdict(
        rows=compared.rows,
        fingerprint=fingerprints.hexadecimal(compared.total),
        faults=tuple(faults),
        lost=tuple(_losses(db)),
    )


class _Compared:
    """Rows as they stand against the notes of how they came.

    What was changed here since, such as a category that was made anew for what is filed in it,
    is another version and not compared; the replica will hear of it.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._living = 0
        self.rows = 0
        self.total = 0
        self.changed: set[tuple[str, str]] = set()
        self.different: list[str] = []
        self.extra: list[str] = []
        self.missing: list[str] = []

    def add(self, row: Standing) -> None:
        note = received.find(self._db, row.kind, row.id)
        if row.deleted:
            if note is not None and note.came_as != "gone":
                self._judge(row, self.different)
            return
        if note is None or note.came_as == "gone":
            self._judge(row, self.extra)
            return
        self._living += 1
        if fingerprint_as(note, row) == note.fingerprint:
            self.rows += 1
            self.total += int.from_bytes(note.fingerprint, "big")
        else:
            self._judge(row, self.different)

    def finish(self) -> None:
        """Look for what came and is not there at all; seldom there is any."""
        notes = received.all_of(self._db, ("row", "view", "left"))
        if self._living == sum(1 for _ in notes):
            return
        for kind, key, _ in received.all_of(self._db, ("row", "view", "left")):
            if outgoing.row_of(self._db, kind, key) is None:
                self.missing.append(f"{kind} {key}")

    def _judge(self, row: Standing, wrong: list[str]) -> None:
        if link.mark(self._db, row.kind, row.id) is None:
            wrong.append(f"{row.kind} {row.id}")
        else:
            self.changed.add((row.kind, row.id))


def fingerprint_as(note: Note, row: Standing) -> bytes:
    """The fingerprint of a row, in the way in which that of the note was made."""
    return row.fingerprint if note.came_as == "row" else fingerprints.of_text(row.id, row.text)


def _total_of_notes(db: sqlite3.Connection, but: set[tuple[str, str]]) -> int:
    notes = received.all_of(db, ("row", "view", "left"))
    return sum(
        int.from_bytes(note.fingerprint, "big")
        for kind, key, note in notes
        if (kind, key) not in but
    )


def _count_faults(found: Mapping[str, int], counts: Mapping[str, int]) -> list[str]:
    return [
        f"the replica says that it has {counts.get(kind, 0):,} rows of the kind '{kind}', "
        f"and {found.get(kind, 0):,} came"
        for kind in sorted(found.keys() | counts.keys())
        if found.get(kind, 0) != counts.get(kind, 0)
    ]


def _losses(db: sqlite3.Connection) -> list[str]:
    number, names = received.refused(db, "damaged", _NAMED)
    found = named(names, "damaged on the replica", number)
    number, names = received.refused(db, "unknown", _NAMED)
    return found + named(names, "unknown to this release, or of no sense", number)


def named(names: Sequence[str], what: str, number: int | None = None) -> list[str]:
    """A line that counts rows and names the first of them; none where there are none.

    Args:
        names: as they stand on the replica, where anything may stand.
        what: what there is to say of them.
        number: how many there are; None: those that are named.
    """
    number = len(names) if number is None else number
    if not number:
        return []
    shown = ", ".join(map(_plain, names[:_NAMED])) + (", …" if number > _NAMED else "")
    return [f"{number:,} {'row is' if number == 1 else 'rows are'} {what}: {shown}"]


def _plain(name: str) -> str:
    cut = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in cut)
