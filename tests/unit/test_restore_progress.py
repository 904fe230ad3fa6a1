"""What people see of a restore."""

from __future__ import annotations

import io

import pytest

from thermocline.daemon.restoring.progress import Progress
from thermocline.sync import TryLater


class Stream(io.StringIO):
    """A stream that is a terminal, or none."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_elsewhere_than_on_a_terminal_a_line_comes_every_few_seconds(clock: Clock) -> None:
    stream = Stream(terminal=False)
    progress = Progress(stream, clock)
    progress.expect("otis", 10_000, 0)
    for _ in range(10):
        clock.seconds += 1.0
        progress.came(1000)
    progress.stage("received", "otis")
    progress.end()
    assert stream.getvalue().splitlines() == [
        "otis: 0 of 10,000 rows, 0 %",
        "otis: 5,000 of 10,000 rows, 50 %, 1,000 rows/s, 5 s left",
        "otis: 10,000 of 10,000 rows, 100 %, 1,000 rows/s, 0 s left",
        "otis: 10,000 of 10,000 rows, 100 %, 1,000 rows/s, 0 s left",
        "otis: comparing what came with what the replica holds",
    ]


def test_what_an_earlier_run_brought_counts_but_not_for_the_speed(clock: Clock) -> None:
    stream = Stream(terminal=False)
    progress = Progress(stream, clock)
    progress.expect("otis", 10_000, 9000)
    clock.seconds += 10.0
    progress.came(500)
    assert stream.getvalue().splitlines() == [
        "otis: going on behind the 9,000 rows that are there already",
        "otis: 9,000 of 10,000 rows, 90 %",
        "otis: 9,500 of 10,000 rows, 95 %, 50 rows/s, 10 s left",
    ]


def test_on_a_terminal_one_line_is_rewritten(clock: Clock) -> None:
    stream = Stream(terminal=True)
    progress = Progress(stream, clock)
    progress.expect("otis", 2000, 0)
    clock.seconds += 120.0
    progress.came(1000)
    progress.end()
    assert stream.getvalue() == (
        "\rotis: 0 of 2,000 rows, 0 %\x1b[K"
        "\rotis: 1,000 of 2,000 rows, 50 %, 8 rows/s, 2 min 0 s left\x1b[K\n"
    )


async def test_it_says_for_what_it_waits(clock: Clock) -> None:
    stream = Stream(terminal=False)
    progress = Progress(stream, clock)
    progress.failed(TryLater("offline", "cannot reach the remote"), 12.4)
    assert stream.getvalue() == (
        "waiting for the replica, next try in 12 s: cannot reach the remote\n"
    )


async def test_on_a_terminal_the_seconds_are_seen_to_pass(clock: Clock) -> None:
    async def sleep(seconds: float) -> None:
        clock.seconds += seconds

    stream = Stream(terminal=True)
    progress = Progress(stream, clock, sleep)
    progress.failed(TryLater("offline", "no network"), 2.5)
    await progress.pause(2.5)
    waiting = "\rwaiting for the replica, next try in {} s: no network\x1b[K"
    assert stream.getvalue() == "".join(waiting.format(left) for left in (2, 2, 0))
    assert clock.seconds == 2.5


def test_a_line_that_is_rewritten_does_not_go_on_below(clock: Clock) -> None:
    stream = Stream(terminal=True)
    progress = Progress(stream, clock, columns=24)
    progress.expect("otis", 2000, 0)
    progress.failed(TryLater("offline", "cannot reach the remote"), 12.0)
    assert stream.getvalue() == "\rotis: 0 of 2,000 rows, 0\x1b[K"


def test_it_says_whom_it_asks_before_anything_comes(clock: Clock) -> None:
    stream = Stream(terminal=False)
    Progress(stream, clock).asking("https://replica")
    assert stream.getvalue() == "asking https://replica\n"
