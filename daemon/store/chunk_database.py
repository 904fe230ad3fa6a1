"""`index.db`: the database of the watched files and their chunks; `chunk_tables` has its content.

All of it can be read again from the files, so it stands beside the memory, not in it: its commits
wait for no disk, make none of the memory's longer, and a damaged one is removed and made anew.
Readers of the memory have it attached.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from .schema import CHUNK_COUNTS, CHUNK_TEXT, INDEX_VERSION, full_text_tables

FILE_NAME: Final = "index.db"
SCHEMA: Final = "chunked"
# Of these tables; with another number, or other words in the full text, the file is made anew.
_VERSION: Final = 1000 * INDEX_VERSION + 1
_CREATE: Final = re.compile(r"(CREATE (?:VIRTUAL TABLE|TABLE|INDEX)|INSERT INTO) ")
# Before a commit copies the log into the database, and syncs both.
_LOG_PAGES: Final = 4_000
_TABLES: Final = (
    # A file that cannot be indexed has a reason, and no chunks. `mtime`, `ctime` and `inode` tell
    # whether it has changed.
    """
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        mtime INTEGER NOT NULL,
        ctime INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        digest TEXT NOT NULL,
        title TEXT NOT NULL,
        meta TEXT NOT NULL,
        lines INTEGER NOT NULL,
        indexed_at REAL NOT NULL,
        reason TEXT NOT NULL
    ) STRICT
    """,
    # `position` counts the chunks of a file from 0; `digest` is that of heading and text.
    """
    CREATE TABLE chunks (
        row INTEGER PRIMARY KEY,
        file INTEGER NOT NULL,
        position INTEGER NOT NULL,
        first_line INTEGER NOT NULL,
        last_line INTEGER NOT NULL,
        heading TEXT NOT NULL,
        extra TEXT NOT NULL,
        text TEXT NOT NULL,
        digest TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX chunks_by_file ON chunks(file, position)",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    *full_text_tables(CHUNK_TEXT, CHUNK_COUNTS),
)


def attach(db: sqlite3.Connection, folder: Path, cache_kb: int, option: str = "mode=rw") -> None:
    """Let a reader of the memory read the chunks too: none, if `index.db` cannot be read."""
    path = folder / FILE_NAME
    # The option would make an empty file of one that is not there.
    if path.is_file():
        try:
            db.execute("ATTACH ? AS chunked", (f"file:{_uri(path)}?{option}",))
        except sqlite3.Error:
            return attach_none(db)
        try:
            if _version(db, SCHEMA) == _VERSION:
                db.execute(f"PRAGMA chunked.cache_size = -{cache_kb}")
                return None
        except sqlite3.Error:
            pass
        db.execute("DETACH chunked")
    return attach_none(db)


def attach_none(db: sqlite3.Connection) -> None:
    """Let a reader of the memory find no chunks."""
    db.execute("ATTACH ':memory:' AS chunked")
    for statement in _TABLES:
        db.execute(_CREATE.sub(rf"\1 {SCHEMA}.", statement, count=1))


def open_index(folder: Path, cache_kb: int) -> sqlite3.Connection:
    """The connection that writes; the file is made, or made anew, where it is not usable.

    Raises:
        sqlite3.Error, OSError: the disk refuses.
    """
    path = folder / FILE_NAME
    try:
        return _opened(path, cache_kb)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise
    remove(folder)
    return _opened(path, cache_kb)


def _opened(path: Path, cache_kb: int) -> sqlite3.Connection:
    for _ in range(2):
        db = sqlite3.connect(
            f"file:{_uri(path)}?mode=rwc",
            uri=True,
            timeout=5.0,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            db.execute(f"PRAGMA cache_size = -{cache_kb}")
            db.execute("PRAGMA temp_store = MEMORY")
            found = _version(db, "main")
            if found in {0, _VERSION}:
                _prepare(db, found)
                return db
        except BaseException:
            db.close()
            raise
        db.close()
        remove(path.parent)
    raise sqlite3.OperationalError(f"cannot replace {path}")


def _prepare(db: sqlite3.Connection, found: int) -> None:
    if not found:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
    # A lost commit costs a reading of the file; the log keeps the rest whole.
    db.execute("PRAGMA synchronous = NORMAL" if found else "PRAGMA synchronous = OFF")
    db.execute("PRAGMA secure_delete = FAST").fetchone()
    db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}").fetchone()
    db.execute("PRAGMA journal_size_limit = 4194304").fetchone()
    if not found:
        with transaction(db):
            for statement in _TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_VERSION}")
        db.execute("PRAGMA synchronous = NORMAL")


def remove(folder: Path) -> None:
    """Remove the file; whoever has it open keeps what was in it."""
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)


def renew(folder: Path, cache_kb: int) -> None:
    """Make the file anew; nobody has it open. Where the disk refuses, there is none. Blocking."""
    with suppress(sqlite3.Error, OSError):
        remove(folder)
        open_index(folder, cache_kb).close()


def is_sound(folder: Path) -> bool:
    """Whether every page of the file is what SQLite wrote. Blocking."""
    path = folder / FILE_NAME
    if not path.is_file():
        return True
    try:
        db = sqlite3.connect(f"file:{_uri(path)}?mode=rw", uri=True, timeout=5.0)
        try:
            return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
        finally:
            db.close()
    except sqlite3.Error:
        return False


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A block that is stored whole, or not at all."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection, schema: str) -> int:
    return int(db.execute(f"PRAGMA {schema}.user_version").fetchone()[0])


def _uri(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
