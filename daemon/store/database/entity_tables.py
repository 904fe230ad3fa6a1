"""The tables of what memories name, and the triggers that fill them from `data.entities`.

Triggers keep the tables consistent with the memories, whatever writes or deletes a memory.
"""

from __future__ import annotations

from typing import Final

# A longer name, relation or target is ignored.
_LONGEST: Final = 200


def _text(value: str, key: str) -> str:
    return f"trim(json_extract({value}, '$.{key}'))"


def _is_text(alias: str, key: str) -> str:
    """Whether an element of a list is an object with a valid text under `key`."""
    kind = f"CASE {alias}.type WHEN 'object' THEN json_type({alias}.value, '$.{key}') END"
    return (
        f"CASE {kind} WHEN 'text' THEN length({_text(f'{alias}.value', key)}) ELSE 0 END"
        f" BETWEEN 1 AND {_LONGEST}"
    )


# Invalid JSON or another shape names nothing; it must not prevent a memory from being stored.
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
            lower({_text("r.value", "target")}), {_text("r.value", "target")}, NEW.created_at, 1
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
        strength REAL NOT NULL,
        PRIMARY KEY (source, relation, target, memory)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX relations_by_memory ON relations(memory)",
    "CREATE INDEX relations_by_target ON relations(target)",
    # The aliases that rows give to entities.
    """
    CREATE TABLE entity_names (
        alias TEXT NOT NULL,
        entity TEXT NOT NULL,
        PRIMARY KEY (alias, entity)
    ) STRICT, WITHOUT ROWID
    """,
    # The data of entities that recall and lists need; the number is their row in the full text.
    """
    CREATE TABLE entities (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        mentions INTEGER NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        text TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX entities_by_mentions ON entities(mentions)",
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
)
