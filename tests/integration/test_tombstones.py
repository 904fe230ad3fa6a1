"""Traces of deletions: kept as long as a device may need them, and what happens to one too late."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest
from devices import Clock, Device

from thermocline.daemon.memory import hot
from thermocline.daemon.memory import tree as trees
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.store import hot_rows, key_values, link, memories, tree_rows
from thermocline.daemon.store.settling import settle_anew
from thermocline.daemon.store.transaction import Rules, Transaction
from thermocline.sync import FileRemote, Link, Refused, TryLater
from thermocline.sync.faulty import Fault, FaultyRemote

MakeDevice: TypeAlias = Callable[..., Device]
MakeMemory: TypeAlias = Callable[..., Memory]
MONTH = 30 * DAY


@pytest.fixture
async def make_device(
    tmp_path: Path, wall: Clock, threads: ThreadPoolExecutor
) -> AsyncIterator[MakeDevice]:
    """`make_device(name)` makes a device; all share one remote, and a wall clock."""
    made: list[Device] = []

    def make(name: str, *, rules: Rules | None = None) -> Device:
        remote = FaultyRemote(FileRemote(tmp_path / "remote.db"), asyncio.sleep)
        made.append(
            Device(
                *(tmp_path / name, name, remote),
                now=wall,
                threads=threads,
                rules=rules or Rules(),
            )
        )
        return made[-1]

    yield make
    for device in made:
        await device.stop()
        await device.remote.close()


async def meet(*devices: Device) -> None:
    """Let each send, receive and sign, twice, so that all know what all know."""
    for device in (*devices, *devices):
        await device.round.run(urgent_only=False, look=True, sign=True)


async def traces(device: Device) -> tuple[set[str], set[str]]:
    """The ids of the deletions that are remembered: on the device, and on the remote."""
    here = await device.read(lambda db: db.execute("SELECT id FROM tombstones").fetchall())
    there = await device.replica.objects((0, "", ""), 500)
    return {key for (key,) in here}, {row.id for row in there.rows if row.deleted}


async def held(device: Device) -> set[str]:
    rows = await device.read(lambda db: db.execute("SELECT id FROM memories").fetchall())
    return {key for (key,) in rows}


def forget(tx: Transaction, *keys: str) -> None:
    for key in keys:
        memories.delete(tx, memories.find(tx.db, key))


async def fill(device: Device, make_memory: MakeMemory, number: int = 4) -> None:
    now = device.now()
    new = [make_memory(n, created_at=now, updated_at=now) for n in range(number)]
    await device.write(lambda tx: [memories.insert(tx, one) for one in new])


async def test_traces_go_within_a_day_once_every_device_has_received_them(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock
) -> None:
    one, two = make_device("one"), make_device("two")
    await fill(one, make_memory)
    await one.write(lambda tx: memories.reinforce(tx, ["m00001"]))
    await meet(one, two)
    await one.write(lambda tx: forget(tx, "m00001"))
    await meet(one, two)
    for device in (one, two):
        assert await traces(device) == ({"m00001"}, {"m00001"})
    wall.seconds += DAY - 60
    await meet(one, two)
    assert await traces(one) == ({"m00001"}, {"m00001"})
    wall.seconds += 120
    await meet(one, two)
    for device in (one, two):
        here, there = await traces(device)
        assert "m00001" not in here | there
    # What was counted of it goes as well, and then the traces of that.
    wall.seconds += 2 * DAY
    await meet(one, two)
    wall.seconds += 2 * DAY
    await meet(one, two)
    for device in (one, two):
        assert await traces(device) == (set(), set())
        assert await device.read(lambda db: db.execute("SELECT * FROM uses").fetchall()) == []


async def test_a_clock_that_was_set_back_does_not_keep_them_for_ever(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock
) -> None:
    one = make_device("one")
    await fill(one, make_memory)
    await meet(one)
    await one.write(lambda tx: forget(tx, "m00001"))
    wall.seconds -= 10 * MONTH
    await meet(one)
    assert await traces(one) == (set(), set())


async def test_a_device_back_after_months_still_receives_every_deletion(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock
) -> None:
    one, two, away = make_device("one"), make_device("two"), make_device("away")
    await fill(one, make_memory)
    await meet(one, two, away)
    for day in range(60):
        wall.seconds += DAY
        if day == 3:
            await one.write(lambda tx: forget(tx, "m00001", "m00002"))
        await meet(one, two)
    assert await traces(two) == ({"m00001", "m00002"}, {"m00001", "m00002"})
    await away.write(lambda tx: key_values.put(tx, "mine", "kept"))
    await meet(away)
    assert await held(away) == {"m00000", "m00003"}
    wall.seconds += 2 * DAY
    await meet(one, two, away)
    wall.seconds += 2 * DAY
    await meet(one, two, away)
    for device in (one, two, away):
        assert await traces(device) == (set(), set())
        assert (await device.contents()).live["kv", "mine"]


async def test_a_retired_device_holds_nothing_back_and_is_told_so(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock
) -> None:
    one, away = make_device("one"), make_device("away")
    await fill(one, make_memory)
    await meet(one, away)
    assert await one.replica.retire("away", wall())
    await one.write(lambda tx: forget(tx, "m00001"))
    wall.seconds += 2 * DAY
    await meet(one)
    wall.seconds += 2 * DAY
    await meet(one)
    assert await traces(one) == (set(), set())
    await away.write(lambda tx: key_values.put(tx, "mine", "kept"))
    with pytest.raises(Refused) as raised:
        await meet(away)
    assert raised.value.code == "retired"
    assert (await away.contents()).queued == [("kv", "mine")]


async def too_late(one: Device, away: Device, make_memory: MakeMemory, wall: Clock) -> None:
    """Let a device miss deletions of every kind whose traces are gone when it is taken in again."""

    def begin(tx: Transaction) -> None:
        key_values.put(tx, "gone", "1")
        key_values.put(tx, "stays", "1")
        tree_rows.save(tx, {}, trees.add({}, "gone/too", "", tx.now, tx.rules.tree))
        hot_rows.save(tx, hot.from_entries({("identity", ""): hot.Entry({"name": "A"}, 0)}))

    def end(tx: Transaction) -> None:
        forget(tx, "m00001", "m00002", "m00003")
        key_values.delete(tx, "gone")
        tree_rows.save(tx, tree_rows.load(tx.db), {})
        hot_rows.save(tx, hot.from_entries({}))

    await fill(one, make_memory, 5)
    await one.write(begin)
    await meet(one, away)
    await one.replica.retire("away", wall())
    await one.write(end)
    for _ in range(2):
        wall.seconds += 2 * DAY
        await meet(one)
    assert await traces(one) == (set(), set())
    await one.replica.retire("away", None)


async def test_a_device_that_comes_too_late_compares_everything(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock
) -> None:
    one, away = make_device("one"), make_device("away")
    await too_late(one, away, make_memory, wall)

    def change(tx: Transaction) -> None:
        memories.insert(tx, make_memory(9, created_at=tx.now, updated_at=tx.now))
        old = memories.find(tx.db, "m00002")
        memories.replace(tx, old, msgspec.structs.replace(old, text="changed while away"))
        memories.reinforce(tx, ["m00001", "m00004"])
        key_values.put(tx, "mine", "kept")

    await away.write(change)
    # The daemon by itself files what has faded in the archive: that is no edit of anybody's.
    wall.seconds += 2 * MONTH
    await away.write(settle_anew)
    await meet(away, one)
    for device in (one, away):
        assert await held(device) == {"m00000", "m00002", "m00004", "m00009"}
    mine, theirs = await away.contents(), await one.contents()
    assert mine.shared == theirs.shared
    assert mine.live["memory", "m00002"][1]["text"] == "changed while away"
    assert mine.counts["m00004"][0] == 1
    kinds = {key for key in mine.live if key[0] in ("kv", "tree", "hot")}
    assert kinds == {("kv", "stays"), ("kv", "mine"), ("tree", "general")}
    tally = await away.round.run(urgent_only=False, look=True, sign=False)
    assert (tally.sent, tally.received) == (0, 0)


@pytest.mark.parametrize("batch", [1, 3, 5, 7])
async def test_a_comparison_that_was_interrupted_begins_again(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock, batch: int
) -> None:
    one, away = make_device("one"), make_device("away")
    await too_late(one, away, make_memory, wall)
    away.remote._plan = iter([*[Fault()] * batch, Fault("before")])  # type: ignore[attr-defined]
    with pytest.raises(TryLater):
        await meet(away)
    await away.stop()
    away.start()
    await meet(away, one)
    assert await held(away) == {"m00000", "m00004"}
    assert (await away.contents()).shared == (await one.contents()).shared


async def test_traces_that_go_while_a_device_receives_are_noticed(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock
) -> None:
    """A device that was never here before is waited for by none."""
    one, new = make_device("one"), make_device("new")
    await fill(one, make_memory)
    await meet(one)
    pages = new.replica.objects
    passed = False

    async def meanwhile(after: tuple[int, str, str], limit: int) -> object:
        nonlocal passed
        page = await pages(after, limit)
        if passed:
            return page
        passed = True
        # It has the memory already, and goes on to what else there is.
        await new.write(lambda tx: memories.insert(tx, make_memory(1, clock=1, device="one")))
        await new.write(lambda tx: tx.db.execute("DELETE FROM outbox"))
        await one.write(lambda tx: forget(tx, "m00001"))
        for _ in range(2):
            wall.seconds += 2 * DAY
            await meet(one)
        assert await traces(one) == (set(), set())
        return page

    new.replica.objects = meanwhile  # type: ignore[method-assign, assignment]
    await meet(new)
    assert await held(new) == await held(one) == {"m00000", "m00002", "m00003"}


async def test_what_cannot_be_read_on_the_remote_is_not_taken_for_deleted(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock, tmp_path: Path
) -> None:
    one, away = make_device("one"), make_device("away")
    await too_late(one, away, make_memory, wall)
    db = sqlite3.connect(tmp_path / "remote.db")
    db.execute("UPDATE cold_memories SET record = '{' WHERE id = 'm00000'")
    db.execute("UPDATE objects SET data = '{' WHERE id = 'stays'")
    db.commit()
    db.close()
    await meet(away)
    assert await held(away) == {"m00000", "m00004"}
    assert ("kv", "stays") in (await away.contents()).live


async def test_a_trace_that_the_remote_had_before_it_was_told_goes_like_the_others(
    make_device: MakeDevice, make_memory: MakeMemory, wall: Clock
) -> None:
    one = make_device("one")
    await fill(one, make_memory)
    await meet(one)
    await one.write(lambda tx: forget(tx, "m00001"))
    await meet(one)
    assert await traces(one) == ({"m00001"}, {"m00001"})
    # As after the loss of the database, out of which the deletion was saved.
    await one.write(lambda tx: link.relink(tx, Link()))
    for _ in range(2):
        wall.seconds += 2 * DAY
        await meet(one)
    assert await traces(one) == (set(), set())
