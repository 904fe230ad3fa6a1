"""The state that is always in the context, and key-value pairs (see `memory.records.Pair`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Pair as Pair
from .common import Input, Json, Limit, Offset, PageOf, limited_by

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
    """The updated part; `warnings` name secrets."""

    updated: str
    warnings: list[str] | UnsetType = UNSET


class HotEntryQuery(Input):
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


class SectionBody(Input):
    """Whether the daemon writes its section into MEMORY.md."""

    written: bool


class HotSection(Struct):
    """The path of MEMORY.md, and whether the daemon writes its section there.

    It is written with the first thing that there is to show.
    """

    path: str
    written: bool


# Key-value pairs


Key = Annotated[str, Meta(max_length=256, description="not blank")]


class PairQuery(Input):
    """Which pairs to list."""

    prefix: str = ""
    limit: Limit = 100
    offset: Offset = 0


class PairPage(PageOf[Pair]):
    """A page of pairs in the order of their keys, and their total number."""


class PairBody(Input):
    """The value to store; it may be empty."""

    value: Annotated[str, limited_by("limits.max_text_bytes")]


class PairStored(Pair, frozen=True, kw_only=True):
    """The pair as it is now; `warning` says that it holds a secret."""

    updated: bool = True
    warning: str | UnsetType = UNSET


class PairDeleted(Struct):
    """The pair is deleted."""

    key: str
    deleted: bool = True
