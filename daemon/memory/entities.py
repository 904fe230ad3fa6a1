"""The people, projects, places and things that memories name, and how they are related."""

from __future__ import annotations

import msgspec


class Relation(msgspec.Struct, frozen=True):
    """A relation of an entity to another.

    Attributes:
        strength: one for each memory that states it, each halved every 90 days.
        since: when it was first stated.
        memories: ids of the newest memories that state it.
    """

    relation: str
    target: str
    strength: float
    since: float
    memories: tuple[str, ...]


class Entity(msgspec.Struct, frozen=True, rename="camel"):
    """A person, project, place or thing that memories name.

    Attributes:
        key: the normalized name, by which it is compared.
        name: as first written.
        type: the first given type; `concept` by default.
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
