"""Databases whose content can be made again: their commits do not wait for the disk.

They are kept apart from the memory, and a damaged file, or one of another version, is replaced by
an empty one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from .connection import connect

_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class DerivedSchema(msgspec.Struct, frozen=True):
    """What such a file holds."""

    version: int
    tables: Sequence[str]
    before: Sequence[str] = ()  # pragmas of an empty file
    always: Sequence[str] = ()  # pragmas of each connection that writes


def open_derived(path: Path, schema: DerivedSchema) -> sqlite3.Connection:
    """The connection for writing (`sqlite3.Error`: refused); an unusable file is replaced."""
    for _ in range(2):
        try:
            db = connect(path, "mode=rwc")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in _DAMAGE:
                raise
        else:
            if _prepare(db, schema):
                return db
        remove(path)
    raise sqlite3.OperationalError(f"cannot replace {path}")


def _prepare(db: sqlite3.Connection, schema: DerivedSchema) -> bool:
    """Set up the connection, and the tables of an empty file; False: it is closed and unusable."""
    try:
        version = version_of(db)
        if version not in {0, schema.version}:
            db.close()
            return False
        for pragma in (*(() if version else schema.before), "journal_mode = WAL"):
            db.execute(f"PRAGMA {pragma}").fetchone()
        # A lost commit only costs making it again; the log keeps the database consistent.
        db.execute("PRAGMA synchronous = NORMAL" if version else "PRAGMA synchronous = OFF")
        for pragma in schema.always:
            db.execute(f"PRAGMA {pragma}").fetchone()
        if not version:
            with transaction(db):
                for statement in schema.tables:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {schema.version}")
            db.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.DatabaseError as error:
        db.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            return False
        raise
    except BaseException:
        db.close()
        raise
    return True


def remove(path: Path) -> None:
    """Remove a file; open connections keep its content."""
    for suffix in ("-wal", "-shm", ""):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def version_of(db: sqlite3.Connection, schema: str = "main") -> int:
    """The version of a file's tables; 0: it is empty."""
    return int(db.execute(f"PRAGMA {schema}.user_version").fetchone()[0])


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
