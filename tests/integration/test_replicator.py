"""When a replicator sends and asks, what it does about failures, and how much it sends at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import changes
import pytest
from devices import AGENT, Clock, Device, meet

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.outgoing import CRITICAL
from thermocline.sync import Device as Self
from thermocline.sync import (
    FileRemote,
    QuotaSpent,
    Refused,
    Remote,
    Replica,
    Replicator,
    Result,
    State,
    Statement,
    SyncError,
    Timing,
    TooLarge,
    TryLater,
    Waiting,
)
from thermocline.sync.faulty import Fault, FaultyRemote
from thermocline.sync.replica import MOST_BYTES, MOST_ROWS

NEVER = 1e9
SECONDS = 20.0


class Loop:
    """A replicator that runs, and every state that it told of."""

    def __init__(self, device: Device, timing: Timing, waiting: Waiting) -> None:
        self.states: list[State] = []
        self._news = asyncio.Event()
        self.device = device
        self.replicator = Replicator(
            device.local,
            device.replica,
            Self(device.name, device.name),
            urgent=CRITICAL,
            timing=timing,
            waiting=waiting,
            now=device.now,
            told=self._told,
        )
        self.task = asyncio.create_task(self.replicator.run())

    def tell(self) -> None:
        """What was changed since is to be sent, each kind in its time."""
        kinds = frozenset().union(*self.device.changes)
        self.device.changes.clear()
        for urgent in (True, False):
            if kinds & CRITICAL if urgent else kinds - CRITICAL:
                self.replicator.changed(urgent=urgent)

    def _told(self, state: State) -> None:
        self.states.append(state)
        self._news.set()

    async def until(self, true: Callable[[State], bool]) -> None:
        """Wait for a state, but not for ever."""
        async with asyncio.timeout(SECONDS):
            while not true(self.replicator.state):
                self._news.clear()
                await self._news.wait()

    async def phase(self, phase: str) -> None:
        """Wait until it is in this phase and, where that is idleness, has done something."""
        await self.until(lambda state: state.phase == phase and bool(self.states))

    def phases(self) -> list[str]:
        """The phases that it went through, without repeats."""
        found = [state.phase for state in self.states]
        return [phase for at, phase in enumerate(found) if at == 0 or found[at - 1] != phase]


@pytest.fixture
async def run() -> AsyncIterator[Callable[..., Loop]]:
    """`run(device, ...)` lets a replicator run until the end of the test."""
    begun: list[Loop] = []

    def begin(device: Device, *, waiting: Waiting | None = None, **seconds: float) -> Loop:
        given = {"urgent_seconds": NEVER, "change_seconds": NEVER, "poll_seconds": NEVER}
        timing = Timing(**given | seconds)
        begun.append(Loop(device, timing, waiting or Waiting(instant=True)))
        return begun[-1]

    yield begin
    for loop in begun:
        loop.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop.task


async def there(device: Device) -> set[tuple[str, str]]:
    """What the remote has, by kind and id, the counters left out."""
    replica = Replica(device.remote, AGENT)
    pages = [await replica.objects((0, "", ""), 500), await replica.statements((0, ""), 500)]
    return {(row.kind, row.id) for page in pages for row in page.rows if row.kind != "metric"}


async def test_a_change_of_the_critical_state_is_sent_long_before_all_others(
    make_device: Callable[..., Device],
    make_memory: Callable[..., Memory],
    run: Callable[..., Loop],
) -> None:
    one = make_device("one")
    loop = run(one, urgent_seconds=0.05)
    await loop.phase("idle")
    await one.write(changes.store(make_memory(1)))
    await one.write(changes.put("key", "value"))
    await one.write(changes.update_hot("identity", {"name": "Ada"}))
    loop.tell()
    await loop.until(lambda state: state.sent >= 2)
    assert await there(one) == {("hot", "identity/name"), ("tree", "general")}
    assert loop.replicator.pending
    await loop.replicator.sync()
    assert await there(one) >= {("memory", "m00001"), ("kv", "key")}
    assert not loop.replicator.pending


async def test_any_other_change_is_sent_in_its_time_and_what_others_sent_is_received(
    make_device: Callable[..., Device], run: Callable[..., Loop]
) -> None:
    one, two = make_device("one"), make_device("two")
    sending, asking = run(one, change_seconds=0.05), run(two, poll_seconds=0.05)
    await sending.phase("idle")
    await one.write(changes.put("key", "value"))
    sending.tell()
    await asking.until(lambda state: state.received > 0)
    assert ("kv", "key") in (await two.contents()).live


async def test_it_tries_again_until_the_network_is_back_and_says_when(
    make_device: Callable[..., Device], run: Callable[..., Loop], wall: Clock
) -> None:
    one = make_device("one", plan=[Fault("before")] * 3)
    loop = run(one, waiting=Waiting(first=0.02, longest=0.05))
    await loop.phase("waiting")
    waits = loop.replicator.state
    assert waits.error is not None
    assert waits.error[0] == "offline"
    assert waits.next_try is not None
    assert 0 <= waits.next_try - wall.seconds <= 0.05
    await loop.phase("idle")
    assert loop.phases().count("waiting") == 3
    assert loop.replicator.state.error is None
    assert loop.replicator.state.next_try is None


async def test_what_a_person_has_to_mend_stops_it_until_it_is_mended_and_loses_nothing(
    make_device: Callable[..., Device], run: Callable[..., Loop]
) -> None:
    refused = Fault("before", error=lambda: Refused("unauthorized"))
    one = make_device("one", plan=[refused])
    await one.write(changes.put("key", "value"))
    loop = run(one)
    await loop.phase("stopped")
    error = loop.replicator.state.error
    assert error is not None
    assert error[0] == "unauthorized"
    assert "token" in error[2]
    await one.write(changes.put("second", "value"))
    loop.tell()
    loop.replicator.mended()
    await loop.phase("idle")
    assert await there(one) >= {("kv", "key"), ("kv", "second")}
    assert (await one.contents()).queued == []


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (TryLater("throttled", retry_after=120.0), 120.0),
        (QuotaSpent("quota"), 3600.0),
    ],
)
async def test_a_pause_that_the_remote_asks_for_is_kept_unless_somebody_asks_for_more(
    make_device: Callable[..., Device],
    run: Callable[..., Loop],
    wall: Clock,
    error: SyncError,
    seconds: float,
) -> None:
    one = make_device("one", plan=[Fault("before", error=lambda: error)])
    loop = run(one, waiting=Waiting())
    await loop.phase("waiting")
    next_try = loop.replicator.state.next_try
    assert next_try is not None
    assert next_try >= wall.seconds + seconds
    await loop.replicator.sync()
    await loop.phase("idle")


class Measured:
    """A remote that notes how many bytes the arguments of each batch take."""

    def __init__(self, inner: FileRemote) -> None:
        self._inner = inner
        self.bytes: list[int] = []
        self.statements = 0

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        args = [arg for each in statements for arg in each.args if isinstance(arg, str)]
        self.bytes.append(sum(len(arg.encode()) for arg in args))
        self.statements = max(self.statements, len(statements))
        return await self._inner.batch(statements)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.parametrize("text", ['"quoted\\" \n' * 300, "記憶は層になる" * 300, "plain " * 500])
async def test_no_batch_is_larger_than_the_server_takes_in_any_script(
    make_device: Callable[..., Device],
    make_memory: Callable[..., Memory],
    tmp_path: Path,
    text: str,
) -> None:
    one, two = make_device("one"), make_device("two")
    measured = Measured(FileRemote(tmp_path / "remote.db"))
    one.remote = FaultyRemote(measured, asyncio.sleep)
    await one.stop()
    one.start()

    def fill(tx: Any) -> None:
        for number in range(700):
            changes.store(make_memory(number, text=f"{number} {text}"))(tx)

    await one.write(fill)
    await one.sync()
    assert max(measured.bytes) <= MOST_BYTES
    assert sum(measured.bytes) > 2 * MOST_BYTES
    assert measured.statements < MOST_ROWS
    assert len((await meet(one, two)).counts) == 700


async def test_one_memory_larger_than_a_batch_travels_alone(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory]
) -> None:
    one, two = make_device("one"), make_device("two")
    for number in range(3):
        text = "x" * (MOST_BYTES if number == 1 else 9)
        await one.write(changes.store(make_memory(number, text=text)))
    assert len((await meet(one, two)).counts) == 3


class Narrow:
    """A remote behind something that lets only so many bytes through at once."""

    def __init__(self, inner: Remote, most: int) -> None:
        self._inner = inner
        self._most = most
        self.refused = 0

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        args = [arg for each in statements for arg in each.args if isinstance(arg, str)]
        if sum(len(arg.encode()) for arg in args) > self._most:
            self.refused += 1
            raise TooLarge("too_large")
        return await self._inner.batch(statements)

    async def close(self) -> None:
        await self._inner.close()


async def test_what_is_too_large_to_be_sent_is_sent_in_parts_from_then_on(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory], tmp_path: Path
) -> None:
    one, two = make_device("one"), make_device("two")
    narrow = Narrow(FileRemote(tmp_path / "remote.db"), 25_000)
    one.remote = FaultyRemote(narrow, asyncio.sleep)
    await one.stop()
    one.start()

    def fill(tx: Any) -> None:
        for number in range(60):
            changes.store(make_memory(number, text=f"{number} {'x' * 3000}"))(tx)

    await one.write(fill)
    await one.sync()
    assert len((await meet(one, two)).counts) == 60
    assert 0 < narrow.refused < 6
    await one.write(changes.store(make_memory(60, text="y" * 25_000)))
    with pytest.raises(TooLarge):
        await one.sync()


async def test_an_answer_that_would_be_too_large_is_asked_for_in_parts(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory]
) -> None:
    one, two = make_device("one"), make_device("two")

    def fill(tx: Any) -> None:
        for number in range(300):
            changes.store(make_memory(number, text=f"{number} {'x' * 60_000}"))(tx)

    await one.write(fill)
    # Together they have more than the 10 MB that one answer may have.
    assert len((await meet(one, two)).counts) == 300
