"""The people, projects, places and things that memories name: relations, and names compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    """A person, project, place or thing that memories name."""

    key: str  # the normalized name, by which it is compared
    name: str  # as first written
    type: str  # the first given one of `ENTITY_TYPES`; `concept` by default
    aliases: tuple[str, ...]  # its other names, and other spellings of the name
    mention_count: int  # the number of memories that name it
    # When the oldest and the newest of them were made.
    first_seen: float
    last_seen: float
    relations: tuple[Relation, ...]  # its relations to other entities, strongest first
    memories: tuple[str, ...]  # ids of the newest memories that name it

    @property
    def summary(self) -> str:
        """What is known of it, in one line."""
        aliases = f", also {', '.join(self.aliases)}" if self.aliases else ""
        related = "; ".join(f"{relation.relation} {relation.target}" for relation in self.relations)
        summary = f"{self.name} ({self.type}{aliases})" + (f": {related}" if related else "")
        return " ".join(summary.split())


LONGEST_NAME: Final = 3
# Only the first words of a text are compared with names.
_MOST_WORDS: Final = 200
_WORD: Final = re.compile(r"[^\s,.;:!?()\[\]\"“”„]+")
_MOST_NAMES: Final = 200


def name_key(name: str) -> str:
    """The key that names are compared by: like SQLite's `lower`, which folds only ASCII."""
    name = name.strip(" ")
    if name.isascii():
        return name.lower()
    return "".join(char.lower() if char.isascii() else char for char in name)


def words_of(text: str) -> list[str]:
    """The first words of a text, without surrounding punctuation."""
    return _WORD.findall(text)[:_MOST_WORDS]


def keys_named(entities: object) -> set[str]:
    """The keys of all names in the `data.entities` of a memory, including targets of relations.

    Invalid entries are ignored. Lists of memories that are not read back yet may be tuples.
    """
    keys: set[str] = set()
    for entity in entities if isinstance(entities, (list, tuple)) else ():
        if isinstance(entity, Mapping):
            keys.update(_key(entity.get("name")))
            relations = entity.get("relations")
            for link in relations if isinstance(relations, (list, tuple)) else ():
                if isinstance(link, Mapping):
                    keys.update(_key(link.get("target")))
        if len(keys) > _MOST_NAMES:
            break
    return keys


def _key(name: Any) -> set[str]:
    return {name_key(name)} if isinstance(name, str) and name.strip(" ") else set()
