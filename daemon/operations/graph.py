"""The people and things that memories name, and their relations, in ScalyClaw's shape."""

from __future__ import annotations

from typing import Final

from ..memory.checks import check_short
from ..shapes.graph import EntityView, Graph, GraphQuery, RelationView
from ..store import entities
from ..store.entities import Entity
from .operation import operation
from .scope import Scope


async def show(scope: Scope, query: GraphQuery) -> Graph:
    """Show the people and things that memories name, and their relations."""
    name = check_short(query.entity, "entity", 200)
    async with scope.store() as store:
        found = await store.read(lambda db: entities.around(db, name, query.depth))
        if found:
            return Graph(name, found=True, graph=[_view(one) for one in found])
        alike = await store.read(lambda db: entities.named_like(db, name))
    message = f"no memory names '{name}'"
    if alike:
        message += f"; did you mean {', '.join(alike)}?"
    return Graph(name, found=False, message=message)


def _view(entity: Entity) -> EntityView:
    return EntityView(
        entity.name,
        entity.type,
        entity.mentions,
        entity.first_seen,
        entity.last_seen,
        [RelationView(one.relation, one.target, one.strength) for one in entity.relations],
    )


OPERATIONS: Final = (operation("GET", "/api/graph", show),)
