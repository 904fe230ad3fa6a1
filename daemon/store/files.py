"""The files of the workspace as rows: what each says, and how it stands on the disk.

The disk may have changed since, and so may the row: `take` brings what is new on the disk into
the rows, `unplaced` tells what the disk has still to get, and whoever wrote it says so to `placed`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from ..memory.workspace import Joined, copy_path, join
from .transaction import Transaction

KIND: Final = "file"
_NOTHING: Final[Mapping[str, int]] = {}

Version: TypeAlias = tuple[int, str]


class Stand(msgspec.Struct, frozen=True):
    """Size in bytes and time of change in nanoseconds: what tells that a file was written to."""

    size: int
    mtime: int


# Nothing has the name.
NOWHERE: Final = Stand(-1, 0)


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a file says, as it travels.

    Attributes:
        modified_at: seconds since the epoch.
        seen: by device, the clock of its last edit that this one came after, or is.
    """

    text: str
    modified_at: float
    seen: dict[str, int] = {}

    def contains(self, version: Version) -> bool:
        """Whether this was made from that version, or is it."""
        clock, device = version
        return self.seen.get(device, -1) >= clock


class Known(msgspec.Struct, frozen=True):
    """How a file stood when row and disk were compared last.

    Attributes:
        placed: whether it had what the row says.
        gone: whether there is no row any more, and the file is to be removed.
    """

    stand: Stand
    placed: bool
    gone: bool = False


class Found(msgspec.Struct, frozen=True):
    """A file that does not stand as it was known."""

    path: str
    stand: Stand
    text: str


class Unplaced(msgspec.Struct, frozen=True):
    """What the disk has still to get.

    Attributes:
        stand: of the file that may be written over; one that stands otherwise was written since.
    """

    path: str
    content: Content
    stand: Stand


class _Row(msgspec.Struct, frozen=True):
    """A row.

    Attributes:
        queued: whether the replica has still to hear of it.
        agreed, agreed_version: of an edit of this device, what others know it was made from.
        shown: what the disk has, where it has not `content`.
    """

    content: Content
    version: Version
    queued: bool
    agreed: str | None
    agreed_version: Version
    placed: bool
    shown: str | None

    @property
    def text(self) -> str:
        return self.content.text


def content(text: str, modified_at: float, seen: str) -> Content:
    """What a row says, from the columns of these names."""
    return Content(text, modified_at, msgspec.json.decode(seen, type=dict[str, int]))


def known(db: sqlite3.Connection) -> dict[str, Known]:
    """Every file that there is a row of; and those that are to be removed, since there was."""
    gone = db.execute("SELECT path, size, mtime FROM files_gone")
    found = {path: Known(Stand(size, mtime), placed=True, gone=True) for path, size, mtime in gone}
    for path, size, mtime, is_placed in db.execute("SELECT path, size, mtime, placed FROM files"):
        found[path] = Known(Stand(size, mtime), bool(is_placed))
    return found


def unplaced(db: sqlite3.Connection, after: str, limit: int) -> list[Unplaced]:
    """What the disk has still to get: so many files whose paths are behind `after`."""
    rows = db.execute(
        "SELECT path, content, modified_at, seen, size, mtime FROM files"
        " WHERE NOT placed AND path > ? ORDER BY path LIMIT ?",
        (after, limit),
    )
    return [
        Unplaced(path, content(text, at, seen), Stand(size, mtime))
        for path, text, at, seen, size, mtime in rows
    ]


def take(tx: Transaction, found: Iterable[Found], vanished: Iterable[str]) -> int:
    """Take in what has changed on the disk; return how many rows say something new.

    Where a row has changed meanwhile as well, the two are joined; what finds no place in that is
    kept in a file beside it.

    Args:
        tx: the transaction.
        found: files that are new, or do not stand as they were known.
        vanished: files that were on the disk, and are not any more.
    """
    news = sum(_take(tx, file) for file in found)
    return news + sum(_vanish(tx, path) for path in vanished)


def placed(tx: Transaction, written: Iterable[tuple[Unplaced, Stand]]) -> None:
    """Note how files stand that were just written.

    A row that has changed since stays unplaced, and may be written over what stands there now.
    """
    for file, stand in written:
        row = _row(tx, file.path)
        if row is not None:
            _stand(tx, file.path, row.text, stand, file.content.text)


def removed(tx: Transaction, paths: Iterable[str]) -> None:
    """Note that files that were to be removed are gone."""
    tx.db.executemany("DELETE FROM files_gone WHERE path = ?", [(path,) for path in paths])


def is_at_odds(tx: Transaction, path: str, came: Content, version: Version) -> bool:
    """Whether the row is this device's edit, and neither version was made from the other.

    So it is the device whose words would go that joins the two, and no other.
    """
    row = _row(tx, path)
    return (
        row is not None
        and row.version[1] == tx.device
        and not came.contains(row.version)
        and not row.content.contains(version)
    )


def reconcile(tx: Transaction, path: str, came: Content, version: Version) -> None:
    """Join what was edited here with what another device has written meanwhile."""
    row = _row(tx, path)
    assert row is not None
    base = row.agreed if came.contains(row.agreed_version) else None
    joined = join(path, base, row.text, came.text)
    put(tx, path, came, version)
    _keep_other(tx, path, joined)
    if joined.content != came.text:
        _edit(tx, path, joined.content, tx.now, row.content.seen)


def put(tx: Transaction, path: str, came: Content, version: Version) -> None:
    """Let a row say what came. How the file stands, and what it shows, stays known."""
    row = _row(tx, path)
    shown = None if row is None else row.text if row.placed else row.shown
    gone = tx.db.execute(
        "DELETE FROM files_gone WHERE path = ? RETURNING size, mtime", (path,)
    ).fetchone()
    size, mtime = gone or (NOWHERE.size, NOWHERE.mtime)
    seen = msgspec.json.encode(came.seen).decode()
    tx.db.execute(
        "INSERT INTO files VALUES (?, ?, ?, ?, NULL, 0, '', 0, NULL, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET content = excluded.content, seen = excluded.seen,"
        " modified_at = excluded.modified_at, agreed = NULL, agreed_clock = 0, agreed_device = '',"
        " clock = excluded.clock, device = excluded.device",
        (path, came.text, came.modified_at, seen, size, mtime, *version),
    )
    tx.db.execute(
        "UPDATE files SET placed = (?1 IS content), shown = nullif(?1, content) WHERE path = ?2",
        (shown, path),
    )


def _take(tx: Transaction, file: Found) -> bool:
    row = _row(tx, file.path)
    says = file.text
    if row is not None and not row.placed:
        joined = join(file.path, row.shown, file.text, row.text)
        _keep_other(tx, file.path, joined)
        says = joined.content
    news = row is None or says != row.text
    if news:
        _edit(tx, file.path, says, max(0.0, min(file.stand.mtime / 1e9, tx.now)))
    _stand(tx, file.path, says, file.stand, file.text)
    return news


def _vanish(tx: Transaction, path: str) -> bool:
    row = _row(tx, path)
    if row is None:
        return False
    # Deleted as it stands: nothing is left to be removed.
    _stand(tx, path, row.text, NOWHERE, None)
    if not row.placed:
        return False  # What was written elsewhere since is to be seen here.
    tx.db.execute("DELETE FROM files WHERE path = ?", (path,))
    tx.deleted(KIND, path)
    tx.tell("file.deleted", path=path)
    return True


def _edit(
    tx: Transaction, path: str, text: str, modified_at: float, seen: Mapping[str, int] = _NOTHING
) -> None:
    """Let a row say what is new from this device, which may have `seen` more than the row has."""
    row = _row(tx, path)
    version = (tx.version(), tx.device)
    known_to = dict(row.content.seen) if row is not None else {}
    for device, clock in (*seen.items(), (tx.device, version[0])):
        known_to[device] = max(clock, known_to.get(device, clock))
    put(tx, path, Content(text, modified_at, known_to), version)
    if row is not None:
        _note_agreed(tx, path, row)
    tx.alive(KIND, path)
    tx.changed(KIND, path, version[0])
    tx.tell("file.changed", path=path)


def _note_agreed(tx: Transaction, path: str, row: _Row) -> None:
    """Note what an edit of `row` was made from, as far as others know that."""
    agreed, of = row.text, row.version
    if row.queued and row.version[1] == tx.device:
        # Nobody has heard of that one either.
        if row.agreed is None:
            return
        agreed, of = row.agreed, row.agreed_version
    tx.db.execute(
        "UPDATE files SET agreed = ?, agreed_clock = ?, agreed_device = ? WHERE path = ?",
        (agreed, *of, path),
    )


def _stand(tx: Transaction, path: str, says: str, stand: Stand, shows: str | None) -> None:
    """Note how a file stands, and what it shows, of a row that says `says`."""
    is_placed = shows == says
    tx.db.execute(
        "UPDATE files SET size = ?, mtime = ?, placed = ?, shown = ? WHERE path = ?",
        (stand.size, stand.mtime, is_placed, None if is_placed else shows, path),
    )


def _keep_other(tx: Transaction, path: str, joined: Joined) -> None:
    """Keep a version that found no place, as a file of its own."""
    if joined.other is None:
        return
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(tx.now))
    taken = frozenset(name for (name,) in tx.db.execute("SELECT path FROM files"))
    kept = copy_path(path, f"{tx.device[:8]}-{stamp}", taken)
    _edit(tx, kept, joined.other, tx.now)
    tx.tell("file.conflict", path=path, kept=kept)


def _row(tx: Transaction, path: str) -> _Row | None:
    found = tx.db.execute(
        "SELECT content, modified_at, seen, clock, device,"
        " EXISTS (SELECT 1 FROM outbox WHERE kind = ?1 AND id = ?2),"
        " agreed, agreed_clock, agreed_device, placed, shown FROM files WHERE path = ?2",
        (KIND, path),
    ).fetchone()
    if found is None:
        return None
    text, at, seen, clock, device, queued, agreed, agreed_clock, agreed_device, *disk = found
    return _Row(
        content(text, at, seen),
        (clock, device),
        bool(queued),
        agreed,
        (agreed_clock, agreed_device),
        bool(disk[0]),
        disk[1],
    )
