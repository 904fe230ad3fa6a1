"""The people and things that memories name, in ScalyClaw's shape, extended."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
EntityKind = Literal["person", "project", "technology", "place", "organization", "concept"]


class GraphQuery(Struct, forbid_unknown_fields=True):
    """The entity to start from, and the maximum number of relations away from it.

    Without an entity: those that most memories name, at most `limit`.
    """

    entity: Annotated[str, Meta(min_length=1)] | None = None
    depth: Annotated[int, Meta(ge=0, le=5)] = 2
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class EntityChanges(Struct, forbid_unknown_fields=True):
    """What a person states of an entity; fields left out stay.

    `aliases` replaces the list: an alias that is itself an entity is merged into this one.
    """

    type: EntityKind | UnsetType = UNSET
    aliases: Annotated[list[_Name], Meta(max_length=50)] | UnsetType = UNSET


class RelationView(Struct):
    """A relation to another entity.

    `strength` is one for each memory that states it, each halved every 90 days; `since` is when it
    was first stated, in seconds since the epoch; `memories` are the newest five that state it.
    """

    relation: str
    target: str
    strength: float
    since: float = 0.0
    memories: list[str] = []


class EntityView(Struct, rename="camel"):
    """A person or thing that memories name. Times are seconds since the epoch.

    `memories` are the ids of the newest five memories that name it.
    """

    name: str
    type: str
    mention_count: int
    first_seen: float
    last_seen: float
    relations: list[RelationView]
    aliases: list[str] = []
    memories: list[str] = []


class Graph(Struct):
    """The entity first, then the nearest; if no memory names it, `message` says so."""

    entity: str
    found: bool
    graph: list[EntityView] | UnsetType = UNSET
    message: str | UnsetType = UNSET
