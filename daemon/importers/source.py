"""Safe access to a path that is imported, and to what is below it.

All input belongs to other programs: nothing is written, links below a folder are not followed,
pipes are not waited for, and archives are not unpacked. What cannot be read is noted as a
`ReadFault`, and reading continues.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from ..errors import ThermoclineError
from ..memory.records import Json
from ..runtime import atomic
from . import sqlite_copy
from .entries import Document, EntryBuilder, ReadFault, Reading, SourceEntry
from .values import reason

LARGEST_FILE: Final = 64 << 20
_HEAD_BYTES: Final = 1 << 18
_MOST_FILES: Final = 500_000
_TOO_LARGE: Final = "has a value of more than 16 MiB"
_DECODER: Final = json.JSONDecoder()


class Format(msgspec.Struct, frozen=True):
    """A system whose memory can be imported."""

    name: str
    detect: Callable[[SourcePath], bool]  # whether a path is of this format; changes nothing
    # What the path holds; the source records faults.
    entries: Callable[[SourcePath], Iterator[SourceEntry | Document]]
    needs: str  # what a path of it is, for a message

    def read(self, source: SourcePath) -> Reading:
        """The entries and the faults, in the order in which they are met."""
        return source.reading(self.entries(source))


class SourcePath:
    """A path to be imported; a context that removes the copies of databases at its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stat = path.stat()
        self.is_folder = path.is_dir()
        # No link is followed below it.
        self.below = path if self.is_folder else path.parent
        self._end = ExitStack()
        self._copies: dict[Path, sqlite_copy.Copy] = {}
        self._stop: Path | None = None
        self._faults: list[ReadFault] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    @cached_property
    def head(self) -> bytes:
        """The first 256 KB of a regular file, else nothing."""
        return head_of(self.path) if stat.S_ISREG(self.stat.st_mode) else b""

    @property
    def obstacle(self) -> ReadFault | None:
        """The first fault noted since the last reading, such as by the detection of a format."""
        return self._faults[0] if self._faults else None

    def fault(self, place: str | Path, why: str, agent: str = "") -> None:
        """Note what cannot be used; `reading` yields it."""
        self._faults.append(ReadFault(str(place), why, agent))

    def reading(self, entries: Iterator[SourceEntry | Document]) -> Reading:
        """The entries, and the faults noted meanwhile, without those of the detection."""
        self._faults, self._stop = [], None
        for entry in entries:
            yield from self._take_faults()
            yield entry
        yield from self._take_faults()

    def _take_faults(self) -> list[ReadFault]:
        faults, self._faults = self._faults, []
        return faults

    def faults(self) -> Iterator[ReadFault]:
        """Why databases cannot be opened, and where the search of a huge folder stopped."""
        for path, copy in self._copies.items():
            if copy.fault:
                yield ReadFault(str(path), copy.fault)
        for path, copy in self._copies.items():
            yield from (ReadFault(f"{path}: {row}", _TOO_LARGE) for row in copy.too_large)
        if self._stop is not None:
            why = f"more than {_MOST_FILES:,} files: nothing from {self._stop} on is read"
            yield ReadFault(str(self.path), why)

    def builder(self, system: str, path: Path, table: str = "") -> EntryBuilder:
        """Makes the entries of a file, or of a table of a database."""
        try:
            written_at = max(0.0, path.lstat().st_mtime)
        except OSError:
            written_at = 0.0
        place = f"{path}: {table}" if table else str(path)
        return EntryBuilder(self.fault, system, place, written_at)

    def databases(self) -> list[sqlite_copy.Copy]:
        """The SQLite database that the path is, or those directly in the folder."""
        if self.is_folder:
            paths = [
                path
                for path in sorted(self.path.iterdir())
                if not path.is_symlink() and path.is_file() and sqlite_copy.is_database(path)
            ]
        else:
            paths = [self.path] if self.head.startswith(sqlite_copy.MAGIC) else []
        for path in paths:
            if path not in self._copies:
                self._copies[path] = sqlite_copy.Copy(path, self._end)
        return [self._copies[path] for path in paths]

    def rows(
        self,
        copy: sqlite_copy.Copy,
        table: str,
        order: str = "rowid",
        select: str = sqlite_copy.WHOLE,
    ) -> Iterator[dict[str, Any]]:
        """What a SELECT gives of a table (see `Copy.rows`), as far as the file is not damaged."""
        number = 0
        try:
            for row in copy.rows(table, order, select):
                number += 1
                yield row
        except sqlite3.DatabaseError as error:
            self.fault(f"{copy.path}: {table}", f"damaged after {number} rows ({error})")

    def files(self, pattern: str, *inside: str) -> Iterator[Path]:
        """The files below the folder, or a folder inside it, whose names match, in order.

        Links are not followed. Of a huge folder, such as a whole home, only the first half million
        files are examined; `faults` names the next one.
        """
        wanted, number = re.compile(pattern), 0
        for folder, folders, names in os.walk(self.path.joinpath(*inside), followlinks=False):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                if (number := number + 1) > _MOST_FILES:
                    self._stop = path
                    return
                if wanted.fullmatch(name):
                    yield path

    def lines(self, path: Path) -> Iterator[tuple[int, dict[str, Json]]]:
        """The objects of a file of JSON lines, each with its line number."""
        bad: list[int] = []
        try:
            with open_file(path, self.below) as file:
                for number, line in enumerate(iter(lambda: file.readline(LARGEST_FILE), b""), 1):
                    for fields in _objects_in(line):
                        if fields:
                            yield number, fields
                        else:
                            bad.append(number)
        except OSError as error:
            self.fault(path, reason(error, path))
        if bad:
            where = ", ".join(map(str, bad[:5])) + (" and more" if len(bad) > 5 else "")
            self.fault(path, f"lines that are not JSON objects: {len(bad)} (line {where})")

    def first_lines(self) -> list[dict[str, Json]]:
        """The JSON objects in the first lines of a file of JSON lines."""
        lines = self.head.splitlines()
        whole = lines if len(self.head) == self.stat.st_size else lines[:-1]
        return [fields for line in whole[:20] for fields in _objects_in(line)]

    def content(self, path: Path, agent: str = "") -> tuple[bytes, float] | None:
        """A file of at most 64 MB, and when it was last changed; None if it cannot be read."""
        try:
            content, status = atomic.read(path, LARGEST_FILE, below=self.below)
        except (OSError, ThermoclineError) as error:
            self.fault(path, reason(error, path), agent)
            return None
        return content, status.st_mtime

    def text(self, path: Path) -> str:
        """The text of a file of at most 64 MB; "" if it cannot be read."""
        read = self.content(path)
        try:
            return read[0].decode("utf-8-sig") if read else ""
        except UnicodeDecodeError as error:
            self.fault(path, f"it is not UTF-8 (byte {error.start})")
            return ""

    def document(self) -> Json:
        """The JSON of the whole file; None if it is not JSON, or too large."""
        if self.is_folder or self.stat.st_size > LARGEST_FILE:
            return None
        try:
            return json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None


def _objects_in(line: bytes) -> list[dict[str, Json]]:
    """The JSON objects on one line, of which some writers put two on one.

    A line with other content yields the objects before that, and `{}`.
    """
    text = line.decode(errors="replace").strip().lstrip("\ufeff")
    objects: list[dict[str, Json]] = []
    at = 0
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [*objects, {}]
        objects.append(value if isinstance(value, dict) else {})
        at = end + len(text[end:]) - len(text[end:].lstrip(" \t,"))
    return objects


def open_file(path: Path, below: Path) -> Any:
    """Open a regular file of any size for reading; below the folder `below` no link is followed."""
    if path.parent.resolve() != path.parent or not path.is_relative_to(below):
        raise OSError(40, "a link is on the way", str(path))
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(22, "it is not a regular file", str(path))
    return os.fdopen(handle, "rb")


def head_of(path: Path) -> bytes:
    """The first 256 KB of a regular file, else nothing."""
    try:
        with open_file(path, path.parent) as file:
            return bytes(file.read(_HEAD_BYTES))
    except OSError:
        return b""
