"""The entries that a reader of a foreign format finds, and safe ways to open foreign files.

All input belongs to other programs: nothing is written, links below a folder are not followed,
pipes are not waited for, and archives are not unpacked. What cannot be read is yielded as a
`ReadFault`, and reading continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import msgspec

from ..errors import ThermoclineError
from ..memory.metadata import extract, merge
from ..memory.records import ENTITIES, OBSERVED, USER_STATED, Json, Metadata
from ..runtime.project import project_of
from ..store import atomic
from . import sqlite_copy

LARGEST_FILE: Final = 64 << 20
_MOST_FILES: Final = 500_000
# A longer text is cut: no memory takes more than 64 KB.
_TEXT_BYTES: Final = 60_000
_SEGMENT_CHARS: Final = 60
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
        self._stops: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

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
                self._copies[path] = self._open.enter_context(sqlite_copy.Copy(path))
        return [self._copies[path] for path in paths]

    def faults(self) -> Iterator[ReadFault]:
        """Why databases cannot be opened, and where the search of a huge folder stopped."""
        yield from (
            ReadFault(str(path), one.fault) for path, one in self._copies.items() if one.fault
        )
        for path in self._stops[:1]:
            why = f"more than {_MOST_FILES:,} files: nothing from {path} on is read"
            yield ReadFault(str(self.path), why)

    def files(self, pattern: str, *inside: str) -> Iterator[Path]:
        """`files_below` the folder, or one inside it; `faults` names where they stopped."""
        return files_below(self.path.joinpath(*inside), pattern, self._stops.append)

    def with_tables(self, *tables: str) -> list[sqlite_copy.Copy]:
        """Those databases that have all of these tables."""
        return [one for one in self.databases() if one.tables.keys() >= {*tables}]

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
    """Makes the entries of one system: each has an id derived from that in its source.

    Args:
        system: the name of the format.
        written_at: when the source was last changed: the default of missing times.
    """

    def __init__(self, system: str, written_at: float) -> None:
        self.system = system
        self.written_at = written_at

    def memory(
        self, place: str, key: str, text: Json, **fields: Json
    ) -> Iterator[Found | ReadFault]:
        """A memory with the source's `key`; blank fields are left out."""
        if not isinstance(text, str) or not text.strip():
            return
        said = text.strip()
        if len(said) > _TEXT_BYTES // 4 and len(said.encode(errors="replace")) > _TEXT_BYTES:
            yield ReadFault(place, f"{key}: cut to {_TEXT_BYTES:,} bytes")
            said = said.encode(errors="replace")[:_TEXT_BYTES].decode(errors="ignore")
        if paths := fields.pop("paths", None):
            given = Metadata(paths=tuple(one for one in paths if isinstance(one, str)))
            fields["metadata"] = msgspec.to_builtins(merge(given, extract(said)))
        data = {**(fields.pop("data", None) or {}), "imported": {"from": self.system, "id": key}}
        if entities := fields.pop("entities", None):
            data[ENTITIES] = entities
        kept = {
            name: one for name, one in fields.items() if one is not None and one not in ("", [])
        }
        kept.setdefault("created_at", self.written_at)
        kept.setdefault("source", self.system)
        yield Found(place, {"id": self.id(key), "text": said, "data": data, **kept})

    def turn(
        self,
        place: str,
        key: str,
        text: Json,
        *,
        role: str,
        group: str,
        position: int,
        **more: Json,
    ) -> Iterator[Found | ReadFault]:
        """A turn of a conversation; nothing unless it is by a person or an agent."""
        spoken = _ROLES.get(role)
        if spoken is None:
            return
        yield from self.memory(
            place, key, text,
            **{"actor": spoken, "category": f"conversations/{self.system}", **more},
            type="episodic", event="turn", importance=_TURN_IMPORTANCE, group=group[:200],
            position=position, source=USER_STATED if spoken == "user" else OBSERVED,
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


def lines_of(path: Path, below: Path) -> Iterator[tuple[int, dict[str, Json]] | ReadFault]:
    """The objects of a file of JSON lines, each with its line number; faults for other lines."""
    bad: list[int] = []
    try:
        with open_file(path, below) as file:
            for number, line in enumerate(iter(lambda: file.readline(LARGEST_FILE), b""), 1):
                for one in objects_in(line):
                    if one:
                        yield number, one
                    else:
                        bad.append(number)
    except (OSError, ThermoclineError) as error:
        yield ReadFault(str(path), reason(error, path))
    if bad:
        where = ", ".join(map(str, bad[:5])) + (" and more" if len(bad) > 5 else "")
        yield ReadFault(str(path), f"lines that are not JSON objects: {len(bad)} (line {where})")


def text_of(path: Path, below: Path) -> str | ReadFault:
    """The text of a file of at most 64 MB."""
    try:
        return atomic.read(path, LARGEST_FILE, below=below)[0].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return ReadFault(str(path), f"it is not UTF-8 (byte {error.start})")
    except (OSError, ThermoclineError) as error:
        return ReadFault(str(path), reason(error, path))


def open_file(path: Path, below: Path) -> Any:
    """Open a regular file of any size for reading; below the folder `below` no link is followed."""
    if path.parent.resolve() != path.parent or not path.is_relative_to(below):
        raise OSError(40, "a link is on the way", str(path))
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(22, "it is not a regular file", str(path))
    return os.fdopen(handle, "rb")


def files_below(
    top: Path, pattern: str, stops: Callable[[Path], None] = lambda _: None
) -> Iterator[Path]:
    """The files below a folder whose names match, in order; links are not followed.

    Of a huge folder, such as a whole home, only the first half million files are examined; `stops`
    is called with the next one.
    """
    wanted, number = re.compile(pattern), 0
    for folder, folders, names in os.walk(top, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if (number := number + 1) > _MOST_FILES:
                stops(path)
                return
            if wanted.fullmatch(name):
                yield path


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


def reason(error: Exception, path: Path) -> str:
    """Why a file could not be read, without its path."""
    if isinstance(error, ThermoclineError):
        return error.message.removeprefix(f"cannot read {path}: ")
    return f"cannot be read ({getattr(error, 'strerror', None) or error})"
