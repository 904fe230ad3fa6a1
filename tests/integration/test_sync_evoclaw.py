"""What EvoClaw's readers find on a remote, and what is read of what EvoClaw left there."""

import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from memory_sides import MemoryLocal

from thermocline.daemon.importers.intake import ImportReport
from thermocline.daemon.importers.systems import evoclaw
from thermocline.sync import (
    Device,
    Exchange,
    FileRemote,
    HybridClock,
    Refused,
    Remote,
    Replica,
    SqlStatement,
    foreign,
    turso,
)

START = 1_700_000_000.0
COLD = """
    CREATE TABLE cold_memories (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, text TEXT NOT NULL,
        category TEXT NOT NULL, importance REAL DEFAULT 0.5, created_at INTEGER NOT NULL,
        access_count INTEGER DEFAULT 0)
"""
CRITICAL = """
    CREATE TABLE critical_state (
        agent_id TEXT PRIMARY KEY, data TEXT NOT NULL, updated_at INTEGER NOT NULL)
"""
SERVICE = """
    CREATE TABLE cold_memory (id TEXT PRIMARY KEY, agent_id TEXT, content TEXT,
        distilled_summary TEXT, category TEXT, importance REAL, created_at INTEGER,
        access_count INTEGER)
"""
WARM = "CREATE TABLE warm_memory (id TEXT, agent_id TEXT, content TEXT, event_type TEXT, timestamp)"


@pytest.fixture(params=["file", "turso"])
async def remote(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Remote]:
    """An empty database."""
    made: Remote
    if request.param == "file":
        made = FileRemote(tmp_path / "replica.db")
    else:
        made = await turso.connect(request.getfixturevalue("sqld").url)
    yield made
    await made.close()


async def run(remote: Remote, sql: str, *args: Any) -> tuple[tuple[Any, ...], ...]:
    [result] = await remote.batch([SqlStatement(sql, args)])
    return result.rows


async def read(remote: Remote, folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a reader of its own finds: our connection runs nothing that a schema holds."""
    path = folder / "replica.db"
    if not path.exists():
        return list(await run(remote, sql))
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


async def send(remote: Remote, rows: dict[tuple[str, str], Any], agent: str = "default") -> None:
    local = MemoryLocal("one", HybridClock(lambda: START))
    for (kind, key), data in rows.items():
        local.write(kind, key, data)
    device = Device("one", "the one")
    await Exchange(local, Replica(remote, agent), device, frozenset(), lambda: START).run()


MEMORY = {
    "text": "the sky is blue",
    "category": "world/sky",
    "importance": 0.7,
    "created_at": START + 0.5,
}


async def test_its_readers_find_the_memories_where_they_look_for_them(remote, tmp_path):
    await send(
        remote,
        {
            ("memory", "m1"): MEMORY,
            ("memory", "m2"): {"text": "no more"},
            ("pair", "m3"): {"value": "not a memory"},
        },
    )
    await send(remote, {("memory", "m1"): {"text": "another's"}}, "other")
    columns = "id, agent_id, text, category, importance, created_at, access_count"
    rows = await read(
        remote, tmp_path, f"SELECT {columns} FROM cold_memories WHERE agent_id = 'default'"
    )
    assert rows[0] == ("m1", "default", "the sky is blue", "world/sky", 0.7, int(START), 0)
    assert rows[1] == ("m2", "default", "no more", "general", 0.5, None, 0)
    assert len(rows) == 2
    with pytest.raises(Refused):
        await run(remote, "DELETE FROM cold_memories")
    # Our views are not taken for its tables.
    assert await foreign.read(remote, "default") == foreign.Foreign([], [], None)


async def test_its_critical_state_is_made_of_the_rows(remote, tmp_path):
    def hot(value: Any, position: int = 0) -> dict[str, Any]:
        return {"value": value, "position": position}

    await send(
        remote,
        {
            ("hot", "identity/agent_name"): hot("Ada"),
            ("hot", "owner_profile/family"): hot(["Bo", "Cy"]),
            ("hot", "owner_profile/a/b"): hot({"x": None}),
            ("hot", "project/z"): hot({"name": "z", "status": "Active"}, 1),
            ("hot", "project/y"): hot({"name": "y"}, 2),
            ("hot", "task/1"): hot({"text": "t", "status": "pending", "timestamp": 1}),
            ("hot", "lesson/2"): hot({"text": "second", "importance": 0.5}, 1),
            ("hot", "lesson/1"): hot({"text": "first", "importance": 0.9}, 0),
            ("hot", "extra/pending_tasks"): hot([1]),
            ("hot", "context/mood"): hot("calm"),
            ("category", "world"): {"desc": "The world"},
            ("category", "world/sky"): {"desc": "Above"},
            ("category", "worlds"): {"desc": "Others"},
            ("category", "world/sky/blue"): {"desc": "Deep"},
            ("memory", "m1"): MEMORY,
            ("memory", "m2"): MEMORY,
        },
    )
    await send(remote, {("memory", "m1"): MEMORY}, "other")
    await run(remote, "UPDATE rows SET data = '{' WHERE id = 'owner_profile/a/b'")
    [(data, updated)] = await read(
        remote, tmp_path, "SELECT data, updated_at FROM critical_state WHERE agent_id = 'default'"
    )
    assert updated == START
    found = json.loads(data)
    assert found["hot_state"] == {
        "identity": {"agent_name": "Ada"},
        "owner_profile": {"family": ["Bo", "Cy"]},
        "active_context": {
            "projects": [{"name": "z", "status": "Active"}, {"name": "y"}],
            "events": [],
            "tasks": [{"text": "t", "status": "pending", "timestamp": 1}],
            "mood": "calm",
        },
        "critical_lessons": [
            {"text": "first", "importance": 0.9},
            {"text": "second", "importance": 0.5},
        ],
        "pending_tasks": [1],
    }
    assert found["timestamp"] == START
    empty = {"warm_count": 0, "cold_count": 0, "last_access": 0}
    assert found["tree_nodes"] == {
        "root": empty | {"desc": "Memory root", "children": ["world", "worlds"]},
        "world": empty | {"desc": "The world", "children": ["world/sky"]},
        "world/sky": empty | {"desc": "Above", "cold_count": 2, "children": ["world/sky/blue"]},
        "world/sky/blue": empty | {"desc": "Deep", "children": []},
        "worlds": empty | {"desc": "Others", "children": []},
    }
    assert len(await read(remote, tmp_path, "SELECT data FROM critical_state")) == 2


async def test_its_own_tables_are_left_alone_and_can_be_read(remote):
    await run(remote, COLD)
    await run(remote, CRITICAL)
    insert = "INSERT INTO cold_memories VALUES (?, ?, ?, ?, ?, ?, ?)"
    for number in range(700):
        await run(remote, insert, f"{number:03}", "default", f"t{number}", "a/b", 0.5, 1000, 3)
    await run(remote, insert, "x", "other", "theirs", "c", 0.25, 1_700_000_000_000, -1)
    await run(remote, insert, "y", "default", "  ", "c", 0.25, 5, 1)
    state = {"hot_state": {"identity": {"name": "Ada"}}, "tree_nodes": {}, "timestamp": 5}
    await run(remote, "INSERT INTO critical_state VALUES ('default', ?, 5)", json.dumps(state))
    await run(remote, "INSERT INTO critical_state VALUES ('odd', 'no JSON', 5)")
    await send(remote, {("memory", "m1"): MEMORY})
    assert await run(remote, "SELECT count(*) FROM cold_memories") == ((702,),)
    found = await foreign.read(remote, "default")
    assert found.agents == ["default", "odd", "other"]
    memories = evoclaw.memories(found.memories, START, ImportReport())
    assert len(memories) == 700
    first = memories[0]
    assert (first.id, first.text, first.category) == ("000", "t0", "a/b")
    assert (first.importance, first.created_at, first.access_count) == (0.5, 1000, 3)
    theirs = await foreign.read(remote, "other")
    [memory] = evoclaw.memories(theirs.memories, START, ImportReport())
    assert (memory.created_at, memory.access_count) == (1_700_000_000, 0)
    assert found.critical == state
    for agent in ("odd", "nobody"):
        assert (await foreign.read(remote, agent)).critical is None


async def test_its_first_table_had_no_agents(remote):
    await run(remote, "CREATE TABLE cold_memories (id TEXT PRIMARY KEY, text TEXT, category TEXT)")
    await run(remote, "INSERT INTO cold_memories VALUES ('0123456789abcdef', 'old', NULL)")
    found = await foreign.read(remote, "default")
    assert found.agents == ["default"]
    [old] = evoclaw.memories(found.memories, START, ImportReport())
    assert (old.text, old.category, old.importance) == ("old", "general", 0.5)
    assert (await foreign.read(remote, "other")).memories == []


CONTENTS = [
    ("just text", "just text"),
    ('{"fact": "a fact", "text": "no"}', "a fact"),
    ('{"fact": " ", "summary": "in short"}', "in short"),
    ('"a string"', "a string"),
    ('{"other": 1}', '{"other": 1}'),
]


@pytest.mark.parametrize(("content", "text"), CONTENTS)
async def test_a_fact_of_its_service_is_found_in_every_form(remote, content, text):
    await run(remote, SERVICE)
    await run(remote, WARM)
    row = ("a", "default", content, "", "c", "odd", START * 1000, None)
    await run(remote, f"INSERT INTO cold_memory VALUES ({', '.join('?' * 8)})", *row)
    await run(remote, "INSERT INTO warm_memory VALUES ('w', 'default', ?, 'fact', 5)", content)
    await run(remote, "INSERT INTO warm_memory VALUES (x'00', 'default', 'an odd id', '', 5)")
    found = await foreign.read(remote, "default")
    cold, warm = evoclaw.memories(found.memories, START, ImportReport())
    assert (cold.text, cold.importance, cold.created_at) == (text, 0.5, int(START))
    assert (warm.text, warm.category, warm.created_at) == (text, "fact", 5)
