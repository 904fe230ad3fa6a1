"""ScalyClaw's seven tools, by its own names and shapes."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..memory.records import EntityType
from .common import Input
from .tools import Tool, doc

Importance = Annotated[int, doc("1 to 10", ge=1, le=10)]
# Including the older types that its clients send.
ScalyType = Literal[
    "semantic", "episodic", "procedural", "fact", "analysis", "research", "conversation"
]


class ScalyRelation(Input):
    """How an entity is related to another."""

    relation: str
    target: str


class ScalyEntity(Input):
    """Something that a memory names."""

    name: str
    type: EntityType = "concept"
    relations: tuple[ScalyRelation, ...] = ()


class ScalyStore(Input):
    """Store a memory, unless one says the same already: that one is then named. Without `entities`
    those that the content names are found by rules.
    """  # noqa: D205 - a model reads it as one text

    type: ScalyType
    subject: str
    content: str
    tags: tuple[str, ...] = ()
    importance: Importance = 5
    source: str | UnsetType = UNSET
    ttl: Annotated[str, doc("Such as 7d, or ISO 8601")] | UnsetType = UNSET
    entities: list[ScalyEntity] | UnsetType = UNSET


class ScalyStored(Struct, kw_only=True, rename="camel"):
    """Its id, or that of the memory that says the same."""

    stored: bool
    id: str | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET
    existing_id: str | UnsetType = UNSET
    existing_subject: str | UnsetType = UNSET


class ScalyWeights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For this call; `semantic` is the weight of the match."""

    semantic: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    recency: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    importance: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET


class ScalySearch(Input, rename={"top_k": "topK"}):
    """Search the memories by meaning, recency and importance."""

    query: Annotated[str, Meta(max_length=8192)]
    type: ScalyType | UnsetType = UNSET
    tags: tuple[str, ...] = ()
    top_k: Annotated[int, Meta(ge=1, le=100)] = 10
    weights: ScalyWeights = ScalyWeights()


class ScalyMemory(Struct, kw_only=True):
    """Times are as `2026-01-31 09:30:00`, in UTC."""

    id: str
    type: str
    subject: str
    content: str
    tags: tuple[str, ...]
    source: str
    importance: int
    created_at: str
    updated_at: str
    ttl: str | None = None
    consolidated_into: str | None = None
    score: float | UnsetType = UNSET


class ScalyResults(Struct):
    """Memories, the best or the newest first."""

    results: list[ScalyMemory]


class ScalyRecall(Input, rename={"include_consolidated": "includeConsolidated"}):
    """Get one memory by its id, or the 20 newest of a type or with all of some tags."""

    id: str | UnsetType = UNSET
    type: ScalyType | UnsetType = UNSET
    tags: tuple[str, ...] = ()
    include_consolidated: bool = False


class ScalyUpdate(Input):
    """Change a memory; fields left out stay."""

    id: str
    subject: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET


class ScalyUpdated(Struct, kw_only=True):
    """The memory is changed, or why it is not."""

    updated: bool | UnsetType = UNSET
    id: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ScalyDelete(Input):
    """Delete a memory for good."""

    id: str


class ScalyDeleted(Struct):
    """Whether it was there."""

    deleted: bool
    id: str


class ScalyReflect(Input):
    """Merge memories that say the same or belong together."""

    force: Annotated[bool, doc("Even if it was done within the last hour")] = False


class ScalyReflected(Struct, kw_only=True, rename="camel"):
    """What was merged."""

    consolidated: int
    clusters: int
    new_memory_ids: list[str]
    message: str


class ScalyGraph(Input):
    """What is known about a person, a project, a place, and how they are related."""

    entity: Annotated[str, Meta(min_length=1)]
    depth: Annotated[int, doc("Relations away from it", ge=0, le=5)] = 2


class ScalyEdge(Struct):
    """A relation; `strength` is one for each memory that states it, and fades."""

    relation: str
    target: str
    strength: float


class ScalyNode(Struct, rename="camel"):
    """An entity."""

    name: str
    type: str
    mention_count: int
    relations: list[ScalyEdge]


class ScalyGraphFound(Struct, kw_only=True):
    """The entity first, then the nearest."""

    entity: str
    found: bool
    graph: list[ScalyNode] | UnsetType = UNSET
    message: str | UnsetType = UNSET


TOOLS: Final = (
    Tool("memory_store", "Store", ScalyStore, ScalyStored, repeats=True),
    Tool("memory_search", "Search", ScalySearch, ScalyResults, reads=True),
    Tool("memory_recall", "Recall", ScalyRecall, ScalyResults, reads=True),
    Tool("memory_update", "Update", ScalyUpdate, ScalyUpdated, repeats=True),
    Tool("memory_delete", "Delete", ScalyDelete, ScalyDeleted, destroys=True, repeats=True),
    Tool("memory_reflect", "Reflect", ScalyReflect, ScalyReflected),
    Tool("memory_graph", "Graph", ScalyGraph, ScalyGraphFound, reads=True),
)
