"""Memories as people read them, and as EvoClaw's tools expect them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET

from .. import shapes
from ..client.wording import moment
from .terminal import show_rows, visible

_SHORT_ID: Final = 8
_RECORD: Final = (
    "id", "text", "category", "importance", "created_at", "access_count", "score", "metadata",
    "tier",
)  # fmt: skip


def short(memory_id: str) -> str:
    """The part of an id that people see; the daemon accepts it in place of the whole."""
    return memory_id[:_SHORT_ID]


def record(memory: shapes.memory.MemoryView, *more: str) -> dict[str, Any]:
    """A memory in the shape of EvoClaw's warm-memory.json, with the further keys that it has."""
    found = ((key, getattr(memory, key)) for key in (*_RECORD, *more))
    return {key: value for key, value in found if value is not UNSET}


def show_list(memories: Sequence[shapes.memory.MemoryView]) -> None:
    """Print memories, a line each."""
    show_rows(
        (
            short(memory.id),
            moment(memory.created_at),
            memory.tier,
            f"{memory.importance:.2f}",
            memory.category,
            headline(memory),
        )
        for memory in memories
    )


def headline(memory: shapes.memory.MemoryView) -> str:
    """What a memory says, on one line; replaced ones are marked."""
    text = str(memory.text).strip()
    told = f"{memory.subject}: {text}" if memory.subject else text
    told = f"{told} → {memory.outcome}" if memory.outcome else told
    if memory.merged_into:
        return f"[merged into {short(memory.merged_into)}] {told}"
    if memory.superseded_by:
        return f"[superseded by {short(memory.superseded_by)}] {told}"
    return told


def show_one(memory: shapes.memory.MemoryView) -> None:
    """Print all that is known about a memory; its empty fields are left out."""
    print(visible(memory.text, keep="\n\t"))
    print()
    show_rows(_details(memory))


def _details(memory: shapes.memory.MemoryView) -> Iterator[tuple[str, str]]:
    yield "id", memory.id
    original = memory.original_category
    yield "category", memory.category + (f" (filed under {original})" if original else "")
    yield "kind", f"{memory.type}, {memory.event}"
    yield from _named(memory, ("subject", "outcome"))
    yield "tier", f"{memory.tier} (score {memory.score:.2f})"
    yield (
        "importance",
        f"{memory.importance:.2f}"
        + (", pinned" if memory.pinned else "")
        + (", standing" if memory.standing is True else ""),
    )
    if memory.tags:
        yield "tags", ", ".join(memory.tags)
    yield from _named(memory, ("actor", "source", "group", "position"))
    for kind in ("urls", "commands", "paths"):
        for found in getattr(memory.metadata, kind):
            yield kind[:-1], found
    if memory.data is not None:
        yield "data", json.dumps(memory.data, ensure_ascii=False)
    yield from _times(memory)
    yield from _named(memory, ("merged_into", "superseded_by", "writer"))


def _times(memory: shapes.memory.MemoryView) -> Iterator[tuple[str, str]]:
    yield "created", moment(memory.created_at)
    if memory.updated_at != memory.created_at:
        yield "updated", moment(memory.updated_at)
    if memory.access_count:
        last = moment(memory.last_accessed_at)
        yield "used", f"{memory.access_count} times, last {last}"
    if memory.expires_at is not None:
        yield "expires", moment(memory.expires_at)


def _named(memory: shapes.memory.MemoryView, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    for key in keys:
        if getattr(memory, key) not in ("", None):
            yield key.replace("_", " "), str(getattr(memory, key))
