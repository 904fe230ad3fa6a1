"""The people and things that memories name, and their relations, in ScalyClaw's shape."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from ..memory.checks import check_short
from ..shapes.graph import EntityChanges, EntityView, Graph, GraphQuery, RelationView
from ..store import entities, entity_rows
from ..store.entities import Entity
from .operation import Operation
from .scope import Scope
from .views import view_of

_LONGEST: Final = 200


@Operation("GET", "/api/graph")
async def show(scope: Scope, query: GraphQuery) -> Graph:
    """Show the people and things that memories name, and their relations."""
    if query.entity is None:
        top = await scope.read(lambda db: entities.most_mentioned(db, query.limit, scope.now))
        return Graph("", found=bool(top), graph=[entity_view(one) for one in top])
    name = check_short(query.entity, "entity", _LONGEST)
    found = await scope.read(
        lambda db: entities.around(db, name, query.depth, scope.now), timed=True
    )
    if found:
        return Graph(name, found=True, graph=[entity_view(one) for one in found])
    alike = await scope.read(lambda db: entities.named_like(db, name, scope.now))
    message = f"no memory names '{name}'"
    if alike:
        message += f"; did you mean {', '.join(alike)}?"
    return Graph(name, found=False, message=message)


@Operation("PUT", "/api/graph/{name}", role="write")
async def change(scope: Scope, name: str, body: EntityChanges) -> EntityView:
    """Set the type or the aliases of a person or thing."""
    name = check_short(name, "name", _LONGEST)
    changes: dict[str, Any] = {}
    if body.type is not UNSET:
        changes["type"] = body.type
    if body.aliases is not UNSET:
        changes["aliases"] = [check_short(one, "aliases", _LONGEST) for one in body.aliases]
    async with scope.store(create=True) as store:
        key = await store.write(lambda tx: entity_rows.state(tx, name, changes))
        found = await store.read(lambda db: entities.around(db, key, 0, scope.now))
    return entity_view(found[0])


def entity_view(entity: Entity) -> EntityView:
    """An entity as answers show it."""
    relations = [view_of(RelationView, one) for one in entity.relations]
    return view_of(EntityView, entity, mention_count=entity.mentions, relations=relations)
