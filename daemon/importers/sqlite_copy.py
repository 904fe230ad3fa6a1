"""Reading a foreign SQLite database from a private copy, so that the original never changes.

SQLite writes beside a database even to read it: an index of its log, a journal to roll back. A
copy also reads what another program has locked, and includes what is still in the log.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

MAGIC: Final = b"SQLite format 3\0"
_BESIDE: Final = ("-wal", "-journal")
_TRIES: Final = 5
_LARGEST: Final = 1 << 36


class Copy:
    """A copy of a database in a temporary folder, made on the first read.

    Args:
        path: of the original.
        end: closes and removes the copy.

    Attributes:
        path: of the original.
        tables: its columns by table; empty if the schema is damaged.
        fault: why it cannot be opened, or "".
    """

    def __init__(self, path: Path, end: ExitStack) -> None:
        self.path = path
        self.fault = ""
        self.tables: dict[str, set[str]] = {}
        self._db: sqlite3.Connection | None = None
        self._end = end
        # Without its log: enough to detect the format of most databases.
        uri = f"{path.as_uri()}?mode=ro&immutable=1"
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(uri, uri=True)) as db:
            self.tables = _schema(db)
        if not self.tables:
            self._copy()

    def rows(self, table: str, order: str = "rowid") -> Iterator[dict[str, Any]]:
        """The rows of a table, columns by name; empty if there is no such table.

        Raises:
            sqlite3.DatabaseError: the file is damaged from here on.
        """
        db = self._db or self._copy()
        if table not in self.tables:
            return
        by = order if order in self.tables[table] else "rowid"
        for row in db.execute(f'SELECT * FROM "{table}" ORDER BY "{by}"'):
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
        db.row_factory = sqlite3.Row
        db.text_factory = lambda found: found.decode(errors="replace")
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            self.tables = _schema(db)
        except sqlite3.DatabaseError as error:
            self.tables = {}
            self.fault = f"is damaged ({error})"
        return db


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
    """A copy with its log, of one moment: repeated if the files change meanwhile.

    Raises:
        OSError: it cannot be read, there is no room for it, or it keeps changing.
    """
    target = folder / "copy.db"
    for _ in range(_TRIES):
        before = _stands(path)
        shutil.copyfile(path, target)
        for suffix in _BESIDE:
            beside, copy = Path(f"{path}{suffix}"), Path(f"{target}{suffix}")
            copy.unlink(missing_ok=True)
            if beside.is_file() and not beside.is_symlink():
                shutil.copyfile(beside, copy)
        if _stands(path) == before:
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


def _stands(path: Path) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = []
    for suffix in ("", *_BESIDE):
        try:
            stat = Path(f"{path}{suffix}").stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_size, stat.st_mtime_ns))
    return found
