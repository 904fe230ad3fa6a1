"""Damage of every kind, to the memory of one agent each, all of them of one daemon.

Nothing that was acknowledged may be lost by it: what stands in the state files is in the database,
and what stood in the database comes back from what can be read of it and from the replica. Without
a replica, what the state files show survives: the warm memories, the hot state and the tree.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from agent_files import broken_files
from device import AGENT, Contents, Device, ending
from world import World

PAGE = 2048
STATE_FILES = (
    "hot-memory-state.json",
    "warm-memory.json",
    "memory-tree.json",
    "metrics.json",
    "MEMORY.md",
)
CROWDED = ("store.max_open_agents=8", "warm.max_kb=8", "log.level=error")
MANY = 60
TEMPLATE = "template"
MEMORIES = [
    {"text": f"fact {n}: the heron nests at pier {n}", "category": f"pier/{n % 4}"}
    for n in range(60)
]
PAIRS = {f"key{n}": f"value of {n}" for n in range(5)}

Damage = Callable[[Path], None]


class Sweep:
    """Does damages, each to a memory of its own, and looks for what is lost.

    Args:
        device: where; it runs.

    Attributes:
        template: the folder of a memory that stays whole, to find places in it.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.template = device.folder(TEMPLATE)
        furnish(device, TEMPLATE)
        device.restart()

    def __call__(self, damages: dict[str, Damage]) -> None:
        """Do them, and fail if anything is lost."""
        device = self.device.start()
        before = {agent: furnish(device, agent) for agent in damages}
        device.files_written()
        assert device.stop() == 0
        for agent, damage in damages.items():
            damage(device.folder(agent))
            settle(device.folder(agent))
        device.start()
        faults = {agent: found for agent in damages if (found := self._lost(agent, before[agent]))}
        assert device.stop() == 0
        print(f"\n{len(damages)} damages, {len(faults)} of them lost something")
        assert faults == {}
        assert broken_files(device.state) == []
        assert "Traceback" not in device.log.read_text()

    def _lost(self, agent: str, before: Contents) -> list[str]:
        device = self.device
        device.agent = agent
        device.sync()
        after = device.list_all()
        assert device.recall("heron")
        new = device.store("a new fact")
        assert device.memories()[new]["text"] == "a new fact"
        lost = [f"pair {key}" for key, v in before.pairs.items() if after.pairs.get(key) != v]
        for key, memory in before.memories.items():
            found = after.memories.get(key, {}).get("text")
            if found != memory["text"]:
                lost.append(f"{memory['text']!r}, has {found!r}")
        identity = after.hot["identity"]
        lost += [n for n, v in before.hot["identity"].items() if identity.get(n) != v]
        return lost


def furnish(device: Device, agent: str) -> Contents:
    """Give an agent something of everything, and send it to the replica, if there is one."""
    device.agent = agent
    device.memory.batch(MEMORIES)
    for key, value in PAIRS.items():
        device.put_pair(key, value)
    device.put_hot("identity", {"agent_name": "Otis", "owner_name": "Ada"})
    device.put_hot("lesson", {"text": "tie the boats"})
    if device.url is not None:
        device.sync()
    return device.list_all()


@pytest.fixture(scope="module")
def sweep(sqld_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweep]:
    """`sweep(damages)`, by the name of an agent each that no other test has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        with World(sqld_binary, 1, *CROWDED) as world:
            yield Sweep(*world.devices)


def settle(folder: Path) -> None:
    """Make the files an hour old: one that is being written at this moment is left alone."""
    for path in folder.glob("*.*"):
        os.utime(path, (time.time() - 3600,) * 2)


def flip(folder: Path, *, name: str, at: int, bit: int) -> None:
    path = folder / name
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << bit
    path.write_bytes(content)


def cut(folder: Path, *, name: str, length: int) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(length)


def overwrite(folder: Path, *, name: str, at: int, content: bytes) -> None:
    with (folder / name).open("r+b") as file:
        file.seek(at)
        file.write(content)


def places(size: int, most: int) -> list[int]:
    """At most so many offsets below `size`, evenly spread, the ends among them."""
    step = max(1, size // most)
    return sorted({*range(0, size, step), size - 1})


def database_pages(sweep: Sweep) -> int:
    return (sweep.template / "memory.db").stat().st_size // PAGE


def test_one_damage_of_each_kind_loses_nothing(sweep: Sweep) -> None:
    half = (sweep.template / "memory.db").stat().st_size // 2
    sweep(
        {
            "flip": partial(flip, name="warm-memory.json", at=200, bit=3),
            "short": partial(cut, name="hot-memory-state.json", length=50),
            "zeros": partial(overwrite, name="memory.db", at=0, content=bytes(PAGE)),
            "cut": partial(cut, name="memory.db", length=half),
            "gone": lambda folder: (folder / "memory.db").unlink(),
        }
    )
    kept = sweep.device.folder("zeros").glob("memory.db.corrupt-*")
    assert [*kept], "the old database is kept"


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_no_flipped_bit_in_a_state_file_loses_anything(sweep: Sweep) -> None:
    chance = random.Random(22)
    damages: dict[str, Damage] = {}
    for number, name in enumerate(STATE_FILES):
        for at in places((sweep.template / name).stat().st_size, MANY):
            bit = chance.randrange(8)
            damages[f"flip-{number}-{at}"] = partial(flip, name=name, at=at, bit=bit)
    sweep(damages)


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_no_state_file_that_was_cut_short_loses_anything(sweep: Sweep) -> None:
    damages: dict[str, Damage] = {}
    for number, name in enumerate(STATE_FILES):
        for length in places((sweep.template / name).stat().st_size, MANY):
            damages[f"short-{number}-{length}"] = partial(cut, name=name, length=length)
    sweep(damages)


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_no_page_of_the_database_that_was_wiped_loses_anything(sweep: Sweep) -> None:
    noise = random.Random(23).randbytes(PAGE)
    damages: dict[str, Damage] = {}
    for page in range(database_pages(sweep)):
        for kind, content in (("zeros", bytes(PAGE)), ("noise", noise)):
            wiped = partial(overwrite, name="memory.db", at=page * PAGE, content=content)
            damages[f"{kind}-{page}"] = wiped
    sweep(damages)


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_no_database_that_was_cut_short_loses_anything(sweep: Sweep) -> None:
    lengths = places((sweep.template / "memory.db").stat().st_size, MANY)
    sweep({f"cut-{at}": partial(cut, name="memory.db", length=at) for at in lengths})


@pytest.mark.parametrize(
    "left",
    [
        None,
        pytest.param(b"", marks=pytest.mark.crash),
        pytest.param(bytes(8 * PAGE), marks=pytest.mark.crash),
    ],
    ids=["gone", "empty", "zeros"],
)
def test_what_the_state_files_show_survives_a_destroyed_database_without_a_replica(
    tmp_path: Path, left: bytes | None
) -> None:
    device = Device(tmp_path / "device", *CROWDED)
    with ending(device):
        before = furnish(device.start(), AGENT)
        device.files_written()
        assert device.stop() == 0
        folder = device.folder(AGENT)
        warm = json.loads((folder / "warm-memory.json").read_text())
        assert 0 < len(warm) < len(MEMORIES)
        (folder / "memory.db").unlink()
        if left is not None:
            (folder / "memory.db").write_bytes(left)
        after = device.start().list_all()
        assert {record["text"] for record in warm} <= device.texts()
    assert after.hot["identity"] == before.hot["identity"]
    assert after.hot["critical_lessons"] == before.hot["critical_lessons"]
    assert after.categories.keys() == before.categories.keys()


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_no_flipped_bit_in_the_structure_of_the_database_stops_the_daemon(sweep: Sweep) -> None:
    """Bits in the head of each page: there the tables and indexes hang together."""
    chance = random.Random(24)
    damages: dict[str, Damage] = {}
    for page in range(database_pages(sweep)):
        for at in chance.sample(range(100 if page == 0 else 12), 4):
            flipped = partial(flip, name="memory.db", at=page * PAGE + at, bit=chance.randrange(8))
            damages[f"bit-{page}-{at}"] = flipped
    sweep(damages)
