from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

import pytest

from thermocline.sync.failures import Refused, TryLater
from thermocline.sync.faulty import Fault, FaultyRemote, at_random
from thermocline.sync.remote import Result, Statement

STATEMENTS = [Statement("SELECT 1")]


class Sound:
    """A remote that works, and counts."""

    def __init__(self) -> None:
        self.done = 0
        self.closed = False

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.done += 1
        return [Result((), 0) for _ in statements]

    async def close(self) -> None:
        self.closed = True


class Naps:
    """A sleep that only notes what it was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def test_the_plan_is_followed_and_then_all_goes_well():
    inner, naps = Sound(), Naps()
    refused = Fault("before", error=lambda: Refused("unauthorized"))
    faulty = FaultyRemote(inner, naps, [Fault(delay=2.0), Fault("before"), Fault("after"), refused])
    await faulty.batch(STATEMENTS)
    with pytest.raises(TryLater):
        await faulty.batch(STATEMENTS)
    assert inner.done == 1
    with pytest.raises(TryLater):
        await faulty.batch(STATEMENTS)
    assert inner.done == 2
    with pytest.raises(Refused):
        await faulty.batch(STATEMENTS)
    assert await faulty.batch(STATEMENTS) == [Result((), 0)]
    assert naps.seconds == [2.0]
    assert (faulty.batches, faulty.applied, inner.done) == (5, 3, 3)


async def test_offline_lasts_until_told_otherwise_and_does_not_use_up_the_plan():
    inner = Sound()
    faulty = FaultyRemote(inner, Naps(), [Fault(), Fault("before")])
    faulty.online = False
    for _ in range(3):
        with pytest.raises(TryLater) as raised:
            await faulty.batch(STATEMENTS)
        assert raised.value.code == "offline"
    faulty.online = True
    await faulty.batch(STATEMENTS)
    with pytest.raises(TryLater):
        await faulty.batch(STATEMENTS)
    assert inner.done == 1


async def test_the_inner_remote_is_closed_with_it():
    inner = Sound()
    await FaultyRemote(inner, Naps()).close()
    assert inner.closed


def test_a_seed_makes_the_same_faults_again():
    first, second = (list(itertools.islice(at_random(Random(3), 0.5, 1.0), 400)) for _ in range(2))
    assert first == second
    numbers = [sum(fault.fails == word for fault in first) for word in ("", "before", "after")]
    assert numbers[0] == pytest.approx(200, abs=40)
    assert numbers[1] == pytest.approx(100, abs=40)
    assert all(0.0 <= fault.delay <= 1.0 for fault in first)
