"""Reading a foreign SQLite database from a private copy, so that the original never changes.

SQLite writes beside a database even to read it: an index of its log, a journal to roll back. A
copy also reads what another program has locked, and includes what is still in the log.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path, PurePath
from typing import Any, Final

from .entries import category, json_list, tags_of
from .values import seconds

MAGIC: Final = b"SQLite format 3\0"
WHOLE: Final = "SELECT * FROM t"
_BESIDE: Final = ("-wal", "-journal")
_TRIES: Final = 5
_LARGEST: Final = 1 << 36
_LONGEST_VALUE: Final = 16 << 20


class Copy:
    """A copy of a database in a temporary folder, made on the first read."""

    def __init__(self, path: Path, end: ExitStack) -> None:
        self.path = path  # of the original
        self.fault = ""  # why it cannot be opened, or ""
        # The rows that were left out because they have more than 16 MiB.
        self.too_large: list[str] = []
        # Its columns by table; empty if the schema is damaged.
        self.tables: dict[str, set[str]] = {}
        self._db: sqlite3.Connection | None = None
        self._end = end
        # Without its log: enough to detect the format of most databases.
        uri = f"{path.as_uri()}?mode=ro&immutable=1"
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(uri, uri=True)) as db:
            self.tables = _schema(db)
        if not self.tables:
            self._copy()

    def rows(
        self, table: str, order: str = "rowid", select: str = WHOLE
    ) -> Iterator[dict[str, Any]]:
        """What a SELECT gives of each row of a table, columns by name; nothing without the table.

        `order` is the column that orders the rows, if the table has it. `select` reads `FROM t`,
        which is one row; a column that the table lacks is NULL. Beside SQLite's functions it has
        those of `FUNCTIONS`.

        Raises:
            sqlite3.DatabaseError: the file is damaged from here on.
        """
        db = self._db or self._copy()
        if table not in self.tables:
            return
        by = order if order in self.tables[table] else "rowid"
        try:
            ids = db.execute(f'SELECT rowid FROM "{table}" ORDER BY "{by}"').fetchall()
        except sqlite3.OperationalError:
            # A table without row ids, which has a primary key.
            yield from map(dict, db.execute(_over(db, select, f'"{table}" ORDER BY "{by}"')))
            return
        of_a_row = _over(db, select, f'"{table}" WHERE rowid = :row')
        for (number,) in ids:
            try:
                row = db.execute(of_a_row, {"row": number}).fetchone()
            except sqlite3.DataError:
                self.too_large.append(f"{table}, row {number}")
                continue
            if row is not None:
                yield dict(row)

    def _copy(self) -> sqlite3.Connection:
        """Open a copy, or an empty database if there can be none."""
        target: str | Path = ":memory:"
        try:
            folder = tempfile.TemporaryDirectory(prefix="thermocline-import-")
            target = _copied(self.path, Path(self._end.enter_context(folder)))
            _pad(target)
        except OSError as error:
            self.fault = f"cannot be read ({error.strerror or error})"
        db = self._db = self._end.enter_context(closing(sqlite3.connect(target)))
        # A longer value is not loaded.
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        db.row_factory = sqlite3.Row
        db.text_factory = lambda text: text.decode(errors="replace")
        for name, function in FUNCTIONS.items():
            db.create_function(name, -1, function, deterministic=True)
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            self.tables = _schema(db)
        except sqlite3.DatabaseError as error:
            self.tables = {}
            self.fault = f"is damaged ({error})"
        return db


def _over(db: sqlite3.Connection, select: str, rows: str) -> str:
    """The statement that runs `select` over some rows, with NULL for the columns that they lack."""
    lacking = ""
    while True:
        sql = select.replace("FROM t", f"FROM (SELECT *{lacking} FROM {rows}) AS t")
        try:
            db.execute(f"EXPLAIN {sql}", {"row": 0})
        except sqlite3.OperationalError as error:
            column = re.search(r"no such column: (\w+)", str(error))
            if column is None or f" {column[1]}," in f"{lacking},":
                raise
            lacking += f", NULL AS {column[1]}"
        else:
            return sql


def _within(value: Any, low: float, high: float, default: float) -> float:
    return min(high, max(low, value)) if isinstance(value, int | float) else default


def _labelled(*pairs: Any) -> str:
    """The texts that are not blank, each on a line behind its name."""
    named = zip(pairs[::2], pairs[1::2], strict=True)
    return "\n".join(
        f"{name}: {text.strip()}" for name, text in named if isinstance(text, str) and text.strip()
    )


def _texts(values: Any, *others: Any) -> str:
    """The JSON list of the texts in one, else of the first other value."""
    texts = [text for text in json_list(values) if isinstance(text, str) and text.strip()]
    return json.dumps(texts or [next(filter(None, others), "")])


# What a SELECT can use beside the functions of SQLite; none raises.
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "category": category,
    "file_name": lambda path: PurePath(str(path)).name,
    "joined": lambda *parts: "/".join(map(str, parts)),
    "labelled": _labelled,
    "seconds": seconds,
    "tags": lambda *values: json.dumps(tags_of(*values)),
    "texts": _texts,
    "within": _within,
}


def _schema(db: sqlite3.Connection) -> dict[str, set[str]]:
    tables: dict[str, set[str]] = {}
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        # A virtual table may need an extension that is not available.
        with suppress(sqlite3.DatabaseError):
            quoted = name.replace('"', '""')
            columns = db.execute(f'PRAGMA table_info("{quoted}")').fetchall()
            tables[name] = {column[1] for column in columns}
    return tables


def is_database(path: Path) -> bool:
    """Whether a regular file has SQLite's header."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _copied(path: Path, folder: Path) -> Path:
    """A copy with its log, of one moment: repeated if the files change meanwhile."""
    target = folder / "copy.db"
    for _ in range(_TRIES):
        before = _fingerprint(path)
        shutil.copyfile(path, target)
        for suffix in _BESIDE:
            beside, copy = Path(f"{path}{suffix}"), Path(f"{target}{suffix}")
            copy.unlink(missing_ok=True)
            if beside.is_file() and not beside.is_symlink():
                shutil.copyfile(beside, copy)
        if _fingerprint(path) == before:
            return target
    raise OSError(16, "another program writes to it all the time", str(path))


def _pad(path: Path) -> None:
    """Extend a truncated file to its full length, so that the rest can be read."""
    with path.open("r+b") as file:
        head = file.read(100)
        size = int.from_bytes(head[16:18])
        pages = int.from_bytes(head[28:32])
        whole = (65_536 if size == 1 else size) * pages
        if len(head) == 100 and file.seek(0, 2) < whole <= _LARGEST:
            file.truncate(whole)


def _fingerprint(path: Path) -> list[tuple[int, int] | None]:
    """The size and time of change of a database and of the files beside it."""
    sizes: list[tuple[int, int] | None] = []
    for suffix in ("", *_BESIDE):
        try:
            stat = Path(f"{path}{suffix}").stat()
        except OSError:
            sizes.append(None)
        else:
            sizes.append((stat.st_size, stat.st_mtime_ns))
    return sizes
