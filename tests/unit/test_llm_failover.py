"""Which model is asked, how often, and when the next has its turn."""

from contextlib import nullcontext
from random import Random

import pytest

from thermocline.daemon.llm.calls import Failover
from thermocline.daemon.llm.failures import CallFailed, of_status, pause_of, without
from thermocline.daemon.llm.wire import Answered, Ask, ReplyForm

ASK = Ask("", (), ReplyForm("reply", {}, "{}"), 10, 0.0, 0.0)


class World:
    """Time that passes only when somebody waits, and models that fail as they are told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        self.asked: list[tuple[str, float]] = []
        self.failures: dict[str, list[CallFailed]] = {}
        self.takes = 0.0
        self.failover = Failover(self.clock, self.sleep, Random(1))

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def call(self, ask: Ask) -> Answered:
        self.asked.append((ask.model, ask.seconds))
        self.now += self.takes
        if left := self.failures.get(ask.model):
            raise left.pop(0)
        return Answered(f"{ask.model} says", "stop")

    async def reply(self, *models: str, seconds: float = 30.0, patient: bool = True) -> str:
        until = self.now + seconds
        model, answered = await self.failover.reply(self.call, ASK, models, until, patient=patient)
        assert answered.text == f"{model} says"
        return model

    @property
    def order(self) -> list[str]:
        return [model for model, _ in self.asked]


@pytest.fixture
def world() -> World:
    return World()


def failed(code: str, retry_after: float | None = None) -> CallFailed:
    return CallFailed(code, f"it is {code}", retry_after)


async def test_a_failure_in_passing_is_tried_again_after_a_growing_wait():
    for code in ("server", "throttled"):
        world = World()
        world.failures["a"] = [failed(code), failed(code), failed(code)]
        assert await world.reply("a") == "a"
        assert len(world.waits) == 3
        assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(world.waits))


# What the first of two models fails with, who is asked, and the error of who asked.
STAYS = ("unauthorized", "not_found", "payment", "refused", "bad_request", "timeout", "offline")
TURNS = [
    # What stays is not tried again, and the next has its turn; without the process it has none.
    *(([failed(code)], ["a", "b"], "") for code in STAYS),
    *(([failed(code)], ["a"], code) for code in ("died", "unloaded", "starting", "resting")),
    # Rather than wait long the next is asked.
    ([failed("throttled", 7.0)], ["a", "b"], ""),
]


async def test_the_next_model_has_its_turn():
    for failures, order, code in TURNS:
        world = World()
        world.failures["a"] = [*failures]
        with pytest.raises(CallFailed, match=code) if code else nullcontext():
            assert await world.reply("a", "b") == "b"
        assert (world.order, world.waits) == (order, []), failures


async def test_a_single_model_is_waited_for_as_long_as_it_asks_but_not_for_ever(world):
    world.failures["a"] = [failed("throttled", 7.0)]
    assert await world.reply("a") == "a"
    assert world.waits == [7.0]
    world.failures["a"] = [failed("throttled", 31.0)]
    with pytest.raises(CallFailed, match="throttled"):
        await world.reply("a", seconds=30.0)
    assert world.waits == [7.0]
    world.asked.clear()
    world.failover.forget()
    world.failures["a"] = [failed("server") for _ in range(9)]
    with pytest.raises(CallFailed, match="it is server"):
        await world.reply("a")
    assert world.order == ["a"] * 4


async def test_a_model_leaves_time_for_those_after_it(world):
    world.takes = 1.0
    world.failures["a"] = [failed("timeout")]
    await world.reply("a", "b", seconds=10.0)
    (_, first), (_, second) = world.asked
    assert 4.5 < first <= 5.0
    assert 8.0 < second <= 9.0


async def test_a_model_that_stays_unusable_is_left_alone_for_a_while(world):
    world.failures["a"] = [failed("unauthorized")]
    assert await world.reply("a", "b") == "b"
    assert await world.reply("a", "b") == "b"
    assert world.order == ["a", "b", "b"]
    world.now += 6
    assert await world.reply("a", "b") == "a"


async def test_a_question_that_fails_says_nothing_of_the_model(world):
    for code in ("refused", "too_long", "bad_request", "died"):
        world.failures["a"] = [failed(code)]
        with pytest.raises(CallFailed):
            await world.reply("a")
    assert world.failover.paused("a") is None


def test_every_status_has_its_meaning():
    for status, said, code in [
        (400, "bad", "bad_request"), (401, "", "unauthorized"), (402, "", "payment"),
        (403, "", "forbidden"), (404, "", "not_found"), (418, "", "bad_request"),
        (422, "", "bad_request"), (429, "slow down", "throttled"),
        (429, "You exceeded your current quota, please", "payment"), (302, "", "bad_request"),
        (500, "", "server"), (503, "", "server"), (529, "overloaded", "server"),
    ]:  # fmt: skip
        assert of_status("m", status, said, None).code == code


def test_a_pause_is_read_from_seconds_or_a_date():
    for header, seconds in [
        (None, None), ("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("1e99", 86_400.0), ("nan", None),
        ("soon", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ]:  # fmt: skip
        assert pause_of(header) == seconds


def test_no_key_is_part_of_a_message():
    said = "\n bad key sk-1234 (sk-1234-x)\x1b[31m\nTraceback: a path"
    shown = without(said, ["sk-1234", "sk-1234-x"])
    assert shown == "bad key [key] ([key])?[31m"
    assert len(without("x" * 5000, [])) == 201
