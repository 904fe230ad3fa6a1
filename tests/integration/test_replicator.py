"""The loop that keeps one agent and a remote alike: when it acts, and what it waits for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from daemon_process import until
from faulty_remote import Fault, FaultyRemote
from memory_sides import MemoryLocal, MemoryRemote

from thermocline.sync import (
    Device,
    Heads,
    HybridClock,
    QuotaSpent,
    Replica,
    Replicator,
    State,
    TryLater,
    Waiting,
    poll_interval,
)

NEVER = 1e6
START = 1_700_000_000.0


class Running:
    """A replicator of one device that runs."""

    def __init__(
        self,
        name: str,
        remote: MemoryRemote,
        plan: Iterable[Fault],
        waiting: Waiting,
        timing: SimpleNamespace,
    ) -> None:
        self.local = MemoryLocal(name, HybridClock(lambda: START))
        self.remote = FaultyRemote(remote, plan)
        self.states: list[State] = []
        self.replicator = Replicator(
            self.local,
            Replica(self.remote, "default", Heads(self.remote)),
            Device(name, name),
            urgent=frozenset({"hot"}),
            timing=timing,
            waiting=waiting,
            now=lambda: START,
            on_state=self.states.append,
        )
        self.task = asyncio.create_task(self.replicator.run())

    @property
    def state(self) -> State:
        return self.replicator.state

    @property
    def interval(self) -> float:
        return (self.state.next_poll or START) - START

    def write(self, kind: str, key: str) -> None:
        self.local.write(kind, key, {"value": key})
        self.replicator.changed(urgent=kind == "hot")

    async def until(self, true: Callable[[State], Any]) -> None:
        await until(lambda: self.task.done() or true(self.state), "the state is reached")
        assert not self.task.done()

    async def idle(self) -> None:
        await self.until(lambda state: state.phase == "idle" and state.last_success)


@pytest.fixture
def remote() -> MemoryRemote:
    """What the devices share."""
    return MemoryRemote()


@pytest.fixture
async def run(remote: MemoryRemote) -> AsyncIterator[Callable[..., Running]]:
    """`run(name, ...)` lets a replicator run until the end of the test."""
    begun: list[Running] = []

    def begin(
        name: str = "one",
        *,
        plan: Iterable[Fault] = (),
        waiting: Waiting | None = None,
        **seconds: float,
    ) -> Running:
        given = {"critical_seconds": NEVER, "change_seconds": NEVER, "poll_seconds": NEVER}
        timing = SimpleNamespace(**given | seconds)
        waiting = waiting or Waiting(instant=True)
        begun.append(Running(name, remote, plan, waiting, timing))
        return begun[-1]

    yield begin
    for one in begun:
        one.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await one.task


def remote_ids(remote: MemoryRemote) -> set[str]:
    return {key for (key,) in remote.query("SELECT id FROM rows")}


async def test_the_critical_state_is_sent_long_before_all_else(run, remote):
    one = run(critical_seconds=0.01)
    await one.idle()
    one.write("memory", "m1")
    one.write("hot", "identity/name")
    await one.until(lambda state: state.sent)
    assert remote_ids(remote) == {"identity/name"}
    assert one.replicator.pending
    await one.replicator.sync()
    assert remote_ids(remote) == {"identity/name", "m1"}
    assert not one.replicator.pending


async def test_a_call_during_a_round_that_is_never_answered_waits_one_timeout(run):
    timeout = asyncio.Event()
    one = run(plan=[Fault("before", timeout.wait, lambda: TryLater("timeout"))])
    await until(lambda: one.remote.batches == 1, "a round waits")
    call = asyncio.create_task(one.replicator.sync())
    await asyncio.sleep(0)
    timeout.set()
    with pytest.raises(TryLater, match="cannot wait longer"):
        await call
    assert (await one.replicator.sync()).sent == 0


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(TryLater("throttled", retry_after=120.0), 120.0), (QuotaSpent("quota"), 3600.0)],
)
async def test_a_pause_that_the_remote_asks_for_is_kept_unless_somebody_asks(run, error, seconds):
    one = run(plan=[Fault("before", error=lambda: error)], waiting=Waiting())
    await one.until(lambda state: state.phase == "waiting")
    assert one.state.next_try is not None
    assert one.state.next_try >= START + seconds
    await one.replicator.sync()
    await one.idle()


async def test_who_asks_before_the_first_round_makes_the_next_poll_no_later(run):
    one = run(poll_seconds=30.0)
    await one.replicator.sync()
    assert one.interval <= 30.0


async def test_an_idle_loop_asks_one_question_each_time(run):
    one = run(poll_seconds=0.01)
    await one.idle()
    before, batches = len(one.states), one.remote.batches
    await one.until(lambda _state: len(one.states) >= before + 20)
    assert 9 <= one.remote.batches - batches <= 11


async def test_polls_are_rarer_while_nothing_changes_and_frequent_again_after_a_change(run):
    one, two = run("one", poll_seconds=0.02), run("two")
    await until(lambda: one.interval > 0.1, "polls are rarer")
    two.local.write("memory", "m1", {"text": "x"})
    await two.replicator.sync()
    await one.until(lambda state: state.received)
    after = next(state for state in one.states if state.received)
    assert after.next_poll - START <= 0.02
    await until(lambda: one.interval > 0.1, "polls are rarer again")

    def frequent_again() -> bool:
        one.replicator.poll_soon()
        return one.interval < 0.1

    await until(frequent_again, "somebody misses something")


@pytest.mark.parametrize(
    ("shortest", "quiet", "interval"),
    [
        (30, 0, 30), (30, 31, 31), (30, 480, 480), (30, 1e9, 900), (60, 1e9, 900), (1, 1e9, 30),
        (3600, 0, 3600), (3600, 1e9, 3600), (0.1, 1e9, 3),
    ],
)  # fmt: skip
def test_the_longest_interval_of_polls_is_thirty_times_the_shortest(shortest, quiet, interval):
    assert poll_interval(shortest, quiet) == pytest.approx(interval)


async def test_after_an_outage_devices_that_lost_it_together_poll_at_different_times(run):
    devices = [run(str(number), plan=[Fault("before")], poll_seconds=1000.0) for number in range(9)]
    for device in devices:
        await device.idle()
    intervals = sorted(device.interval for device in devices)
    assert 400.0 < intervals[0] < 900.0
    assert intervals[-1] <= 1000.0


async def test_what_was_set_aside_and_refused_is_counted_and_named(run, remote):
    one = run("one")
    await one.idle()
    one.local.write("memory", "a\0b", {"text": "x"})
    one.local.write("memory", "m1", {"text": "x"})
    await one.replicator.sync()
    assert (one.state.sent, one.state.set_aside) == (1, 1)
    assert one.state.notes[0].endswith("its name holds a NUL character")
    remote.query("UPDATE rows SET clocks = 'odd'")
    two = run("two")
    await two.idle()
    assert (two.state.refused, two.state.received) == (1, 0)
