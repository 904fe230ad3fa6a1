"""kill -9 at any moment: what was acknowledged is there, and the files are whole."""

import contextlib
import json
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_files import SET_ASIDE, UNFINISHED, broken_files, litter
from daemon_process import wait_until
from device import Device, ending

# Read here: the variables of ours are taken away before a test begins.
KILLS = int(os.environ.get("THERMOCLINE_KILLS", "500"))
SEED = int(os.environ.get("THERMOCLINE_SEED", "20"))
WORKERS = 6
FEW_AND_MANY = [2, pytest.param(KILLS, marks=pytest.mark.crash)]
# While it is killed, it replicates.
BUSY = ("sync.change_seconds=0.2", "sync.critical_seconds=0.2", "sync.poll_seconds=1")


@pytest.fixture
def device(sqld: Any, tmp_path: Path) -> Iterator[Device]:
    """A device that replicates all the time, and runs."""
    device = Device(tmp_path / "device", *BUSY, url=sqld.url)
    with ending(device):
        yield device.start()


def wait_for_a_moment_of_chance(chance: random.Random, at_most: float) -> None:
    """The only sleep: the moment of a kill is to have no relation to what the daemon does."""
    time.sleep(chance.uniform(0, at_most))


@pytest.mark.parametrize("kills", FEW_AND_MANY)
@pytest.mark.timeout(7200)
def test_what_was_acknowledged_survives_kill_9_under_load(kills, device, make_load, tmp_path):
    chance = random.Random(SEED)
    load = make_load(device.socket, workers=WORKERS, seed=SEED).start()
    slowest = 0.0
    for number in range(kills):
        wait_for_a_moment_of_chance(chance, 0.3)
        device.kill()
        assert broken_files(device.state) == []
        if number % 3 == 2:
            device.start(wait=False)
            wait_for_a_moment_of_chance(chance, 0.5)
            device.kill()
            assert broken_files(device.state) == []
        began = time.monotonic()
        device.start()
        slowest = max(slowest, time.monotonic() - began)
    wait_until(lambda: load.total()["store"] > kills, "the load goes on")
    wait_until(lambda: load.total()["delete"] > 0, "the load goes on")
    load.end()
    faults = load.faults()
    total = load.total()
    print(
        f"\n{kills} kills under load and {kills // 3} during start-up, {WORKERS} clients: "
        f"acknowledged {dict(sorted(total.items()))}; {load.expected()} things must be there, "
        f"{len(faults)} are not as promised; slowest start {slowest:.2f} s"
    )
    assert faults == []
    assert load.refused() == {}
    assert_replica_has_the_same(device, tmp_path / "restored")
    device.files_written()
    wait_until(lambda: device.problems() == [], "nothing is complained of")
    assert litter(device.state) == []
    device.stop()
    with contextlib.closing(sqlite3.connect(device.folder() / "memory.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize(
    ("fault", "patterns"),
    [
        ("forgetful", ["*.changed-*"]),
        ("doubting", ["*.corrupt-*", "before-rebuild-*"]),
        ("narrow", ["*.too-large-*"]),
        ("littering", [".*.tmp"]),
    ],
)
def test_a_daemon_that_mistrusts_its_own_writing_is_noticed(fault, patterns, device):
    assert {*patterns} <= {*SET_ASIDE, *UNFINISHED}
    device.store("the heron nests at pier 7")
    device.files_written()
    assert litter(device.state) == []
    device.kill()
    device.broken(fault).start()
    device.store("the heron nests at pier 8")
    device.files_written()
    device.kill()
    device.start()
    device.store("the heron nests at pier 9")
    device.files_written()
    for pattern in patterns:
        assert litter(device.state, pattern)
    assert litter(device.state)


def assert_replica_has_the_same(device: Device, folder: Path) -> None:
    """What a device restored from the replica shows is what the killed one shows."""
    device.sync()
    restored = Device(folder, url=device.url)
    restored.restore()
    with ending(restored):
        restored.start()
        assert device.list_all().differences(restored.list_all()) == []


@pytest.mark.parametrize(
    ("memories", "kills"), [(1, 3), pytest.param(KILLS // 50, 8, marks=pytest.mark.crash)]
)
def test_a_kill_during_take_over_loses_and_doubles_nothing(memories, kills, tmp_path):
    chance = random.Random(SEED + 2)
    for number in range(memories):
        device = Device(tmp_path / f"takeover{number}")
        facts = old_memory(device.folder())
        with ending(device):
            for _ in range(kills):
                device.start(wait=False)
                wait_for_a_moment_of_chance(chance, 0.8)
                device.kill()
                assert broken_files(device.state) == []
            device.start()
            contents = device.list_all()
        assert sorted(memory["text"] for memory in contents.memories.values()) == facts
        assert contents.hot["identity"]["agent_name"] == "Otis"
        kept = device.folder().glob("before-*/warm-memory.json")
        files = [json.loads(path.read_text()) for path in kept]
        assert any(sorted(record["text"] for record in file) == facts for file in files)


def old_memory(folder: Path, number: int = 1000) -> list[str]:
    """A memory as an older tool left it; gives the texts in it, sorted."""
    folder.mkdir(parents=True)
    now = time.time()
    records = [
        {
            "id": f"{n:012x}",
            "text": f"fact {n}: the heron nests at pier {n * 7}",
            "category": f"harbour/pier{n % 9}",
            "importance": 0.5,
            "created_at": now - n * 60,
            "access_count": n % 3,
        }
        for n in range(number)
    ]
    (folder / "warm-memory.json").write_text(json.dumps(records, indent=2))
    hot = {"identity": {"agent_name": "Otis"}, "critical_lessons": [{"text": "tie the boats"}]}
    (folder / "hot-memory-state.json").write_text(json.dumps(hot))
    return sorted(str(record["text"]) for record in records)
