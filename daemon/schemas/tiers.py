"""The category tree, the people and things that memories name, the hot state, and pairs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import Entity as Entity
from ..memory.records import EntityType
from ..memory.records import Pair as Pair
from ..memory.tree_nodes import NamedCategory
from .common import (
    CategoryPath,
    Endpoint,
    Input,
    Json,
    Limit,
    Offset,
    PageOf,
    RecallLimit,
    Words,
    limited_by,
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


class CategoryBody(Input):
    """A category to add, with its missing parents."""

    path: CategoryPath
    desc: str = ""


class CategoryAdded(Struct):
    """Whether the category exists now; `made` tells whether it is new."""

    path: str
    added: bool
    made: bool


class CategoryQuery(Input):
    """The category."""

    path: CategoryPath


class CategoryRemoved(Struct):
    """The category is removed, with those below it."""

    path: str
    removed: bool


class RenameBody(Input):
    """The category, and its new path, which must not exist yet."""

    path: CategoryPath
    to: CategoryPath


class CategoryRenamed(Struct):
    """The category and all below it are renamed; `memories` counts those refiled."""

    path: str
    to: str
    memories: int


class TreeSearchBody(Input):
    """Words to find categories by.

    In mode `llm` the configured model, or the server at `llm_endpoint`, names them; without its
    answer the words do, and `why` says so. `llm_endpoint` needs the role `write`.
    """

    query: Words
    mode: Literal["keyword", "llm"] = "keyword"
    limit: RecallLimit = 5
    llm_endpoint: Endpoint | None = None


class TreeSearchQuery(Input):
    """The question for a model."""

    query: Words


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


_Name = Annotated[str, Meta(min_length=1, max_length=200)]


class GraphQuery(Input):
    """The entity to start from, and the maximum number of relations away from it.

    Without an entity: those that most memories name, at most `limit`.
    """

    entity: Annotated[str, Meta(min_length=1)] | None = None
    depth: Annotated[int, Meta(ge=0, le=5)] = 2
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class EntityChanges(Input):
    """What a person states of an entity; fields left out stay.

    `aliases` replaces the list: an alias that is itself an entity is merged into this one.
    """

    type: EntityType | UnsetType = UNSET
    aliases: Annotated[list[_Name], Meta(max_length=50)] | UnsetType = UNSET


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
