"""Whatever devices do while they leave memories to the replica and take them back."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import msgspec
import pytest
from devices import AGENT, Clock
from homes import Home

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.store import memories, remote_rows
from thermocline.daemon.store.transaction import Rules, Transaction

MakeMemory: TypeAlias = Callable[..., Memory]
RULES = Rules(warm_max_bytes=1500)
ACTS = ("new", "new", "edit", "delete", "use", "move", "sync", "thin")


class Life:
    """What happens to devices, at random."""

    def __init__(self, wall: Clock, make_memory: MakeMemory, seed: int) -> None:
        self.wall = wall
        self.make_memory = make_memory
        self.random = random.Random(seed)
        self.made = 0
        self.left = 0

    async def act(self, home: Home) -> None:
        """Do one thing on one device, some time after the last."""
        self.wall.seconds += self.random.choice([1.0, 3600.0, 10 * DAY])
        await getattr(self, self.random.choice(ACTS))(home)

    async def new(self, home: Home) -> None:
        self.made += 1
        memory = self.make_memory(
            self.made,
            created_at=self.wall(),
            category=self.random.choice(["a", "a/b", "c"]),
            importance=self.random.random(),
        )
        await home.device.write(lambda tx: memories.insert(tx, memory))

    async def edit(self, home: Home) -> None:
        def edit(tx: Transaction, key: str) -> None:
            old = memories.find(tx.db, key)
            text = f"edited on {home.device.name} at {tx.now}"
            memories.replace(tx, old, msgspec.structs.replace(old, text=text))

        for key in self._some(await self._here(home)):
            await home.device.write(partial(edit, key=key))

    async def delete(self, home: Home) -> None:
        def delete(tx: Transaction, key: str) -> None:
            note = remote_rows.find(tx.db, key)
            assert note is not None
            memories.forget_note(tx, note)

        for key in self._some(await home.noted()):
            await home.device.write(partial(delete, key=key))

    async def use(self, home: Home) -> None:
        used = self._some(await self._here(home)) + self._some(await home.noted())
        await home.device.write(lambda tx: memories.reinforce(tx, used))

    async def move(self, home: Home) -> None:
        await home.device.write(lambda tx: memories.relabel(tx, "a/b", "a"))

    async def sync(self, home: Home) -> None:
        await home.sync()

    async def thin(self, home: Home) -> None:
        home.most = self.random.choice([0.0, 500.0, 2000.0])
        self.left = max(self.left, await home.thinned())

    async def _here(self, home: Home) -> list[str]:
        return [key for (key,) in await home.rows("SELECT id FROM memories ORDER BY id")]

    def _some(self, ids: list[str]) -> list[str]:
        return [self.random.choice(ids)] if ids else []


async def is_counted_right(home: Home) -> bool:
    """Whether what is kept beside the rows says what the rows say."""
    noted, size = (await home.rows("SELECT remote_only, local_bytes FROM archive"))[0]
    sizes = await home.rows(
        "SELECT coalesce(sum(size), 0) FROM memories WHERE archived_at NOT NULL"
    )
    wrong = await home.rows(
        "SELECT path FROM tree WHERE warm_count + cold_count <>"
        " (SELECT count(*) FROM memories WHERE category = path AND merged_into IS NULL)"
        " + (SELECT count(*) FROM remote_only WHERE category = path)"
    )
    both = await home.rows("SELECT id FROM remote_only WHERE id IN (SELECT id FROM memories)")
    return noted == len(await home.noted()) and sizes == [(size,)] and wrong == both == []


@pytest.mark.parametrize("seed", [1, 2])
async def test_devices_that_leave_memories_to_the_replica_end_up_with_the_same(
    make_home: Callable[..., Home], make_memory: MakeMemory, wall: Clock, seed: int
) -> None:
    homes = [make_home("one", rules=RULES), make_home("two", rules=RULES)]
    life = Life(wall, make_memory, seed)
    for _ in range(200):
        home = life.random.choice(homes)
        await life.act(home)
        assert await is_counted_right(home)
    assert life.left
    for home in [*homes, *homes]:
        await home.sync()
    for home in homes:
        home.most = 0.0
        assert await home.thinned() == 0
    one, two = [await home.device.contents() for home in homes]
    assert one.shared == two.shared
    assert one.queued == two.queued == []
    for home in homes:
        tally = await home.replicas.sync(AGENT)
        assert (tally.sent, tally.received) == (0, 0)
