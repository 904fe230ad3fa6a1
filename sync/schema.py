"""The tables of a remote: one for rows, and those that keep their order.

`cold_memories` and `critical_state` are views in EvoClaw's shapes, so that its readers still work.
A database in which EvoClaw has tables of these names keeps its tables.
"""

from __future__ import annotations

from typing import Final

from .failures import Refused, SchemaMissing
from .ports import Remote, SqlStatement, rows_of, whole

# The numbers below it were used while nothing was released.
VERSION: Final = 2
# The memories of all agents, with the columns that EvoClaw gives them.
MEMORIES: Final = """
    SELECT id, agent_id, data->>'text' AS text, coalesce(data->>'category', 'general') AS category,
        coalesce(data->>'importance', 0.5) AS importance,
        CAST(data->>'created_at' AS INTEGER) AS created_at,
        coalesce(data->>'access_count', 0) AS access_count
    FROM rows WHERE kind = 'memory' AND json_valid(data)
"""


def _hot(section: str, aggregate: str) -> str:
    return (
        f"json((SELECT {aggregate} FROM (SELECT id, data->'value' AS value FROM rows"
        f" WHERE agent_id = c.agent_id AND kind = 'hot' AND id > '{section}/'"
        f" AND id < '{section}0' AND json_valid(data) ORDER BY data->>'position', id)))"
    )


def _entries(section: str) -> str:
    return _hot(section, f"json_group_object(substr(id, {len(section) + 2}), json(value))")


def _list(section: str) -> str:
    return _hot(section, "json_group_array(json(value))")


# On the remote no memory is warm: which ones are is derived on each device.
_NODE: Final = (
    "'warm_count', 0, 'cold_count', {count}, 'last_access', 0, 'children', json(({kids}))"
)
_ROOT_KIDS: Final = (
    "SELECT json_group_array(id) FROM rows WHERE agent_id = c.agent_id AND kind = 'category'"
    " AND data IS NOT NULL AND id <> 'root' AND instr(id, '/') = 0"
)
_KIDS: Final = (
    "SELECT json_group_array(k.id) FROM rows AS k WHERE k.agent_id = t.agent_id"
    " AND k.kind = 'category' AND k.id > t.id || '/' AND k.id < t.id || '0'"
    " AND k.data IS NOT NULL AND instr(substr(k.id, length(t.id) + 2), '/') = 0"
)
_TREE: Final = f"""
    (SELECT json_group_object(path, json(node)) FROM (
        SELECT 'root' AS path, json_object(
            'desc', 'Memory root', {_NODE.format(count="0", kids=_ROOT_KIDS)}) AS node
        UNION ALL
        SELECT t.id, json_object('desc', coalesce(t.data->>'desc', ''),
            {_NODE.format(count="coalesce(n.number, 0)", kids=_KIDS)})
        FROM rows AS t LEFT JOIN (
            SELECT data->>'category' AS category, count(*) AS number FROM rows
            WHERE agent_id = c.agent_id AND kind = 'memory' AND json_valid(data) GROUP BY 1
        ) AS n ON n.category = t.id
        WHERE t.agent_id = c.agent_id AND t.kind = 'category' AND t.id <> 'root'
            AND json_valid(t.data)))
"""
_LAST_CONTACT: Final = (
    "coalesce((SELECT max(last_at) FROM replica_devices WHERE agent_id = c.agent_id), 0)"
)
_SCHEMA: Final = (
    """
    CREATE TABLE IF NOT EXISTS replica_clock (
        agent_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, epoch TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS rows (
        agent_id TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL,
        version TEXT NOT NULL, device TEXT NOT NULL, data TEXT, clocks TEXT NOT NULL,
        PRIMARY KEY (agent_id, kind, id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS rows_order ON rows (agent_id, seq)",
    # Old deletions are found without reading the rest; rows that live cost nothing.
    "CREATE INDEX IF NOT EXISTS rows_deleted ON rows (agent_id, seq) WHERE data IS NULL",
    """
    CREATE TABLE IF NOT EXISTS replica_devices (
        agent_id TEXT NOT NULL, device_id TEXT NOT NULL, name TEXT NOT NULL,
        first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, seen INTEGER NOT NULL,
        retired_at INTEGER, release TEXT, PRIMARY KEY (agent_id, device_id)
    ) STRICT, WITHOUT ROWID
    """,
    f"CREATE VIEW IF NOT EXISTS cold_memories AS {MEMORIES}",
    f"""
    CREATE VIEW IF NOT EXISTS critical_state AS
    SELECT c.agent_id AS agent_id, json_object(
        'hot_state', json_patch({_entries("extra")}, json_object(
            'identity', {_entries("identity")},
            'owner_profile', {_entries("owner_profile")},
            'active_context', json(json_patch({_entries("context")}, json_object(
                'projects', {_list("project")},
                'events', {_list("event")},
                'tasks', {_list("task")}))),
            'critical_lessons', {_list("lesson")})),
        'tree_nodes', json({_TREE}),
        'timestamp', {_LAST_CONTACT}) AS data, {_LAST_CONTACT} AS updated_at
    FROM replica_clock AS c
    """,
    """
    CREATE TABLE IF NOT EXISTS schema_version (
        version INTEGER PRIMARY KEY, made_at INTEGER NOT NULL
    ) STRICT
    """,
)


async def prepare(remote: Remote, now: float, *, is_missing: bool = False) -> None:
    """Create the missing tables. Safe at any time, from several devices at once.

    `is_missing`: some are, whatever the version says: somebody has dropped them.
    """
    current = await version(remote)
    if current > VERSION:
        raise Refused(
            "newer_schema",
            f"cannot use the remote: its tables are of version {current}, this release knows"
            f" {VERSION}",
            hint="install the release that the other devices run, or a later one",
        )
    if current == VERSION and not is_missing:
        return
    made = SqlStatement("INSERT OR IGNORE INTO schema_version VALUES (?1, ?2)", (VERSION, int(now)))
    await remote.batch([*map(SqlStatement, _SCHEMA), made])


async def version(remote: Remote) -> int:
    """The version of the remote's tables; 0: it has none."""
    try:
        [(highest,)] = await rows_of(remote, "SELECT max(version) FROM schema_version")
    except SchemaMissing:
        return 0
    return whole(highest)
