"""A wall clock that jumps by years, forward and back, loses nothing and disorders nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.store import memories
from thermocline.sync import TOO_HIGH, HybridClock

YEAR = 365.25 * 86_400.0
NOW = 1_790_000_000.0


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


def test_a_clock_that_runs_gives_versions_that_show_its_milliseconds():
    assert HybridClock(lambda: 1.5).tick() == 1500 << 16


async def test_a_memory_with_an_expiry_goes_when_its_time_comes_and_not_before(
    open_store, make_memory, wall
):
    wall.seconds = NOW
    store = await open_store(now=wall)
    await store.write(lambda tx: memories.insert(tx, make_memory(1, expires_at=NOW + 10.0)))
    wall.seconds = NOW - 10 * YEAR
    await store.run_maintenance()
    assert await store.read(lambda db: memories.find(db, "m00001").id) == "m00001"
    wall.seconds = NOW + 11.0
    await store.run_maintenance()
    left = await store.read(lambda db: db.execute("SELECT count(*) FROM memories").fetchone())
    assert left == (0,)
