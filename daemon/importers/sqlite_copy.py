"""Reading a foreign SQLite database from a private copy, so that the original never changes.

SQLite writes beside a database even to read it: an index of its log, a journal to roll back. A
copy also reads what another program has locked, and includes what is still in the log.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

MAGIC: Final = b"SQLite format 3\0"
_BESIDE: Final = ("-wal", "-journal")
_TRIES: Final = 5
_LARGEST: Final = 1 << 36


class Copy:
    """The copy, in a folder of its own until the context ends.

    Attributes:
        path: of the original.
        tables: its columns by table; empty if the schema is damaged.
        fault: why it cannot be opened, or "".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault = ""
        self.tables: dict[str, set[str]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="thermocline-import-")
        try:
            copied = _copied(path, Path(self._folder.name))
            _pad(copied)
            self._db = sqlite3.connect(copied)
            self._db.row_factory = sqlite3.Row
            self._db.text_factory = lambda found: found.decode(errors="replace")
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._read_schema()
        except OSError as error:
            self._db = sqlite3.connect(":memory:")
            self.fault = f"cannot be read ({error.strerror or error})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._db.close()
        self._folder.cleanup()

    def rows(self, table: str, order: str = "rowid") -> Iterator[dict[str, Any]]:
        """The rows of a table, columns by name; nothing where there is no such table.

        Raises:
            sqlite3.DatabaseError: the file is damaged from here on.
        """
        if table not in self.tables:
            return
        columns = self.tables[table]
        by = order if order in columns or order == "rowid" else "rowid"
        for row in self._db.execute(f'SELECT * FROM "{table}" ORDER BY "{by}"'):
            yield dict(row)

    def _read_schema(self) -> None:
        try:
            found = self._db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            self.fault = f"is damaged ({error})"
            return
        for (name,) in found:
            # A virtual table may need an extension that is not here.
            with suppress(sqlite3.DatabaseError):
                quoted = name.replace('"', '""')
                columns = self._db.execute(f'PRAGMA table_info("{quoted}")').fetchall()
                self.tables[name] = {column["name"] for column in columns}


def is_database(path: Path) -> bool:
    """Whether a regular file begins as SQLite's do."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _copied(path: Path, folder: Path) -> Path:
    """A copy with the log beside it, of one moment: taken again if somebody writes meanwhile.

    Raises:
        OSError: it cannot be read, there is no room for it, or it is never at rest.
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
    """Give a file that was cut off its whole length again, so that what is left can be read."""
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
