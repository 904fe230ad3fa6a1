"""What has been frozen for longer than the archive keeps it is forgotten, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest
from devices import AGENT, Clock
from homes import Home

from thermocline.daemon.errors import Unavailable
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY, Scoring
from thermocline.daemon.store import memories, merging
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.transaction import Rules, Transaction
from thermocline.daemon.upkeep.cleaning import Cleaning, clean
from thermocline.daemon.upkeep.tending import Tending

MakeHome: TypeAlias = Callable[..., Home]
MakeMemory: TypeAlias = Callable[..., Memory]
YEAR = 365.2425 * DAY


async def cleaned(home: Home, years: float = 10.0) -> int:
    async with home.device.agents.use(AGENT, create=True) as store:
        return await clean(store, years)


async def store(home: Home, *new: Memory) -> None:
    await home.device.write(lambda tx: [memories.insert(tx, one) for one in new])


async def left(home: Home) -> list[str]:
    return [key for (key,) in await home.rows("SELECT id FROM memories ORDER BY id")]


def aged(make_memory: MakeMemory, wall: Clock) -> Callable[..., Memory]:
    """Makes memories that were stored so many years ago."""

    def make(number: int, years: float, **fields: Any) -> Memory:
        at = wall() - years * YEAR
        return make_memory(number, created_at=at, **{"updated_at": at} | fields)

    return make


@pytest.fixture
def make_old(make_memory: MakeMemory, wall: Clock) -> Callable[..., Memory]:
    return aged(make_memory, wall)


async def test_what_is_frozen_and_older_than_the_retention_goes_with_a_tombstone(
    make_home: MakeHome, make_old: MakeMemory
) -> None:
    home, other = make_home("one"), make_home("two")
    await store(home, make_old(1, 10.1), make_old(2, 9.9), make_old(3, 30.0, importance=0.01))
    for each in (home, other):
        await each.sync()
    assert await cleaned(home) == 2
    assert await left(home) == ["m00002"]
    assert await cleaned(home) == 0
    for each in (home, other):
        await each.sync()
    assert await left(other) == ["m00002"]
    tally = await home.replicas.sync(AGENT)
    assert (tally.sent, tally.received) == (0, 0)


async def test_what_still_has_a_score_stays_however_old(
    make_home: MakeHome, make_old: MakeMemory
) -> None:
    slow = Scoring(half_life_days=3650.0)
    home = make_home(rules=Rules(warm_max_bytes=0, scoring=slow))
    await store(home, make_old(1, 11.0, importance=1.0), make_old(2, 11.0, importance=0.1))
    assert await cleaned(home) == 1
    assert await left(home) == ["m00001"]


async def test_what_is_stored_today_and_dated_back_is_not_forgotten_tomorrow(
    make_home: MakeHome, make_old: MakeMemory, wall: Clock
) -> None:
    home = make_home()
    await store(home, make_old(1, 15.0, updated_at=wall()))
    assert await cleaned(home) == 0
    wall.seconds += 10.1 * YEAR
    assert await cleaned(home) == 1


async def test_what_the_replica_alone_has_is_forgotten_there(
    make_home: MakeHome, make_old: MakeMemory
) -> None:
    home = make_home()
    await store(home, *(make_old(n, 11.0) for n in range(3)), make_old(7, 1.0))
    await home.device.write(lambda tx: memories.reinforce(tx, ["m00001"]))
    await home.sync()
    home.most = 1.0
    assert await home.thinned() == 4
    assert await cleaned(home) == 3
    assert await home.noted() == ["m00007"]
    await home.sync()
    assert (await home.device.replica.counts())["memory"] == 1


async def test_what_others_point_to_stays_as_long_as_they_do(
    make_home: MakeHome, make_old: MakeMemory
) -> None:
    home = make_home()
    # The first of each pair is merged into, or superseded by, the second.
    pairs = [
        (make_old(1, 12.0), make_old(2, 11.0)),
        (make_old(3, 9.0), make_old(4, 11.0)),
        (make_old(5, 12.0), make_old(6, 11.0)),
        (make_old(7, 9.0), make_old(8, 11.0)),
    ]
    await store(home, *(one for pair in pairs for one in pair))

    def join(tx: Transaction) -> None:
        for number, (older, newer) in enumerate(pairs):
            old = memories.find(tx.db, older.id)
            if number < 2:
                merging.merge(tx, old, memories.find(tx.db, newer.id))
            else:
                memories.replace(tx, old, msgspec.structs.replace(old, superseded_by=newer.id))

    await home.device.write(join)
    before = {key: texts async for key, texts in _texts(home)}
    # The older ones go first, and then what they pointed to is free.
    assert await cleaned(home) == 4
    assert await left(home) == ["m00003", "m00004", "m00007", "m00008"]
    after = {key: texts async for key, texts in _texts(home)}
    assert after == {key: before[key] for key in after}


async def _texts(home: Home) -> Any:
    for key, *rest in await home.rows("SELECT id, merged_into, superseded_by, clock FROM memories"):
        yield key, rest


async def test_what_a_forgotten_memory_was_merged_into_keeps_what_it_gained(
    make_home: MakeHome, make_old: MakeMemory
) -> None:
    home = make_home()
    await store(home, make_old(1, 12.0, importance=0.9, tags=("a",)), make_old(2, 1.0))
    await home.device.write(
        lambda tx: merging.merge(tx, memories.find(tx.db, "m00001"), memories.find(tx.db, "m00002"))
    )
    kept = await home.device.read(lambda db: memories.find(db, "m00002"))
    assert await cleaned(home) == 1
    assert await left(home) == ["m00002"]
    assert await home.device.read(lambda db: memories.find(db, "m00002")) == kept
    assert await home.rows("SELECT * FROM merges") == []


async def test_it_goes_on_in_batches_where_it_was_interrupted(
    make_home: MakeHome, make_old: MakeMemory
) -> None:
    home = make_home()
    await store(home, *(make_old(n, 11.0 + n / 1000) for n in range(700)))
    async with home.device.agents.use(AGENT, create=True) as opened:
        writes = 0
        real = opened.write

        async def write(operation: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == 3:
                raise sqlite3.OperationalError
            return await real(operation)

        opened.write = write  # type: ignore[method-assign]
        with pytest.raises(sqlite3.OperationalError):
            await clean(opened, 10.0)
    assert len(await left(home)) == 700 - 2 * 64
    assert await cleaned(home) == 700 - 2 * 64


async def test_it_happens_once_a_day_and_never_without_a_retention(
    make_home: MakeHome, make_old: MakeMemory
) -> None:
    home = make_home()
    years = 0.0
    cleaning = Cleaning(lambda: years)
    async with home.device.agents.use(AGENT, create=True) as opened:
        await store(home, make_old(1, 500.0))
        await cleaning(opened)
        assert await left(home) == ["m00001"]
        years = 10.0
        await cleaning(opened)
        assert await left(home) == []
        await store(home, make_old(2, 500.0))
        await cleaning(opened)
        assert await left(home) == ["m00002"]


async def test_a_duty_that_fails_is_told_and_the_next_memory_is_tended_all_the_same(
    make_home: MakeHome,
) -> None:
    home = make_home()
    tended: list[str] = []
    broken = True

    async def duty(opened: AgentStore) -> None:
        tended.append(opened.place.agent)
        if opened.place.agent == AGENT and broken:
            raise Unavailable("no room")

    tending = Tending(home.device.agents, [duty], 0.0, home.problems, trouble="trouble")
    for agent in (AGENT, "second"):
        async with home.device.agents.use(agent, create=True):
            pass
    for agent in (AGENT, "second", "closed"):
        await tending._tend(agent)
    assert tended == [AGENT, "second"]
    [problem] = home.problems.standing()
    assert problem.message == f"cannot look after '{AGENT}': no room"
    broken = False
    await tending._tend(AGENT)
    assert home.problems.standing() == []
