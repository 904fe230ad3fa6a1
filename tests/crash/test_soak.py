"""A long mixed load: memory, open files and threads stay where they were."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

# Read here: the variables of ours are taken away before a test begins.
SECONDS = float(os.environ.get("THERMOCLINE_SOAK_SECONDS", "600"))
WORKERS = 4
WARM_UP = 0.2
GROWTH_MB = 16.0
# The pools when they are full (reading 4, replicas 2, asyncio's own cores + 4), the main thread,
# a writer for each of the open agents, and one for each that is just being opened or closed.
MOST_THREADS = 4 + 2 + 6 + 1 + 4 + 8

# Only the watcher is left then: what it, the socket and one agent need is the same at any time.
IDLE_FILES = 28


class Footprint:
    """What the daemon's process holds at one moment."""

    def __init__(self, pid: int, status: Any) -> None:
        process = Path(f"/proc/{pid}")
        fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        self.megabytes = int(fields["VmRSS"].split()[0]) / 1024
        self.threads = int(fields["Threads"])
        self.files = len([*(process / "fd").iterdir()])
        self.connections = status.connections

    def __str__(self) -> str:
        return f"{self.megabytes:.1f} MB, {self.files} files, {self.threads} threads"


@pytest.mark.parametrize("seconds", [2.0, pytest.param(SECONDS, marks=pytest.mark.soak)])
@pytest.mark.timeout(SECONDS + 300)
def test_a_long_load_leaves_memory_files_and_threads_as_they_were(
    seconds, make_daemon, make_load, eventually
):
    daemon = make_daemon(
        *("--set", "store.idle_close_seconds=1"), *("--set", "store.max_open_agents=4")
    ).start()
    load = make_load(daemon.socket, workers=WORKERS, seed=26).start()
    began = time.monotonic()
    early: Footprint | None = None
    rounds = 0
    with daemon.client() as watcher:
        while (elapsed := time.monotonic() - began) < seconds:
            visit(daemon, rounds)
            rounds += 1
            if early is None and elapsed > seconds * WARM_UP:
                early = Footprint(daemon.process.pid, watcher.status())
        late = Footprint(daemon.process.pid, watcher.status())
        load.end()
        assert load.faults() == []
        assert load.refused() == {}
        eventually(lambda: len(watcher.status().agents) <= 1, "idle agents are closed")
        # An agent leaves the list before its last round of replication lets its files go.
        eventually(
            lambda: Footprint(daemon.process.pid, watcher.status()).files < IDLE_FILES,
            "the files of closed agents are closed",
        )
        eventually(lambda: watcher.status().connections == 1, "the others have left")
        idle = Footprint(daemon.process.pid, watcher.status())
        assert watcher.status().problems == []
    calls = load.total()["calls"]
    print(f"\n{seconds:.0f} s, {calls} calls, {rounds} visits: {early} -> {late} -> idle {idle}")
    assert early is not None
    # In the first seconds caches fill.
    assert late.megabytes - early.megabytes < (GROWTH_MB if seconds > 60 else 4 * GROWTH_MB)
    assert late.threads <= MOST_THREADS
    assert daemon.stop() == 0


def visit(daemon, number):
    """Somebody who comes, uses an agent that is seldom open, and leaves without a word."""
    with daemon.client(f"guest{number % 12}") as guest:
        stored = guest.store(f"visit {number}", expires="1h").id
        assert guest.recall("visit").results
        guest.forget(stored)
        guest.tree_text()
