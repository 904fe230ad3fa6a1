"""A bad network for a long time: nothing that was changed is lost, and nothing is there twice."""

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from device import AGENT, Device
from sealing import owner
from world import World, disturb

from thermocline.sync.row_format import Received, RowFormat
from thermocline.sync.sealing.sealed_rows import SealedRows

# Read here: the variables of ours are taken away before a test begins.
FLAPS = int(os.environ.get("THERMOCLINE_FLAPS", "1000"))
FEW_AND_MANY = [28, pytest.param(FLAPS, marks=pytest.mark.crash)]


@pytest.fixture
def world(sqld_binary: Path) -> Iterator[World]:
    """Two devices whose clocks can be moved."""
    with World(sqld_binary, 2, clocks=True) as world:
        yield world


def archived(world: World) -> tuple[int, int]:
    """How many memories the replica holds, and how many different texts."""
    form = SealedRows(AGENT, owner) if Device.sealed else RowFormat(AGENT)
    sql = "SELECT kind, id, version, data, clocks FROM rows WHERE agent_id = ? AND data IS NOT NULL"
    received = [form.received(line) for line in world.server.query(sql, form.agent)]
    rows = [each.row for each in received if isinstance(each, Received)]
    assert len(rows) == len(received)
    texts = [row.data["text"] for row in rows if row.kind == "memory"]
    return len(texts), len({*texts})


@pytest.mark.parametrize("hours", [1, pytest.param(24, marks=pytest.mark.crash)])
@pytest.mark.timeout(1800)
def test_all_that_was_changed_in_an_outage_of_many_hours_arrives_once(world, hours):
    here, there = world.devices
    there.store("a memory of its own")
    world.network(here).faults(refuse=True)
    tries = 0
    for minute in range(hours * 60):
        here.set_clock(minute * 60)
        here.store(f"reading number {minute}", category=f"log/{minute % 7}")
        here.put_pair("minute", str(minute))
        if minute % 5 == 0:
            assert not here.try_sync()
            tries += 1
    assert here.problems() == []
    world.network(here).heal()
    sent = here.sync()["sent"]
    there.set_clock(hours * 3600)
    contents = world.heal()
    rows, texts = archived(world)
    print(
        f"\n{hours} hours away: {hours * 60} memories and as many values of one key changed,"
        f" {tries} tries; {sent} rows sent, {rows} memories found, {rows - texts} doubled"
    )
    assert rows == texts == len(contents.memories) == hours * 60 + 1
    assert contents.pairs == {"minute": str(hours * 60 - 1)}


@pytest.mark.parametrize("flaps", FEW_AND_MANY)
@pytest.mark.timeout(1800)
def test_a_connection_that_comes_and_goes_loses_nothing_and_doubles_nothing(world, flaps):
    here, there = world.devices
    chance = random.Random(7)
    there.store("a memory of its own")
    succeeded = 0
    for number in range(flaps):
        here.store(f"reading number {number}", category=f"log/{number % 7}")
        if number % 5 == 0:
            there.put_pair(f"k{number}", str(number))
        if number % 50 == 25:
            world.server.kill()
            world.server.start()
        else:
            disturb(world.network(here), chance)
        # Whatever a network does passes by itself: any other error ends the test.
        succeeded += here.try_sync()
        world.network(here).heal()
        if number % 10 == 9:
            there.sync()
    contents = world.heal()
    rows, texts = archived(world)
    print(
        f"\n{flaps} flaps, {flaps - succeeded} rounds failed: {flaps} memories stored,"
        f" {rows} found, {rows - texts} doubled"
    )
    assert rows == texts == len(contents.memories) == flaps + 1
    assert contents.pairs == {f"k{number}": str(number) for number in range(0, flaps, 5)}
    assert succeeded < flaps


@pytest.mark.parametrize(
    ("kills", "each"), [(2, 120), pytest.param(60, 400, marks=pytest.mark.crash)]
)
@pytest.mark.timeout(1800)
def test_a_server_that_is_killed_in_the_middle_of_a_batch_loses_and_doubles_nothing(
    world, kills, each
):
    here, there = world.devices
    chance = random.Random(11)
    there.store("a memory of its own")
    used = here.store("is used")
    world.heal()
    cut = 0
    for number in range(kills):
        first = number * each
        here.memory.batch([{"text": f"reading number {first + n}"} for n in range(each)])
        here.reinforce(used)
        went: list[bool] = []
        sending = threading.Thread(target=lambda went=went: went.append(here.try_sync()))
        sending.start()
        # The moment of the kill has no relation to what is sent.
        time.sleep(chance.uniform(0.0, 0.15))
        world.server.kill()
        sending.join()
        cut += not went[0]
        world.server.start()
        if number % 10 == 9:
            there.sync()
    contents = world.heal()
    rows, texts = archived(world)
    print(
        f"\n{kills} kills, {cut} of them while rows were sent: {kills * each} memories stored,"
        f" {rows} found, {rows - texts} doubled"
    )
    assert rows == texts == len(contents.memories) == kills * each + 2
    assert contents.memories[used]["access_count"] == kills


def test_a_daemon_whose_server_comes_back_sends_by_itself_what_has_waited(sqld_binary, eventually):
    soon = ("sync.change_seconds=0.1", "sync.critical_seconds=0.1", "sync.poll_seconds=0.5")
    with World(sqld_binary, 2, *soon) as world:
        here, there = world.devices
        there.store("a memory of its own")
        here.store("before")
        eventually(lambda: here.texts() == there.texts(), "both know both")
        world.network(here).faults(refuse=True)
        here.store("during")
        eventually(lambda: here.memory.sync_status().phase == "waiting", "it waits")
        world.network(here).heal()
        eventually(lambda: "during" in there.texts(), "what has waited has arrived")
