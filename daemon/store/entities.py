"""What memories name: people, projects, places and the like, and how they are related.

The tables are filled by the database itself, out of `data.entities` of the memories. Names are
compared without regard to ASCII case.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

# A name, a relation or its target that is longer is none.
_LONGEST: Final = 200
UNKNOWN_TYPE: Final = "concept"
_MOST_NODES: Final = 200
# Of a text only so many words are compared with names, which have so many at most.
_MOST_WORDS: Final = 200
_LONGEST_NAME: Final = 3
_WORD: Final = re.compile(r"[^\s,.;:!?()\[\]\"“”„]+")
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


def known(db: sqlite3.Connection, text: str, memories: Sequence[str], limit: int) -> list[Entity]:
    """The entities that a text names, and then those that some memories name most often."""
    words = _WORD.findall(text)[:_MOST_WORDS]
    names = {
        _key(" ".join(words[at : at + count]))
        for count in range(1, _LONGEST_NAME + 1)
        for at in range(len(words) - count + 1)
    }
    keys = _column(
        db,
        "SELECT entity FROM mentions WHERE entity IN (SELECT value FROM json_each(?))"
        " GROUP BY entity ORDER BY count(*) DESC, entity LIMIT ?",
        sorted(names),
        limit,
    )
    keys += _column(
        db,
        "SELECT entity FROM mentions WHERE memory IN (SELECT value FROM json_each(?))"
        " GROUP BY entity ORDER BY count(*) DESC, entity LIMIT ?",
        memories,
        limit,
    )
    found = (_entity(db, key) for key in list(dict.fromkeys(keys))[:limit])
    return [one for one in found if one is not None]


def _column(db: sqlite3.Connection, sql: str, values: Sequence[str], limit: int) -> list[str]:
    given = msgspec.json.encode(values).decode()
    return [value for (value,) in db.execute(sql, (given, limit))]


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


def _text(value: str, key: str) -> str:
    """The text under a key of the JSON object `value`, without the blanks around it."""
    return f"trim(json_extract({value}, '$.{key}'))"


def _is_text(alias: str, key: str) -> str:
    """Whether an element of a list is an object with a fitting text under `key`."""
    kind = f"CASE {alias}.type WHEN 'object' THEN json_type({alias}.value, '$.{key}') END"
    return (
        f"CASE {kind} WHEN 'text' THEN length({_text(f'{alias}.value', key)}) ELSE 0 END"
        f" BETWEEN 1 AND {_LONGEST}"
    )


# What is no JSON, or has another shape, names nothing; it must not keep a memory from being stored.
_ENTITIES: Final = (
    "json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE '{}' END, '$.entities') AS e"
)
_RELATIONS: Final = (
    "json_each(CASE e.type WHEN 'object' THEN e.value ELSE '{}' END, '$.relations') AS r"
)
_NOTE: Final = f"""
    INSERT OR IGNORE INTO mentions
        SELECT NEW.id, lower({_text("e.value", "name")}), {_text("e.value", "name")},
            CASE json_type(e.value, '$.type') WHEN 'text'
                THEN lower(substr({_text("e.value", "type")}, 1, 64)) ELSE '' END, NEW.created_at
        FROM {_ENTITIES} WHERE {_is_text("e", "name")};
    INSERT OR IGNORE INTO relations
        SELECT NEW.id, lower({_text("e.value", "name")}), lower({_text("r.value", "relation")}),
            lower({_text("r.value", "target")}), {_text("r.value", "target")}, NEW.created_at
        FROM {_ENTITIES}, {_RELATIONS}
        WHERE {_is_text("e", "name")} AND {_is_text("r", "relation")}
            AND {_is_text("r", "target")};
    INSERT OR IGNORE INTO mentions
        SELECT memory, target, target_name, '', seen_at FROM relations WHERE memory = NEW.id;
"""
_FORGET: Final = """
    DELETE FROM mentions WHERE memory = OLD.id;
    DELETE FROM relations WHERE memory = OLD.id;
"""

# Out of the `data.entities` of memories. The database itself keeps them, so that none outlives
# the memory that names it, and none is missing, whatever way a memory comes or goes.
TABLES: Final = (
    """
    CREATE TABLE mentions (
        memory TEXT NOT NULL,
        entity TEXT NOT NULL,
        name TEXT NOT NULL,
        type TEXT NOT NULL,
        seen_at REAL NOT NULL,
        PRIMARY KEY (entity, memory)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX mentions_by_memory ON mentions(memory)",
    """
    CREATE TABLE relations (
        memory TEXT NOT NULL,
        source TEXT NOT NULL,
        relation TEXT NOT NULL,
        target TEXT NOT NULL,
        target_name TEXT NOT NULL,
        seen_at REAL NOT NULL,
        PRIMARY KEY (source, relation, target, memory)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX relations_by_memory ON relations(memory)",
    "CREATE INDEX relations_by_target ON relations(target)",
    """
    CREATE VIEW entities AS SELECT entity, count(*) AS mention_count,
        min(seen_at) AS first_seen, max(seen_at) AS last_seen FROM mentions GROUP BY entity
    """,
    f"""
    CREATE TRIGGER named_insert AFTER INSERT ON memories WHEN NEW.data IS NOT NULL
    BEGIN {_NOTE} END
    """,
    f"""
    CREATE TRIGGER named_delete AFTER DELETE ON memories WHEN OLD.data IS NOT NULL
    BEGIN {_FORGET} END
    """,
    f"""
    CREATE TRIGGER named_update AFTER UPDATE OF data, created_at ON memories
    WHEN OLD.data IS NOT NULL OR NEW.data IS NOT NULL
    BEGIN {_FORGET} {_NOTE} END
    """,
    # The trigger takes note of those that are named already.
    "UPDATE memories SET data = data WHERE data LIKE '%\"entities\"%'",
)
