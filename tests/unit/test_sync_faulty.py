from __future__ import annotations

from collections.abc import Sequence

import pytest
from faulty_remote import Fault, FaultyRemote

from thermocline.sync.failures import Refused, TryLater
from thermocline.sync.ports import Result, SqlStatement

STATEMENTS = [SqlStatement("SELECT 1")]


class Sound:
    """A remote that works, and counts."""

    def __init__(self) -> None:
        self.done = 0
        self.closed = False

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
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
