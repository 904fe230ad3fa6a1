"""Restoring from an archive: into an empty place, at once or not at all, whoever made it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.errors import (
    AlreadyRunning,
    Conflict,
    InvalidInput,
    StoreDamaged,
    ThermoclineError,
)
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.problems import Problems
from thermocline.daemon.restoring.from_file import Restored, restore_file
from thermocline.daemon.restoring.interrupted import finish
from thermocline.daemon.store import archiving, key_values, memories, snapshot
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.lock import StateLock
from thermocline.daemon.store.opening import Place
from thermocline.daemon.store.transaction import Rules

OpenStore = Callable[..., Awaitable[AgentStore]]
# So little warm room that most of the memories stand in the archive.
CROWDED = Rules(warm_max_bytes=4_000)


def never() -> bool:
    return False


async def archived(store: AgentStore, folder: Path) -> Path:
    """The archive of an open memory."""
    copy = snapshot.make_folder(folder)
    path = await store.read(lambda db: snapshot.copy(db, copy, never))
    taken = snapshot.complete(path, store.rules, store.now, never)
    file = folder / "a.tar.gz"
    file.write_bytes(b"".join(archiving.stream(store.place, taken, "0.1.0", folder)))
    return file


@pytest.fixture
async def archive(
    open_store: OpenStore,
    make_place: Callable[..., Place],
    make_memory: Callable[..., Memory],
    tmp_path: Path,
) -> Path:
    """The archive of an agent `ana` with 40 memories, a pair and a note."""
    place = make_place("ana")
    store = await open_store(place, rules=CROWDED)
    await store.write(lambda tx: [memories.insert(tx, make_memory(n)) for n in range(40)])
    await store.write(lambda tx: key_values.put(tx, "theme", "dark"))
    notes = place.folder / "memory" / "skills"
    notes.mkdir(parents=True)
    (notes / "run.sh").write_text("#!/bin/sh\n")
    (notes / "run.sh").chmod(0o755)
    os.utime(notes / "run.sh", (1_600_000_000, 1_600_000_000))
    return await archived(store, tmp_path)


def restore(file: Path, state: Path, **options: Any) -> Restored:
    given: dict[str, Any] = {"agent": None, "replace": False, "dry_run": False, "tell": _say}
    return restore_file(file, state, **(given | options))


def _say(line: str) -> None:
    assert line


def texts(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "memory.db")) as db:
        return int(db.execute("SELECT count(*) FROM memories").fetchone()[0])


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, but the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def rewritten(file: Path, edit: Callable[[dict[str, bytes]], None]) -> Path:
    """An archive with other files in it, and checksums that agree."""
    with tarfile.open(file) as tar:
        files = {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]
    del files["checksums.json"]
    edit(files)
    entries = [
        {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for path, data in files.items()
    ]
    files["checksums.json"] = json.dumps({"files": entries}).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    other = file.with_name("other.tar.gz")
    other.write_bytes(gzip.compress(out.getvalue()))
    return other


def database(change: Callable[[sqlite3.Connection], object]) -> Callable[[dict[str, bytes]], None]:
    """An edit of the database in an archive."""

    def edit(files: dict[str, bytes]) -> None:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            db.deserialize(files["memory.db"])
            change(db)
            files["memory.db"] = db.serialize()

    return edit


def test_a_bare_machine_gets_all_of_it(archive: Path, tmp_path: Path) -> None:
    state = tmp_path / "new" / "state"
    done = restore(archive, state)
    folder = state / "agents" / "ana"
    assert (done.agent, done.folder, done.set_aside) == ("ana", str(folder), None)
    assert (done.archived_agent, done.device) == ("ana", "device")
    assert done.counts["memories"] == 40
    assert texts(folder) == 40
    script = folder / "memory" / "skills" / "run.sh"
    assert script.read_text() == "#!/bin/sh\n"
    assert script.stat().st_mtime == 1_600_000_000
    assert {path.stat().st_mode & 0o777 for path in (state, folder, script)} == {0o700}
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.rglob("*"))
    assert [path.name for path in folder.parent.iterdir()] == ["ana"]


async def test_it_opens_as_if_nothing_had_happened(
    archive: Path,
    tmp_path: Path,
    open_store: OpenStore,
    make_place: Callable[..., Place],
    problems: Problems,
) -> None:
    restore(archive, tmp_path / "new", agent="bea")
    folder = tmp_path / "new" / "agents" / "bea"
    before = everything(folder)
    store = await open_store(make_place("bea", folder=folder), rules=CROWDED)
    await store.look()
    assert await store.flush_faces()
    await store.close()
    assert problems.standing() == []
    after = everything(folder)
    unchanged = {path for path in before if path.startswith(("cold/", "memory/")) or "key" in path}
    assert len(unchanged) == 3
    assert {path: after[path] for path in unchanged} == {path: before[path] for path in unchanged}
    assert set(after) == set(before)


def test_a_place_that_is_not_empty_is_left_alone(archive: Path, tmp_path: Path) -> None:
    state = tmp_path / "new"
    (state / "agents" / "ana").mkdir(parents=True)
    (state / "agents" / "ana" / "note").write_text("mine")
    before = everything(state)
    for options in ({}, {"dry_run": True}):
        with pytest.raises(Conflict, match="not empty") as caught:
            restore(archive, state, **options)
        assert "--replace" in (caught.value.hint or "")
    assert everything(state) == before
    assert restore(archive, state, agent="bea").agent == "bea"
    assert (state / "agents" / "ana" / "note").read_text() == "mine"


def test_what_is_replaced_is_kept_beside_it(archive: Path, tmp_path: Path) -> None:
    state = tmp_path / "new"
    for number in range(3):
        folder = state / "agents" / "ana"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "note").write_text(f"mine {number}")
        done = restore(archive, state, replace=True)
        assert done.set_aside is not None
        assert (Path(done.set_aside) / "note").read_text() == f"mine {number}"
        assert not (folder / "note").exists()
        assert texts(folder) == 40
    assert len([*(state / "agents").iterdir()]) == 4


def test_a_link_in_the_place_is_not_followed(archive: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    agents = tmp_path / "new" / "agents"
    agents.mkdir(parents=True)
    (agents / "ana").symlink_to(elsewhere)
    with pytest.raises(Conflict):
        restore(archive, tmp_path / "new")
    done = restore(archive, tmp_path / "new", replace=True)
    assert Path(done.set_aside or "").is_symlink()
    assert not [*elsewhere.iterdir()]


def test_a_dry_run_checks_and_changes_nothing(archive: Path, tmp_path: Path) -> None:
    assert restore(archive, tmp_path / "new", dry_run=True).dry_run
    assert not (tmp_path / "new").exists()
    state = tmp_path / "there"
    state.mkdir()
    with StateLock(state, tmp_path / "t.sock"):
        assert restore(archive, state, dry_run=True).counts["memories"] == 40
    assert [path.name for path in state.iterdir()] == ["lock"]
    broken = rewritten(archive, database(lambda db: db.execute("DELETE FROM kv")))
    with pytest.raises(StoreDamaged, match="0 key_values, not 1"):
        restore(broken, state, dry_run=True)


def test_a_running_daemon_is_not_restored_under(archive: Path, tmp_path: Path) -> None:
    state = tmp_path / "new"
    state.mkdir()
    with (
        StateLock(state, tmp_path / "t.sock"),
        pytest.raises(AlreadyRunning, match=rf"process {os.getpid()} holds it") as caught,
    ):
        restore(archive, state)
    assert caught.value.hint == "stop it, restore, and start it again"
    assert texts(Path(restore(archive, state).folder)) == 40


@pytest.mark.parametrize("agent", ["", "..", "a/b", ".hidden", "x" * 65])
def test_an_agent_by_no_id_is_refused(archive: Path, tmp_path: Path, agent: str) -> None:
    with pytest.raises(InvalidInput):
        restore(archive, tmp_path / "new", agent=agent)
    evil = rewritten(
        archive,
        lambda files: files.update(
            {
                "manifest.json": json.dumps(
                    json.loads(files["manifest.json"]) | {"agent": agent}
                ).encode()
            }
        ),
    )
    with pytest.raises(InvalidInput):
        restore(evil, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def _corrupt(files: dict[str, bytes]) -> None:
    page = bytearray(files["memory.db"])
    page[-4096 * 3 : -4096] = b"\xff" * 8192
    files["memory.db"] = bytes(page)


EVIL = {
    "a trigger": database(
        lambda db: db.execute(
            "CREATE TRIGGER t AFTER INSERT ON memories BEGIN DELETE FROM memories; END"
        )
    ),
    "another trigger": database(
        lambda db: db.executescript(
            "DROP TRIGGER tree_counts_insert; CREATE TRIGGER tree_counts_insert AFTER INSERT ON"
            " memories BEGIN DELETE FROM memories; END"
        )
    ),
    "a view in the place of a table": database(
        lambda db: db.executescript(
            "DROP TABLE kept_apart; CREATE VIEW kept_apart AS SELECT 1 AS id, 2 AS clock"
        )
    ),
    "a column that computes": database(
        lambda db: db.execute("ALTER TABLE kv ADD COLUMN x INTEGER AS (length(value))")
    ),
    "a missing table": database(lambda db: db.execute("DROP TABLE outbox")),
    "a missing row": database(lambda db: db.execute("DELETE FROM kv")),
    "no tables": lambda files: files.update({"memory.db": b""}),
    "no database": lambda files: files.update({"memory.db": b"x" * 8192}),
    "a page of ones": _corrupt,
    "no version": database(lambda db: db.execute("PRAGMA user_version = 0")),
    "a file in a file": lambda files: files.update({"memory/a": b"", "memory/a/b": b""}),
    "a folder in the place of a file": lambda files: files.update(
        {"memory/a/b": b"", "memory/a": b""}
    ),
}


@pytest.mark.parametrize("edit", EVIL.values(), ids=EVIL.keys())
def test_an_archive_that_is_not_sound_changes_nothing(
    edit: Callable[[dict[str, bytes]], None], archive: Path, tmp_path: Path
) -> None:
    state = tmp_path / "new"
    (state / "agents" / "ana").mkdir(parents=True)
    (state / "agents" / "ana" / "note").write_text("mine")
    before = everything(state)
    with pytest.raises(StoreDamaged) as caught:
        restore(rewritten(archive, edit), state, replace=True)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert everything(state) == before
    assert [path.name for path in (state / "agents").iterdir()] == ["ana"]


def test_a_database_of_a_later_release_says_what_to_do(archive: Path, tmp_path: Path) -> None:
    later = rewritten(archive, database(lambda db: db.execute("PRAGMA user_version = 999")))
    with pytest.raises(Conflict, match="its schema version is 999"):
        restore(later, tmp_path / "new")


async def test_a_damaged_page_is_mended_before_it_gets_into_an_archive(
    open_store: OpenStore,
    make_place: Callable[..., Place],
    make_memory: Callable[..., Memory],
    problems: Problems,
    tmp_path: Path,
) -> None:
    place = make_place("ana")
    store = await open_store(place)
    await store.write(lambda tx: [memories.insert(tx, make_memory(n)) for n in range(200)])
    await store.close()
    store = await open_store(place)
    await store.read(lambda db: db.execute("SELECT count(*) FROM memories").fetchone())
    with place.database.open("r+b") as file:
        middle = place.database.stat().st_size // 4096 // 2
        file.seek(middle * 4096)
        file.write(b"\xff" * 4096 * 3)
    file_made = await archived(store, tmp_path)
    assert "database_rebuilt" in {problem.code for problem in problems.standing()}
    assert restore(file_made, tmp_path / "new").counts["memories"] == 200


# Runs in a process of its own: each of its children restores, and is killed at one more of the
# steps that Python's auditing reports, until one comes through.
KILLS = """
import os, signal, sys
from pathlib import Path
from thermocline.daemon.restoring.from_file import restore_file

archive, places, every = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
CHANGES = {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.utime",
           "sqlite3.connect", "shutil.rmtree", "os.chown"}

def restored(state, last):
    left = last
    def count(event, _arguments):
        nonlocal left
        if event in CHANGES:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    restore_file(archive, state, None, replace=True, dry_run=False, tell=lambda _: None)
    os._exit(0)

last, killed = 0, True
while killed:
    state = places / f"{last:04d}"
    (state / "agents" / "ana").mkdir(parents=True)
    (state / "agents" / "ana" / "note").write_text("mine")
    child = os.fork()
    if not child:
        restored(state, last)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    last += every
"""


def kept(state: Path) -> Iterator[Path]:
    """Where what was there before is."""
    yield from (state / "agents").glob("ana*/note")


def test_a_kill_at_any_moment_loses_nothing_and_the_next_run_finishes(
    archive: Path, tmp_path: Path
) -> None:
    places = tmp_path / "places"
    places.mkdir()
    command = [sys.executable, "-c", KILLS, str(archive), str(places), "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    seen = set()
    for state in sorted(places.iterdir()):
        folder = state / "agents" / "ana"
        [note] = kept(state)
        whole = (folder / "memory.db").exists()
        assert note.read_text() == "mine"
        # The old one, nothing at all, or the new one: never a part of it.
        assert (note.parent == folder) + whole == folder.exists()
        if whole:
            assert texts(folder) == 40
        seen.add("new" if whole else "old" if folder.exists() else "aside")
        daemons = shutil.copytree(state, tmp_path / "daemons" / state.name, symlinks=True)
        finish(daemons)
        # A daemon that starts instead has the old one or the new one.
        assert (daemons / "agents/ana/note").exists() == (note.parent == folder)
        assert (daemons / "agents/ana/memory.db").exists() == (note.parent != folder)
        assert [found.read_text() for found in kept(daemons)] == ["mine"]
        assert not [*(daemons / "agents").glob(".*")]
        if note.parent == folder or not whole:
            restore(archive, state, replace=True)
        assert texts(folder) == 40
        assert [found.read_text() for found in kept(state)] == ["mine"]
        assert not [*(state / "agents").glob(".*")]
    assert seen == {"old", "aside", "new"}


def test_a_full_disk_is_an_error_of_ours(archive: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a file where the folder should be")
    with pytest.raises(ThermoclineError):
        restore(archive, file / "state")
