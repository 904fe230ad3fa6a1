"""What memories name: people, projects, places and the like, and how they are related.

The tables are filled by the database itself, out of `data.entities` of the memories. Names are
compared without regard to ASCII case.
"""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

UNKNOWN_TYPE: Final = "concept"
_MOST_NODES: Final = 200
_MOST_RELATIONS: Final = 50


class Relation(msgspec.Struct, frozen=True):
    """What relates an entity to another; `strength` is how many memories say so."""

    relation: str
    target: str
    strength: int


class Entity(msgspec.Struct, frozen=True):
    """Something that memories name.

    Attributes:
        name: as it was written last.
        type: what it was called last; `concept` where nobody said.
        mentions: how many memories name it.
        first_seen, last_seen: when the oldest and the newest of them were made.
        relations: those from it to others, the strongest first.
    """

    name: str
    type: str
    mentions: int
    first_seen: float
    last_seen: float
    relations: tuple[Relation, ...]


def around(db: sqlite3.Connection, name: str, depth: int) -> list[Entity]:
    """An entity and those that are related to it, itself first, then the nearer ones first.

    Args:
        db: a reader.
        name: of the entity.
        depth: how many relations away they may be, whichever way a relation goes.

    Returns:
        None of them, if no memory names it; of a crowd the first 200.
    """
    found: dict[str, Entity] = {}
    frontier = [_key(name)]
    for _ in range(depth + 1):
        reached: dict[str, None] = {}
        for key in frontier:
            if key not in found and len(found) < _MOST_NODES:
                entity = _entity(db, key)
                if entity is not None:
                    found[key] = entity
                    reached.update(dict.fromkeys(_neighbours(db, key)))
        frontier = [key for key in reached if key not in found]
    return list(found.values())


def named_like(db: sqlite3.Connection, name: str, limit: int = 5) -> list[str]:
    """Names that contain `name`, the most often mentioned first."""
    rows = db.execute(
        "SELECT max(name) FROM mentions WHERE instr(entity, ?) GROUP BY entity"
        " ORDER BY count(*) DESC, entity LIMIT ?",
        (_key(name), limit),
    )
    return [found for (found,) in rows]


def _key(name: str) -> str:
    """As the triggers make it of a name: `lower` of SQLite's knows ASCII alone."""
    return "".join(char.lower() if char.isascii() else char for char in name.strip(" "))


def _entity(db: sqlite3.Connection, key: str) -> Entity | None:
    counted = db.execute(
        "SELECT mention_count, first_seen, last_seen FROM entities WHERE entity = ?", (key,)
    ).fetchone()
    if counted is None:
        return None
    name = db.execute(
        "SELECT name FROM mentions WHERE entity = ? ORDER BY type = '', seen_at DESC LIMIT 1",
        (key,),
    ).fetchone()[0]
    kind = db.execute(
        "SELECT type FROM mentions WHERE entity = ? AND type <> '' ORDER BY seen_at DESC LIMIT 1",
        (key,),
    ).fetchone()
    mentions, first, last = counted
    return Entity(
        name, kind[0] if kind else UNKNOWN_TYPE, mentions, first, last, _relations(db, key)
    )


def _relations(db: sqlite3.Connection, key: str) -> tuple[Relation, ...]:
    rows = db.execute(
        "SELECT relation, max(target_name), count(*) FROM relations WHERE source = ?"
        " GROUP BY relation, target ORDER BY count(*) DESC, relation, target LIMIT ?",
        (key, _MOST_RELATIONS),
    )
    return tuple(Relation(*row) for row in rows)


def _neighbours(db: sqlite3.Connection, key: str) -> list[str]:
    rows = db.execute(
        "SELECT entity FROM ("
        " SELECT target AS entity, count(*) AS strength FROM relations WHERE source = ?1"
        " GROUP BY target UNION ALL"
        " SELECT source, count(*) FROM relations WHERE target = ?1 GROUP BY source)"
        " ORDER BY strength DESC, entity LIMIT ?2",
        (key, _MOST_NODES),
    )
    return [entity for (entity,) in rows]
