"""The entries that a reader of a foreign format finds, and safe ways to open foreign files.

All input belongs to other programs: nothing is written, links below a folder are not followed,
pipes are not waited for, and archives are not unpacked. What cannot be read is noted as a
`ReadFault`, and reading continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import msgspec

from ..errors import ThermoclineError
from ..language.standing import is_standing_statement
from ..memory.metadata import extract, merge
from ..memory.records import ENTITIES, OBSERVED, USER_STATED, Json, Metadata
from ..runtime.project import project_of
from ..store import atomic
from . import sqlite_copy
from .values import reason

LARGEST_FILE: Final = 64 << 20
_MOST_FILES: Final = 500_000
# A longer text is cut: no memory takes more than 64 KB.
_TEXT_BYTES: Final = 60_000
_SEGMENT_CHARS: Final = 60
_LONGEST: Final = {
    "subject": 500,
    "group": 200,
    "actor": 200,
    "source": 200,
    "outcome": 4_000,
    "event": 64,
}
_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}
_TURN_IMPORTANCE: Final = 0.5


class ReadFault(msgspec.Struct, frozen=True):
    """An item that could not be used: its place, and the reason."""

    place: str
    why: str
    agent: str = ""


class Found(msgspec.Struct, frozen=True):
    """One entry: the file or table it was in, and its fields as `warm_file` reads them.

    Attributes:
        agent: whose it is; "" if the place does not say.
    """

    place: str
    fields: dict[str, Any]
    is_experience: bool = False
    agent: str = ""


class Document(msgspec.Struct, frozen=True):
    """A whole file that the daemon parses: a state file, a page, or rows in lines.

    Attributes:
        agent: whose it is; "" if the place does not say.
    """

    path: Path
    content: bytes
    written_at: float
    format: str | None = None
    agent: str = ""


Reading: TypeAlias = Iterator[Found | Document | ReadFault]


class GivenPath:
    """A path to be imported; a context that removes the copies of databases at its end.

    Attributes:
        path: the resolved path.
        stat: its status.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stat = path.stat()
        self.is_folder = path.is_dir()
        self._open = ExitStack()
        self._copies: dict[Path, sqlite_copy.Copy] = {}
        self._head: bytes | None = None
        self._stop: Path | None = None
        self._faults: list[ReadFault] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def below(self) -> Path:
        """The folder below which no link is followed."""
        return self.path if self.is_folder else self.path.parent

    @property
    def head(self) -> bytes:
        """The first 256 KB of a regular file, else nothing."""
        if self._head is None:
            self._head = head_of(self.path) if stat.S_ISREG(self.stat.st_mode) else b""
        return self._head

    def databases(self) -> list[sqlite_copy.Copy]:
        """The SQLite database that the path is, or those directly in the folder."""
        if self.is_folder:
            inside = (one for one in sorted(self.path.iterdir()) if not one.is_symlink())
            paths = [one for one in inside if one.is_file() and sqlite_copy.is_database(one)]
        else:
            paths = [self.path] if self.head.startswith(sqlite_copy.MAGIC) else []
        for path in paths:
            if path not in self._copies:
                self._copies[path] = sqlite_copy.Copy(path, self._open)
        return [self._copies[path] for path in paths]

    def fault(self, place: str | Path, why: str, agent: str = "") -> None:
        """Note what cannot be used; `reading` yields it."""
        self._faults.append(ReadFault(str(place), why, agent))

    def reading(self, found: Iterator[Found | Document]) -> Reading:
        """What is found, and the faults noted meanwhile, without those of the detection."""
        self._faults, self._stop = [], None
        for one in found:
            yield from self._noted()
            yield one
        yield from self._noted()

    def _noted(self) -> Iterator[ReadFault]:
        faults, self._faults = self._faults, []
        yield from faults

    def faults(self) -> Iterator[ReadFault]:
        """Why databases cannot be opened, and where the search of a huge folder stopped."""
        yield from (
            ReadFault(str(path), one.fault) for path, one in self._copies.items() if one.fault
        )
        if self._stop is not None:
            why = f"more than {_MOST_FILES:,} files: nothing from {self._stop} on is read"
            yield ReadFault(str(self.path), why)

    def origin(self, system: str, path: Path, table: str = "") -> Origin:
        """Makes the entries of a file, or of a table of a database."""
        return Origin(self, system, f"{path}: {table}" if table else str(path), written(path))

    def files(self, pattern: str, *inside: str) -> Iterator[Path]:
        """The files below the folder, or one inside it, whose names match, in order.

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

    def with_tables(self, *tables: str) -> list[sqlite_copy.Copy]:
        """Those databases that have all of these tables."""
        return [one for one in self.databases() if one.tables.keys() >= {*tables}]

    def rows(
        self, copy: sqlite_copy.Copy, table: str, order: str = "rowid"
    ) -> Iterator[dict[str, Any]]:
        """The rows of a table, as far as the file is not damaged."""
        number = 0
        try:
            for row in copy.rows(table, order):
                number += 1
                yield row
        except sqlite3.DatabaseError as error:
            self.fault(f"{copy.path}: {table}", f"damaged after {number} rows ({error})")

    def lines(self, path: Path) -> Iterator[tuple[int, dict[str, Json]]]:
        """The objects of a file of JSON lines, each with its line number."""
        bad: list[int] = []
        try:
            with open_file(path, self.below) as file:
                for number, line in enumerate(iter(lambda: file.readline(LARGEST_FILE), b""), 1):
                    for one in objects_in(line):
                        if one:
                            yield number, one
                        else:
                            bad.append(number)
        except OSError as error:
            self.fault(path, reason(error, path))
        if bad:
            where = ", ".join(map(str, bad[:5])) + (" and more" if len(bad) > 5 else "")
            self.fault(path, f"lines that are not JSON objects: {len(bad)} (line {where})")

    def content(self, path: Path, agent: str = "") -> tuple[bytes, float] | None:
        """A file of at most 64 MB, and when it was last changed; None if it cannot be read."""
        try:
            content, found = atomic.read(path, LARGEST_FILE, below=self.below)
        except (OSError, ThermoclineError) as error:
            self.fault(path, reason(error, path), agent)
            return None
        return content, found.st_mtime

    def text(self, path: Path) -> str:
        """The text of a file of at most 64 MB; "" if it cannot be read."""
        found = self.content(path)
        try:
            return found[0].decode("utf-8-sig") if found else ""
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

    def first_lines(self) -> list[dict[str, Json]]:
        """The JSON objects in the first lines of a file of JSON lines."""
        lines = self.head.splitlines()
        whole = lines if len(self.head) == self.stat.st_size else lines[:-1]
        return [one for line in whole[:20] for one in objects_in(line)]


class Origin:
    """Makes the entries of one place: each has an id derived from that in its source.

    Args:
        look: receives faults.
        system: the name of the format.
        place: the file or table, as the report names it.
        written_at: when the source was last changed: the default of missing times.
    """

    def __init__(self, look: GivenPath, system: str, place: str, written_at: float) -> None:
        self.system = system
        self.place = place
        self.written_at = written_at
        self._look = look

    def memory(self, key: str, text: Json, **fields: Json) -> Iterator[Found]:
        """A memory with the source's `key`; long fields are cut, blank ones left out."""
        if not isinstance(text, str) or not text.strip():
            return
        said = text.strip()
        if len(said) > _TEXT_BYTES // 4 and len(said.encode(errors="replace")) > _TEXT_BYTES:
            self._look.fault(self.place, f"{key}: cut to {_TEXT_BYTES:,} bytes")
            said = said.encode(errors="replace")[:_TEXT_BYTES].decode(errors="ignore")
        if paths := fields.pop("paths", None):
            given = Metadata(paths=tuple(one for one in paths if isinstance(one, str)))
            fields["metadata"] = msgspec.to_builtins(merge(given, extract(said)))
        data = {**(fields.pop("data", None) or {}), "imported": {"from": self.system, "id": key}}
        if entities := fields.pop("entities", None):
            data[ENTITIES] = entities
        for name in fields.keys() & _LONGEST.keys():
            fields[name] = str(fields[name] or "")[: _LONGEST[name]]
        kept = {
            name: one for name, one in fields.items() if one is not None and one not in ("", [])
        }
        kept.setdefault("created_at", self.written_at)
        kept.setdefault("source", self.system)
        if fields.get("event") != "turn" and is_standing_statement(said):
            kept.setdefault("standing", True)
        yield Found(self.place, {"id": self.id(key), "text": said, "data": data, **kept})

    def turn(self, key: str, text: Json, *, role: Json, **more: Json) -> Iterator[Found]:
        """A turn of a conversation; nothing unless it is by a person or an agent."""
        spoken = _ROLES.get(str(role))
        if spoken is None:
            return
        yield from self.memory(
            key, text,
            **{"actor": spoken, "category": f"conversations/{self.system}", **more},
            type="episodic", event="turn", importance=_TURN_IMPORTANCE,
            source=USER_STATED if spoken == "user" else OBSERVED,
        )  # fmt: skip

    def id(self, key: str) -> str:
        """The id for a key of the source; the same on every device."""
        return hashlib.sha256(f"{self.system}\0{key}".encode(errors="replace")).hexdigest()[:16]


def category(*names: Json) -> str:
    """A category path of some names, which may have any characters."""
    words = (re.sub(r"[^\w.-]+", "_", str(name or "").lower()).strip("_. ") for name in names)
    return "/".join(word[:_SEGMENT_CHARS] for word in words if word)


def project_name(folder: Json) -> str:
    """The name of the project of a session's working folder, as hooks name it too."""
    return project_of(folder).name if isinstance(folder, str) and folder.startswith("/") else ""


def entity(name: Json, kind: Json = "", **relation: Json) -> dict[str, Json]:
    """An entity that a memory names; its `relation` to the `target`, if there is one."""
    found: dict[str, Json] = {"name": str(name)[:120], "type": kind or "concept"}
    if relation:
        found["relations"] = [{part: str(one)[:120] for part, one in relation.items()}]
    return found


def tags_of(*given: Json) -> list[str]:
    """Tags from lists, from texts of JSON lists and from texts with commas, each once."""
    found: list[str] = []
    for one in given:
        listed = json_list(one) or (one.split(",") if isinstance(one, str) else [])
        found += [tag.strip().lstrip("#")[:60] for tag in listed if isinstance(tag, str)]
    return [*dict.fromkeys(tag for tag in found if tag)][:32]


def json_list(value: Json) -> list[Json]:
    """A list, or the list in a JSON text, else an empty one."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return value if isinstance(value, list) else []


def spoken_text(content: Json) -> str:
    """The spoken text of a message's content, without thinking, tool calls and tool results."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    said = (
        part if isinstance(part, str) else part.get("text")
        for part in parts
        if isinstance(part, str)
        or (isinstance(part, Mapping) and str(part.get("type", "text")) in _SPOKEN)
    )  # fmt: skip
    return "\n".join(text for text in said if isinstance(text, str) and text.strip())


_SPOKEN: Final = frozenset({"text", "input_text", "output_text"})


def objects_in(line: bytes) -> list[dict[str, Json]]:
    """The JSON objects on one line, of which some writers put two on one.

    Raises nothing; a line with other content yields the objects before that, and `{}`.
    """
    text = line.decode(errors="replace").strip().lstrip("\ufeff")
    found: list[dict[str, Json]] = []
    at = 0
    while at < len(text):
        try:
            one, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [*found, {}]
        found.append(one if isinstance(one, dict) else {})
        at = end + len(text[end:]) - len(text[end:].lstrip(" \t,"))
    return found


_DECODER: Final = json.JSONDecoder()


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
            return bytes(file.read(1 << 18))
    except OSError:
        return b""


def written(path: Path) -> float:
    """When a file was last changed."""
    try:
        return max(0.0, path.lstat().st_mtime)
    except OSError:
        return 0.0
