"""`index.db`: the database of the watched files and their chunks; `chunk_tables` has its content.

Its content can be read again from the files, so it is kept apart from the memory: its commits do
not wait for the disk or delay those of the memory, and a damaged file is replaced by an empty one.
Readers of the memory have it attached.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from .connection import connect, lost_words, uri
from .schema import CHUNK_COUNTS, CHUNK_TEXT, INDEX_VERSION, counts_table, full_text_tables

FILE_NAME: Final = "index.db"
SCHEMA: Final = "chunked"
# The version of these tables; if it or the version of the full text differs, the file is replaced.
_VERSION: Final = 100 * INDEX_VERSION + 2
# The size at which a commit copies the log into the database and syncs both.
_LOG_PAGES: Final = 4_000
_TABLES: Final = (
    # A file that cannot be indexed has a reason and no chunks. `mtime`, `ctime` and `inode` show
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
    # `position` counts the chunks of a file from 0; `digest` covers heading and text.
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
    counts_table(CHUNK_COUNTS),
    *full_text_tables(CHUNK_TEXT, CHUNK_COUNTS),
)


def attach(db: sqlite3.Connection, folder: Path, cache_kb: int, option: str = "mode=rw") -> None:
    """Attach the chunks to a reader of the memory; none, if `index.db` cannot be read."""
    path = folder / FILE_NAME
    # The option would create an empty file if none exists.
    if path.is_file():
        try:
            db.execute("ATTACH ? AS chunked", (f"{uri(path)}?{option}",))
        except (sqlite3.Error, UnicodeDecodeError):
            # The latter where the error quotes a damaged schema.
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
    """Attach an empty table of chunks to a reader of the memory."""
    db.execute("ATTACH ':memory:' AS chunked")
    db.deserialize(_empty(), name=SCHEMA)


@cache
def _empty() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in _TABLES:
            db.execute(statement)
        return db.serialize()


def open_index(folder: Path, cache_kb: int) -> sqlite3.Connection:
    """The connection for writing; an unusable or missing file is replaced by an empty one."""
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
        db = connect(path, "mode=rwc")
        try:
            db.execute(f"PRAGMA cache_size = -{cache_kb}")
            db.execute("PRAGMA temp_store = MEMORY")
            result = _version(db, "main")
            if result in {0, _VERSION}:
                _prepare(db, result)
                return db
        except BaseException:
            db.close()
            raise
        db.close()
        remove(path.parent)
    raise sqlite3.OperationalError(f"cannot replace {path}")


def _prepare(db: sqlite3.Connection, version: int) -> None:
    if not version:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
    # A lost commit only costs reading the file again; the log keeps the database consistent.
    db.execute("PRAGMA synchronous = NORMAL" if version else "PRAGMA synchronous = OFF")
    db.execute("PRAGMA secure_delete = FAST").fetchone()
    db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}").fetchone()
    db.execute("PRAGMA journal_size_limit = 4194304").fetchone()
    if not version:
        with transaction(db):
            for statement in _TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_VERSION}")
        db.execute("PRAGMA synchronous = NORMAL")


def remove(folder: Path) -> None:
    """Remove the file; open connections keep their content."""
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)


def renew(folder: Path, cache_kb: int) -> None:
    """Replace the file, which must not be open, by an empty one, if the disk allows. Blocking."""
    with suppress(sqlite3.Error, OSError):
        remove(folder)
        open_index(folder, cache_kb).close()


def is_sound(folder: Path) -> bool:
    """Whether every page of the file is as SQLite wrote it, and no word is lost. Blocking."""
    path = folder / FILE_NAME
    if not path.is_file():
        return True
    try:
        with closing(connect(path, "mode=rw")) as db:
            is_ok = db.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
            return is_ok and not lost_words(db)
    except sqlite3.Error:
        return False


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction: committed at the end of the block, rolled back on an exception."""
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
