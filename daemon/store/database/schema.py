"""The tables of `memory.db`, as a list of forward migrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from . import entity_tables


class Migration(msgspec.Struct, frozen=True):
    """One step from the schema version before it to `version`; once released, it never changes."""

    version: int
    tables: tuple[str, ...]  # statements of SQL
    # New full-text indexes with their columns. They are contentless: a text is stored once, in its
    # row.
    indexes: Mapping[str, Sequence[str]] = {}

    @property
    def statements(self) -> tuple[str, ...]:
        """All of it as SQL."""
        # A newer device may have sent rows for new indexes before: all are rebuilt.
        stale = "DELETE FROM meta WHERE key = 'index_version' AND EXISTS (SELECT 1 FROM rows)"
        new = (*full_text_tables(self.indexes, COUNTS), stale) if self.indexes else ()
        return (*self.tables, *new)


# All replicated rows except live memories, which have a table with columns. `live` is 0 for
# tombstones.
_ROWS: Final = (
    """
    CREATE TABLE rows (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        data TEXT,
        clocks TEXT NOT NULL,
        live INTEGER NOT NULL,
        PRIMARY KEY (kind, id)
    ) STRICT, WITHOUT ROWID
    """,
    # Rows of which the replica does not have this version. `seen` is the version that it had, and
    # `base` the entry of the history that holds it (0: it is this one); `refused` says why it
    # cannot take this one.
    """
    CREATE TABLE outbox (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        seen TEXT,
        base INTEGER,
        refused TEXT,
        PRIMARY KEY (kind, id)
    ) STRICT, WITHOUT ROWID
    """,
    # Versions that were replaced, and values that lost when two devices changed one field;
    # `seen_at` is when somebody looked at such a value.
    """
    CREATE TABLE history (
        number INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        writer TEXT NOT NULL,
        device TEXT NOT NULL,
        why TEXT NOT NULL,
        data TEXT,
        clocks TEXT NOT NULL,
        seen_at REAL
    ) STRICT
    """,
    "CREATE INDEX history_by_row ON history(kind, id)",
    "CREATE INDEX history_conflicts ON history(why) WHERE why = 'conflict'",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    # The digest of each state file as last written.
    "CREATE TABLE state_files (name TEXT PRIMARY KEY, digest TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
# The tables without an index, which would miss a page with the content of another, sound page:
# their rows are counted.
COUNTED: Final = ("rows", "outbox")
_COUNTS: Final = tuple(
    statement
    for table in COUNTED
    for statement in (
        f"INSERT INTO meta VALUES ('rows_of_{table}', '0')",
        *(
            f"CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN"
            f" UPDATE meta SET value = value {change} WHERE key = 'rows_of_{table}'; END"
            for event, change in (("INSERT", "+ 1"), ("DELETE", "- 1"))
        ),
    )
)
_MEMORIES: Final = (
    # `extra` holds fields of other releases, and the uses that came with the memory; `size` is the
    # size of its record in the warm file. `stored_at` is when a caller stored the memory on this
    # device, whatever `created_at` says.
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
        pinned INTEGER NOT NULL,
        standing INTEGER NOT NULL,
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
        clocks TEXT NOT NULL,
        extra TEXT,
        size INTEGER NOT NULL,
        digest INTEGER NOT NULL,
        stored_at REAL
    ) STRICT
    """,
    "CREATE INDEX memories_by_digest ON memories(digest)",
    "CREATE INDEX memories_by_time ON memories(created_at)",
    "CREATE INDEX memories_by_category ON memories(category, importance DESC, created_at DESC)",
    """
    CREATE INDEX memories_by_original ON memories(original_category)
        WHERE original_category <> ''
    """,
    "CREATE INDEX memories_by_actor ON memories(actor) WHERE actor <> ''",
    "CREATE INDEX memories_by_group ON memories(grp, position) WHERE grp <> ''",
    "CREATE INDEX memories_by_expiry ON memories(expires_at) WHERE expires_at IS NOT NULL",
    "CREATE INDEX memories_standing ON memories(created_at) WHERE standing",
    "CREATE INDEX memories_merged ON memories(merged_into) WHERE merged_into IS NOT NULL",
    "CREATE INDEX memories_superseded ON memories(superseded_by) WHERE superseded_by IS NOT NULL",
    # Covers all columns that the warm cap needs, so that no row is read for it.
    """
    CREATE INDEX memories_warm ON memories(created_at, id, size, importance, access_count, pinned)
        WHERE archived_at IS NULL
    """,
)
# The names of people, by the words they may be called by; see `people`.
_PEOPLE: Final = (
    """
    CREATE TABLE people (
        called TEXT NOT NULL,
        name TEXT NOT NULL,
        words TEXT NOT NULL,
        PRIMARY KEY (called, name)
    ) STRICT, WITHOUT ROWID
    """,
)
# The data of pairs that recall needs; the number is their row in the full-text index.
_PAIRS: Final = (
    """
    CREATE TABLE pairs (
        row INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        length INTEGER NOT NULL
    ) STRICT
    """,
)
# The unpruned experiences; `whole_at` orders them by weight at any time.
_EXPERIENCES: Final = (
    """
    CREATE TABLE experiences (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        type TEXT NOT NULL,
        user TEXT NOT NULL,
        created_at REAL NOT NULL,
        last_used_at REAL NOT NULL,
        use_count INTEGER NOT NULL,
        success_score REAL NOT NULL,
        whole_at REAL NOT NULL,
        intent TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX experiences_by_weight ON experiences(whole_at)",
    "CREATE INDEX experiences_by_user ON experiences(user, type)",
)
# The status of the files of notes: `shown` is their text if the row differs, empty if there is
# no file; NULL if row and file agree. A file of size -1 does not exist.
_NOTES: Final = (
    """
    CREATE TABLE notes_on_disk (
        path TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        mtime INTEGER NOT NULL,
        ctime INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        shown TEXT
    ) STRICT, WITHOUT ROWID
    """,
)
# The categories with their derived data; their rows hold only the description.
_TREE: Final = (
    """
    CREATE TABLE tree (
        path TEXT PRIMARY KEY,
        desc TEXT NOT NULL,
        last_access REAL NOT NULL,
        warm_count INTEGER NOT NULL DEFAULT 0,
        cold_count INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID
    """,
    # Triggers keep the counts, so that they are right whatever changes the memories.
    """
    CREATE TRIGGER tree_counts_insert AFTER INSERT ON memories WHEN NEW.merged_into IS NULL
    BEGIN
        UPDATE tree SET warm_count = warm_count + (NEW.archived_at IS NULL),
            cold_count = cold_count + (NEW.archived_at IS NOT NULL),
            last_access = max(last_access, NEW.updated_at) WHERE path = NEW.category;
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
)
# The indexes and triggers that cost the most while many memories are added, as `INDEX name`; a
# restore makes them at its end.
_COSTLY: Final = {
    *("memories_by_digest", "memories_by_time", "memories_by_category", "memories_by_actor"),
    *("tree_counts_insert", "tree_counts_node"),
}
BULK: Final = {
    f"{sql.split()[1]} {name}": sql
    for sql in (*_MEMORIES, *_TREE)
    if (name := sql.split()[2]) in _COSTLY
}
# Conversations are local to this device: what is extracted from them becomes memories.
_CONVERSATIONS: Final = (
    # `read_to` is the position of the first turn not yet read for facts; `entry` is the line
    # about the whole that is still to be written to the file.
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
# The agent's own files as last read, and a table for each kind of their entries.
OWN: Final = ("reflections", "episodes", "skills")
_OWN: Final = (
    """
    CREATE TABLE own_files (
        path TEXT PRIMARY KEY,
        part TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime INTEGER NOT NULL,
        ctime INTEGER NOT NULL,
        inode INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE own_parts (
        name TEXT PRIMARY KEY,
        changed_at REAL NOT NULL,
        lines INTEGER NOT NULL,
        text TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    *(
        f"CREATE TABLE {name} (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
        " position INTEGER NOT NULL, created_at REAL NOT NULL, length INTEGER NOT NULL,"
        " data TEXT NOT NULL) STRICT"
        for name in OWN
    ),
    *(f"CREATE INDEX {name}_by_position ON {name}(position)" for name in OWN),
)
# The sums of the full-text indexes, so that a mean length needs no scan, and the number of texts
# at the last merge.
COUNTS: Final = "term_counts"
# The index of the chunks of watched files, in a separate database.
CHUNK_TEXT: Final[dict[str, tuple[str, ...]]] = {"chunk_fts": ("text", "heading")}
CHUNK_COUNTS: Final = "chunk_counts"


def counts_table(name: str) -> str:
    """The statement that makes the table of the sums of full-text indexes."""
    return (
        f"CREATE TABLE {name} (name TEXT PRIMARY KEY, texts INTEGER NOT NULL,"
        " terms INTEGER NOT NULL, merged INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )


def full_text_tables(indexes: Mapping[str, Sequence[str]], counts: str) -> Iterator[str]:
    """The statements that make full-text indexes, whose sums are in the table `counts`.

    The column `codes` has the concepts and dates of a text. Beside each index is a table for
    ranking texts: the number of their terms, the terms in order, and the codes.
    """
    for name, columns in indexes.items():
        # The categories make the marks of Devanagari or Thai parts of words. The index stores no
        # lengths, which ranking does not need and which would cost every store another page.
        words = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
        yield (
            f"CREATE VIRTUAL TABLE {name} USING fts5({', '.join(columns)}, codes, content='',"
            f' columnsize=0, tokenize = "{words}")'
        )
        yield (
            f"CREATE TABLE {name}_terms (row INTEGER PRIMARY KEY, length INTEGER NOT NULL,"
            " terms TEXT NOT NULL, codes TEXT NOT NULL) STRICT"
        )
        yield f"INSERT INTO {counts} VALUES ('{name}', 0, 0, 0)"


# The version of the words in the full-text indexes and of names: a change rebuilds them. It begins
# with the checksum of the concepts, whose codes depend on all their files; a test says what it is.
INDEX_VERSION: Final = 10 * 516_512 + 2
_INDEX: Final = (f"INSERT INTO meta VALUES ('index_version', '{INDEX_VERSION}')",)
# The numbers below 14 were used while nothing was released.
MIGRATIONS: Final = (
    Migration(
        14,
        (
            *(*_ROWS, *_COUNTS, *_MEMORIES, *_PEOPLE, *_PAIRS, *_OWN, *_TREE, *_NOTES, *_INDEX),
            *(*_EXPERIENCES, counts_table(COUNTS), *_CONVERSATIONS, *entity_tables.TABLES),
            """
            CREATE TABLE introductions (
                code TEXT NOT NULL,
                name TEXT NOT NULL,
                row INTEGER NOT NULL,
                PRIMARY KEY (code, name, row)
            ) STRICT, WITHOUT ROWID
            """,
            "CREATE INDEX introductions_by_row ON introductions(row)",
        ),
        {
            "memory_fts": ("text", "subject", "tags"),
            "pair_fts": ("key", "value"),
            "experience_fts": ("intent",),
            "entity_fts": ("text",),
            **{f"{name}_fts": ("text",) for name in OWN},
        },
    ),
)
# All full-text indexes with their columns.
FULL_TEXT: Final = {
    name: columns for migration in MIGRATIONS for name, columns in migration.indexes.items()
}
