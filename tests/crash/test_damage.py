"""Damage of every kind, to the memory of one agent each, all of them of one daemon.

Nothing that was acknowledged may be lost by it: what stands in the state files is in the database,
and what stood in the database comes back from what can be read of it and from the replica. Without
a replica, what the state files show survives: the warm memories, the hot state and the tree.
"""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from agent_files import broken_files, lose_words
from device import AGENT, Contents, Device, ending
from world import World

from thermocline.daemon.client import ApiError
from thermocline.daemon.store.agent_paths import DeviceId

PAGE = 2048
STATE_FILES = (
    "hot-memory-state.json", "warm-memory.json", "memory-tree.json", "metrics.json", "MEMORY.md",
)  # fmt: skip
CROWDED = ("store.max_open_agents=8", "warm.max_kb=8", "log.level=error")
MANY = 60
# Damage that no read meets is found when the whole database has been read, which begins with the
# daemon.
MENDED_SECONDS = 30.0
PAGES = int(os.environ.get("THERMOCLINE_DAMAGES", "1000"))
AT_ONCE = 250
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

    def __call__(self, damages: dict[str, Damage], fault: str = "") -> dict[str, list[str]]:
        """Do them; give what each agent has lost that lost anything.

        Args:
            damages: by the name of an agent.
            fault: one that is built into the daemon that meets the damage.
        """
        device = self.device.broken("").start()
        before = {agent: furnish(device, agent) for agent in damages}
        device.files_written()
        assert device.stop() == 0
        for agent, damage in damages.items():
            damage(device.folder(agent))
            settle(device.folder(agent))
        device.broken(fault).start()
        seconds = 2.0 if fault else MENDED_SECONDS
        lost = {agent: self._lost(agent, before[agent], seconds) for agent in damages}
        assert device.stop() == 0
        return {agent: found for agent, found in lost.items() if found}

    def _lost(self, agent: str, before: Contents, seconds: float) -> list[str]:
        """What is still lost when the database has been read, mended and filled."""
        device = self.device
        device.agent = agent
        until = time.monotonic() + seconds
        while lost := self._missing(before):
            if time.monotonic() > until:
                return lost
            time.sleep(0.1)
        new = device.store("a new fact")
        assert device.memories()[new]["text"] == "a new fact"
        return []

    def _missing(self, before: Contents) -> list[str]:
        try:
            self.device.sync()
            after = self.device.list_all()
        except ApiError as error:
            return [f"refused: {error}"]
        lost = [f"pair {key}" for key, v in before.pairs.items() if after.pairs.get(key) != v]
        for key, memory in before.memories.items():
            found = after.memories.get(key, {}).get("text")
            if found != memory["text"]:
                lost.append(f"{memory['text']!r}, has {found!r}")
        if not self.device.recall("heron"):
            lost.append("the words of all")
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
def sweeper(sqld_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweep]:
    """`sweeper(damages)`, by the name of an agent each that no other test has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        with World(sqld_binary, 1, *CROWDED) as world:
            yield Sweep(*world.devices)


@pytest.fixture
def sweep(sweeper: Sweep, figure: Callable[[str, object], None]) -> Callable[..., None]:
    """`sweep(what, damages)` fails if one of them loses anything."""

    def run(what: str, damages: dict[str, Damage]) -> None:
        faults: dict[str, list[str]] = {}
        agents = [*damages]
        for first in range(0, len(agents), AT_ONCE):
            some = agents[first : first + AT_ONCE]
            faults |= sweeper({agent: damages[agent] for agent in some})
        figure(f"damage, {what}", f"{len(damages)}, {len(faults)} lost something")
        assert faults == {}
        assert broken_files(sweeper.device.state) == []
        assert "Traceback" not in sweeper.device.log.read_text()

    return run


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


def replace_root(folder: Path, *, name: str, other: str) -> None:
    """Put the first page of another table or index, which is sound, in the place of one."""
    database = folder / "memory.db"
    with contextlib.closing(sqlite3.connect(database)) as db:
        pages = dict(db.execute("SELECT name, rootpage FROM sqlite_schema").fetchall())
    whole = database.read_bytes()
    at, end = (pages[other] - 1) * PAGE, pages[other] * PAGE
    overwrite(folder, name="memory.db", at=(pages[name] - 1) * PAGE, content=whole[at:end])


def unreadable_schema(folder: Path) -> None:
    """Put bytes that are no text into the words that make a table."""
    at = (folder / "memory.db").read_bytes().index(b"TABLE history")
    overwrite(folder, name="memory.db", at=at, content=b"\xff" * 6)


def places(size: int, most: int) -> list[int]:
    """At most so many offsets below `size`, evenly spread, the ends among them."""
    step = max(1, size // most)
    return sorted({*range(0, size, step), size - 1})


def database_pages(sweeper: Sweep) -> int:
    return (sweeper.template / "memory.db").stat().st_size // PAGE


def test_one_damage_of_each_kind_loses_nothing(sweep, sweeper):
    half = (sweeper.template / "memory.db").stat().st_size // 2
    sweep(
        "one of each kind",
        {
            "flip": partial(flip, name="warm-memory.json", at=200, bit=3),
            "short": partial(cut, name="hot-memory-state.json", length=50),
            "zeros": partial(overwrite, name="memory.db", at=0, content=bytes(PAGE)),
            "cut": partial(cut, name="memory.db", length=half),
            "gone": lambda folder: (folder / "memory.db").unlink(),
            "emptied": partial(replace_root, name="rows", other="memories_superseded"),
            "schema": unreadable_schema,
            "words": lambda folder: lose_words(folder / "memory.db", "memory_fts", "heron"),
        },
    )
    kept = sweeper.device.folder("zeros").glob("memory.db.corrupt-*")
    assert [*kept], "the old database is kept"


def test_the_sweep_notices_a_daemon_that_takes_no_notice_of_damage(sweeper):
    zeros = partial(overwrite, name="memory.db", at=0, content=bytes(PAGE))
    assert sweeper({"trusted": zeros}, fault="trusting")


def flipped_bits_of_state_files(sweeper: Sweep) -> dict[str, Damage]:
    chance = random.Random(22)
    return {
        f"flip-{number}-{at}": partial(flip, name=name, at=at, bit=chance.randrange(8))
        for number, name in enumerate(STATE_FILES)
        for at in places((sweeper.template / name).stat().st_size, MANY)
    }


def files_cut_short(sweeper: Sweep) -> dict[str, Damage]:
    return {
        f"short-{number}-{length}": partial(cut, name=name, length=length)
        for number, name in enumerate((*STATE_FILES, "memory.db"))
        for length in places((sweeper.template / name).stat().st_size, MANY)
    }


def flipped_bits_of_the_structure(sweeper: Sweep) -> dict[str, Damage]:
    """Bits in the head of each page: there the tables and indexes hang together."""
    chance = random.Random(24)
    return {
        f"bit-{page}-{at}": partial(
            flip, name="memory.db", at=page * PAGE + at, bit=chance.randrange(8)
        )
        for page in range(database_pages(sweeper))
        for at in chance.sample(range(100 if page == 0 else 12), 4)
    }


def pages_lost_or_put_elsewhere(sweeper: Sweep) -> dict[str, Damage]:
    """Several pages at once: zeros, noise, another page of the file, or half of one."""
    chance = random.Random(25)
    pages = database_pages(sweeper)
    damages: dict[str, Damage] = {}
    for number in range(PAGES):
        hit = chance.sample(range(pages), chance.choice([1, 1, 2, 5]))
        kind = chance.choice(["zeros", "noise", "elsewhere", "half"])
        damages[f"page-{number}"] = partial(
            spoil, pages=hit, kind=kind, noise=chance.randbytes(PAGE), other=chance.randrange(pages)
        )
    return damages


@pytest.mark.crash
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "damages",
    [
        flipped_bits_of_state_files, files_cut_short, flipped_bits_of_the_structure,
        pages_lost_or_put_elsewhere,
    ],
)  # fmt: skip
def test_no_damage_of_many_loses_anything(sweep, sweeper, damages):
    sweep(damages.__name__.replace("_", " "), damages(sweeper))


def spoil(folder: Path, *, pages: list[int], kind: str, noise: bytes, other: int) -> None:
    database = folder / "memory.db"
    whole = database.read_bytes()
    for page in pages:
        at = page * PAGE
        content = {
            "zeros": bytes(PAGE),
            "noise": noise,
            "elsewhere": whole[other * PAGE : (other + 1) * PAGE],
            "half": noise[: PAGE // 2],
        }[kind]
        overwrite(folder, name="memory.db", at=at, content=content)


# Small files, so that each of their bytes has its turn.

SMALL_MEMORIES = [
    {"text": f"fact {n}: tie the boats", "importance": 0.9, "category": f"pier/{n}"}
    for n in range(2)
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Device, Path, Contents]]:
    """A device, and the folder of a small memory that is copied for each damage."""
    device = Device(tmp_path_factory.mktemp("small"), *CROWDED)
    with pytest.MonkeyPatch.context() as patch, ending(device):
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        device.start().agent = TEMPLATE
        device.memory.batch(SMALL_MEMORIES)
        device.put_hot("identity", {"agent_name": "Otis"})
        device.put_pair("key", "value")
        device.files_written()
        contents = device.list_all()
        assert device.stop() == 0
        yield device, device.folder(TEMPLATE), contents


@pytest.mark.parametrize("every", [397, pytest.param(1, marks=pytest.mark.crash)])
@pytest.mark.timeout(3600)
def test_each_byte_of_each_state_file_may_be_flipped_and_each_length_cut(small, every, figure):
    device, template, expected = small
    chance = random.Random(27)
    damages: list[tuple[str, Damage]] = []
    for name in STATE_FILES:
        size = (template / name).stat().st_size
        damages += [
            (name, partial(flip, name=name, at=at, bit=chance.randrange(8)))
            for at in range(size - 1, -1, -every)
        ]
        damages += [(name, partial(cut, name=name, length=at)) for at in range(0, size, every)]
    faults: list[str] = []
    for first in range(0, len(damages), AT_ONCE):
        some = damages[first : first + AT_ONCE]
        for number, (_, damage) in enumerate(some):
            folder = device.folder(f"copy{number}")
            shutil.copytree(template, folder)
            damage(folder)
            settle(folder)
            if (first + number) % 2:
                # What stands in the other files is all that is left.
                (folder / "memory.db").unlink()
        device.start()
        for number, (name, _) in enumerate(some):
            device.agent = f"copy{number}"
            has_database = not (first + number) % 2
            faults += [
                f"{name}: {line}" for line in differing(device, expected, name, has_database)
            ]
        assert device.stop() == 0
        # What was taken over is kept as it was.
        faults += [one for one in broken_files(device.state) if "/before-takeover-" not in one]
        for folder in device.state.glob("agents/copy*"):
            shutil.rmtree(folder)
    figure(
        "damage, each byte and each length of each state file",
        f"{len(damages)}, {len(faults)} lost something",
    )
    assert faults == []
    assert "Traceback" not in device.log.read_text()


def differing(device: Device, expected: Contents, name: str, has_database: bool) -> list[str]:
    """What is not there of what stood in the database, or in the files that are whole."""
    found = device.list_all()
    if has_database:
        return found.differences(expected)
    # The hot state holds the weightiest of the warm memories again, and MEMORY.md shows both.
    lost: list[str] = []
    if name != "warm-memory.json":
        texts = {memory["text"] for memory in found.memories.values()}
        lost += [one["text"] for one in SMALL_MEMORIES if one["text"] not in texts]
    if name != "hot-memory-state.json" and found.hot["identity"] != expected.hot["identity"]:
        lost.append("the identity")
    return lost


def test_each_byte_of_the_id_of_a_device_may_be_flipped_and_each_length_cut(tmp_path):
    file = tmp_path / "device.json"
    known = DeviceId(tmp_path).id
    whole = file.read_bytes()
    contents = [whole[:length] for length in range(len(whole))]
    for at in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        contents.append(bytes(flipped))
    for content in contents:
        file.write_bytes(content)
        taken = DeviceId(tmp_path).id
        assert taken == DeviceId(tmp_path).id, "it is kept from then on"
        assert taken == known or taken not in content.decode(errors="replace") or len(taken) == 12
        for aside in tmp_path.glob("device.json.corrupt-*"):
            aside.unlink()


@pytest.mark.parametrize(
    "left",
    [
        None,
        pytest.param(b"", marks=pytest.mark.crash),
        pytest.param(bytes(8 * PAGE), marks=pytest.mark.crash),
    ],
    ids=["gone", "empty", "zeros"],
)
def test_what_the_state_files_show_survives_a_destroyed_database_without_a_replica(tmp_path, left):
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
