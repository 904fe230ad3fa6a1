"""Joining memories, and parting them again."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .common import MemoryId
from .memory import MemoryView


class TidyBody(Struct, forbid_unknown_fields=True):
    """Whether only to tell what would be done."""

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
    """What was done, or would be. Of many pairs the first 500 are named."""

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
    """The memory that is back, and the one that it was merged into, if that is still there."""

    restored: MemoryView
    kept: MemoryView | None
