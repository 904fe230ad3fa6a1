"""kill -9 at any moment: what was acknowledged is there, and the files are whole."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from pathlib import Path

import pytest

# Read here: the variables of ours are taken away before a test begins.
KILLS = int(os.environ.get("THERMOCLINE_KILLS", "500"))
SEED = int(os.environ.get("THERMOCLINE_SEED", "20"))
WORKERS = 6
FEW_AND_MANY = [5, pytest.param(KILLS, marks=pytest.mark.crash)]
# Files of these names say that the daemon took its own writing for somebody else's, or for damage.
NEVER = ("*.edited-*", "*.corrupt-*", "*.before-*", ".*.tmp")


def litter(folder: Path) -> list[str]:
    return sorted(path.name for pattern in NEVER for path in folder.rglob(pattern))


def wait_for_a_moment_of_chance(chance: random.Random, at_most: float) -> None:
    """The only sleep: the moment of a kill is to have no relation to what the daemon does."""
    time.sleep(chance.uniform(0, at_most))


@pytest.mark.parametrize("kills", FEW_AND_MANY)
def test_what_was_acknowledged_survives_kill_9_under_load(
    kills, daemon, make_load, list_broken_files
):
    chance = random.Random(SEED)
    load = make_load(daemon.socket, workers=WORKERS, seed=SEED).start()
    slowest = 0.0
    for number in range(kills):
        wait_for_a_moment_of_chance(chance, 0.3)
        daemon.kill()
        assert list_broken_files(daemon.state) == []
        if number % 5 == 4:
            daemon.start(wait=False)
            wait_for_a_moment_of_chance(chance, 0.5)
            daemon.kill()
            assert list_broken_files(daemon.state) == []
        began = time.monotonic()
        daemon.start()
        slowest = max(slowest, time.monotonic() - began)
    load.end()
    faults = load.faults()
    total = load.total()
    print(
        f"\n{kills} kills under load and {kills // 5} during start-up, {WORKERS} clients: "
        f"acknowledged {dict(sorted(total.items()))}; {load.expected()} things must be there, "
        f"{len(faults)} are not as promised; slowest start {slowest:.2f} s"
    )
    assert faults == []
    assert load.refused() == {}
    assert total["store"] > kills
    assert total["delete"] > 0


@pytest.mark.parametrize("kills", FEW_AND_MANY)
def test_a_kill_leaves_neither_litter_nor_false_alarms(kills, daemon, make_load, eventually):
    chance = random.Random(SEED + 1)
    load = make_load(daemon.socket, workers=2, seed=SEED + 1).start()
    for _ in range(kills // 5):
        wait_for_a_moment_of_chance(chance, 0.5)
        daemon.kill()
        daemon.start()
    load.end()
    with daemon.client() as client:
        eventually(
            lambda: not client.status()["agents"]["default"]["faces_pending"], "files are written"
        )
        assert client.status()["problems"] == []
    assert litter(daemon.state) == []
    daemon.stop()
    db = sqlite3.connect(daemon.folder() / "memory.db")
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


@pytest.mark.parametrize("kills", FEW_AND_MANY)
def test_a_kill_during_take_over_loses_and_doubles_nothing(
    kills, make_daemon, list_everything, list_broken_files
):
    chance = random.Random(SEED + 2)
    for number in range(max(1, kills // 50)):
        daemon = make_daemon(name=f"takeover{number}")
        facts = old_memory(daemon.folder())
        for _ in range(8):
            daemon.start(wait=False)
            wait_for_a_moment_of_chance(chance, 0.8)
            daemon.kill()
            assert list_broken_files(daemon.state) == []
        daemon.start()
        with daemon.client() as client:
            texts = sorted(memory["text"] for memory in list_everything(client))
            assert client.hot()["state"]["identity"]["agent_name"] == "Otis"
        assert texts == facts
        kept = [json.loads(path.read_text()) for path in originals(daemon.folder())]
        assert any(sorted(record["text"] for record in file) == facts for file in kept)
        daemon.stop()


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


def originals(folder: Path) -> list[Path]:
    return sorted(folder.glob("before-*/warm-memory.json"))
