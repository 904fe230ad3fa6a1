"""Watched files: their chunks, their lines, and what is watched."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import FilesBrought
from ..memory.records import IndexedChunk as IndexedChunk
from ..memory.records import IndexedFile as IndexedFile
from ..memory.records import IndexState as IndexState
from ..memory.records import WatchedPath as WatchedPath
from .common import Input, Paged, PageOf, RecallLimit, Share, Words

FilePath = Annotated[str, Meta(min_length=1, max_length=4_096)]
Line = Annotated[int, Meta(ge=1, le=2**31)]


class FileSearch(Input):
    """A question to the watched files only.

    The defaults of `max_results` and `min_score` are `index.max_results` and `index.min_score`.
    `wait_ms` is the time to wait for an index that is older than the files (default:
    `index.search_wait_ms`). `session` limits the question to the paths of that session.
    """

    query: Words
    max_results: RecallLimit | None = None
    min_score: Share | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] | None = None
    session: str | None = None


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


class LinesQuery(Input):
    """Which lines of a watched file: up to `to_line`, or `lines` of them (default: all).

    `chat://` and the name of a conversation reads its text, a turn a line.
    """

    path: FilePath
    from_line: Line = 1
    to_line: Line | None = None
    lines: Annotated[int, Meta(ge=1, le=100_000)] | None = None


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


class FilesQuery(Paged):
    """A page of the watched files; with `left_out` those that cannot be indexed."""

    prefix: str = ""
    left_out: bool = False


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


class PathBody(Input):
    """A folder or file of the daemon's machine."""

    path: Annotated[str, Meta(min_length=1, max_length=4_096, description="an absolute path")]


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
