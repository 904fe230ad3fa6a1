"""From one schema to the next: forward in whole steps, with a copy; never backwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from thermocline.daemon.errors import Conflict, ThermoclineError
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import entities, memories
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database import connect_writer, migrate
from thermocline.daemon.store.opening import Place
from thermocline.daemon.store.rows import INSERT, to_row
from thermocline.daemon.store.schema import MIGRATIONS, Migration

OpenStore: TypeAlias = Callable[..., Awaitable[AgentStore]]
MakePlace: TypeAlias = Callable[..., Place]
MakeMemory: TypeAlias = Callable[..., Memory]

LATEST = MIGRATIONS[-1].version
NEXT = Migration(LATEST + 1, ("CREATE TABLE later (a TEXT) STRICT", "INSERT INTO later VALUES (1)"))
BROKEN = Migration(LATEST + 2, ("CREATE TABLE half (a TEXT) STRICT", "INSERT INTO nowhere VALUES"))


async def filled(open_store: OpenStore, place: Place, make_memory: MakeMemory) -> None:
    store = await open_store(place)
    await store.write(lambda tx: memories.insert(tx, make_memory(1)))
    await store.close()


def version(place: Place) -> int:
    db = sqlite3.connect(place.database)
    found = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return int(found)


async def test_a_later_schema_is_reached_and_a_copy_of_the_earlier_kept(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    await filled(open_store, make_place(), make_memory)
    later = make_place(migrations=(*MIGRATIONS, NEXT))
    store = await open_store(later)
    assert await store.read(lambda db: memories.find(db, "m00001").text) == make_memory(1).text
    assert await store.read(lambda db: db.execute("SELECT a FROM later").fetchall()) == [("1",)]
    await store.close()
    assert version(later) == NEXT.version
    [copy] = later.folder.glob(f"memory.db.v{LATEST}-*")
    db = sqlite3.connect(copy)
    assert db.execute("SELECT count(*) FROM memories").fetchone() == (1,)
    assert db.execute("PRAGMA user_version").fetchone() == (LATEST,)
    db.close()


async def test_a_fresh_database_gets_every_step_and_no_copy(
    open_store: OpenStore, make_place: MakePlace
) -> None:
    place = make_place(migrations=(*MIGRATIONS, NEXT))
    await (await open_store(place)).close()
    assert version(place) == NEXT.version
    assert not list(place.folder.glob("memory.db.v*"))


async def test_a_step_that_fails_leaves_the_steps_before_it_and_nothing_of_itself(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    await filled(open_store, make_place(), make_memory)
    with pytest.raises(ThermoclineError):
        await open_store(make_place(migrations=(*MIGRATIONS, NEXT, BROKEN)))
    place = make_place(migrations=(*MIGRATIONS, NEXT))
    assert version(place) == NEXT.version
    store = await open_store(place)
    tables = await store.read(
        lambda db: {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    )
    assert "later" in tables
    assert "half" not in tables
    assert await store.read(lambda db: memories.find(db, "m00001").text) == make_memory(1).text


async def test_a_database_of_a_later_release_is_refused_and_left_as_it_is(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    place = make_place()
    await filled(open_store, place, make_memory)
    db = sqlite3.connect(place.database)
    db.execute(f"PRAGMA user_version = {LATEST + 1}")
    db.close()
    before = {path.name: path.read_bytes() for path in place.folder.iterdir() if path.is_file()}
    with pytest.raises(Conflict, match="schema version") as raised:
        await open_store(place)
    assert raised.value.hint
    after = {path.name: path.read_bytes() for path in place.folder.iterdir() if path.is_file()}
    assert {name: after[name] for name in before} == before


async def first_schema(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> Place:
    """A place whose database is one of the first schema, with a memory and a counter in it."""
    await filled(open_store, make_place(), make_memory)
    place = make_place()
    full = place.database.rename(place.folder / "full.db")
    db = sqlite3.connect(place.database)
    for statement in MIGRATIONS[0].statements:
        db.execute(statement)
    db.execute("ATTACH ? AS full", (str(full),))
    for table in ("memories", "tree", "kv", "meta"):
        columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
        db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM full.{table}")
    db.execute("INSERT INTO memory_fts(rowid, text) SELECT row, text FROM memories")
    db.execute("INSERT INTO metrics VALUES ('total_stored', 7)")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()
    full.unlink()
    return place


async def test_what_the_first_schema_held_is_there_in_the_second(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    place = await first_schema(open_store, make_place, make_memory)
    store = await open_store(place)
    found = await store.read(lambda db: memories.find(db, "m00001"))
    assert found.text == make_memory(1).text
    assert (found.filed_clock, found.filed_device) == (0, "")
    counters = await store.read(lambda db: db.execute("SELECT * FROM metrics").fetchall())
    assert ("total_stored", place.device, 7.0, 0) in counters
    await store.write(lambda tx: memories.reinforce(tx, ["m00001"]))
    assert (await store.read(lambda db: memories.find(db, "m00001"))).access_count == 1


async def test_whom_memories_named_before_there_was_an_index_of_it_is_in_it(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    place = make_place()
    place.folder.mkdir(parents=True)
    db = connect_writer(place.database, 512)
    migrate(db, place.database, MIGRATIONS[:2])
    named = make_memory(1, data={"entities": [{"name": "Ada"}]})
    for memory in (named, make_memory(2, data={"other": "entities"})):
        db.execute(INSERT, to_row(memory))
    db.close()
    store = await open_store(place)
    (ada,) = await store.read(lambda db: entities.around(db, "ada", 1))
    assert ada.mentions == 1


async def test_a_damaged_database_of_the_first_schema_gives_up_what_it_still_holds(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    place = await first_schema(open_store, make_place, make_memory)
    for face in place.folder.glob("*.json"):
        face.unlink()
    db = sqlite3.connect(place.database)
    root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'kv'").fetchone()[0]
    db.close()
    with place.database.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    store = await open_store(place)
    assert (await store.read(lambda db: memories.find(db, "m00001"))).text == make_memory(1).text
