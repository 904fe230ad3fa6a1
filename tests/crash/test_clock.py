"""A clock that jumps by years: no update is lost, the order holds, and nothing spins."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.problems import Problems
from thermocline.daemon.store import key_values, memories
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.engine import Surroundings
from thermocline.daemon.store.opening import Place
from thermocline.daemon.store.schema import MIGRATIONS
from thermocline.daemon.store.transaction import Rules

START = 1_790_000_000.0
YEAR = 365 * 86_400.0
# A Linux clock can be set to any moment from 1970 to 2262.
JUMPS = (0, 1, -1, 3600, -3600, YEAR, -YEAR, 30 * YEAR, -50 * YEAR, -START, 200 * YEAR)


class Clock:
    """A clock that shows what it is told."""

    def __init__(self):
        self.shows = START
        self.asked = 0

    def __call__(self):
        self.asked += 1
        return self.shows


@pytest.fixture
async def open_with(tmp_path):
    """`await open_with(clock)` opens the same agent, after closing the one before it."""
    stores = []
    threads = ThreadPoolExecutor(2)
    rules = Rules()

    async def make(clock):
        if stores:
            await stores[-1].close()
        place = Place(
            agent="default",
            folder=tmp_path / "agent",
            workspace=None,
            device="here",
            cache_kb=512,
            migrations=MIGRATIONS,
        )
        around = Surroundings(
            threads=threads,
            problems=Problems(),
            now=clock,
            publish=lambda _agent, _event: None,
            outgoing=lambda _agent, _kinds: None,
            rules=lambda: rules,
            readers=2,
            face_delay_seconds=lambda: 0.01,
        )
        store = AgentStore(place, around)
        await store.open()
        stores.append(store)
        return store

    yield make
    await stores[-1].close()
    threads.shutdown()


def fact(number, now):
    return Memory(
        id=f"{number:08x}", text=f"fact {number}", category="pier", created_at=now, updated_at=now
    )


def versions(db):
    found = [row[0] for row in db.execute("SELECT clock FROM memories UNION SELECT clock FROM kv")]
    return found + [row[0] for row in db.execute("SELECT clock FROM tombstones")]


@pytest.mark.parametrize("steps", [60, pytest.param(2000, marks=pytest.mark.crash)])
async def test_no_update_is_lost_by_a_clock_that_jumps(open_with, steps):
    chance = random.Random(25)
    clock = Clock()
    store = await open_with(clock)
    texts, pairs, last = {}, {}, 0
    for number in range(steps):
        clock.shows = max(0.0, START + chance.choice(JUMPS))
        if number % 20 == 19:
            store = await open_with(clock)
        kind = chance.choice(["store", "update", "delete", "pair"])
        if kind == "store" or not texts:
            memory = await store.write(lambda tx, n=number: memories.insert(tx, fact(n, tx.now)))
            texts[memory.id] = memory.text
        elif kind == "update":
            key, text = chance.choice([*texts]), f"text of step {number}"
            await store.write(lambda tx, key=key, text=text: change(tx, key, text))
            texts[key] = text
        elif kind == "delete":
            key = chance.choice([*texts])
            await store.write(lambda tx, key=key: memories.delete(tx, memories.find(tx.db, key)))
            del texts[key]
        else:
            pairs["key"] = f"value of step {number}"
            await store.write(lambda tx: key_values.put(tx, "key", pairs["key"]))
        newest = max(await store.read(versions))
        assert newest > last, f"step {number} did not get a version of its own"
        last = newest
    assert (
        dict(await store.read(lambda db: list(db.execute("SELECT id, text FROM memories"))))
        == texts
    )
    if pairs:
        assert (await store.read(lambda db: key_values.get(db, "key"))).value == pairs["key"]
    assert await store.flush_faces()


def change(tx, key, text):
    old = memories.find(tx.db, key)
    return memories.replace(tx, old, msgspec.structs.replace(old, text=text, updated_at=tx.now))


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_jump_of_the_clock_makes_no_busy_loop(open_with, jump):
    clock = Clock()
    store = await open_with(clock)
    await store.write(lambda tx: memories.insert(tx, fact(1, tx.now)))
    await store.flush_faces()
    clock.shows = max(0.0, START + jump)
    await store.tend()
    await store.look()
    assert await store.flush_faces()
    asked = clock.asked
    for _ in range(20):
        await store.look()
        await asyncio.sleep(0.01)
    # With nothing to do, nothing looks at the clock but what looks for work.
    assert clock.asked - asked <= 40
    assert (await store.read(lambda db: memories.find(db, "00000001"))).text == "fact 1"
