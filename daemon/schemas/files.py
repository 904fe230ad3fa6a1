"""Watched files: their chunks, their lines, and what is watched."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from ..memory.records import FilesBrought
from ..memory.records import IndexedChunk as IndexedChunk
from ..memory.records import IndexedFile as IndexedFile
from ..memory.records import IndexState as IndexState
from ..memory.records import WatchedPath as WatchedPath
from .common import PageOf


class FoundChunk(Struct):
    """A part of a file that answers; `heading` names the headings above it, title first."""

    id: str
    path: str
    start_line: int
    end_line: int
    heading: str
    text: str
    score: float


class FilesFound(Struct, omit_defaults=True):
    """The chunks that answer, best first.

    `auto_synced` is true if the index was older than the files and the search waited for it, false
    if it did not wait long enough; it is left out if the index was current. `note` is as in
    `/api/recall`.
    """

    query: str
    chunks: list[FoundChunk]
    searched: int
    took_ms: float
    auto_synced: bool | UnsetType = UNSET
    why: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


class FileLines(Struct):
    """Lines of a file as it is now, and their total number."""

    path: str
    from_line: int
    to_line: int
    total_lines: int
    text: str


class FilesSynced(FilesBrought, frozen=True, kw_only=True):
    """What has changed in the files; counts are of files."""

    files: int
    chunks: int
    took_ms: float


class FilePage(PageOf[IndexedFile]):
    """The files, by path, and their total number."""


class ChunkList(Struct):
    """The chunks of a file, in their order."""

    path: str
    results: list[IndexedChunk]


class FilesStats(Struct):
    """The size of the index, and the watched paths. `tokens` counts four characters as one."""

    files: int
    left_out: int
    chunks: int
    tokens: int
    index_bytes: int
    state: IndexState
    paths: list[WatchedPath]


class PathAdded(Struct):
    """A path that is now watched; `added` is false if it was already.

    `in_step` says whether all its files have been read; `files` counts all of the agent's.
    """

    path: str
    added: bool
    in_step: bool
    files: int
    to_read: int


class PathRemoved(Struct):
    """A path that is no longer watched."""

    path: str
