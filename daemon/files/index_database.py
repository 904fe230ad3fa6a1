"""The chunk database of one agent, and what is indexed of a file: title, front matter, chunks."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from ..config.settings import IndexSettings
from ..memory.agent_files import KNOWLEDGE, without_placeholder
from ..runtime.fingerprint import NOWHERE, Fingerprint, fingerprint_of
from ..store.agent_paths import AgentPaths
from ..store.database import chunk_database
from ..store.records import indexed_files, memory_md
from ..store.records.indexed_files import FileContent, Piece
from . import walker
from .chunking import cut

_DESCRIBING: Final = ("description", "summary", "aliases", "tags", "keywords", "category")
_NOT_MARKDOWN: Final = (".txt", ".text")
# A file that changed less than this before it was read may change again with the same times.
_JUST_NOW_NS: Final = 50_000_000


class ReadFile(msgspec.Struct, frozen=True):
    """A file as it was read: its content, or the reason why it cannot be indexed."""

    path: str
    fingerprint: Fingerprint
    content: bytes = b""
    reason: str = ""


async def read_file(
    path: str, place: tuple[Path, str] | None, limit: int, thread: Executor
) -> ReadFile:
    """Read a file on the thread of the index.

    `path` is its path in the index; `place` a folder and the path below it, None if its root was
    removed; `limit` the largest size in bytes. What may change again with the same times, since it
    is being written, is read again by the next scan.
    """
    import aiofiles  # noqa: PLC0415 - when there is something to read

    if place is None:
        raise FileNotFoundError
    loop = asyncio.get_running_loop()
    handle = await loop.run_in_executor(thread, partial(walker.open_below, *place))
    async with aiofiles.open(handle, "rb", executor=thread) as file:
        first = fingerprint_of(os.fstat(handle))
        if first.size > limit:
            reason = f"it has {first.size // 1024} KB, the limit is {limit // 1024} KB"
            return ReadFile(path, first, reason=reason)
        content = await file.read(limit + 1)
        fingerprint = fingerprint_of(os.fstat(handle))
    changed = fingerprint != first or len(content) != fingerprint.size
    if changed or time.time_ns() - fingerprint.mtime < _JUST_NOW_NS:
        fingerprint = msgspec.structs.replace(fingerprint, ctime=0)
    return ReadFile(path, fingerprint, content)


def text_of(content: bytes, *, own: bool) -> tuple[str, str]:
    """The text of a file, or the reason why it has none; without the daemon's own section."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "", "it is UTF-16: save it as UTF-8"
    if b"\0" in content:
        return "", "it is not a text"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "", "it is not valid UTF-8"
    return (memory_md.outside_section(text) if own else text), ""


def content_of(path: str, text: str, digest: str, rules: IndexSettings) -> FileContent:
    """The indexed content of a file. The title of the file precedes the headings of each chunk."""
    content = cut(text, rules, markdown=not path.lower().endswith(_NOT_MARKDOWN))
    title = content.title or Path(path).stem
    # The front matter that describes the file helps to find its first chunk.
    described = (content.meta.get(name, ()) for name in _DESCRIBING)
    words = ([value] if isinstance(value, str) else value for value in described)
    extra = " ".join(chain.from_iterable(words))
    pieces: list[Piece] = []
    for piece in content.pieces:
        heading = piece.heading
        if not heading.startswith(title):
            heading = f"{title} › {heading}" if heading else title
        pieces.append(replace(piece, heading=heading, extra=extra if not pieces else ""))
    return replace(content, digest=digest, title=title, pieces=pieces)


def signature(rules: IndexSettings) -> str:
    """The settings that the chunks of a file depend on."""
    return f"{rules.chunk_chars}/{rules.overlap_chars}/{rules.split_on_headings}"


T = TypeVar("T")
_CUTTING: Final = "cutting"


class IndexDatabase:
    """Opened with the first use; all calls must be made on one thread."""

    def __init__(self, place: AgentPaths) -> None:
        self._place = place
        self._db: sqlite3.Connection | None = None

    def known(self, rules: IndexSettings, seen: Iterable[str] | None) -> dict[str, Fingerprint]:
        """The indexed files at and below the paths `seen`, or all files.

        With None, files that were cut under other rules are returned as changed.
        """
        db = self._open()
        if seen is None:
            stale = indexed_files.meta_value(db, _CUTTING) != signature(rules)
            known = indexed_files.known(db)
            return dict.fromkeys(known, NOWHERE) if stale else known
        return {p: s for item in seen for p, s in indexed_files.known(db, item).items()}

    def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """The paths by the digest of their content."""
        known = ((indexed_files.identity_of(self._open(), path), path) for path in paths)
        return {file[0]: path for file, path in known if file}

    def take(
        self,
        file: ReadFile,
        rules: IndexSettings,
        moves: dict[str, str],
        gone: set[str],
        now: float,
    ) -> str:
        """Index a file that was read: "added", "updated" or "moved"; "" if nothing changed.

        If the digest is in `moves` with a path of `gone`, the file was moved from there; both
        entries are removed.
        """
        db, path = self._open(), file.path
        text, reason = "", file.reason
        if not reason:
            text, reason = text_of(file.content, own=path == self._place.markdown.name)
            text = without_placeholder(text) if path == KNOWLEDGE else text
        hashed = hashlib.sha256((reason or text).encode()).hexdigest()
        digest = f"-{hashed}" if reason else hashed
        was = indexed_files.identity_of(db, path)
        stale = indexed_files.meta_value(db, _CUTTING) not in {None, signature(rules)}
        if was and was[0] == digest and not stale:
            indexed_files.touch(db, path, file.fingerprint)
            return ""
        old = moves.get(digest)
        if was is None and old in gone and not stale and _keeps_title(db, old, path):
            # Only once: two copies of a file are two files.
            gone.discard(old)
            del moves[digest]
            indexed_files.move(db, old, path, file.fingerprint)
            return "moved"
        content = FileContent(digest, reason=reason)
        if not reason:
            content = content_of(path, text, digest, rules)
        indexed_files.put(db, path, file.fingerprint, content, now)
        return "added" if was is None else "updated"

    def use(self, work: Callable[..., T], *args: object) -> T:
        """Call one of the functions of `indexed_files`."""
        return work(self._open(), *args)

    def note_cutting(self, rules: IndexSettings) -> None:
        """Note that all files are cut under these rules."""
        indexed_files.note(self._open(), _CUTTING, signature(rules))

    def close(self) -> None:
        """Close the database, until it is used again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = chunk_database.open_index(self._place.folder)
        return self._db


def _keeps_title(db: sqlite3.Connection, old: str, path: str) -> bool:
    """Whether a moved file keeps its title, which is its name if the text has none."""
    before, file = Path(old).stem, indexed_files.identity_of(db, old)
    return before == Path(path).stem or file is None or file[1] != before
