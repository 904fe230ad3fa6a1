"""Waiting between tries, with a sleep that only notes what it was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from thermocline.sync.failures import (
    QuotaSpent,
    Refused,
    RowTooLarge,
    SchemaMissing,
    TryLater,
    Waiting,
    retrying,
)

LIMITS = [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


class Top(Random):
    """Draws the highest number every time."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


class Tries:
    """A call that fails with each error in turn and then succeeds; it notes every wait."""

    def __init__(self, *errors: Exception) -> None:
        self.errors: Iterator[Exception] = iter(errors)
        self.told: list[tuple[str, float]] = []
        self.slept: list[float] = []

    async def __call__(self) -> str:
        for error in self.errors:
            raise error
        return "done"

    async def run(self, waiting: Waiting | None = None, random: Random | None = None) -> str:
        tenacious = retrying(
            waiting or Waiting(), sleep=self.sleep, before_wait=self.tell, random=random or Top()
        )
        return await tenacious(self)

    def tell(self, error: TryLater, seconds: float) -> None:
        assert len(self.slept) == len(self.told), "it is told before it sleeps"
        self.told.append((error.code, seconds))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_the_waits_double_from_five_seconds_to_five_minutes():
    tries = Tries(*[TryLater("offline")] * 8)
    assert await tries.run() == "done"
    assert tries.slept == LIMITS
    assert tries.told == [("offline", seconds) for seconds in LIMITS]


async def test_each_wait_is_drawn_from_all_of_its_range():
    tries = Tries(*[TryLater("offline")] * 2000)
    await tries.run(Waiting(first=8.0, longest=8.0), Random(4))
    assert all(0.0 <= seconds <= 8.0 for seconds in tries.slept)
    eighths = {int(seconds) for seconds in tries.slept}
    assert eighths == set(range(8))
    assert sum(tries.slept) / len(tries.slept) == pytest.approx(4.0, rel=0.05)


async def test_a_pause_that_was_asked_for_is_never_cut_short():
    tries = Tries(TryLater("throttled", retry_after=77.0), TryLater("throttled", retry_after=0.5))
    await tries.run()
    assert tries.slept == [77.0 + 5.0, 0.5 + 10.0], "others were asked for the same pause"


async def test_a_spent_quota_is_left_alone_for_an_hour_at_least():
    tries = Tries(QuotaSpent("quota"), QuotaSpent("quota", retry_after=9000.0))
    await tries.run()
    assert tries.slept == [3600.0 + 5.0, 9000.0 + 10.0]


@pytest.mark.parametrize(
    "error", [Refused("tls"), RowTooLarge("too_large"), SchemaMissing("schema_missing"), KeyError()]
)
async def test_what_does_not_pass_by_itself_is_raised_at_once(error):
    tries = Tries(TryLater("offline"), error)
    with pytest.raises(type(error)) as raised:
        await tries.run()
    assert raised.value is error
    assert len(tries.slept) == 1
