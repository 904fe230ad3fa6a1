"""Connections to SQLite databases that a disk may have damaged.

A derived database is one whose content can be made again: its commits do not wait for the disk, and
a damaged file, or one of another version, is replaced by an empty one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ...memory.records import is_outside
from ...memory.scoring import Scoring

T = TypeVar("T")
# SQL: whether a memory did not come from outside, as most do not.
INSIDE: Final = "(source = '' OR NOT is_outside(source))"
_CHANGES: Final = (
    "SELECT CASE WHEN json_valid(value) THEN value ->> 'changes' END FROM main.meta"
    " WHERE key = 'clock'"
)
# How long a connection waits for another one's lock.
BUSY_MILLISECONDS: Final = 5_000
# The page cache of each connection, in kilobytes (1024 bytes).
CACHE_KB: Final = 256
# The errors that tell of a damaged file.
DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class DatabaseConnection(sqlite3.Connection):
    """A connection that keeps values which it has derived, and how its transactions have ended."""

    # Whether SQLite has ended a transaction by itself since the last one began; see `begin`.
    ended_by_itself = False
    # The values by name, each with the state that it belongs to; None on a connection that writes,
    # whose own changes would not be noticed.
    derived_values: dict[str, tuple[Hashable, Any]] | None = None
    # SQLite's number of the last commit that was seen, and how many changes there were.
    seen: tuple[int, int] = (-1, 0)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # What its `score` is measured by, once it has one: registering another would make SQLite
        # prepare each statement again.
        self.scored_by: list[tuple[float, Scoring]] = []


def derived(db: sqlite3.Connection, name: str, state: Hashable, make: Callable[[], T]) -> T:
    """The value of `make()`, kept until something is stored or `state` differs.

    It must follow from the main database and `state` alone, without what is counted of answers, and
    must not be changed.
    """
    values = db.derived_values if isinstance(db, DatabaseConnection) else None
    if values is None or not isinstance(db, DatabaseConnection):
        return make()
    commit = scalar(db, "PRAGMA data_version")
    if commit != db.seen[0]:
        # Answers are counted every second, which changes nothing else.
        changes = scalar(db, _CHANGES)
        db.seen = commit, -commit if changes is None else changes
    whole = (db.seen[1], state)
    known = values.get(name)
    if known is None or known[0] != whole:
        known = values[name] = (whole, make())
    result: T = known[1]
    return result


def connect(path: Path, options: str) -> DatabaseConnection:
    """A connection for any thread, without implicit transactions, whose schema has been read.

    `options` are SQLite's, as in the query of a URI: `mode=rw`.
    """
    db = sqlite3.connect(
        f"{uri(path)}?{options}",
        uri=True,
        timeout=BUSY_MILLISECONDS / 1000,
        isolation_level=None,
        check_same_thread=False,
        factory=DatabaseConnection,
    )
    try:
        register_functions(db)
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


def scalar(db: sqlite3.Connection, sql: str, *arguments: object) -> Any:
    """The first column of the first row of a query; None if it has no row."""
    row = db.execute(sql, arguments).fetchone()
    return None if row is None else row[0]


def column(db: sqlite3.Connection, sql: str, *arguments: object) -> list[Any]:
    """The first column of all rows of a query."""
    return [row[0] for row in db.execute(sql, arguments)]


def upsert(
    db: sqlite3.Connection, table: str, row: Mapping[str, object], number: str = "row"
) -> int:
    """Insert a row, or update the one with the same value in the first of these columns.

    Returns its number, which is in the column `number`.
    """
    key, *others = row
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    sql = (
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        f" ON CONFLICT ({key}) DO UPDATE SET {changes} RETURNING {number}"
    )
    return int(scalar(db, sql, *row.values()))


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items, some at a time: what one statement takes, or one commit."""
    left = iter(items)
    while batch := [*islice(left, size)]:
        yield batch


def to_json(content: Any) -> str:
    """What SQL reads as JSON: a list for `json_each`, or the content of a column."""
    return msgspec.json.encode(content).decode()


def register_functions(db: sqlite3.Connection) -> None:
    """Register the SQL functions that conditions on memories need."""
    db.create_function("is_outside", 1, is_outside, deterministic=True)


def lost_words(db: sqlite3.Connection) -> str:
    """The first full-text index of which a disk has lost some; empty if none.

    SQLite cannot check the pages on which large blobs end. Reads all words, in a tenth of a second
    for 100,000 memories, without locking; for a connection that is closed afterwards.
    """
    for name in _full_text_indexes(db):
        db.execute(f"CREATE VIRTUAL TABLE temp.words_of_{name} USING fts5vocab(main, {name}, row)")
        # One statement, so that no commit comes between the two.
        added, present = db.execute(
            f"SELECT (SELECT block FROM {name}_data WHERE id = 1),"
            f" (SELECT ifnull(sum(cnt), 0) FROM temp.words_of_{name})"
        ).fetchone()
        # FTS5's own numbers of the texts and of the words in each column.
        if added is None or present != sum(varints(added)[1:]):
            return str(name)
    return ""


def _full_text_indexes(db: sqlite3.Connection) -> list[str]:
    is_index = "sql LIKE 'CREATE VIRTUAL TABLE%fts5(%'"
    return column(db, f"SELECT name FROM sqlite_schema WHERE {is_index}")


def varints(block: bytes) -> list[int]:
    """The whole numbers that SQLite has written into a blob."""
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers


def uri(path: Path) -> str:
    """The URI of a file, to which options can be added."""
    escaped = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped}"


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
            if error.sqlite_errorcode & 0xFF not in DAMAGE:
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
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE:
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
    return int(scalar(db, f"PRAGMA {schema}.user_version"))


def begin(db: sqlite3.Connection) -> None:
    """Begin a transaction that writes, on a connection whose failed ones `roll_back` has undone.

    If a read of FTS5 (3.40) fails with an error that ends the transaction, FTS5 is rolled back
    before it knows of the failure, and then counts the texts that follow from zero. Only another
    rollback in which its table takes part makes it read its totals again.
    """
    if isinstance(db, DatabaseConnection) and db.ended_by_itself:
        db.execute("BEGIN IMMEDIATE")
        for name in _full_text_indexes(db):
            db.execute(f"DELETE FROM {name} WHERE rowid IS NULL")
        db.execute("ROLLBACK")
        db.ended_by_itself = False
    db.execute("BEGIN IMMEDIATE")


def roll_back(db: sqlite3.Connection) -> None:
    """Undo a transaction that has failed, if SQLite has not done so itself."""
    if db.in_transaction:
        db.execute("ROLLBACK")
    elif isinstance(db, DatabaseConnection):
        db.ended_by_itself = True


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction: committed at the end of the block, rolled back on an exception."""
    begin(db)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        roll_back(db)
        raise
