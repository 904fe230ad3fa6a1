"""kill -9 at each stage of a restore: the next run goes on, and nothing is lost or doubled.

The stages, in their order, for each agent:

    begun      the database beside the place is there, and empty
    page N     N pages are in it
    received   everything is in it
    checked    it is what the replica holds
    noted      that is written down: from here on it is only moved
    sealed     it is a database like any other
    aside      what was in the place is set aside, and the place is empty
    done       it is in its place
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import restoring
from devices import AGENT, Clock, Device
from restoring import MANY, NOW

from thermocline.daemon.restoring.interrupted import finish
from thermocline.daemon.store import fingerprints
from thermocline.daemon.store.transaction import Rules
from thermocline.sync import FileRemote

# Read here: the variables of ours are taken away before a test begins.
KILLS = int(os.environ.get("THERMOCLINE_KILLS", "60"))
SEED = int(os.environ.get("THERMOCLINE_SEED", "20"))
STAGES = ["begun", "page 1", "page 2", "page 4", "received", "checked", "noted", "sealed", "done"]
LATER = ["checked", "noted", "sealed", "aside", "done"]
QUICK = [pytest.param(stage, marks=pytest.mark.crash) for stage in STAGES if stage != "sealed"]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A replica with the rows of a device, and their fingerprint."""
    folder = tmp_path_factory.mktemp("life")

    async def live() -> str:
        remote = FileRemote(folder / "replica.db")
        with ThreadPoolExecutor(1) as threads:
            args = (folder / "source", "source", remote)
            device = Device(*args, now=Clock(NOW), threads=threads, rules=Rules())
            await restoring.live(device, MANY)
            await device.sync()
            found = await device.read(fingerprint)
            await device.stop()
        await remote.close()
        return found

    return folder / "replica.db", asyncio.run(live())


def fingerprint(db: sqlite3.Connection) -> str:
    return fingerprints.total(row.fingerprint for row in fingerprints.everything(db))


def found_in(state: Path) -> str:
    with closing(sqlite3.connect(state / f"agents/{AGENT}/memory.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return fingerprint(db)


def command(replica: Path, state: Path, **more: Any) -> list[str]:
    given = {"url": f"file:{replica}", "to": str(state), **more}
    return [sys.executable, restoring.__file__, json.dumps(given)]


def go_on(replica: Path, state: Path, **more: Any) -> Any:
    done = subprocess.run(
        command(replica, state, **more), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kill(replica: Path, state: Path, stage: str, **more: Any) -> None:
    done = subprocess.run(
        command(replica, state, kill=stage, **more), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL, (stage, done.stderr)


@pytest.mark.parametrize("stage", [*QUICK, "sealed"])
def test_after_a_kill_the_same_command_goes_on(
    stage: str, life: tuple[Path, str], tmp_path: Path
) -> None:
    replica, whole = life
    kill(replica, tmp_path, stage)
    assert (tmp_path / "agents" / AGENT).exists() == (stage == "done")
    said = go_on(replica, tmp_path)
    assert found_in(tmp_path) == whole
    assert sorted(path.name for path in (tmp_path / "agents").iterdir()) == [AGENT]
    came, known = sum(said["pages"]), sum(said["known"])
    print(f"\nkilled at '{stage}': the next run knew {known:,} rows, and fetched {came:,}")
    # What had come was not asked for again.
    if stage in ("received", "checked", "noted", "sealed", "done"):
        assert came == 0
    elif stage != "begun":
        assert known > 0


def a_memory_of_its_own(replica: Path, to: Path) -> str:
    """Restore, and change what came; return what the place then holds."""
    go_on(replica, to)
    with closing(sqlite3.connect(to / f"agents/{AGENT}/memory.db")) as db:
        db.execute("INSERT INTO kv VALUES ('mine', 'alone', 1, 1, 1, 'x')")
        db.commit()
    return found_in(to)


@pytest.mark.crash
@pytest.mark.parametrize("stage", LATER)
def test_what_was_there_before_is_kept_whatever_happens(
    stage: str, life: tuple[Path, str], tmp_path: Path
) -> None:
    replica, whole = life
    old = a_memory_of_its_own(replica, tmp_path)

    kill(replica, tmp_path, stage, replace=True)
    if stage in ("checked", "noted", "sealed"):
        assert found_in(tmp_path) == old
    go_on(replica, tmp_path, replace=True)

    assert found_in(tmp_path) == whole
    asides = list((tmp_path / "agents").glob(f"{AGENT}.before-restore-*"))
    # One that was killed when all was done is not done again.
    assert len(asides) == 1
    with closing(sqlite3.connect(asides[0] / "memory.db")) as db:
        assert fingerprint(db) == old


@pytest.mark.crash
@pytest.mark.parametrize("stage", LATER)
def test_a_daemon_that_starts_has_the_old_memory_or_the_new_one(
    stage: str, life: tuple[Path, str], tmp_path: Path
) -> None:
    replica, whole = life
    old = a_memory_of_its_own(replica, tmp_path)

    kill(replica, tmp_path, stage, replace=True)
    finish(tmp_path)
    assert found_in(tmp_path) == (whole if stage in ("aside", "done") else old)

    # Used since: to replace it is to restore it anew.
    with closing(sqlite3.connect(tmp_path / f"agents/{AGENT}/memory.db")) as db:
        db.execute("INSERT INTO kv VALUES ('later', 'too', 1, 1, 1, 'x')")
        db.commit()
    go_on(replica, tmp_path, replace=True)
    assert found_in(tmp_path) == whole


@pytest.mark.crash
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8, 0.99])
def test_what_a_power_cut_takes_of_the_log_is_asked_for_again(
    share: float, life: tuple[Path, str], tmp_path: Path
) -> None:
    replica, whole = life
    kill(replica, tmp_path, "page 4")
    log = tmp_path / f"agents/.{AGENT}.restoring/memory.db-wal"
    size = log.stat().st_size
    assert size > 500_000
    os.truncate(log, int(size * share))
    said = go_on(replica, tmp_path)
    assert found_in(tmp_path) == whole
    print(f"\nwith {share:.0%} of the log left, {sum(said['pages']):,} rows were fetched again")


@pytest.mark.crash
def test_kills_at_any_moment(life: tuple[Path, str], tmp_path: Path) -> None:
    replica, whole = life
    chance = random.Random(SEED)
    finished = killed = 0
    while killed < KILLS:
        state = tmp_path / str(finished)
        while not is_done(state):
            with subprocess.Popen(command(replica, state), stdout=subprocess.DEVNULL) as process:
                # The moment of a kill has no relation to what it does.
                time.sleep(chance.uniform(0.2, 0.6))
                process.kill()
            assert process.returncode in (0, -signal.SIGKILL)
            killed += process.returncode != 0
        finished += 1
        assert found_in(state) == whole
        assert sorted(path.name for path in (state / "agents").iterdir()) == [AGENT]
    print(f"\n{killed} kills in {finished} restores, each of them whole in the end")


def is_done(state: Path) -> bool:
    return (state / "agents" / AGENT).exists() and not (state / "agents/.restoring.json").exists()
