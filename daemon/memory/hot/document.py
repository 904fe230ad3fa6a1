"""The JSON document of a hot state, in the shape of EvoClaw's `hot-memory-state.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..records import Json, Memory
from .state import HotLimits, HotState, Item, Section, importance_of

SCHEMA_VERSION: Final = "2.0"
HOT_MEMORIES: Final = "hot_memories"
TOP_KEYS: Final = frozenset(
    {
        "identity", "owner_profile", "active_context", "critical_lessons",
        "_schema_version", HOT_MEMORIES,
    }
)  # fmt: skip
CONTEXT_KEYS: Final = frozenset({"projects", "events", "tasks"})
# The known keys beside the unknown values of these sections.
RESERVED: Final[dict[Section, frozenset[str]]] = {"extra": TOP_KEYS, "context": CONTEXT_KEYS}


def document(state: HotState, promoted: Sequence[Memory], limits: HotLimits) -> Item:
    """The document of `state`, with as many promoted memories as fit.

    Lessons are in EvoClaw's order, most important first, among equals oldest first. Promoted
    memories are last, in the given order, up to the first that does not fit `limits.max_bytes`.
    The state itself is written in full, so `fit` it first.
    """
    whole = _state_document(state)
    memories = _promote(promoted, limits.max_bytes - document_size(whole))
    return {**whole, HOT_MEMORIES: memories} if memories else whole


def document_size(value: Json) -> int:
    """The bytes of `value` as compact JSON in UTF-8, the measure of all limits."""
    return len(msgspec.json.encode(value))


def _state_document(state: HotState) -> Item:
    return {
        "identity": state.identity,
        "owner_profile": state.owner_profile,
        "active_context": {
            "projects": list(state.projects),
            "events": list(state.events),
            "tasks": list(state.tasks),
            **{key: value for key, value in state.context.items() if key not in CONTEXT_KEYS},
        },
        "critical_lessons": sorted(state.lessons, key=importance_of, reverse=True),
        **{key: value for key, value in state.extra.items() if key not in TOP_KEYS},
        "_schema_version": SCHEMA_VERSION,
    }


def _promote(promoted: Sequence[Memory], room: int) -> list[Item]:
    chosen: list[Item] = []
    # Each entry counts a comma; that of the first entry is the one before the key.
    room -= len(f'"{HOT_MEMORIES}":[]')
    for memory in promoted:
        entry = {
            "id": memory.id,
            "text": memory.text,
            "category": memory.category,
            "importance": memory.importance,
        }
        room -= document_size(entry) + 1
        if room < 0:
            break
        chosen.append(entry)
    return chosen
