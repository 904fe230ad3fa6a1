"""A copy of one agent's database as it was at one moment, for an archive."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from ..errors import StoreDamaged, Unavailable
from . import faces
from .database import FILE_NAME, translate, translate_os
from .faces import Rendered
from .transaction import SEGMENT_ROWS, Rules

_PREFIX: Final = ".backup-"
# Between so many pages, or steps of SQLite's machine, it is looked whether anybody still waits.
_PAGES: Final = 1024
_STEPS: Final = 100_000
# What is counted, and in which table. Earlier releases had no memories in the replica alone.
_COUNTS: Final = {
    "memories": "memories",
    "archived": "memories WHERE archived_at IS NOT NULL",
    "remote_only": "remote_only",
    "merges": "merges",
    "categories": "tree",
    "hot_entries": "hot",
    "key_values": "kv",
    "tombstones": "tombstones",
    "notes": "files",
}


class Snapshot(msgspec.Struct, frozen=True):
    """What was copied: when, how much of each kind, and the state files that show it.

    Attributes:
        segments: the files of the cold archive; too many to be held here, they are rendered
            when their turn comes.
    """

    database: Path
    made_at: float
    schema: int
    counts: dict[str, int]
    files: tuple[Rendered, ...]
    segments: tuple[int, ...]


def make_folder(state_dir: Path) -> Path:
    """A new folder for a copy; whoever asks for it removes it. Blocking.

    Raises:
        ThermoclineError: the disk refuses.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=state_dir))
    except OSError as error:
        raise translate_os(error, state_dir) from error


def remove_leftovers(state_dir: Path) -> None:
    """Remove what a daemon that was killed while it made copies has left. Blocking."""
    for folder in state_dir.glob(f"{_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


def copy(db: sqlite3.Connection, folder: Path, stopped: Callable[[], bool]) -> Path:
    """Copy what a reader sees, while others write, and check every page. Blocking.

    Args:
        db: a reader, in a transaction: it keeps its view of one moment, and holds up nobody.
        folder: where to.
        stopped: asked now and then whether to give up.

    Raises:
        Unavailable: it was given up.
        StoreDamaged: a page is not what SQLite wrote.
        ThermoclineError: the disk refuses.
    """
    path = folder / FILE_NAME
    # The view begins with the first read.
    db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    try:
        target = _connect(path)
        try:
            # Nothing of it has to survive a power cut.
            target.execute("PRAGMA journal_mode = OFF").fetchone()
            target.execute("PRAGMA synchronous = OFF")
            db.backup(target, pages=_PAGES, progress=lambda *_: _go_on(stopped))
        finally:
            target.close()
        _check(path, stopped)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return path


def complete(path: Path, rules: Rules, made_at: float, stopped: Callable[[], bool]) -> Snapshot:
    """Render the state files of a copy, and note them in it as its own. Blocking.

    Otherwise they would look like somebody's edits where the copy is opened.

    Raises:
        Unavailable: it was given up.
        ThermoclineError: the disk refuses.
    """
    local = datetime.now().astimezone().tzinfo
    assert local is not None
    try:
        db = _connect(path)
        try:
            db.set_progress_handler(stopped, _STEPS)
            rendered = faces.render(db, faces.FILES, made_at, rules, local)
            _note(db, rendered)
            return Snapshot(
                database=path,
                made_at=made_at,
                schema=int(db.execute("PRAGMA user_version").fetchone()[0]),
                counts=counts(db),
                files=tuple(rendered),
                segments=_segments(db),
            )
        finally:
            db.close()
    except sqlite3.Error as error:
        _go_on(stopped)
        raise translate(error, path) from error


def counts(db: sqlite3.Connection) -> dict[str, int]:
    """How many things of each kind a database holds."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    return {
        name: int(db.execute(f"SELECT count(*) FROM {source}").fetchone()[0])
        for name, source in _COUNTS.items()
        if source.partition(" ")[0] in tables
    }


def _segments(db: sqlite3.Connection) -> tuple[int, ...]:
    """Which files the archive of a copy has."""
    found = db.execute(
        "SELECT DISTINCT row / ? FROM memories WHERE archived_at IS NOT NULL ORDER BY 1",
        (SEGMENT_ROWS,),
    )
    return tuple(segment for (segment,) in found)


def _note(db: sqlite3.Connection, rendered: Iterable[Rendered]) -> None:
    clock = faces.version(db)
    db.execute("BEGIN IMMEDIATE")
    for file in rendered:
        digest = hashlib.sha256(file.content or b"").hexdigest()
        db.execute("INSERT OR REPLACE INTO faces VALUES (?, ?, ?)", (file.name, digest, clock))
    db.execute("DELETE FROM meta WHERE key = 'writing'")
    # The archive's files are rendered from the copy as well: none of them is behind.
    db.execute("DELETE FROM stale_segments")
    db.execute("COMMIT")


def _check(path: Path, stopped: Callable[[], bool]) -> None:
    db = _connect(path)
    try:
        # A copy of a log-keeping database takes itself for one, and would put files beside it.
        db.execute("PRAGMA journal_mode = MEMORY").fetchone()
        db.set_progress_handler(stopped, _STEPS)
        first = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError:
        _go_on(stopped)
        raise
    finally:
        db.close()
    if first != "ok":
        raise StoreDamaged(f"cannot back up {path}: {' '.join(first.split())}")


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


def _go_on(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Unavailable("cannot go on with the backup: nobody waits for it any more")
