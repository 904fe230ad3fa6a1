"""The tables of what is heard in conversations, and of the entities that memories name."""

from __future__ import annotations

from typing import Final

# A name, a relation or its target that is longer is none.
_LONGEST: Final = 200

# Conversations are of this device alone: what is worth keeping of them becomes memories.
BUFFERS: Final = (
    # `read_to` is the position of the first turn that was not yet read for what is worth keeping;
    # `entry` is the line about the whole that has yet to be written into the file.
    """
    CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        next_position INTEGER NOT NULL,
        read_to INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        began_at REAL NOT NULL,
        last_at REAL NOT NULL,
        ended_at REAL,
        tries INTEGER NOT NULL,
        writer TEXT NOT NULL,
        entry TEXT
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE turns (
        conversation TEXT NOT NULL,
        position INTEGER NOT NULL,
        role TEXT NOT NULL,
        actor TEXT NOT NULL,
        text TEXT NOT NULL,
        at REAL NOT NULL,
        tools TEXT NOT NULL,
        PRIMARY KEY (conversation, position)
    ) STRICT, WITHOUT ROWID
    """,
)


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
ENTITIES: Final = (
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
