"""Random histories of three devices: nothing that was written is lost, and all end alike."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from memory_sides import MemoryLocal, MemoryRemote
from sealing import DeviceKeys, owner

from thermocline.sync import (
    Device,
    Exchange,
    HybridClock,
    Replica,
    Result,
    SqlStatement,
    SyncError,
    TryLater,
    version_of,
)

KEYS = [f"m{number}" for number in range(6)]
FIELDS = "pqrs"
TAGS = frozenset({"tags"})
TURNS = 12


class Unreliable:
    """A remote whose answers get lost, before or after what was asked for was done."""

    def __init__(self, inner: MemoryRemote, chance: random.Random) -> None:
        self.inner = inner
        self.failing = 0.0
        self._chance = chance

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        if self._chance.random() < self.failing:
            raise TryLater("offline")
        # Here others come in between.
        await asyncio.sleep(0)
        results = await self.inner.batch(statements)
        if self._chance.random() < self.failing:
            raise TryLater("offline")
        return results

    async def close(self) -> None:
        await self.inner.close()


class Member:
    """A device of a history."""

    def __init__(self, name: str, history: History, local: MemoryLocal | None = None) -> None:
        skew = history.chance.choice([0.0, -3600.0, 3600.0])
        clock = HybridClock(lambda: history.now + skew)
        self.history = history
        self.name = name
        self.local = local.copied(name) if local else MemoryLocal(name, clock, TAGS)
        self.keys = DeviceKeys(name, owner()) if history.is_sealed else None
        self.restart()

    def restart(self) -> None:
        """Only what is durable is left."""
        replica = Replica(self.history.remote, "default")
        if self.keys is not None:
            replica = self.keys.replica(self.history.remote, "default")
        self.form = replica.form
        self.exchange = Exchange(
            self.local, replica, Device(self.name, self.name), frozenset(), lambda: self.history.now
        )

    async def sync(self, failing: float = 0.0) -> bool:
        self.history.remote.failing = failing
        try:
            await self.exchange.run()
        except SyncError:
            self.restart()
            return False
        return True


class History:
    """One random history, the same for the same seed."""

    def __init__(self, seed: int, *, is_sealed: bool = False) -> None:
        self.is_sealed = is_sealed
        self.chance = random.Random(seed)
        self.remote = Unreliable(MemoryRemote(), self.chance)
        self.now = 1_700_000_000.0
        self.devices = [Member(name, self) for name in "ABC"]
        self.expected: dict[str, dict[str, Any]] = {key: {} for key in KEYS}
        self.kind = seed % 5

    async def run(self) -> None:
        old_remote, old_device = None, None
        for turn in range(TURNS):
            self.now += 1000 * self.chance.random()
            await self.change(turn)
            if turn == 3:
                old_remote = self.remote.inner.saved()
                old_device = self.devices[1].local.copied("D")
            if turn == 6 and self.kind == 1:
                self.remote.inner.set_back()
            if turn == 8 and self.kind in (2, 4):
                # Nothing but what the devices have noted there tells that it is an old copy.
                self.remote.inner.set_back(old_remote)
                for device in self.devices:
                    device.restart()
                if self.kind == 4:
                    await self.overgrow()
            await self.rest()
            if turn == 8 and self.kind == 3:
                self.devices[1] = Member("D", self, old_device)
                await self.rest()
            if turn == 10:
                self.devices[2] = Member("E", self)
                await self.rest()
            self.check(turn)

    async def change(self, turn: int) -> None:
        """Each device changes fields that no other changes in this turn."""
        cells = [(key, field) for key in KEYS for field in (*FIELDS, "tags")]
        self.chance.shuffle(cells)
        for device in self.devices:
            for _ in range(3):
                key, field = cells.pop()
                data = dict(device.local.says("memory", key))
                value: Any = f"{device.name}{turn}-{self.chance.random():.4f}"
                if field == "tags":
                    value = sorted({*data.get("tags", []), value})
                device.local.write("memory", key, data | {field: value})
                if field == "tags":
                    self.expected[key].setdefault("tags", set()).update(value)
                else:
                    self.expected[key][field] = value
                if self.chance.random() < 0.3:
                    await device.sync(0.2)
        if self.chance.random() < 0.4:
            await asyncio.gather(*[device.sync(0.1) for device in self.devices])

    async def overgrow(self) -> None:
        """A new device makes the order longer than it was, before any other looks."""
        new = Member("F", self)
        for number in range(300):
            new.local.write("memory", f"new{number}", {"text": "x"})
        await new.sync()

    async def rest(self) -> None:
        for _ in range(40):
            assert all(await asyncio.gather(*[device.sync() for device in self.devices]))
            cursors = [(await device.local.cursor()).seq for device in self.devices]
            [(seq,)] = self.remote.inner.query("SELECT seq FROM replica_clock")
            if cursors == [seq] * 3 and not any(device.local.outbox for device in self.devices):
                return
        pytest.fail("the devices do not come to rest")

    def check(self, turn: int) -> None:
        first, *others = [device.local.rows for device in self.devices]
        assert all(rows == first for rows in others), f"turn {turn}: devices differ"
        there = dict(self.remote.inner.query("SELECT id, version FROM rows"))
        form = self.devices[0].form
        held = {form.key(*key)[1]: form.version(version_of(row)) for key, row in first.items()}
        assert there == held, f"turn {turn}"
        for key, fields in self.expected.items():
            says = self.devices[0].local.says("memory", key)
            for field, value in fields.items():
                have = says.get(field)
                lost = not value <= set(have or ()) if field == "tags" else have != value
                assert not lost, f"turn {turn}: lost {key}.{field} = {value}, has {have}"


async def histories(seeds: range, *, is_sealed: bool) -> None:
    for seed in seeds:
        try:
            await History(seed, is_sealed=is_sealed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize(
    ("number", "is_sealed"), [(40, False), (15, True)], ids=["plain", "sealed"]
)
def test_nothing_is_lost_and_all_devices_end_alike(number, *, is_sealed):
    asyncio.run(histories(range(number), is_sealed=is_sealed))


@pytest.mark.parametrize("is_sealed", [False, True], ids=["plain", "sealed"])
@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_nothing_is_lost_in_thousands_of_histories(*, is_sealed):
    asyncio.run(histories(range(1000, 6000), is_sealed=is_sealed))
