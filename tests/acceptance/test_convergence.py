"""Real devices on one replica: whatever happens to them, nothing is lost, and all end alike.

A history is random and follows from its number, which stands in the name of the test. With
THERMOCLINE_HISTORIES=N, `-m soak` runs N of them with everything in them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import (
    DELETING,
    DISASTERS,
    EVERYDAY,
    EVERYTHING,
    KILLING,
    MERGING,
    SMALL,
    TAGGING,
    UNDOING,
    USING,
    WRITING,
    History,
)
from world import World

from thermocline.daemon.client import ClientError

# Read here: the variables of ours are taken away before a test begins.
HISTORIES = int(os.environ.get("THERMOCLINE_HISTORIES", "1000"))
FIRST = int(os.environ.get("THERMOCLINE_SEED", "1"))
# Servers and devices are made anew after so many: what they keep of past histories slows them.
AT_ONCE = 50
PARTS = {
    "memories": {"store": 3, "sync": 4, "sync_badly": 2} | SMALL,
    "fields": EVERYDAY,
    "forgotten": {"store": 4, "sync": 4} | DELETING,
    "changed and forgotten": EVERYDAY | DELETING,
    "merged": {"store": 4, "sync": 4} | MERGING,
    "changed and merged": EVERYDAY | MERGING,
    "undone": EVERYDAY | UNDOING,
    "tags": {"store": 2, "sync": 4, "sync_badly": 2} | TAGGING,
    "used and merged": {"store": 2, "sync": 4, "sync_badly": 2, "merge": 2} | USING,
    "used": {"store": 2, "sync": 4} | USING,
    "notes": {"sync": 4, "sync_badly": 2} | WRITING,
}
# What happens to one device alone, `test_devices.py` shows.
SOME_AND_ALL = [
    *("server_wiped", "device_lost"),
    *(pytest.param(disaster, marks=pytest.mark.crash) for disaster in DISASTERS),
]


@pytest.fixture(scope="module")
def world(sqld_binary: Path) -> Iterator[World]:
    """Three devices that serve all tests of this module, each with an agent of its own."""
    with World(sqld_binary) as world:
        yield world


@pytest.fixture(scope="module")
def sealed_world(sqld_binary: Path) -> Iterator[World]:
    """The same with a sealed replica."""
    with World(sqld_binary, sealed=True) as world:
        yield world


@pytest.mark.parametrize("disaster", SOME_AND_ALL)
def test_nothing_is_lost_whatever_happens_to_devices_and_servers(world, disaster):
    History(world, FIRST, EVERYTHING, disaster).run()


# One of them holds most of what may go wrong with keys: none are left on the server or the device.
@pytest.mark.parametrize(
    "disaster",
    [
        pytest.param(disaster, marks=() if disaster == "device_lost" else pytest.mark.crash)
        for disaster in DISASTERS
    ],
)
def test_nothing_is_lost_on_a_sealed_replica_either(sealed_world, disaster):
    History(sealed_world, FIRST, EVERYTHING, disaster).run()


# What is in the one before, each alone: it shows at once which of it is lost.
@pytest.mark.crash
@pytest.mark.parametrize("disaster", ["", *DISASTERS])
@pytest.mark.parametrize("steps", PARTS.values(), ids=PARTS)
def test_no_part_is_lost_whatever_happens_to_devices_and_servers(world, steps, disaster):
    History(world, FIRST, steps, disaster).run()


def test_a_kill_in_the_middle_of_replication_loses_nothing(world):
    steps = {"store": 3, "sync": 2} | SMALL | KILLING
    History(world, FIRST, steps).run(20)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_is_lost_in_very_many_histories_of_everything(sqld_binary):
    failed: dict[str, str] = {}
    for first in range(FIRST, FIRST + HISTORIES, AT_ONCE):
        # Every other lot is sealed.
        with World(sqld_binary, sealed=first // AT_ONCE % 2 == 1) as world:
            for seed in range(first, min(first + AT_ONCE, FIRST + HISTORIES)):
                # Every third has a disaster; those with kills have no uses, which are no facts.
                disaster = DISASTERS[seed // 3 % len(DISASTERS)] if seed % 3 == 0 else ""
                steps = EVERYTHING | (KILLING if seed % 10 == 1 else USING)
                try:
                    History(world, seed, steps, disaster).run(40)
                except (AssertionError, ClientError) as error:
                    failed[f"{seed} {disaster}"] = str(error)
    print(f"\n{HISTORIES} histories, {len(failed)} of them bad")
    assert not failed, "\n\n".join(f"{name}: {what}" for name, what in failed.items())
