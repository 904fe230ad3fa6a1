"""The tables of a remote, and how they come to be, whoever was there before.

`cold_memories` and `critical_state` are EvoClaw's, which goes on reading and writing them; all
further columns may be NULL. Each step is one batch whose first statement claims its number, so
that of two devices at once one does it and the other finds it done.
"""

from __future__ import annotations

from typing import Final

from .failures import Refused
from .remote import Remote, Statement
from .values import whole

VERSION: Final = 1

_VERSIONS: Final = Statement(
    "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, made_at INTEGER)"
)
_BASE: Final = (
    """
    CREATE TABLE IF NOT EXISTS cold_memories (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        text TEXT NOT NULL,
        category TEXT NOT NULL,
        importance REAL DEFAULT 0.5,
        created_at INTEGER NOT NULL,
        access_count INTEGER DEFAULT 0
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS critical_state (
        agent_id TEXT PRIMARY KEY,
        data TEXT NOT NULL,
        updated_at INTEGER NOT NULL
    )
    """,
)
# What the first release of EvoClaw's table lacks, and what later ones lack of ours.
_ADDED: Final = {
    "cold_memories": {
        "agent_id": "TEXT NOT NULL DEFAULT 'default'",
        "record": "TEXT",
        "clock": "INTEGER",
        "device": "TEXT",
        "place": "TEXT",
        "place_clock": "INTEGER",
        "place_device": "TEXT",
        "digest": "TEXT",
        "seq": "INTEGER",
    },
    "critical_state": {"version": "INTEGER", "device": "TEXT"},
}
_OURS: Final = (
    "CREATE INDEX IF NOT EXISTS idx_cold_agent_category ON cold_memories(agent_id, category)",
    "CREATE INDEX IF NOT EXISTS idx_cold_agent_created ON cold_memories(agent_id, created_at)",
    "CREATE INDEX IF NOT EXISTS cold_memories_order ON cold_memories(agent_id, seq, id)",
    """
    CREATE TABLE IF NOT EXISTS objects (
        agent_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        data TEXT,
        clock INTEGER NOT NULL,
        device TEXT NOT NULL,
        digest TEXT,
        seq INTEGER NOT NULL,
        PRIMARY KEY (agent_id, kind, id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS objects_order ON objects(agent_id, seq, kind, id)",
    """
    CREATE TABLE IF NOT EXISTS replica_clock (
        agent_id TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        epoch TEXT NOT NULL,
        pruned INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    # Not `devices`: EvoClaw's own synchronisation has a table of that name.
    """
    CREATE TABLE IF NOT EXISTS replica_devices (
        agent_id TEXT NOT NULL,
        device_id TEXT NOT NULL,
        name TEXT NOT NULL,
        first_at INTEGER NOT NULL,
        last_at INTEGER NOT NULL,
        seen INTEGER NOT NULL,
        retired_at INTEGER,
        PRIMARY KEY (agent_id, device_id)
    ) WITHOUT ROWID
    """,
)


async def prepare(remote: Remote, now: float) -> None:
    """Bring the remote's tables up to date. Safe at any time, from several devices at once.

    Raises:
        SyncError: the remote cannot be reached or refuses; or a later release made its tables.
    """
    found = await _version(remote)
    refuse_newer(found)
    if found == VERSION:
        return
    added = await _missing_columns(remote)
    claim = Statement("INSERT INTO schema_version VALUES (?, ?)", (VERSION, int(now)))
    statements = [claim, *added, *map(Statement, _OURS)]
    try:
        await remote.batch(statements)
    except Refused as error:
        # Another device claimed the version first.
        if error.code != "constraint" or await _version(remote) < VERSION:
            raise


def refuse_newer(found: int) -> None:
    """Refuse tables of a version that only a later release knows.

    Raises:
        Refused: they are.
    """
    if found > VERSION:
        raise Refused(
            "newer_schema",
            f"cannot use the remote: its tables are of version {found}, this release knows "
            f"{VERSION}",
            hint="install the release that the other devices run, or a later one",
        )


async def _version(remote: Remote) -> int:
    _, result = await remote.batch(
        [_VERSIONS, Statement("SELECT coalesce(max(version), 0) FROM schema_version")]
    )
    return whole(result.rows[0][0])


async def _missing_columns(remote: Remote) -> list[Statement]:
    """The columns to add; the tables are EvoClaw's already, or made here as EvoClaw makes them."""
    await remote.batch([Statement(sql) for sql in _BASE])
    missing: list[Statement] = []
    for table, columns in _ADDED.items():
        [result] = await remote.batch([Statement(f"SELECT name FROM pragma_table_info('{table}')")])
        present = {str(name) for (name,) in result.rows}
        missing += [
            Statement(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
            for name, kind in columns.items()
            if name not in present
        ]
    return missing
