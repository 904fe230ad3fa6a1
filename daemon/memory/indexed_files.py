"""Watched files: what is indexed of them, and the state of their index."""

from __future__ import annotations

from typing import Literal

import msgspec

from .records import Json


class IndexedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A watched file. With a `reason` it is not indexed; `meta` is its front matter.

    Times are seconds since the epoch; `size` is in bytes.
    """

    path: str
    size: int
    modified_at: float
    indexed_at: float
    title: str
    lines: int
    chunks: int
    meta: dict[str, Json] = {}
    reason: str = ""


class IndexedChunk(msgspec.Struct, frozen=True):
    """A part of a file that answers or is listed; `heading` names the headings above it."""

    id: str  # path and lines, as editors take them
    path: str
    position: int  # its place among the chunks of its file
    start_line: int
    end_line: int
    title: str
    heading: str
    text: str
    hash: str  # of the text: it stays while the text does, wherever that moves
    modified_at: float


class FilesBrought(msgspec.Struct, frozen=True):
    """The number of files that an update of the index changed."""

    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0


class IndexState(msgspec.Struct, frozen=True):
    """The state of an index: whether it is older than the files, and whether it sees changes.

    `missing` are watched paths that do not exist on this device.
    """

    dirty: bool = False
    syncing: bool = False
    last_sync_at: float | None = None
    watched_files: int = 0
    watching: bool = False
    to_read: int = 0
    missing: list[str] = []


class WatchedPath(msgspec.Struct, frozen=True):
    """A watched path: the `workspace`, from the `config`, or `added`."""

    path: str
    origin: Literal["workspace", "config", "added"]
    missing: bool
