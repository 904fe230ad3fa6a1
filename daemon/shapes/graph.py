"""The people and things that memories name, in ScalyClaw's shape."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType


class GraphQuery(Struct, forbid_unknown_fields=True):
    """The entity to start from, and the maximum number of relations away from it."""

    entity: Annotated[str, Meta(min_length=1)]
    depth: Annotated[int, Meta(ge=0, le=5)] = 2


class RelationView(Struct):
    """A relation between two entities; `strength` is the number of memories that state it."""

    relation: str
    target: str
    strength: int


class EntityView(Struct, rename="camel"):
    """A person or thing that memories name. Times are seconds since the epoch."""

    name: str
    type: str
    mention_count: int
    first_seen: float
    last_seen: float
    relations: list[RelationView]


class Graph(Struct):
    """The entity first, then the nearest; if no memory names it, `message` says so."""

    entity: str
    found: bool
    graph: list[EntityView] | UnsetType = UNSET
    message: str | UnsetType = UNSET
