"""What EvoClaw's service left in tables of its own is read as it stands, and left there."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from thermocline.sync import FileRemote, Replica, Row

SCHEMA = """
CREATE TABLE cold_memory (id TEXT PRIMARY KEY, agent_id TEXT, timestamp INTEGER, event_type TEXT,
    category TEXT, content TEXT, distilled_summary TEXT, importance REAL, access_count INTEGER,
    last_accessed INTEGER, created_at INTEGER);
CREATE TABLE warm_memory (id TEXT PRIMARY KEY, agent_id TEXT, content TEXT, event_type TEXT,
    timestamp INTEGER, distilled INTEGER, created_at INTEGER, expires_at INTEGER);
CREATE TABLE core_memory (id TEXT PRIMARY KEY, agent_id TEXT, content TEXT, memory_type TEXT,
    version INTEGER, created_at INTEGER, updated_at INTEGER);
"""
AT = 1_700_000_000


def cold(db: sqlite3.Connection, key: str, content: Any, summary: str = "", **other: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    row = {"agent_id": "default", "created_at": AT, "category": "work"} | other
    db.execute(
        "INSERT INTO cold_memory VALUES (?, ?, ?, 'decision', ?, ?, ?, 0.7, 3, NULL, ?)",
        (key, row["agent_id"], AT, row["category"], text, summary, row["created_at"]),
    )


@pytest.fixture
async def remote(tmp_path: Path) -> AsyncIterator[FileRemote]:
    remote = FileRemote(tmp_path / "r.db")
    yield remote
    await remote.close()


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
    connection.executescript(SCHEMA)
    return connection


async def left(remote: FileRemote, agent: str = "default") -> dict[str, Row]:
    return {row.id: row async for rows in Replica(remote, agent).left_by_others() for row in rows}


async def test_a_fact_of_the_service_is_read_with_all_that_it_says(
    remote: FileRemote, db: sqlite3.Connection
) -> None:
    cold(db, "g1", {"fact": "We chose Go", "date": "x"}, "chose go")
    [row] = (await left(remote)).values()
    assert row.view is not None
    assert (row.view.text, row.view.category, row.view.importance) == ("We chose Go", "work", 0.7)
    assert (row.view.created_at, row.view.access_count, row.data) == (AT, 3, None)
    db.close()


@pytest.mark.parametrize(
    ("content", "summary", "text"),
    [
        ("plain words", "short", "plain words"),
        ("", "short", "short"),
        ('{"text": "in a field"}', "", "in a field"),
        ('"a quoted text"', "", "a quoted text"),
        ("[1, 2]", "", "[1, 2]"),
    ],
)
async def test_the_text_is_found_in_every_form_of_content(
    remote: FileRemote, db: sqlite3.Connection, content: str, summary: str, text: str
) -> None:
    cold(db, "g1", content, summary)
    [row] = (await left(remote)).values()
    assert row.view is not None
    assert row.view.text == text
    db.close()


async def test_warm_and_core_memories_are_read_times_in_milliseconds_too(
    remote: FileRemote, db: sqlite3.Connection
) -> None:
    db.execute(f"INSERT INTO warm_memory VALUES ('w', 'default', 'warm', 'chat', {AT}, 0, 1, 2)")
    db.execute(f"INSERT INTO core_memory VALUES ('c', 'default', 'core', 'owner', 1, {AT}000, 2)")
    found = {key: row.view for key, row in (await left(remote)).items()}
    assert found["w"] is not None
    assert found["c"] is not None
    assert (found["w"].category, found["c"].category) == ("chat", "core/owner")
    assert found["w"].created_at == found["c"].created_at == AT
    db.close()


async def test_other_agents_rows_empty_rows_and_missing_tables_give_nothing(
    remote: FileRemote, db: sqlite3.Connection
) -> None:
    cold(db, "a", "theirs", agent_id="other")
    cold(db, "b", "  ")
    db.execute("DROP TABLE core_memory")
    assert await left(remote) == {}
    assert set(await left(remote, "other")) == {"a"}
    db.close()


async def test_more_rows_than_one_answer_brings_all_come_once(
    remote: FileRemote, db: sqlite3.Connection
) -> None:
    db.execute("BEGIN")
    for number in range(1201):
        cold(db, f"g{number:05d}", f"fact {number}")
    db.execute("COMMIT")
    assert len(await left(remote)) == 1201
    db.close()
