"""Connections to SQLite databases that a disk may have damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def connect(path: Path, options: str) -> sqlite3.Connection:
    """A connection for any thread, without implicit transactions, whose schema has been read.

    Args:
        path: of the database.
        options: SQLite's, as in the query of a URI: `mode=rw`.

    Raises:
        sqlite3.Error: as SQLite has it, always with its code.
    """
    db = sqlite3.connect(
        f"{uri(path)}?{options}",
        uri=True,
        timeout=5.0,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        db.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except UnicodeDecodeError:
        # SQLite's message quotes the damaged schema, which Python cannot decode.
        db.close()
        error = sqlite3.DatabaseError("malformed database schema")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error from None
    except BaseException:
        db.close()
        raise
    return db


def uri(path: Path) -> str:
    """The URI of a file, to which options can be added."""
    escaped = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped}"
