"""Merging memories, and undoing a merge."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .common import MemoryId
from .memory import MemoryView


class TidyBody(Struct, forbid_unknown_fields=True):
    """With `dry_run` nothing is changed."""

    dry_run: bool = False


class TidyPair(Struct):
    """Two memories by their ids, how they relate, and why."""

    older: str
    newer: str
    relation: Literal["duplicate", "contradiction"]
    reasons: tuple[str, ...]
    older_text: str
    newer_text: str


class Tidied(Struct):
    """What was or would be done; at most 500 pairs are listed."""

    merged: int
    superseded: int
    archived: int
    examined: int
    pairs: list[TidyPair]


class MergeBody(Struct, forbid_unknown_fields=True):
    """The memory to merge into, by its id or the beginning of it."""

    into: MemoryId


class Merged(Struct):
    """Both memories as they are now."""

    kept: MemoryView
    retired: MemoryView


class Unmerged(Struct):
    """The restored memory, and the memory that it was merged into, if that still exists."""

    restored: MemoryView
    kept: MemoryView | None
