"""A long mixed load: memory, files, threads and tasks stay as they were, and nobody waits."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

# Read here: the variables of ours are taken away before a test begins.
SECONDS = float(os.environ.get("THERMOCLINE_SOAK_SECONDS", "3600"))
WORKERS = 4
# In the first part caches fill, and the allocator finds its size.
WARM_UP = 0.2
MOST_GROWTH = 0.05
MOST_LAG_MS = 50.0
# The pools when they are full (reading 4, replicas 2, asyncio's own cores + 4), the main thread,
# a writer for each of the open agents, and one for each that is just being opened or closed.
MOST_THREADS = 4 + 2 + 6 + 1 + 4 + 8
FIXTURES = Path(__file__).parents[1] / "fixtures"

# Only the watcher is left then: what it, the socket and one agent need is the same at any time.
IDLE_FILES = 28
OPTIONS = (
    *("--set", "store.idle_close_seconds=1"),
    *("--set", "store.max_open_agents=4"),
)


class Footprint(NamedTuple):
    """What the daemon's process holds at one moment."""

    megabytes: float
    threads: int
    files: int

    @classmethod
    def of(cls, pid: int) -> Footprint:
        """That of a process."""
        process = Path(f"/proc/{pid}")
        lines = (process / "status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return cls(
            megabytes=int(fields["VmRSS"].split()[0]) / 1024,
            threads=int(fields["Threads"]),
            files=len([*(process / "fd").iterdir()]),
        )

    def __str__(self) -> str:
        return f"{self.megabytes:.1f} MB, {self.files} files, {self.threads} threads"


class Course(NamedTuple):
    """How the daemon did over the time: footprints each second, tasks, and the loop's lags."""

    footprints: list[Footprint]
    tasks: list[int]
    lags: list[float]

    @classmethod
    def read(cls, footprints: list[Footprint], file: Path) -> Course:
        """With what the daemon has written down about its loop."""
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lags = sorted(lag for line in lines for lag in line["lags"])
        return cls(footprints, [line["tasks"] for line in lines], lags)

    @property
    def p99_lag(self) -> float:
        """In milliseconds."""
        return self.lags[int(len(self.lags) * 0.99)]

    def growth(self, values: list[float]) -> float:
        """How much more the last tenth has at the middle than the tenth behind the warm-up."""
        tenth, first = max(1, len(values) // 10), int(len(values) * WARM_UP)
        return _middle(values[-tenth:]) / _middle(values[first : first + tenth]) - 1

    def faults(self) -> set[str]:
        """Which of the limits are broken."""
        grown = {
            "memory": self.growth([one.megabytes for one in self.footprints]) > MOST_GROWTH,
            "files": self.growth([float(one.files) for one in self.footprints]) > 0.25,
            "tasks": self.growth([float(number) for number in self.tasks]) > 0.25,
            "threads": max(one.threads for one in self.footprints) > MOST_THREADS,
            "lag": self.p99_lag > MOST_LAG_MS,
        }
        return {name for name, broken in grown.items() if broken}


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def run(daemon: Any, load: Any, seconds: float, loop: Path) -> tuple[Course, int]:
    """Visit it for so long while the load runs; return its course and the number of visits."""
    began, footprints, visits = time.monotonic(), [], 0
    while (elapsed := time.monotonic() - began) < seconds:
        visit(daemon, visits)
        visits += 1
        if elapsed > len(footprints) * max(0.1, seconds / 1000):
            footprints.append(Footprint.of(daemon.process.pid))
    load.end()
    return Course.read(footprints, loop), visits


@pytest.mark.parametrize("seconds", [2.0, pytest.param(SECONDS, marks=pytest.mark.soak)])
@pytest.mark.timeout(SECONDS + 300)
def test_a_long_load_leaves_memory_files_tasks_and_threads_as_they_were(
    seconds, make_daemon, make_load, eventually, tmp_path, figure
):
    daemon = make_daemon(*OPTIONS)
    daemon.program = (str(FIXTURES / "watched_loop.py"), str(tmp_path / "loop"))
    daemon.start()
    load = make_load(daemon.socket, workers=WORKERS, seed=26).start()
    with daemon.client() as watcher:
        course, visits = run(daemon, load, seconds, tmp_path / "loop")
        assert load.faults() == []
        assert load.refused() == {}
        eventually(lambda: len(watcher.status().agents) <= 1, "idle agents are closed")
        # An agent leaves the list before its last round of replication lets its files go.
        eventually(
            lambda: Footprint.of(daemon.process.pid).files < IDLE_FILES,
            "the files of closed agents are closed",
        )
        eventually(lambda: watcher.status().connections == 1, "the others have left")
        assert watcher.status().problems == []
    memory = course.growth([one.megabytes for one in course.footprints])
    figure("soak: seconds, calls, visits", f"{seconds:.0f}, {load.total()['calls']:,}, {visits:,}")
    figure("soak: memory growth", f"{memory:+.1%}, {course.footprints[-1]}")
    figure("soak: tasks", f"{min(course.tasks)} to {max(course.tasks)}")
    figure("soak: lag of the event loop, p99", f"{course.p99_lag:.1f} ms")
    # A course of a few seconds says nothing yet; what is left in the end does.
    assert course.faults() <= (set() if seconds > 300 else {"memory", "files", "tasks", "lag"})
    assert daemon.stop() == 0


@pytest.mark.crash
def test_the_soak_notices_a_daemon_that_leaks_and_blocks(make_daemon, make_load, tmp_path):
    daemon = make_daemon(*OPTIONS)
    daemon.program = (
        *(str(FIXTURES / "watched_loop.py"), str(tmp_path / "loop")),
        *("--broken", "harmed"),
    )
    load = make_load(daemon.start().socket, workers=1, seed=26).start()
    course, _ = run(daemon, load, 20.0, tmp_path / "loop")
    assert {"memory", "files", "tasks", "lag"} <= course.faults()


def visit(daemon, number):
    """Somebody who comes, uses an agent that is seldom open, and leaves without a word."""
    with daemon.client(f"guest{number % 12}") as guest:
        stored = guest.store(f"visit {number}", expires="1h").id
        assert guest.recall("visit").results
        guest.forget(stored)
        guest.tree_text()
