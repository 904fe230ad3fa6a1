"""`/api/graph`: whom and what memories name, and how they are related, in ScalyClaw's shape."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..memory.checks import check_short
from ..store import entities
from ..store.entities import Entity
from .calls import Call, Reply, Route


class GraphQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Whose surroundings are wanted, and how many relations away they may be."""

    entity: Annotated[str, Meta(min_length=1)]
    depth: Annotated[int, Meta(ge=0, le=5)] = 2


class RelationView(msgspec.Struct):
    """What relates an entity to another; `strength` is how many memories say so."""

    relation: str
    target: str
    strength: int


class EntityView(msgspec.Struct, rename="camel"):
    """Somebody or something that memories name. Times are seconds since the epoch."""

    name: str
    type: str
    mention_count: int
    first_seen: float
    last_seen: float
    relations: list[RelationView]


class Graph(msgspec.Struct):
    """The entity first, then the nearest; where no memory names it, a `message` says so."""

    entity: str
    found: bool
    graph: list[EntityView] | UnsetType = UNSET
    message: str | UnsetType = UNSET


async def show(call: Call) -> Reply:
    """An entity and what is around it."""
    query = call.query(GraphQuery)
    name = check_short(query.entity, "entity", 200)
    async with call.store() as store:
        found = await store.read(lambda db: entities.around(db, name, query.depth))
        if found:
            return Reply(Graph(name, found=True, graph=[_view(one) for one in found]))
        alike = await store.read(lambda db: entities.named_like(db, name))
    message = f"no memory names '{name}'"
    if alike:
        message += f"; did you mean {', '.join(alike)}?"
    return Reply(Graph(name, found=False, message=message))


def _view(entity: Entity) -> EntityView:
    return EntityView(
        entity.name,
        entity.type,
        entity.mentions,
        entity.first_seen,
        entity.last_seen,
        [RelationView(one.relation, one.target, one.strength) for one in entity.relations],
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/graph",
        handler=show,
        summary="Show whom and what memories name, and how they are related",
        query=GraphQuery,
        answer=Graph,
    ),
)
