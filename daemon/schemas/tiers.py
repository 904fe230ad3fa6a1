"""The category tree, the people and things that memories name, the hot state, and pairs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Entity as Entity
from ..memory.records import Pair as Pair
from ..memory.tree_nodes import NamedCategory
from .common import (
    Json,
    PageOf,
)


class TreeView(Struct):
    """The tree in EvoClaw's shape; `nodes` counts the root, `size_bytes` is of its prompt.

    No category has more than `max_children` below it.
    """

    tree: dict[str, Json]
    nodes: int
    max_nodes: int
    size_bytes: int
    max_size_bytes: int
    depth: int
    max_depth: int
    max_children: int


class CategoryAdded(Struct):
    """Whether the category exists now; `made` tells whether it is new."""

    path: str
    added: bool
    made: bool


class CategoryRemoved(Struct):
    """The category is removed, with those below it."""

    path: str
    removed: bool


class CategoryRenamed(Struct):
    """The category and all below it are renamed; `memories` counts those refiled."""

    path: str
    to: str
    memories: int


class CategoryHit(NamedCategory, frozen=True, kw_only=True):
    """A category in which something may be filed: how likely, why, and its description."""

    desc: str


class TreeSearched(Struct):
    """The categories, best first; `mode` is how they were found."""

    query: str
    mode: Literal["keyword", "llm"]
    results: list[CategoryHit]
    count: int
    why: str | UnsetType = UNSET


class TreePruned(Struct):
    """The removed idle categories, and their number."""

    pruned: int
    paths: list[str]


class RebuildUndone(Struct):
    """The undone rebuild: its time, and its changes.

    `memories` counts those filed as before; memories refiled since then stay.
    """

    undone: bool
    at: float
    memories: int
    changes: list[str]


# People and things


class Graph(Struct):
    """The entity first, then the nearest; if no memory names it, `message` says so."""

    entity: str
    found: bool
    graph: list[Entity] | UnsetType = UNSET
    message: str | UnsetType = UNSET


# The state that is always in the context


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


class HotRemoved(Struct):
    """The removed entry."""

    removed: str
    name: str


class HotRebuilt(Struct):
    """The path of MEMORY.md, and the size of the state."""

    output: str
    size_bytes: int
    max_bytes: int


class HotSection(Struct):
    """The path of MEMORY.md, and whether the daemon writes its section there.

    It is written with the first thing that there is to show.
    """

    path: str
    written: bool


# Key-value pairs


Key = Annotated[str, Meta(max_length=256, description="not blank")]


class PairPage(PageOf[Pair]):
    """A page of pairs in the order of their keys, and their total number."""


class PairStored(Pair, frozen=True, kw_only=True):
    """The pair as it is now; `warning` says that it holds a secret."""

    updated: bool = True
    warning: str | UnsetType = UNSET


class PairDeleted(Struct):
    """The pair is deleted."""

    key: str
    deleted: bool = True
