"""A wall clock that jumps by years, forward and back, loses nothing and disorders nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.store import key_values, memories, rows
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.sync import TOO_HIGH, HybridClock

OpenStore: TypeAlias = Callable[..., Awaitable[AgentStore]]
YEAR = 365.25 * 86_400.0
NOW = 1_790_000_000.0
JUMPS = (0.0, 30 * YEAR, -50 * YEAR, 5.0, -5.0, 200 * YEAR, 0.0, -56 * YEAR)


class Wall:
    """A clock on the wall that anybody may set."""

    def __init__(self) -> None:
        self.time = NOW
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.time


@given(
    st.lists(
        st.one_of(
            st.floats(min_value=-1e9, max_value=8e9),
            st.integers(min_value=0, max_value=TOO_HIGH // 2).map(
                lambda version: ("seen", version)
            ),
        ),
        max_size=60,
    )
)
def test_versions_strictly_increase_whatever_the_wall_and_other_devices_say(steps):
    wall = [NOW]
    clock = HybridClock(lambda: wall[0])
    last = 0
    for step in steps:
        if isinstance(step, tuple):
            if clock.observe(step[1]):
                last = max(last, step[1])
        else:
            wall[0] = step
        ticked = clock.tick()
        assert ticked > last
        assert ticked == clock.last
        assert ticked < TOO_HIGH
        last = ticked


def test_a_restarted_clock_goes_on_above_its_last_version():
    clock = HybridClock(lambda: NOW)
    last = [clock.tick() for _ in range(5)][-1]
    assert HybridClock(lambda: NOW - YEAR, last).tick() == last + 1


def test_a_clock_that_runs_gives_versions_that_show_its_milliseconds():
    assert HybridClock(lambda: 1.5).tick() == 1500 << 16


async def test_every_update_survives_every_jump_and_the_last_one_wins(
    open_store, make_place, make_memory
):
    wall = Wall()
    place = make_place()
    versions: list[int] = []
    for number, jump in enumerate(JUMPS):
        wall.time = NOW + jump
        store = await open_store(place, now=wall)
        await store.write(lambda tx, n=number: memories.insert(tx, make_memory(n)))
        for value in range(3):
            text = f"{number}.{value}"
            await store.write(lambda tx, text=text: key_values.put(tx, "key", text))
            assert await store.read(lambda db: key_values.PAIRS.get(db, "key").value) == text
        row = await store.read(lambda db: rows.load(db, key_values.PAIRS.kind, "key"))
        versions.append(row.clocks.latest[0])
        await store.close()
    assert versions == sorted(set(versions))
    store = await open_store(place, now=wall)
    total = await store.read(lambda db: db.execute("SELECT count(*) FROM memories").fetchone()[0])
    assert total == len(JUMPS)


@pytest.mark.parametrize("jump", [-100 * YEAR, 100 * YEAR])
async def test_a_jump_makes_nothing_run_busily(open_store, jump):
    wall = Wall()
    store = await open_store(now=wall)
    await store.flush_state_files()
    wall.time += jump
    await store.write(lambda tx: key_values.put(tx, "key", "value"))
    await store.run_maintenance()
    await store.flush_state_files()
    before = wall.asked
    for _ in range(50):
        await asyncio.sleep(0.005)
    assert wall.asked - before < 20


async def test_a_memory_with_an_expiry_goes_when_its_time_comes_and_not_before(
    open_store, make_memory
):
    wall = Wall()
    store = await open_store(now=wall)
    await store.write(lambda tx: memories.insert(tx, make_memory(1, expires_at=NOW + 10.0)))
    wall.time = NOW - 10 * YEAR
    await store.run_maintenance()
    assert await store.read(lambda db: memories.find(db, "m00001").id) == "m00001"
    wall.time = NOW + 11.0
    await store.run_maintenance()
    left = await store.read(lambda db: db.execute("SELECT count(*) FROM memories").fetchone())
    assert left == (0,)
