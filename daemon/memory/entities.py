"""The people, projects, places and things that memories name, and how they are related."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from ..errors import InvalidInput

EntityType: TypeAlias = Literal[
    "person", "project", "technology", "place", "organization", "concept"
]
ENTITY_TYPES: Final[tuple[str, ...]] = get_args(EntityType)
# Of what has none, or another one.
UNKNOWN_TYPE: Final = "concept"


def check_types(entities: Any, *, field: str) -> None:
    """Raise `InvalidInput` for an entity in `data.entities` of a type not in `ENTITY_TYPES`."""
    for at, entity in enumerate(entities if isinstance(entities, list) else ()):
        kind = entity.get("type") if isinstance(entity, dict) else None
        if kind and str(kind).lower() not in ENTITY_TYPES:
            place = f"{field}[{at}].type"
            known = ", ".join(sorted(ENTITY_TYPES))
            raise InvalidInput(f"'{place}': expected one of {known} (got '{kind}')", field=place)


class Relation(msgspec.Struct, frozen=True):
    """A relation of an entity to another."""

    relation: str
    target: str
    strength: float  # one for each memory that states it, each halved every 90 days
    since: float  # when it was first stated
    memories: tuple[str, ...]  # ids of the newest memories that state it


class Entity(msgspec.Struct, frozen=True, rename="camel"):
    """A person, project, place or thing that memories name.

    Attributes:
        key: the normalized name, by which it is compared.
        name: as first written.
        type: the first given one of `ENTITY_TYPES`; `concept` by default.
        aliases: its other names, and other spellings of the name.
        mention_count: the number of memories that name it.
        first_seen, last_seen: when the oldest and the newest of them were made.
        relations: its relations to other entities, strongest first.
        memories: ids of the newest memories that name it.
    """

    key: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mention_count: int
    first_seen: float
    last_seen: float
    relations: tuple[Relation, ...]
    memories: tuple[str, ...]

    @property
    def summary(self) -> str:
        """What is known of it, in one line."""
        aliases = f", also {', '.join(self.aliases)}" if self.aliases else ""
        related = "; ".join(f"{relation.relation} {relation.target}" for relation in self.relations)
        summary = f"{self.name} ({self.type}{aliases})" + (f": {related}" if related else "")
        return " ".join(summary.split())
