"""The tables of `memory.db`, as a list of forward migrations."""

from __future__ import annotations

from typing import Final

import msgspec

from . import file_tables, observed_tables


class Migration(msgspec.Struct, frozen=True):
    """One step from the schema version before it to `version`, as SQL statements."""

    version: int
    statements: tuple[str, ...]


_FIRST = Migration(
    1,
    (
        """
        CREATE TABLE memories (
            row INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            text TEXT NOT NULL,
            type TEXT NOT NULL,
            event TEXT NOT NULL,
            subject TEXT NOT NULL,
            outcome TEXT NOT NULL,
            category TEXT NOT NULL,
            original_category TEXT NOT NULL,
            tags TEXT NOT NULL,
            importance REAL NOT NULL,
            source TEXT NOT NULL,
            actor TEXT NOT NULL,
            grp TEXT NOT NULL,
            position INTEGER,
            metadata TEXT NOT NULL,
            data TEXT,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            last_accessed_at REAL,
            access_count INTEGER NOT NULL,
            expires_at REAL,
            merged_into TEXT,
            superseded_by TEXT,
            archived_at REAL,
            writer TEXT NOT NULL,
            clock INTEGER NOT NULL,
            device TEXT NOT NULL,
            size INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX memories_by_time ON memories(created_at)",
        "CREATE INDEX memories_by_category ON memories(category)",
        """
        CREATE INDEX memories_by_original ON memories(original_category)
            WHERE original_category <> ''
        """,
        "CREATE INDEX memories_by_actor ON memories(actor) WHERE actor <> ''",
        "CREATE INDEX memories_by_group ON memories(grp, position) WHERE grp <> ''",
        "CREATE INDEX memories_by_expiry ON memories(expires_at) WHERE expires_at IS NOT NULL",
        "CREATE INDEX memories_merged ON memories(merged_into) WHERE merged_into IS NOT NULL",
        """
        CREATE INDEX memories_superseded ON memories(superseded_by)
            WHERE superseded_by IS NOT NULL
        """,
        # Covers all that the warm cap looks at, so that keeping it costs no row read.
        """
        CREATE INDEX memories_warm ON memories(created_at, id, size, importance, access_count)
            WHERE archived_at IS NULL
        """,
        # Contentless: the text stands once, in `memories`. The categories let the marks of
        # Devanagari or Thai be parts of words.
        """
        CREATE VIRTUAL TABLE memory_fts USING fts5(
            text, subject, tags, content='',
            tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
        )
        """,
        """
        CREATE TABLE tree (
            path TEXT PRIMARY KEY,
            desc TEXT NOT NULL,
            last_access REAL NOT NULL,
            warm_count INTEGER NOT NULL DEFAULT 0,
            cold_count INTEGER NOT NULL DEFAULT 0,
            clock INTEGER NOT NULL,
            device TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        # The counts are kept by the database itself, so that no path can make them untrue.
        """
        CREATE TRIGGER tree_counts_insert AFTER INSERT ON memories WHEN NEW.merged_into IS NULL
        BEGIN
            UPDATE tree SET warm_count = warm_count + (NEW.archived_at IS NULL),
                cold_count = cold_count + (NEW.archived_at IS NOT NULL) WHERE path = NEW.category;
        END
        """,
        """
        CREATE TRIGGER tree_counts_delete AFTER DELETE ON memories WHEN OLD.merged_into IS NULL
        BEGIN
            UPDATE tree SET warm_count = warm_count - (OLD.archived_at IS NULL),
                cold_count = cold_count - (OLD.archived_at IS NOT NULL) WHERE path = OLD.category;
        END
        """,
        """
        CREATE TRIGGER tree_counts_update
        AFTER UPDATE OF category, archived_at, merged_into ON memories
        BEGIN
            UPDATE tree SET warm_count = warm_count - (OLD.archived_at IS NULL),
                cold_count = cold_count - (OLD.archived_at IS NOT NULL)
                WHERE path = OLD.category AND OLD.merged_into IS NULL;
            UPDATE tree SET warm_count = warm_count + (NEW.archived_at IS NULL),
                cold_count = cold_count + (NEW.archived_at IS NOT NULL)
                WHERE path = NEW.category AND NEW.merged_into IS NULL;
        END
        """,
        """
        CREATE TRIGGER tree_counts_node AFTER INSERT ON tree
        BEGIN
            UPDATE tree SET
                warm_count = (SELECT count(*) FROM memories WHERE category = NEW.path
                    AND merged_into IS NULL AND archived_at IS NULL),
                cold_count = (SELECT count(*) FROM memories WHERE category = NEW.path
                    AND merged_into IS NULL AND archived_at IS NOT NULL)
                WHERE path = NEW.path;
        END
        """,
        # What undoing a merge needs, under the id of the memory that was retired. The numbers of
        # the rows are the order of the merges.
        """
        CREATE TABLE merges (
            row INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            kept TEXT NOT NULL,
            record TEXT NOT NULL,
            clock INTEGER NOT NULL,
            device TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX merges_by_kept ON merges(kept, row)",
        # Memories that somebody has taken out of a merge: none merges them again by itself.
        "CREATE TABLE kept_apart (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
        """
        CREATE TABLE hot (
            section TEXT NOT NULL,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            position INTEGER NOT NULL,
            clock INTEGER NOT NULL,
            device TEXT NOT NULL,
            PRIMARY KEY (section, key)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE kv (
            key TEXT PRIMARY KEY,
            value TEXT NOT NULL,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            clock INTEGER NOT NULL,
            device TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE tombstones (
            kind TEXT NOT NULL,
            id TEXT NOT NULL,
            deleted_at REAL NOT NULL,
            clock INTEGER NOT NULL,
            device TEXT NOT NULL,
            PRIMARY KEY (kind, id)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE outbox (kind TEXT NOT NULL, id TEXT NOT NULL, clock INTEGER NOT NULL,
            PRIMARY KEY (kind, id)) STRICT, WITHOUT ROWID
        """,
        "CREATE TABLE metrics (name TEXT PRIMARY KEY, value REAL NOT NULL) STRICT, WITHOUT ROWID",
        # What stands in a state file: the digest of its bytes, and the version it showed.
        """
        CREATE TABLE faces (name TEXT PRIMARY KEY, digest TEXT NOT NULL, clock INTEGER NOT NULL)
            STRICT, WITHOUT ROWID
        """,
        "CREATE TABLE stale_segments (segment INTEGER PRIMARY KEY, clock INTEGER NOT NULL) STRICT",
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    ),
)

# The archived memories that only the replica still holds in full, and what is counted of the
# archive: the bytes of the memories in it that are here, and the number of those that are not.
_REMOTE_ONLY: Final = (
    """
    CREATE TABLE remote_only (
        id TEXT PRIMARY KEY,
        category TEXT NOT NULL,
        original_category TEXT NOT NULL,
        archived_at REAL NOT NULL,
        importance REAL NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        accesses INTEGER NOT NULL,
        size INTEGER NOT NULL,
        clock INTEGER NOT NULL,
        device TEXT NOT NULL,
        filed_clock INTEGER NOT NULL,
        filed_device TEXT NOT NULL,
        present INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX remote_only_by_category ON remote_only(category)",
    "CREATE INDEX remote_only_by_time ON remote_only(created_at)",
    """
    CREATE INDEX remote_only_by_original ON remote_only(original_category)
        WHERE original_category <> ''
    """,
    "CREATE TABLE archive (local_bytes INTEGER NOT NULL, remote_only INTEGER NOT NULL) STRICT",
    """
    INSERT INTO archive SELECT coalesce(sum(size), 0), 0 FROM memories
        WHERE archived_at IS NOT NULL
    """,
    """
    CREATE TRIGGER archive_insert AFTER INSERT ON memories WHEN NEW.archived_at IS NOT NULL
    BEGIN
        UPDATE archive SET local_bytes = local_bytes + NEW.size;
    END
    """,
    """
    CREATE TRIGGER archive_delete AFTER DELETE ON memories WHEN OLD.archived_at IS NOT NULL
    BEGIN
        UPDATE archive SET local_bytes = local_bytes - OLD.size;
    END
    """,
    """
    CREATE TRIGGER archive_update AFTER UPDATE OF archived_at, size ON memories
    WHEN OLD.archived_at IS NOT NULL OR NEW.archived_at IS NOT NULL
    BEGIN
        UPDATE archive SET local_bytes = local_bytes
            - OLD.size * (OLD.archived_at IS NOT NULL) + NEW.size * (NEW.archived_at IS NOT NULL);
    END
    """,
    """
    CREATE TRIGGER remote_only_insert AFTER INSERT ON remote_only
    BEGIN
        UPDATE archive SET remote_only = remote_only + 1;
        UPDATE tree SET cold_count = cold_count + 1 WHERE path = NEW.category;
    END
    """,
    """
    CREATE TRIGGER remote_only_delete AFTER DELETE ON remote_only
    BEGIN
        UPDATE archive SET remote_only = remote_only - 1;
        UPDATE tree SET cold_count = cold_count - 1 WHERE path = OLD.category;
    END
    """,
    """
    CREATE TRIGGER remote_only_update AFTER UPDATE OF category ON remote_only
    BEGIN
        UPDATE tree SET cold_count = cold_count - 1 WHERE path = OLD.category;
        UPDATE tree SET cold_count = cold_count + 1 WHERE path = NEW.category;
    END
    """,
    "DROP TRIGGER tree_counts_node",
    """
    CREATE TRIGGER tree_counts_node AFTER INSERT ON tree
    BEGIN
        UPDATE tree SET
            warm_count = (SELECT count(*) FROM memories WHERE category = NEW.path
                AND merged_into IS NULL AND archived_at IS NULL),
            cold_count = (SELECT count(*) FROM memories WHERE category = NEW.path
                AND merged_into IS NULL AND archived_at IS NOT NULL)
                + (SELECT count(*) FROM remote_only WHERE category = NEW.path)
            WHERE path = NEW.path;
    END
    """,
)

_REPLICATION = Migration(
    2,
    (
        # Where a memory is filed has a version of its own: the daemon refiles by itself, which
        # must not outdo what another device has changed in the text.
        "ALTER TABLE memories ADD COLUMN filed_clock INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE memories ADD COLUMN filed_device TEXT NOT NULL DEFAULT ''",
        # Uses by device: each device counts its own, and the sum is in `memories.access_count`.
        """
        CREATE TABLE uses (
            id TEXT NOT NULL,
            device TEXT NOT NULL,
            count INTEGER NOT NULL,
            last_at REAL NOT NULL,
            clock INTEGER NOT NULL,
            PRIMARY KEY (id, device)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE metrics_by_device (
            name TEXT NOT NULL,
            device TEXT NOT NULL,
            value REAL NOT NULL,
            clock INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (name, device)
        ) STRICT, WITHOUT ROWID
        """,
        "INSERT INTO metrics_by_device (name, device, value) SELECT name, '', value FROM metrics",
        "DROP TABLE metrics",
        "ALTER TABLE metrics_by_device RENAME TO metrics",
        "ALTER TABLE kept_apart ADD COLUMN clock INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE kept_apart ADD COLUMN device TEXT NOT NULL DEFAULT ''",
        # Where the replica has the tombstone; once every device is past it, it can go.
        "ALTER TABLE tombstones ADD COLUMN seq INTEGER",
        # A mark that is there since the daemon has filed the memory elsewhere by itself keeps
        # nothing alive that was deleted on another device.
        "ALTER TABLE outbox ADD COLUMN filed_only INTEGER NOT NULL DEFAULT 0",
        *_REMOTE_ONLY,
    ),
)

_CONVERSATIONS = Migration(3, (*observed_tables.BUFFERS, *observed_tables.ENTITIES))

_FILES = Migration(4, file_tables.FILES)

MIGRATIONS: Final = (_FIRST, _REPLICATION, _CONVERSATIONS, _FILES)
