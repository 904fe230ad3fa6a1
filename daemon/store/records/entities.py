"""What memories name: people, projects, places and the like, and how they are related.

`mentions` and `relations` are derived from `data.entities` of the memories. Rows of the kind
`entity` add what a person or an import states: a type, aliases, mentions counted elsewhere. A name
and its aliases are one entity. Names are compared without regard to ASCII case.

A memory that was merged into another counts for that memory until the merge is undone. Everything
that changes with time is computed on reading: the strength of a relation halves every 90 days, and
an entity that was mentioned once, more than 90 days ago, is no longer listed or found.

The text of a stored memory names, too: `named` and `best_known` add what is read from it when they
are called. Recall and context blocks have only what `data.entities` states.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ...language.names import mentions
from ...memory.indexing import fold
from ...memory.records import (
    ENTITY_TYPES,
    LONGEST_NAME,
    UNKNOWN_TYPE,
    Entity,
    Relation,
    name_key,
    words_of,
)
from ..database.connection import column, scalar, to_json
from .names import NAME_WORD, NamingMemory, memories_with, most_introduced

FADES_AFTER: Final = 90 * 86_400.0
_MOST_NODES: Final = 200
_MOST_RELATIONS: Final = 50
# Rows of relations and merges that are read of one entity, and memories that are named.
_MOST_ROWS: Final = 2_000
_MOST_MEMORIES: Final = 5
_MOST_SPELLINGS: Final = 20


class Stated(msgspec.Struct):
    """The row of an entity: what a person or an import states, beside its memories."""

    name: str = ""
    type: str = ""
    aliases: list[str] = []
    mentions: int = 0
    first_seen: float | None = None
    last_seen: float | None = None


def named(db: sqlite3.Connection, name: str, depth: int, now: float) -> list[Entity]:
    """The `neighbourhood` of an entity, which has the memories whose text names it, too."""
    nearest = neighbourhood(db, name, depth, now)
    of_entity = [entity for entity in nearest[:1] if entity.key == canonical(db, name_key(name))]
    whole = _with_texts(db, name, of_entity[0] if of_entity else None, now)
    return nearest if whole is None else [whole, *nearest[len(of_entity) :]]


def best_known(db: sqlite3.Connection, limit: int, now: float) -> list[Entity]:
    """The entities named by most memories, with the people and things that texts introduce."""
    mentioned = most_mentioned(db, limit, now)
    entities = [_with_texts(db, entity.name, entity, now) or entity for entity in mentioned]
    listed = {fold(word) for entity in entities for word in NAME_WORD.findall(entity.name)}
    introduced = [name for name in most_introduced(db, limit) if name not in listed]
    entities += filter(None, (_with_texts(db, name, None, now) for name in introduced))
    entities.sort(key=lambda entity: -entity.mention_count)
    return entities[:limit]


def _with_texts(
    db: sqlite3.Connection, name: str, entity: Entity | None, now: float
) -> Entity | None:
    """`entity` with the memories whose text has the name or an alias; None if nothing names it."""
    spellings = [name] if entity is None else [entity.name, *entity.aliases]
    naming = {each.id: each for spelling in spellings for each in memories_with(db, spelling, now)}
    if not naming:
        return entity
    if entity is None:
        first, *_ = naming.values()
        seen_at = first.created_at
        entity = Entity(
            name_key(name), first.spelling, UNKNOWN_TYPE, (), 0, seen_at, seen_at, (), ()
        )
    row = stated(db, entity.key)
    if entity.type == UNKNOWN_TYPE and not (row and row.type):
        kind = next((kind for each in naming.values() if (kind := _type(each))), UNKNOWN_TYPE)
        entity = replace(entity, type=kind)
    keys = to_json([entity.key, *map(name_key, entity.aliases)])
    for memory in column(db, f"SELECT memory FROM mentions WHERE {_IN} LIMIT ?2", keys, _MOST_ROWS):
        naming.pop(memory, None)
    newest = sorted(naming.values(), key=lambda each: -each.created_at)
    times = [entity.first_seen, entity.last_seen, *(each.created_at for each in newest)]
    return replace(
        entity,
        mention_count=entity.mention_count + len(newest),
        first_seen=min(times),
        last_seen=max(times),
        memories=(*entity.memories, *(each.id for each in newest))[:_MOST_MEMORIES],
    )


def _type(naming: NamingMemory) -> str:
    """The type that the words around a name say, or ""."""
    words = NAME_WORD.findall(naming.spelling)
    types = (
        mention.type for mention in mentions(naming.text)
        if NAME_WORD.findall(mention.name)[: len(words)] == words
    )  # fmt: skip
    return next(types, "")


def neighbourhood(db: sqlite3.Connection, name: str, depth: int, now: float) -> list[Entity]:
    """An entity and its related entities, itself first, then by distance; at most 200.

    `depth` is the maximum distance, in relations of either direction.
    """
    entities: dict[str, Entity] = {}
    frontier = [canonical(db, name_key(name))]
    for _ in range(depth + 1):
        reached: dict[str, None] = {}
        for key in frontier:
            if key not in entities and len(entities) < _MOST_NODES:
                entity = entity_at(db, key, now)
                if entity is not None:
                    entities[key] = entity
                    reached.update(dict.fromkeys(_neighbours(db, key)))
        frontier = [key for key in reached if key not in entities]
    return list(entities.values())


def known(
    db: sqlite3.Connection, text: str, memories: Sequence[str], limit: int, now: float
) -> list[Entity]:
    """The entities that a text names, then those that some memories name most often.

    Without a text, the most often named of all.
    """
    words = words_of(text)
    if not words:
        return most_mentioned(db, limit, now)
    names = {
        name_key(" ".join(words[at : at + count]))
        for count in range(1, LONGEST_NAME + 1)
        for at in range(len(words) - count + 1)
    }
    most = "GROUP BY entity ORDER BY count(*) DESC, entity LIMIT ?2"
    aliased = "SELECT entity FROM entity_names WHERE alias IN (SELECT value FROM json_each(?1))"
    by_name = f"SELECT entity FROM mentions WHERE {_IN} OR entity IN ({aliased}) {most}"
    of_memories = (
        f"SELECT entity FROM mentions WHERE memory IN (SELECT value FROM json_each(?1)) {most}"
    )
    keys = column(db, by_name, to_json(sorted(names)), limit)
    keys += column(db, of_memories, to_json(memories), limit)
    entities: dict[str, Entity] = {}
    for key in dict.fromkeys(canonical(db, key) for key in keys):
        if len(entities) < limit and (entity := entity_at(db, key, now)) is not None:
            entities[key] = entity
    return list(entities.values())


def from_outside(db: sqlite3.Connection, entity: Entity) -> bool:
    """Whether any of the memories that name an entity came from outside."""
    outside = "SELECT 1 FROM mentions JOIN memories ON id = memory WHERE is_outside(source)"
    keys = to_json([entity.key, *map(name_key, entity.aliases)])
    return bool(scalar(db, f"{outside} AND {_IN} LIMIT 1", keys))


def most_mentioned(db: sqlite3.Connection, limit: int, now: float) -> list[Entity]:
    """The entities named by most memories."""
    present = "SELECT id FROM entities WHERE mentions > 1 OR updated_at > ?"
    order = "mentions DESC, updated_at DESC, id"
    keys = column(db, f"{present} ORDER BY {order} LIMIT ?", now - FADES_AFTER, limit)
    entities = (entity_at(db, key, now) for key in keys)
    return [entity for entity in entities if entity is not None]


def named_like(db: sqlite3.Connection, name: str, now: float) -> list[str]:
    """At most five names that contain `name`, most often mentioned first."""
    alike = "SELECT name FROM entities WHERE instr(id, ?) AND (mentions > 1 OR updated_at > ?)"
    order = "ORDER BY mentions DESC, id LIMIT 5"
    return column(db, f"{alike} {order}", name_key(name), now - FADES_AFTER)


def canonical(db: sqlite3.Connection, key: str) -> str:
    """The key of the entity that a name is an alias of, or the name's own key."""
    target = _aliased(db, key)
    if target is None:
        return key
    # Two devices may have made each name an alias of the other.
    return min(key, target) if _aliased(db, target) == key else target


def _aliased(db: sqlite3.Connection, key: str) -> str | None:
    target: str | None = scalar(
        db, "SELECT min(entity) FROM entity_names WHERE alias = ? AND entity <> alias", key
    )
    return target


def stated(db: sqlite3.Connection, key: str) -> Stated | None:
    """The content of the row of an entity."""
    data = scalar(db, "SELECT data FROM rows WHERE kind = 'entity' AND id = ? AND live", key)
    return None if data is None else msgspec.json.decode(data, type=Stated)


def entity_at(db: sqlite3.Connection, key: str, now: float) -> Entity | None:
    """The entity with this key; None if it is not named, or was named only once and long ago."""
    row = stated(db, key) or Stated()
    aliases = [alias for alias in row.aliases if canonical(db, name_key(alias)) == key]
    keys = to_json([key, *map(name_key, aliases)])
    count, first, last = db.execute(
        f"SELECT count(DISTINCT memory), min(seen_at), max(seen_at) FROM mentions WHERE {_IN}",
        (keys,),
    ).fetchone()
    times = [at for at in (first, last, row.first_seen, row.last_seen) if at is not None]
    if not times:
        return None
    mentions = count - _merged_away(db, keys) + row.mentions
    personal = bool(aliases or row.type)
    if mentions <= 1 and max(times) <= now - FADES_AFTER and not personal:
        return None
    kind = scalar(
        db,
        f"SELECT type FROM mentions WHERE {_IN} AND type IN {ENTITY_TYPES}"
        f" ORDER BY type = '{UNKNOWN_TYPE}', seen_at, memory LIMIT 1",
        keys,
    )
    name = row.name or spelling(db, key) or key
    spellings = db.execute(
        f"SELECT name, min(seen_at) FROM mentions WHERE {_IN} GROUP BY name ORDER BY 2, 1 LIMIT ?2",
        (keys, _MOST_SPELLINGS),
    )
    others = dict.fromkeys([*aliases, *(spelling for spelling, _ in spellings)])
    others.pop(name, None)
    return Entity(
        key=key,
        name=name,
        type=row.type or kind or UNKNOWN_TYPE,
        aliases=tuple(others),
        mention_count=mentions,
        first_seen=min(times),
        last_seen=max(times),
        relations=_relations(db, keys, now),
        memories=_newest(db, keys),
    )


# The keys of an entity, as the first argument.
_IN: Final = "entity IN (SELECT value FROM json_each(?1))"


def _merged_away(db: sqlite3.Connection, keys: str) -> int:
    """The number of mentions by merged memories that are already counted for their target."""
    merged = db.execute(
        "SELECT DISTINCT id, merged_into FROM mentions JOIN memories ON id = memory"
        f" WHERE {_IN} AND merged_into IS NOT NULL LIMIT ?2",
        (keys, _MOST_ROWS),
    ).fetchall()
    if not merged:
        return 0
    targets = {root_of(db, into) for _, into in merged}
    naming = f"SELECT count(DISTINCT memory) FROM mentions WHERE {_IN}"
    among = "memory IN (SELECT value FROM json_each(?2))"
    named = scalar(db, f"{naming} AND {among}", keys, to_json(sorted(targets)))
    return len(merged) - (len(targets) - int(named))


def root_of(db: sqlite3.Connection, memory: str) -> str:
    """The memory at the end of a memory's merges, or itself."""
    passed = {memory}
    while (into := scalar(db, "SELECT merged_into FROM memories WHERE id = ?", memory)) is not None:
        if into in passed:
            break
        memory = into
        passed.add(memory)
    return memory


def _newest(db: sqlite3.Connection, keys: str) -> tuple[str, ...]:
    rows = db.execute(
        "SELECT DISTINCT id, created_at FROM mentions JOIN memories ON id = memory"
        f" WHERE {_IN} AND merged_into IS NULL ORDER BY created_at DESC, id LIMIT ?2",
        (keys, _MOST_MEMORIES),
    )
    return tuple(key for key, _ in rows)


def _relations(db: sqlite3.Connection, keys: str, now: float) -> tuple[Relation, ...]:
    rows = db.execute(
        "SELECT relation, target, target_name, seen_at, strength, memory, merged_into"
        " FROM relations LEFT JOIN memories ON id = memory"
        " WHERE relations.source IN (SELECT value FROM json_each(?1))"
        " ORDER BY seen_at DESC LIMIT ?2",
        (keys, _MOST_ROWS),
    ).fetchall()
    together: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    names: dict[str, str] = {}
    for relation, target, name, seen_at, strength, memory, merged in rows:
        whose = canonical(db, target)
        if whose == target:
            names.setdefault(whose, name)
        root = memory if merged is None else root_of(db, merged)
        together.setdefault((relation, whose), {}).setdefault(root, (seen_at, strength))
    related = [
        Relation(
            relation=relation,
            target=names.get(target)
            or ((row := stated(db, target)) and row.name)
            or spelling(db, target)
            or target,
            strength=round(
                sum(s * 0.5 ** (max(0.0, now - at) / FADES_AFTER) for at, s in by.values()), 2
            ),
            since=min(at for at, _ in by.values()),
            memories=tuple(memory for memory in by if memory)[:_MOST_MEMORIES],
        )
        for (relation, target), by in together.items()
    ]
    related.sort(key=lambda edge: (-edge.strength, edge.relation, edge.target))
    return tuple(related[:_MOST_RELATIONS])


def spelling(db: sqlite3.Connection, key: str) -> str:
    """How memories write a name, or "": first those that say its type, then the earliest."""
    first = "ORDER BY type = '', seen_at, memory LIMIT 1"
    return scalar(db, f"SELECT name FROM mentions WHERE entity = ? {first}", key) or ""


def _neighbours(db: sqlite3.Connection, key: str) -> list[str]:
    row = stated(db, key)
    names = [key, *(name_key(alias) for alias in (row.aliases if row else ()))]
    keys = column(
        db,
        "SELECT entity FROM ("
        " SELECT target AS entity, count(*) AS strength FROM relations"
        " WHERE source IN (SELECT value FROM json_each(?1)) GROUP BY target UNION ALL"
        " SELECT source, count(*) FROM relations"
        " WHERE target IN (SELECT value FROM json_each(?1)) GROUP BY source)"
        " ORDER BY strength DESC, entity LIMIT ?2",
        to_json(names),
        _MOST_NODES,
    )
    return [*dict.fromkeys(canonical(db, other) for other in keys)]
