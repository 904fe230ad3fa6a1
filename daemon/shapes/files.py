"""Watched files: their chunks, their lines, and what is watched."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import Json, Limit, Offset, RecallLimit, Share, Words

FilePath = Annotated[str, Meta(min_length=1, max_length=4_096)]
Line = Annotated[int, Meta(ge=1, le=2**31)]


class FileSearch(Struct, kw_only=True, forbid_unknown_fields=True):
    """A question to the watched files alone.

    Without `max_results` and `min_score`, `index.max_results` and `index.min_score` count;
    `maxResults` and `minScore` are profClaw's names of them. `wait_ms` is how long to wait for an
    index that is behind the files (default: `index.search_wait_ms`). `session` narrows the question
    to the paths of that session, and records what the answer shows.
    """

    query: Words
    max_results: RecallLimit | None = None
    min_score: Share | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] | None = None
    session: str | None = None
    maxResults: RecallLimit | None = None  # noqa: N815 - the name of the parameter
    minScore: Share | None = None  # noqa: N815 - the name of the parameter


class FoundChunk(Struct):
    """A part of a file that answers; `heading` names the headings above it, the title first."""

    id: str
    path: str
    start_line: int
    end_line: int
    heading: str
    text: str
    score: float


class FilesFound(Struct, omit_defaults=True):
    """The chunks that answer, best first.

    `auto_synced` is true if the index was behind the files and the search waited for it, false if
    it did not wait long enough; it is left out if the index was in step.
    """

    query: str
    chunks: list[FoundChunk]
    searched: int
    took_ms: float
    auto_synced: bool | UnsetType = UNSET
    why: str | UnsetType = UNSET


class LinesQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which lines of a watched file: up to `to_line`, or `lines` of them (default: all).

    `chat://` and the name of a conversation is what is there of that, a turn a line.
    """

    path: FilePath
    from_line: Line = 1
    to_line: Line | None = None
    lines: Annotated[int, Meta(ge=1, le=100_000)] | None = None


class FileLines(Struct):
    """Lines of a file as they are now, with the number of all."""

    path: str
    from_line: int
    to_line: int
    total_lines: int
    text: str


class FilesSynced(Struct):
    """What looking at every file has changed; counts are of files."""

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
    """The files, by path, and the number of all."""

    results: list[FileView]
    total: int


class ChunksQuery(Struct, forbid_unknown_fields=True):
    """Of which watched file."""

    path: FilePath


class ChunkPlace(Struct):
    """Where a chunk is in its file; `heading` names the headings above it, the title first."""

    id: str
    start_line: int
    end_line: int
    heading: str


class ChunkList(Struct):
    """The chunks of a file, in their order."""

    path: str
    results: list[ChunkPlace]


class IndexState(Struct):
    """Where an index stands: whether it is behind the files, and whether it hears of changes."""

    dirty: bool
    syncing: bool
    last_sync_at: float | None
    watched_files: int
    watching: bool
    to_read: int


class WatchedPath(Struct):
    """A path that is watched: of the `workspace`, by the `config`, or `added`."""

    path: str
    origin: str
    missing: bool


class FilesStats(Struct):
    """How much is indexed, and what is watched. `tokens` counts four characters as one."""

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
    """A path that is watched from now on; `added` is false if it was before.

    `in_step` says whether all its files are read yet; `files` counts all of the agent's.
    """

    path: str
    added: bool
    in_step: bool
    files: int
    to_read: int


class PathRemoved(Struct):
    """A path that is no longer watched."""

    path: str
