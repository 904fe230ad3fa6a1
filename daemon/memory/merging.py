"""Merging two memories, and superseding one by another, as pure functions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final

import msgspec

from ..errors import Conflict
from .checks import REFERENCES, TAGS
from .records import Memory, Metadata, outranks

# Tiny Claw's rule: a repeated statement is more important.
SHARE_OF_OLDER: Final = 0.2


def merge(older: Memory, newer: Memory, share: float = SHARE_OF_OLDER) -> Memory:
    """`newer` with the additional content of `older`.

    It has the text and times of the newer one, its importance plus a `share` of the older's (at
    most 1), the tags and references of both up to their limits, `pinned` and `standing` of either,
    the later expiry (or none), the older's subject, outcome and data if its own are empty, and the
    older's source if only that was stated by a user. Uses are not merged here: they follow from
    `merged_into`.

    Raises:
        Conflict: they are the same memory, or one of them is already retired.
    """
    check_apart(older, newer, "merge")
    return msgspec.structs.replace(
        newer,
        subject=newer.subject or older.subject,
        outcome=newer.outcome or older.outcome,
        source=older.source if outranks(older, newer) else newer.source,
        tags=_union(newer.tags, older.tags, TAGS),
        importance=min(1.0, newer.importance + share * older.importance),
        pinned=newer.pinned or older.pinned,
        standing=newer.standing or older.standing,
        metadata=Metadata(
            *(
                _union(getattr(newer.metadata, name), getattr(older.metadata, name), REFERENCES)
                for name in Metadata.__struct_fields__
            )
        ),
        data=older.data if newer.data is None else newer.data,
        expires_at=None
        if newer.expires_at is None or older.expires_at is None
        else max(newer.expires_at, older.expires_at),
    )


def stranded(merged: Mapping[str, str], living: Container[str]) -> list[str]:
    """The memories to release so that every merge ends at an existing memory.

    `merged` is the target of each merged memory.
    """
    free: list[str] = []
    sound: set[str] = set()
    for start in sorted(merged):
        path: dict[str, None] = {}
        key = start
        while key in merged and key not in sound and key not in path:
            path[key] = None
            key = merged[key]
        if key in path:
            free.append(key)
        elif path and key not in sound and key not in living:
            free.append(next(reversed(path)))
        sound.update(path)
    return free


def check_apart(older: Memory, newer: Memory, verb: str) -> None:
    """Raise `Conflict` if they are the same memory, or one is merged into another."""
    if older.id == newer.id:
        raise Conflict(f"cannot {verb} '{older.id}' by itself: give two memories")
    for memory in (older, newer):
        if memory.merged_into is not None:
            raise Conflict(
                f"cannot {verb} '{memory.id}': it is merged into '{memory.merged_into}'",
                hint="undo that merge first, or use the memory it was merged into",
            )


def _union(first: Iterable[str], second: Iterable[str], limit: int) -> tuple[str, ...]:
    items = tuple(first)
    return tuple(dict.fromkeys((*items, *second)))[: max(limit, len(items))]
