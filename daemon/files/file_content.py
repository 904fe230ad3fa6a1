"""The indexed content of a file: its text, its title, its front matter and its chunks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from ..config.settings import IndexSettings
from ..store import memory_md
from ..store.chunk_tables import FileContent, FileStand, Piece
from . import walker
from .chunking import Cutting, cut
from .scanning import stand_of

_DESCRIBING: Final = ("description", "summary", "aliases", "tags", "keywords", "category")
_NOT_MARKDOWN: Final = (".txt", ".text")
# After this many attempts a file that is still being written is read as it is.
_ATTEMPTS: Final = 3
# A file that changed less than this before it was read may change again with the same times.
_JUST_NOW_NS: Final = 50_000_000


class ReadFile(msgspec.Struct, frozen=True):
    """A file as it was read: its content, or the reason why it cannot be indexed."""

    path: str
    stand: FileStand
    content: bytes = b""
    reason: str = ""


class FileReader:
    """Reads files on the thread of the index; a file that is being written is left for later."""

    def __init__(self, thread: Executor) -> None:
        self._thread = thread
        self._attempts: dict[str, int] = {}

    @property
    def unsettled(self) -> bool:
        """Whether a file is left for later."""
        return bool(self._attempts)

    async def read(self, path: str, place: tuple[Path, str] | None, limit: int) -> ReadFile | None:
        """Read a file; None if it is being written.

        Args:
            path: its path in the index.
            place: a folder and the path below it; None if its root was removed.
            limit: the largest size in bytes.

        Raises:
            OSError: it is missing or cannot be read.
        """
        import aiofiles  # noqa: PLC0415 - when there is something to read

        if place is None:
            raise FileNotFoundError
        loop = asyncio.get_running_loop()
        handle = await loop.run_in_executor(self._thread, partial(walker.open_below, *place))
        async with aiofiles.open(handle, "rb", executor=self._thread) as file:
            first = stand_of(os.fstat(handle))
            if first.size > limit:
                reason = f"it has {first.size // 1024} KB, the limit is {limit // 1024} KB"
                return ReadFile(path, first, reason=reason)
            content = await file.read(limit + 1)
            stand = stand_of(os.fstat(handle))
        unsettled = stand != first or len(content) != stand.size
        attempts = self._attempts.pop(path, 0) + 1
        if unsettled and attempts < _ATTEMPTS:
            self._attempts[path] = attempts
            return None
        if unsettled or time.time_ns() - stand.mtime < _JUST_NOW_NS:
            stand = msgspec.structs.replace(stand, ctime=0)
        return ReadFile(path, stand, content)


def text_of(content: bytes, *, own: bool) -> tuple[str, str]:
    """The text of a file, or the reason why it has none; without the daemon's own section."""
    if b"\0" in content:
        return "", "it is not a text"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "", "it is not valid UTF-8"
    return (memory_md.outside_section(text, keep_lines=True) if own else text), ""


def content_of(path: str, text: str, digest: str, rules: IndexSettings) -> FileContent:
    """The indexed content of a file. The title of the file precedes the headings of each chunk."""
    how = Cutting(rules.chunk_chars, rules.overlap_chars, rules.split_on_headings)
    found = cut(text, how, markdown=not path.lower().endswith(_NOT_MARKDOWN))
    title = found.title or Path(path).stem
    extra = " ".join(_words_of(found.meta))
    pieces: list[Piece] = []
    for chunk in found.chunks:
        heading = chunk.heading
        if not heading.startswith(title):
            heading = f"{title} › {heading}" if heading else title
        pieces.append(
            Piece(chunk.first, chunk.last, heading, chunk.text, extra if not pieces else "")
        )
    return FileContent(digest, title, found.meta, found.lines, pieces)


def _words_of(meta: Mapping[str, Any]) -> Iterable[str]:
    """Words of the front matter that describe the file; they help to find its first chunk."""
    for name in _DESCRIBING:
        value = meta.get(name, ())
        yield from [value] if isinstance(value, str) else value


def signature(rules: IndexSettings) -> str:
    """The settings that the chunks of a file depend on."""
    return f"{rules.chunk_chars}/{rules.overlap_chars}/{rules.split_on_headings}"
