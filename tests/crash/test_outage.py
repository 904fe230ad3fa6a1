"""A bad network for a long time: nothing that was changed is lost, and nothing is there twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from devices import Clock, Device

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import key_values, memories
from thermocline.daemon.store.transaction import Rules, Transaction
from thermocline.sync import FileRemote, TryLater, Waiting, turso
from thermocline.sync.faulty import FaultyRemote

# Read here: the variables of ours are taken away before a test begins.
FLAPS = int(os.environ.get("THERMOCLINE_FLAPS", "1000"))
FEW_AND_MANY = [40, pytest.param(FLAPS, marks=pytest.mark.crash)]
BEGINNING = 1_800_000_000.0
DAY = 86_400.0


def told(number: int, now: float) -> Memory:
    return Memory(
        id=f"m{number:06d}",
        text=f"reading number {number}",
        category=f"log/{number % 7}",
        created_at=now,
        updated_at=now,
        writer="test",
    )


@pytest.fixture
async def devices(tmp_path: Path) -> AsyncIterator[Callable[..., Device]]:
    """`devices(name, remote, now)` is a device in a folder of its own; all are closed."""
    made: list[Device] = []
    with ThreadPoolExecutor(4) as threads:

        def make(name: str, remote: Any, now: Callable[[], float]) -> Device:
            folder = tmp_path / name
            made.append(Device(folder, name, remote, now=now, threads=threads, rules=Rules()))
            return made[-1]

        yield make
        for device in made:
            await device.stop()
            await device.remote.close()


async def no_wait(_seconds: float) -> None:
    """Delays are no part of these tests."""


@pytest.mark.parametrize("hours", [2, pytest.param(24, marks=pytest.mark.crash)])
async def test_all_that_was_changed_in_an_outage_of_many_hours_arrives_once(
    devices: Callable[..., Device], tmp_path: Path, hours: int
) -> None:
    clock = Clock(BEGINNING)
    remote = FaultyRemote(FileRemote(tmp_path / "remote.db"), no_wait)
    device = devices("a", remote, clock)
    await device.sync()
    remote.online = False
    tries, next_try, failures = 0, clock(), 0
    waiting, chance = Waiting(), random.Random(4)
    for minute in range(hours * 60):
        clock.seconds = BEGINNING + minute * 60
        await device.write(lambda tx, number=minute: memories.insert(tx, told(number, clock())))
        await device.write(lambda tx, n=minute: key_values.put(tx, "minute", str(n)))
        while next_try <= clock():
            tries, failures = tries + 1, failures + 1
            with pytest.raises(TryLater) as raised:
                await device.sync()
            next_try += max(1.0, waiting.seconds(raised.value, failures, chance))
    remote.online = True
    sent = (await device.sync()).sent
    other = devices("b", FileRemote(tmp_path / "remote.db"), clock)
    await other.sync()
    assert (await device.contents()).queued == []
    assert (await device.contents()).shared == (await other.contents()).shared
    found = (await device.replica.counts())["memory"]
    print(
        f"\n{hours} hours away: {hours * 60} memories and as many values of one key changed,"
        f" {tries} tries; {sent} rows sent, {found} memories found, {found - hours * 60} too many"
    )
    assert found == hours * 60
    assert tries >= hours * 10


@pytest.mark.parametrize("flaps", FEW_AND_MANY)
@pytest.mark.timeout(1800)
async def test_a_connection_that_comes_and_goes_loses_nothing_and_doubles_nothing(
    sqld: Any, make_fault_proxy: Callable[[int], Any], devices: Callable[..., Device], flaps: int
) -> None:
    clock, chance = Clock(BEGINNING), random.Random(7)
    proxy = make_fault_proxy(sqld.port)
    device = devices("a", await turso.connect(proxy.url), clock)
    other = devices("b", await turso.connect(sqld.url), clock)
    succeeded = 0
    for number in range(flaps):
        clock.seconds += 1
        await device.write(lambda tx, number=number: memories.insert(tx, told(number, clock())))
        if number % 5 == 0:
            await other.write(lambda tx, n=number: key_values.put(tx, f"k{n}", str(n)))
        disturb(proxy, sqld, chance, number)
        # Whatever a network does passes by itself: any other error ends the test.
        with contextlib.suppress(TryLater):
            await device.sync()
            succeeded += 1
        proxy.heal()
        if number % 10 == 9:
            await other.sync()
    for one in (device, other, device):
        await one.sync()
    assert (await device.contents()).queued == (await other.contents()).queued == []
    assert (await device.contents()).shared == (await other.contents()).shared
    [[rows, distinct]] = sqld.query("SELECT count(*), count(DISTINCT text) FROM cold_memories")
    print(
        f"\n{flaps} flaps, {flaps - succeeded} rounds failed: {flaps} memories stored,"
        f" {rows} found, {rows - distinct} doubled"
    )
    assert rows == distinct == flaps
    assert succeeded <= flaps * 2 // 3


@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=pytest.mark.crash)])
@pytest.mark.timeout(1800)
async def test_a_server_that_is_killed_in_the_middle_of_a_batch_loses_and_doubles_nothing(
    sqld: Any, devices: Callable[..., Device], kills: int
) -> None:
    clock, chance = Clock(BEGINNING), random.Random(11)
    device = devices("a", await turso.connect(sqld.url), clock)
    other = devices("b", await turso.connect(sqld.url), clock)
    await device.sync()
    cut, each = 0, 400
    for number in range(kills):
        start = number * each
        await device.write(lambda tx, start=start: store_many(tx, range(start, start + each)))
        await device.write(lambda tx, start=start: memories.reinforce(tx, [told(start, 0).id]))
        sending = asyncio.create_task(device.sync())
        await asyncio.sleep(chance.uniform(0.0, 0.06))
        sqld.kill()
        try:
            await sending
        except TryLater:
            cut += 1
        sqld.start()
    for one in (device, other, device, other):
        await one.sync()
    assert (await device.contents()).queued == (await other.contents()).queued == []
    assert (await device.contents()).shared == (await other.contents()).shared
    [[rows, distinct]] = sqld.query("SELECT count(*), count(DISTINCT text) FROM cold_memories")
    print(
        f"\n{kills} kills, {cut} of them while rows were sent: {kills * each} memories stored,"
        f" {rows} found, {rows - distinct} doubled"
    )
    assert rows == distinct == kills * each
    assert sum(count for count, _ in (await other.contents()).counts.values()) == kills


def store_many(tx: Transaction, numbers: range) -> None:
    for number in numbers:
        memories.insert(tx, told(number, tx.now))


def disturb(proxy: Any, sqld: Any, chance: random.Random, number: int) -> None:
    """What a network does to a call, one thing at a time; now and then the server is killed."""
    if number % 50 == 25:
        sqld.kill()
        sqld.start()
        return
    kind = chance.choice(["refuse", "sent", "answered", "truncated", "portal", "500", "429", "ok"])
    match kind:
        case "refuse":
            proxy.faults(refuse=True)
        case "sent":
            proxy.faults(reset_after_sent=chance.randrange(1, 3000))
        case "answered":
            proxy.faults(reset_after_answered=chance.choice([0, 0, 40]))
        case "truncated":
            proxy.faults(truncate_after=chance.randrange(10, 300))
        case "portal":
            proxy.faults(captive_portal=True)
        case "500" | "429":
            proxy.faults(status=int(kind), retry_after="1", body="{}")
