"""Watched files: their chunks, their lines, and what is watched."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import Json, Limit, Offset, RecallLimit, Share, Words

FilePath = Annotated[str, Meta(min_length=1, max_length=4_096)]
Line = Annotated[int, Meta(ge=1, le=2**31)]


class FileSearch(Struct, kw_only=True, forbid_unknown_fields=True):
    """A question to the watched files only.

    The defaults of `max_results` and `min_score` are `index.max_results` and `index.min_score`;
    `maxResults` and `minScore` are profClaw's names. `wait_ms` is the time to wait for an index
    that is older than the files (default: `index.search_wait_ms`). `session` limits the question to
    the paths of that session, and records what the answer shows.
    """

    query: Words
    max_results: RecallLimit | None = None
    min_score: Share | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] | None = None
    session: str | None = None
    maxResults: RecallLimit | None = None  # noqa: N815 - the name of the parameter
    minScore: Share | None = None  # noqa: N815 - the name of the parameter


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
    if it did not wait long enough; it is left out if the index was current.
    """

    query: str
    chunks: list[FoundChunk]
    searched: int
    took_ms: float
    auto_synced: bool | UnsetType = UNSET
    why: str | UnsetType = UNSET


class LinesQuery(Struct, kw_only=True, forbid_unknown_fields=True):
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


class FilesSynced(Struct):
    """What has changed in the files; counts are of files."""

    added: int
    updated: int
    moved: int
    removed: int
    files: int
    chunks: int
    took_ms: float


class FilesQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of the watched files; with `left_out` those that cannot be indexed."""

    prefix: str = ""
    left_out: bool = False
    limit: Limit = 50
    offset: Offset = 0


class FileView(Struct, omit_defaults=True):
    """A watched file. With a `reason` it is not indexed; `meta` is its front matter."""

    path: str
    size: int
    modified_at: float
    indexed_at: float
    title: str
    lines: int
    chunks: int
    meta: dict[str, Json] = {}
    reason: str = ""


class FilePage(Struct):
    """The files, by path, and their total number."""

    results: list[FileView]
    total: int


class ChunksQuery(Struct, forbid_unknown_fields=True):
    """The watched file."""

    path: FilePath


class ChunkPlace(Struct):
    """The place of a chunk in its file; `heading` names the headings above it, title first."""

    id: str
    start_line: int
    end_line: int
    heading: str


class ChunkList(Struct):
    """The chunks of a file, in their order."""

    path: str
    results: list[ChunkPlace]


class IndexState(Struct):
    """The state of an index: whether it is older than the files, and whether it sees changes."""

    dirty: bool
    syncing: bool
    last_sync_at: float | None
    watched_files: int
    watching: bool
    to_read: int


class WatchedPath(Struct):
    """A watched path: the `workspace`, from the `config`, or `added`."""

    path: str
    origin: str
    missing: bool


class FilesStats(Struct):
    """The size of the index, and the watched paths. `tokens` counts four characters as one."""

    files: int
    left_out: int
    chunks: int
    tokens: int
    index_bytes: int
    state: IndexState
    paths: list[WatchedPath]


class PathBody(Struct, forbid_unknown_fields=True):
    """An absolute path of a folder or file."""

    path: FilePath


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
