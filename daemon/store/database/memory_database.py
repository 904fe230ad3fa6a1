"""Opening `memory.db`: pragmas, migrations, and what SQLite's errors mean."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ...errors import (
    NO_FILES,
    Conflict,
    DiskFull,
    ReadOnly,
    ShuttingDown,
    StoreDamaged,
    ThermoclineError,
    Unavailable,
    out_of_files,
    translate_os,
)
from ...runtime import atomic
from . import chunk_database
from .connection import (
    CACHE_KB,
    DAMAGE,
    DatabaseConnection,
    connect,
    lost_words,
    scalar,
    transaction,
    version_of,
)
from .schema import COUNTED, Migration

FILE_NAME: Final = "memory.db"
# The log is moved into the database when it has this many pages.
LOG_PAGES: Final = 2_000
_AT_ONCE: Final = 500
# How long the way back to an earlier release stays.
_KEPT_SECONDS: Final = 7 * 86_400.0
_REFUSALS: Final = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
# What a damaged full-text index says: an error without a code, and a constraint of no table.
_DAMAGED_INDEX: Final = ("invalid fts5 file format", "constraint failed")


def connect_writer(path: Path, cache_kb: int = CACHE_KB) -> sqlite3.Connection:
    """The one connection that writes. Every commit is on the disk before it returns."""
    with translated(path):
        # SQLite would open for reading, and never write, what it may not write at this moment.
        if path.exists() and (closed := _closed_to_us(path)) is not None:
            raise closed
        db = _connect(path, "mode=rwc", cache_kb)
        # Smaller than SQLite's usual: a store touches some seventeen pages, and each is written.
        # Of a database that is there this changes nothing.
        db.execute("PRAGMA page_size = 2048")
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON").fetchone()
        # Keeps the log from staying as large as the largest import was.
        db.execute("PRAGMA journal_size_limit = 4194304").fetchone()
        db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}").fetchone()
    return db


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, and neither waits for the writer nor makes it wait."""
    with translated(path):
        db = _connect(path, "mode=rw")
        chunk_database.attach(db, path.parent)
        db.execute("PRAGMA query_only = ON")
        db.derived_values = {}
    return db


def connect_standby(path: Path) -> sqlite3.Connection:
    """A connection that reads even if the disk is full, while there is no writer.

    It must be closed before the database is opened for writing.
    """
    with translated(path):
        db = _connect(path, _standby(path))
        chunks = path.with_name(chunk_database.FILE_NAME)
        chunk_database.attach(db, path.parent, _standby(chunks))
    return db


def connect_look(path: Path) -> sqlite3.Connection:
    """A connection of another process than the daemon, which writes nothing, not even a lock file.

    While the daemon has the file open, it reads what the daemon has committed.
    """
    beside = [path.with_name(f"{path.name}-{name}") for name in ("wal", "shm")]
    live = all(file.exists() for file in beside)
    options = "mode=ro&readonly_shm=1" if live else _standby(path)
    return connect(path, options)


def _standby(path: Path) -> str:
    # Without a log the file is all there is, and needs no index of the log beside it.
    log = path.with_name(f"{path.name}-wal")
    unlogged = not log.exists() or not log.stat().st_size
    return "mode=ro&" + ("immutable=1" if unlogged else "readonly_shm=1")


def _connect(path: Path, options: str, cache_kb: int = CACHE_KB) -> DatabaseConnection:
    db = connect(path, options)
    db.execute(f"PRAGMA cache_size = -{cache_kb}")
    db.execute("PRAGMA temp_store = MEMORY")
    return db


def migrate(db: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Bring the schema up to the last of `migrations`, each step in one transaction.

    Before the first step on a database that holds anything, a copy is kept beside it, named
    after its version.

    Raises:
        Conflict: it was written by a later release; it is left as it is.
        StoreDamaged: its version is older than the first of `migrations`, so that only a rebuild
            can read it.
    """
    with translated(path):
        present = version_of(db)
        if present > migrations[-1].version:
            raise Conflict(
                f"cannot open {path}: its schema version is {present}, this release knows "
                f"{migrations[-1].version}",
                hint="install the release that wrote it, or a later one",
            )
        if 0 < present < migrations[0].version:
            text = f"cannot use {path}: its schema version {present} was never released"
            raise StoreDamaged(text)
        if 0 < present < migrations[-1].version:
            copy = path.with_name(f"{path.name}.v{present}-{atomic.stamp()}")
            db.execute("VACUUM INTO ?", (str(copy),))
        for migration in migrations:
            if migration.version > present:
                with transaction(db):
                    for statement in migration.statements:
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {migration.version}")


def remove_old_copies(path: Path, now: float) -> None:
    """Remove the copies that migrations kept beside a database, once they are a week old."""
    for copy in path.parent.glob(f"{path.name}.v[0-9]*"):
        with suppress(OSError):
            if now - copy.stat().st_mtime > _KEPT_SECONDS:
                copy.unlink()


def first_value(folder: Path, sql: str, otherwise: int) -> int:
    """The first value of a query on a closed memory; `otherwise` if it cannot be read. Blocking.

    Opening the memory reports the error. No log is left beside a database that nobody writes.
    """
    try:
        # A connection that may not write would not remove the log that it makes.
        with closing(connect(folder / FILE_NAME, "mode=rw")) as db:
            return int(scalar(db, sql))
    except sqlite3.Error:
        return otherwise


def in_pages(
    db: sqlite3.Connection, sql: str, *arguments: object, after: Any
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, a few hundred at a time; writing between is allowed.

    `sql` is in the order of its first column; its last two parameters are the value of that column
    to begin behind (at first `after`), and how many rows to read.
    """
    while True:
        rows = db.execute(sql, (*arguments, after, _AT_ONCE)).fetchall()
        yield from rows
        # A damaged table may never run out of rows.
        if len(rows) < _AT_ONCE:
            return
        after = rows[-1][0]


class Examination:
    """Reads the whole of a database on a connection of its own, until another thread ends it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._is_ended = False

    def run(self) -> bool:
        """Read every page once; whether each full-text index has all words that were added to it.

        Takes a second for 250,000 memories. Blocking.

        Raises:
            StoreDamaged: it names what is not as SQLite wrote it.
            ShuttingDown: it was ended.
        """
        with translated(self._path), closing(_connect(self._path, "mode=rw")) as self._db:
            try:
                self._refuse_ended()
                fault = _fault_in(self._db)
                has_words = not fault and not lost_words(self._db)
            except sqlite3.OperationalError:
                self._refuse_ended()
                raise
        # What was interrupted may look like a fault.
        self._refuse_ended()
        if fault:
            raise StoreDamaged(f"cannot trust {self._path}: {fault}")
        return has_words

    def end(self) -> None:
        """Give up what is being read; whoever waits for it learns that at once."""
        self._is_ended = True
        if (db := self._db) is not None:
            # It may be closed between the two lines.
            with suppress(sqlite3.ProgrammingError):
                db.interrupt()

    def _refuse_ended(self) -> None:
        if self._is_ended:
            raise ShuttingDown(f"gave up reading {self._path}: it is closed")


def _fault_in(db: sqlite3.Connection) -> str:
    if (fault := scalar(db, "PRAGMA integrity_check(1)")) != "ok":
        return str(fault)
    # One statement, so that no commit comes between the two numbers.
    miscounted = " UNION ALL ".join(
        f"SELECT '{table}' WHERE CAST((SELECT count(*) FROM {table}) AS TEXT)"
        f" IS NOT (SELECT value FROM meta WHERE key = 'rows_of_{table}')"
        for table in COUNTED
    )
    table = scalar(db, miscounted)
    return f"table '{table}' lacks some of its rows" if table else ""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise the errors of our tree in place of SQLite's and of the operating system's."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise translate_os(error, path) from error


def translate(error: sqlite3.Error, path: Path) -> ThermoclineError:
    """The error of our tree that stands for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return ThermoclineError(f"cannot use {path}: {error}")
    primary = code & 0xFF
    if primary in DAMAGE or str(error).startswith(_DAMAGED_INDEX):
        return StoreDamaged(f"cannot read {path}: {error}")
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return Unavailable(f"cannot use {path}: another process holds it", hint="close it there")
    return _io_error(primary, error, path)


def _io_error(primary: int, error: sqlite3.Error, path: Path) -> ThermoclineError:
    if primary in _REFUSALS and (closed := _closed_to_us(path)):
        return closed
    if primary == sqlite3.SQLITE_FULL:
        return DiskFull(f"cannot write to {path}: the disk is full", hint="free some space")
    if primary == sqlite3.SQLITE_READONLY:
        return ReadOnly(f"cannot write to {path}: {error}", hint="make its folder writable")
    if primary == sqlite3.SQLITE_CANTOPEN and not _may_open():
        return out_of_files(path)
    if primary in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}:
        return DiskFull(
            f"cannot read or write {path}: {error}", hint="check the disk and its free space"
        )
    return ThermoclineError(f"cannot use {path}: {error}")


def _may_open() -> bool:
    """Whether the process may open another file; SQLite does not say why it cannot."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in NO_FILES
    return True


def _closed_to_us(path: Path) -> ReadOnly | None:
    """The error if the process may not read and write the folder and files of a database."""
    beside = (path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm"))
    with suppress(OSError):
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            text = f"cannot write to {path}: the disk is read-only"
            return ReadOnly(text, hint="make it writable")
        for place in (path.parent, *beside):
            needs = os.R_OK | os.W_OK | (os.X_OK if place.is_dir() else 0)
            # Not opened: to close a file gives up the locks that the process has on it. Twice: a
            # log that another connection removes or makes meanwhile also seems closed.
            if all(place.exists() and not os.access(place, needs) for _ in range(2)):
                text = f"cannot use {place}: permission denied"
                return ReadOnly(text, hint="let the daemon's user read and write it")
    return None
