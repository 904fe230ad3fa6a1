"""`index.db`: the database of the watched files and their chunks; `indexed_files` has its content.

Its content can be read again from the files. Readers of the memory have it attached.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Final

from .connection import (
    CACHE_KB,
    DerivedSchema,
    connect,
    lost_words,
    open_derived,
    remove,
    scalar,
    uri,
    version_of,
)
from .schema import CHUNK_COUNTS, CHUNK_TEXT, INDEX_VERSION, counts_table, full_text_tables

FILE_NAME: Final = "index.db"
SCHEMA: Final = "chunked"
# The version of these tables; if it or the version of the full text differs, the file is replaced.
_VERSION: Final = 100 * INDEX_VERSION + 2
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
_SCHEMA: Final = DerivedSchema(
    _VERSION,
    _TABLES,
    always=(
        "temp_store = MEMORY",
        "secure_delete = FAST",
        # The size at which a commit copies the log into the database and syncs both.
        "wal_autocheckpoint = 4000",
        "journal_size_limit = 4194304",
    ),
)


def attach(db: sqlite3.Connection, folder: Path, option: str = "mode=rw") -> None:
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
            if version_of(db, SCHEMA) == _VERSION:
                db.execute(f"PRAGMA chunked.cache_size = -{CACHE_KB}")
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


def open_index(folder: Path) -> sqlite3.Connection:
    """The connection for writing; an unusable or missing file is replaced by an empty one."""
    db = open_derived(folder / FILE_NAME, _SCHEMA)
    db.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    return db


def renew(folder: Path) -> None:
    """Replace the file, which must not be open, by an empty one, if the disk allows. Blocking."""
    with suppress(sqlite3.Error, OSError):
        remove(folder / FILE_NAME)
        open_index(folder).close()


def is_sound(folder: Path) -> bool:
    """Whether every page of the file is as SQLite wrote it, and no word is lost. Blocking."""
    path = folder / FILE_NAME
    if not path.is_file():
        return True
    try:
        with closing(connect(path, "mode=rw")) as db:
            return scalar(db, "PRAGMA integrity_check(1)") == "ok" and not lost_words(db)
    except sqlite3.Error:
        return False
