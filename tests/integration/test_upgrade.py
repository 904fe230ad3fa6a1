"""Another release's database: an earlier one is brought up to date, a later one left alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon

from thermocline.daemon.client import ApiError
from thermocline.daemon.errors import Conflict
from thermocline.daemon.store import memories, opening
from thermocline.daemon.store.schema import MIGRATIONS, Migration

OpenStore = Callable[..., Awaitable[Any]]
THIS = MIGRATIONS[-1].version
# What the next release may do.
NEXT = (*MIGRATIONS, Migration(THIS + 1, ("ALTER TABLE memories ADD COLUMN mood TEXT",)))
BROKEN = (*MIGRATIONS, Migration(THIS + 1, ("CREATE TABLE half (x TEXT) STRICT", "no SQL")))


def texts(db: sqlite3.Connection) -> list[str]:
    return sorted(text for (text,) in db.execute("SELECT text FROM memories"))


def version_of(path: Path) -> int:
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()


async def filled(open_store: OpenStore, make_memory: Callable[..., Any]) -> Any:
    """A memory that this release has written; closed."""
    store = await open_store()
    await store.write(lambda tx: [memories.insert(tx, make_memory(n)) for n in range(20)])
    await store.close()
    return store.place


async def test_the_next_release_brings_it_up_to_date_and_the_copy_is_the_way_back(
    open_store: OpenStore, make_memory: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await filled(open_store, make_memory)
    with monkeypatch.context() as upgraded:
        upgraded.setattr(opening, "MIGRATIONS", NEXT)
        store = await open_store(place)
        before = await store.read(texts)
        assert len(before) == 20
        await store.write(lambda tx: memories.insert(tx, make_memory(20)))
        await store.close()
    assert version_of(place.database) == THIS + 1
    (copy,) = place.folder.glob(f"memory.db.v{THIS}-*")

    written = place.database.read_bytes()
    with pytest.raises(Conflict) as refused:
        await open_store(place)
    assert str(THIS + 1) in refused.value.message
    assert refused.value.hint == "install the release that wrote it, or a later one"
    assert place.database.read_bytes() == written

    copy.replace(place.database)
    store = await open_store(place)
    assert await store.read(texts) == before


async def test_a_database_from_before_the_first_release_is_rebuilt_from_what_it_holds(
    open_store: OpenStore, make_memory: Callable[..., Any]
) -> None:
    place = await filled(open_store, make_memory)
    with closing(sqlite3.connect(place.database)) as db:
        before = texts(db)
        db.execute("DROP INDEX memories_warm")
        db.execute("ALTER TABLE memories DROP COLUMN pinned")
        db.execute(f"PRAGMA user_version = {MIGRATIONS[0].version - 1}")
    store = await open_store(place)
    assert await store.read(texts) == before
    assert version_of(place.database) == THIS
    assert [*place.folder.glob("memory.db.corrupt-*")], "the old database is kept"


async def test_the_copy_goes_after_a_week(
    open_store: OpenStore, make_memory: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await filled(open_store, make_memory)
    monkeypatch.setattr(opening, "MIGRATIONS", NEXT)
    store = await open_store(place)
    (copy,) = place.folder.glob(f"memory.db.v{THIS}-*")
    await store.tend()
    assert copy.exists()
    await store.close()
    os.utime(copy, (copy.stat().st_mtime - 8 * 86_400,) * 2)
    store = await open_store(place)
    await store.tend()
    assert not copy.exists()


async def test_a_migration_that_fails_leaves_the_database_as_it_was(
    open_store: OpenStore, make_memory: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await filled(open_store, make_memory)
    with monkeypatch.context() as upgraded:
        upgraded.setattr(opening, "MIGRATIONS", BROKEN)
        with pytest.raises(Exception, match="syntax error"):
            await open_store(place)
    assert version_of(place.database) == THIS
    store = await open_store(place)
    assert len(await store.read(texts)) == 20


def test_a_daemon_leaves_the_memory_of_a_later_release_alone_and_serves_the_others(
    make_daemon: Callable[..., Daemon],
) -> None:
    daemon = make_daemon().start()
    with daemon.client() as client, daemon.client("other") as other:
        client.store("written by a later release")
        other.store("written by this one")
    daemon.stop()
    database = daemon.folder() / "memory.db"
    db = sqlite3.connect(database)
    db.execute(f"PRAGMA user_version = {THIS + 1}")
    db.close()
    before = database.read_bytes()

    daemon.start()
    with daemon.client() as client, daemon.client("other") as other:
        with pytest.raises(ApiError) as refused:
            client.recall("later release")
        assert refused.value.status == 409
        assert f"schema version is {THIS + 1}, this release knows {THIS}" in refused.value.message
        assert "install the release that wrote it" in (refused.value.hint or "")
        with pytest.raises(ApiError):
            client.store("not into this one")
        assert other.recall("written by this one").results
        assert "agent_trouble" in {problem.code for problem in client.status().problems}
    daemon.stop()
    assert database.read_bytes() == before
    assert {path.name for path in daemon.folder().glob("memory.db*")} == {"memory.db"}
