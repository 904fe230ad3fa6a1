"""What another release wrote: earlier files are brought up to date, later ones left alone."""

import json
import os
import sqlite3
import tarfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from device import Device, ending
from earlier_release import RELEASES, losses, shown

from thermocline.daemon.client import ApiError
from thermocline.daemon.errors import Conflict
from thermocline.daemon.store import engine
from thermocline.daemon.store.database.full_text import is_current
from thermocline.daemon.store.database.memory_database import migrate
from thermocline.daemon.store.database.schema import MIGRATIONS, Migration
from thermocline.daemon.store.records import memories

THIS = MIGRATIONS[-1].version
# What the next release may do.
NEXT = (*MIGRATIONS, Migration(THIS + 1, ("ALTER TABLE memories ADD COLUMN mood TEXT",)))
BROKEN = (*MIGRATIONS, Migration(THIS + 1, ("CREATE TABLE half (x TEXT) STRICT", "no SQL")))


def texts(db: sqlite3.Connection) -> list[str]:
    return sorted(text for (text,) in db.execute("SELECT text FROM memories"))


def tables(db: sqlite3.Connection) -> set[tuple[str, str]]:
    made = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {(name, " ".join(sql.split())) for name, sql in made}


def version_of(path: Path) -> int:
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()


async def filled(open_store, make_memory) -> Any:
    """A memory that this release has written; closed."""
    store = await open_store()
    await store.write(lambda tx: [memories.insert(tx, make_memory(n)) for n in range(20)])
    await store.close()
    return store.place


async def test_the_next_release_brings_it_up_to_date_and_the_copy_is_the_way_back(
    open_store, make_memory, monkeypatch
):
    place = await filled(open_store, make_memory)
    with monkeypatch.context() as upgraded:
        upgraded.setattr(engine, "MIGRATIONS", NEXT)
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
    open_store, make_memory
):
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


async def test_the_copy_goes_after_a_week(open_store, make_memory, monkeypatch):
    place = await filled(open_store, make_memory)
    monkeypatch.setattr(engine, "MIGRATIONS", NEXT)
    store = await open_store(place)
    (copy,) = place.folder.glob(f"memory.db.v{THIS}-*")
    await store.run_maintenance()
    assert copy.exists()
    await store.close()
    os.utime(copy, (copy.stat().st_mtime - 8 * 86_400,) * 2)
    store = await open_store(place)
    await store.run_maintenance()
    assert not copy.exists()


async def test_a_migration_that_fails_leaves_the_database_as_it_was(
    open_store, make_memory, monkeypatch
):
    place = await filled(open_store, make_memory)
    with monkeypatch.context() as upgraded:
        upgraded.setattr(engine, "MIGRATIONS", BROKEN)
        with pytest.raises(Exception, match="syntax error"):
            await open_store(place)
    assert version_of(place.database) == THIS
    store = await open_store(place)
    assert len(await store.read(texts)) == 20


def test_a_daemon_leaves_the_memory_of_a_later_release_alone_and_serves_the_others(make_daemon):
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


@pytest.fixture(params=sorted(RELEASES.glob("*.tar.xz")), ids=lambda path: path.name.split(".")[0])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder that an earlier release wrote: its state, its replica and an archive."""
    with tarfile.open(request.param) as packed:
        # Python before 3.11.4 has no filters.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(tmp_path / "written")
    return tmp_path / "written"


def then(written: Path) -> dict[str, Any]:
    """What that release showed of it."""
    return dict(json.loads((written / "shown.json").read_text(encoding="utf-8")))


def at_the_time(folder: Path, written: Path, **options: Any) -> Device:
    """A device whose clock shows when the release wrote: nothing has grown old since."""
    device = Device(folder, clock=True, **options)
    device.set_clock((written / "shown.json").stat().st_mtime - time.time())
    return device


def test_this_release_opens_what_an_earlier_release_wrote(written):
    before, seen = version_of(written / "state/agents/default/memory.db"), then(written)
    device = at_the_time(written, written)
    with ending(device.start()):
        assert [*losses(seen, shown(device))] == []
        assert device.recall("when does Maya arrive?")[0].startswith("Maya's flight")
        assert device.recall("how do I open the gate?")[0] == "The gate code is 4712"
        assert device.problems() == []
        device.edit(next(iter(seen["memories"])), text="The gate code is 4713")
        assert [*losses(seen, shown(device))], "a change is noticed"
    assert version_of(device.folder() / "memory.db") == THIS
    assert [*device.folder().glob(f"memory.db.v{before}-*")] or before == THIS


def test_a_memory_of_an_earlier_release_has_the_tables_of_a_new_one(written):
    device = at_the_time(written, written)
    with ending(device.start()):
        device.edit(next(iter(then(written)["memories"])), text="The gate code is 4713")
    with closing(sqlite3.connect(":memory:")) as new:
        migrate(new, Path(":memory:"), MIGRATIONS)
        with closing(sqlite3.connect(device.folder() / "memory.db")) as upgraded:
            assert tables(upgraded) == tables(new), "a released migration was changed: add another"


@pytest.mark.parametrize("received", [False, True])
def test_rows_that_a_newer_device_sent_are_indexed_once_their_kind_is_known(received, tmp_path):
    later = Migration(THIS + 1, (), {"tune_fts": ("text",)})
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, MIGRATIONS)
        if received:
            db.execute("INSERT INTO rows VALUES ('tune', 't1', '{}', '{}', 1)")
        migrate(db, path, (*MIGRATIONS, later))
        assert is_current(db) is not received


def test_this_release_joins_the_replica_of_an_earlier_release(written, tmp_path):
    device = at_the_time(tmp_path / "new", written, url=f"file:{written / 'replica.db'}")
    device.restore()
    with ending(device.start()):
        assert [*losses(replicated(then(written)), shown(device))] == []
        device.store("The gate code is 4713", category="home/gate")
        device.sync()
        assert device.problems() == []


def test_this_release_restores_the_archive_of_an_earlier_release(written, tmp_path):
    device = at_the_time(tmp_path / "new", written)
    device.restore_file(written / "archive.tar.gz")
    with ending(device.start()):
        assert [*losses(replicated(then(written)), shown(device))] == []


def replicated(seen: dict[str, Any]) -> dict[str, Any]:
    """Without what stays on a device, and the files of notes, which are rows too."""
    return {name: value for name, value in seen.items() if name not in ("versions", "notes")}
