"""kill -9 at each stage of a restore: the next run goes on, and nothing is lost or doubled.

A stage is what lies between two changes of the file system; within the longest, in which the rows
come, a kill falls after a share of what is to be fetched, or at any moment.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import PROGRAM
from device import AGENT, Contents, Device, ending
from world import World

# Read here: the variables of ours are taken away before a test begins.
KILLS = int(os.environ.get("THERMOCLINE_KILLS", "60"))
SEED = int(os.environ.get("THERMOCLINE_SEED", "20"))
KILLED = str(Path(__file__).parents[1] / "fixtures" / "killed.py")
MANY = 1200
FEW = 400
# So many that most of them are not on their way at the same time.
VERY_MANY = 20_000
# One that would replicate at once would have both, the old and the new.
ALONE = ("--set", "sync.url=null")
SOME_AND_ALL = [1, pytest.param(1000, marks=pytest.mark.crash)]


Life = tuple[World, Contents]


@pytest.fixture(scope="module")
def life(
    sqld_binary: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Life]:
    """A replica with the rows of a device that has lived, and what that device shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        is_quick = request.config.option.markexpr.startswith("not ")
        yield from lived(sqld_binary, FEW if is_quick else MANY)


@pytest.fixture(scope="module")
def long_life(sqld_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Likewise, with so much that it takes a while to fetch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield from lived(sqld_binary, VERY_MANY)


def lived(sqld: Path, number: int) -> Iterator[Life]:
    with World(sqld, 1) as world:
        [device] = world.devices
        live(device, number)
        yield world, world.heal()


def live(device: Device, number: int) -> None:
    """Something of everything, changed, merged and forgotten."""
    ids: list[str] = []
    for first in range(0, number, 400):
        batch = [
            {
                "text": f"memory {n} speaks of word{n % 97} — ça et là",
                "category": f"work/part{n % 7}",
                "tags": ["one", "two"] if n % 3 == 0 else [],
                "importance": (n % 10) / 10,
                "data": {"steps": [n, 1.5, None]} if n % 50 == 0 else None,
            }
            for n in range(first, first + 400)
        ]
        ids += [memory.id for memory in device.memory.batch(batch)]
    device.reinforce(ids[1])
    device.edit(ids[5], text="changed since", category="home")
    device.merge(ids[11], ids[12])
    device.merge(ids[13], ids[14])
    device.unmerge(ids[13])
    device.forget(ids[7])
    device.put_pair("colour", "green")
    device.put_pair("gone", "soon")
    device.drop_pair("gone")
    device.put_hot("lesson", {"text": "tie the boats"})
    device.put_hot("identity", {"agent_name": "Otis"})
    device.write_note("2026-03-01.md", "a note\n")
    device.write_note("gone.md", "soon\n")
    device.sync()
    (device.desk / "gone.md").unlink()


def restore_killed(device: Device, number: int, *more: str, count: Path) -> bool:
    """Restore, and kill that before a change of the file system; return whether it was killed."""
    words = [*("--agent-id", device.agent), *map(str, device.restore_words(*more))]
    said = count.with_name("said")
    with said.open("wb") as log:
        code = Device.run((KILLED, str(number), str(count)), words, log).wait(120)
    assert code in (0, -signal.SIGKILL), said.read_text()
    return code != 0


def restoring(device: Device) -> subprocess.Popen[bytes]:
    words = [*PROGRAM, "--agent-id", device.agent, *device.restore_words()]
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stages(life: Life, count: Path, most: int) -> list[int]:
    """At most so many numbers for `restore_killed`, evenly spread, the last among them."""
    device = life[0].make()
    assert not restore_killed(device, 0, count=count)
    total = int(count.read_text())
    count.unlink()
    shutil.rmtree(device.state)
    return [*range(total, 0, -max(1, total // most))][:most]


def go_on(device: Device) -> None:
    """Give the same command once more; one that had done its work before it was killed says so."""
    there = device.folder().exists()
    device.command(*device.restore_words(), code=None if there else 0)


def folders(device: Device) -> list[str]:
    return sorted(path.name for path in (device.state / "agents").iterdir())


def assert_whole(device: Device, expected: Contents) -> None:
    with ending(device):
        device.start()
        if device.notes() != expected.notes:
            device.sync()
        assert expected.differences(device.list_all()) == []


@pytest.mark.parametrize("most", SOME_AND_ALL)
@pytest.mark.timeout(3600)
def test_after_a_kill_the_same_command_goes_on(most, life, tmp_path):
    world, expected = life
    numbers = stages(life, tmp_path / "count", most)
    for number in numbers:
        device = world.make()
        assert restore_killed(device, number, count=tmp_path / "count")
        go_on(device)
        assert folders(device) == [AGENT]
        assert_whole(device, expected)
        shutil.rmtree(device.state)
    print(
        f"\nkilled before each of {len(numbers)} changes of the file system; all whole in the end"
    )


@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_what_was_there_before_is_kept_and_a_daemon_has_the_old_or_the_new(life, tmp_path):
    world, expected = life
    old = world.make()
    old.start(*ALONE)
    old.store("mine alone")
    before = old.list_all()
    old.stop()
    for number in stages(life, tmp_path / "count", 1000):
        device = world.make()
        shutil.copytree(old.state, device.state, dirs_exist_ok=True)
        # What is there already, and is gone on with, takes fewer steps.
        if not restore_killed(device, number, "--replace", count=tmp_path / "count"):
            continue
        with ending(device):
            found = device.start(*ALONE).list_all()
            device.stop()
        assert not found.differences(before) or not found.differences(
            expected._replace(notes=found.notes)
        )
        device.restore("--replace")
        kept = [name for name in folders(device) if name.startswith(f"{AGENT}.before-")]
        assert kept
        assert any(shows(world, device.state / "agents" / name, before) for name in kept)
        assert_whole(device, expected)
        shutil.rmtree(device.state)


def shows(world: World, folder: Path, expected: Contents) -> bool:
    """Whether a folder that was set aside holds a memory."""
    device = world.make()
    shutil.copytree(folder, device.folder())
    with ending(device):
        found = device.start(*ALONE).list_all()
    shutil.rmtree(device.state)
    return not found.differences(expected)


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_what_has_come_before_a_kill_is_not_fetched_again(long_life):
    world, expected = long_life
    new = world.make()
    network = world.network(new)
    whole = restore_until(world, new, 1.0)
    shutil.rmtree(new.state)
    restore_until(world, new, 0.8, whole)
    before = network.to_client
    new.restore()
    again = network.to_client - before
    print(f"\nkilled after 80% of {whole:,} bytes: the next run fetched {again / whole:.0%}")
    assert_whole(new, expected)
    assert again < whole * 0.75


@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8, 0.99])
def test_what_a_power_cut_takes_of_the_log_is_asked_for_again(share, long_life):
    world, expected = long_life
    new = world.make()
    whole = restore_until(world, new, 1.0)
    shutil.rmtree(new.state)
    restore_until(world, new, 0.8, whole)
    for log in new.state.rglob("*-wal"):
        os.truncate(log, int(log.stat().st_size * share))
    new.restore()
    assert_whole(new, expected)


def restore_until(world: World, device: Device, share: float, whole: int = 0) -> int:
    """Restore, and kill that after a share of the bytes; return how many came."""
    network = world.network(device)
    before = network.to_client
    if not whole:
        device.restore()
        return network.to_client - before
    # So slow that the kill falls where it is to fall.
    network.faults(bytes_per_second=whole / 2)
    with restoring(device) as process:
        while network.to_client < before + whole * share:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
    network.heal()
    return network.to_client - before


@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_kills_at_any_moment(life):
    world, expected = life
    chance = random.Random(SEED)
    finished = killed = 0
    began = time.monotonic()
    world.make().restore()
    seconds = time.monotonic() - began
    while killed < KILLS:
        device = world.make()
        later = 1.0
        while not device.folder().exists():
            with restoring(device) as process:
                # The moment of a kill has no relation to what it does. On a machine that has
                # become busier since, each comes a little later: one of them is too late.
                time.sleep(chance.uniform(0.2, 1.1) * seconds * later)
                process.kill()
            assert process.returncode in (0, -signal.SIGKILL)
            killed += process.returncode != 0
            later *= 1.1
        go_on(device)
        finished += 1
        assert folders(device) == [AGENT]
        assert_whole(device, expected)
        shutil.rmtree(device.state)
    print(f"\n{killed} kills in {finished} restores, each of them whole in the end")
