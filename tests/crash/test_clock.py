"""A clock that jumps by years: no update is lost, the order holds, and nothing spins."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import wait_until
from device import Device, ending
from machine import cpu_seconds
from world import World

YEAR = 365 * 86_400.0
# A Linux clock can be set to any moment from 1970 to 2262.
JUMPS = (
    *(0, 1, -1, 3600, -3600, YEAR, -YEAR),
    *(30 * YEAR, -50 * YEAR, -100 * YEAR, 170 * YEAR, 200 * YEAR),
)


numbers = iter(range(1000))


@pytest.fixture(scope="module")
def shared(sqld_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two devices whose clocks can be moved, for all tests of this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        with World(sqld_binary, 2, clocks=True) as world:
            yield world


@pytest.fixture
def world(shared: World) -> World:
    """The same with an agent that none has had, and clocks that are right."""
    for device in shared.devices:
        device.set_clock(0)
    shared.begin(f"agent{next(numbers)}")
    return shared


@pytest.mark.parametrize("steps", [35, pytest.param(2000, marks=pytest.mark.crash)])
@pytest.mark.timeout(1800)
def test_no_update_is_lost_by_a_clock_that_jumps(world, steps):
    """All changes are one device's, and the other learns of them at random moments."""
    chance = random.Random(25)
    here, there = world.devices
    kept = there.store("a memory of its own")
    texts: dict[str, str] = {}
    pairs: dict[str, str] = {}
    for number in range(steps):
        here.set_clock(chance.choice(JUMPS))
        if number % 50 == 30:
            here.restart()
        text = f"text of step {number}"
        kind = chance.choice(["store", "edit", "forget", "pair"])
        if kind == "store" or not texts:
            texts[here.store(text)] = text
        elif kind == "edit":
            key = chance.choice([*texts])
            here.edit(key, text=text)
            texts[key] = text
        elif kind == "forget":
            key = chance.choice([*texts])
            here.forget(key)
            del texts[key]
        else:
            here.put_pair("key", text)
            pairs["key"] = text
        if chance.random() < 0.3:
            here.sync()
            there.sync()
    contents = world.heal()
    found = {key: memory["text"] for key, memory in contents.memories.items() if key != kept}
    assert found == texts
    assert contents.pairs == pairs
    here.files_written()


@pytest.mark.parametrize("jump", [30 * YEAR, 200 * YEAR, -50 * YEAR])
def test_a_later_change_stays_whatever_the_clock_of_the_earlier_one_showed(world, jump):
    here, there = world.devices
    there.store("a memory of its own")
    here.set_clock(jump)
    key = here.store("first")
    here.edit(key, text="second")
    here.put_pair("key", "first")
    world.heal()
    there.edit(key, text="third")
    there.put_pair("key", "second")
    world.heal()
    here.set_clock(0)
    here.edit(key, text="fourth")
    contents = world.heal()
    assert contents.memories[key]["text"] == "fourth"
    assert contents.pairs == {"key": "second"}


def test_a_jump_of_the_clock_makes_no_busy_loop(tmp_path):
    device = Device(tmp_path / "device", url=f"file:{tmp_path / 'replica.db'}", clock=True)
    with ending(device):
        device.start()
        key = device.store("fact 1")
        for jump in JUMPS:
            device.set_clock(jump)
            assert device.memories()[key]["text"] == "fact 1"
            device.files_written()
            wait_until(lambda: rests(device), f"it rests with a clock that is set by {jump} s")


def rests(device: Device) -> bool:
    """Whether it takes little of the processor while nobody asks for anything."""
    assert device.process is not None
    before, began = cpu_seconds(device.process.pid), time.monotonic()
    time.sleep(0.1)
    return cpu_seconds(device.process.pid) - before < (time.monotonic() - began) / 2
