"""The state that is always in the agent's context."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import Json

HotKey = Annotated[
    str,
    Meta(
        extra_json_schema={
            "enum": ["identity", "owner_profile", "lesson", "event", "task", "project"]
        }
    ),
]


class HotView(Struct):
    """The document, and its size in bytes of compact JSON."""

    state: dict[str, Json]
    size_bytes: int
    max_bytes: int


class HotUpdated(Struct):
    """The updated part; `warnings` name values that were shortened, and secrets."""

    updated: str
    warnings: list[str] | UnsetType = UNSET


class HotEntryQuery(Struct, forbid_unknown_fields=True):
    """A key of the identity or profile, the name of a project, or the text of another entry."""

    name: str


class HotRemoved(Struct):
    """The removed entry."""

    removed: str
    name: str


class HotRebuilt(Struct):
    """The path of MEMORY.md, and the size of the state."""

    output: str
    size_bytes: int
    max_bytes: int
