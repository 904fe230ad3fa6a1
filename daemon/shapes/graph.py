"""Whom and what memories name, in ScalyClaw's shape."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType


class GraphQuery(Struct, forbid_unknown_fields=True):
    """Whose surroundings are wanted, and how many relations away they may be."""

    entity: Annotated[str, Meta(min_length=1)]
    depth: Annotated[int, Meta(ge=0, le=5)] = 2


class RelationView(Struct):
    """What relates an entity to another; `strength` is how many memories say so."""

    relation: str
    target: str
    strength: int


class EntityView(Struct, rename="camel"):
    """Somebody or something that memories name. Times are seconds since the epoch."""

    name: str
    type: str
    mention_count: int
    first_seen: float
    last_seen: float
    relations: list[RelationView]


class Graph(Struct):
    """The entity first, then the nearest; where no memory names it, a `message` says so."""

    entity: str
    found: bool
    graph: list[EntityView] | UnsetType = UNSET
    message: str | UnsetType = UNSET
