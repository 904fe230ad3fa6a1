"""Hostile callers by the million: the others are served, and the daemon stays as it was."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from daemon_process import Daemon, wait_until

FRAMES = int(os.environ.get("THERMOCLINE_FRAMES", "1000000"))
SEED = int(os.environ.get("THERMOCLINE_SEED", "30"))
HOSTILE = str(Path(__file__).parents[1] / "fixtures" / "hostile.py")
SENDERS = 2
# What the daemon may need for a while, and what it may keep: modules loaded on first use, and pages
# of the heap on which something still lives. Another attack uses these again, so that it may add no
# more than a little.
MOST_MB = 32.0
KEPT_MB = 20.0
ADDED_MB = 4.0
MOST_LOG = 1_000_000
MOST_SECONDS = 0.1


class Outcome(NamedTuple):
    """What an attack did to a daemon and to those who used it meanwhile.

    Attributes:
        p99: of those who used the daemon, in seconds, beyond that of the same calls to a daemon
            that nobody attacked on the same machine.
        quiet: of those who used the other daemon.
        peak, kept: megabytes more than before, at the most and in the end.
        log: bytes more than before.
    """

    p99: float
    quiet: float
    peak: float
    kept: float
    log: int
    sent: Counter[str]
    answers: Counter[str]
    calls: int

    def faults(self) -> set[str]:
        """Which of the limits are broken."""
        limits = {
            "p99": self.p99 > MOST_SECONDS,
            "peak": self.peak > MOST_MB,
            "kept": self.kept > KEPT_MB,
            "log": self.log > MOST_LOG,
            "status": any(status in self.answers for status in ("500", "502")),
        }
        return {name for name, broken in limits.items() if broken}


class User(threading.Thread):
    """Somebody who uses the daemon all the time, over new connections and over one that stays."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(daemon=True)
        self._daemon = daemon
        self.ending = threading.Event()
        self.seconds: list[float] = []
        self.failed: list[str] = []

    def run(self) -> None:
        with self._daemon.client("user") as kept:
            while not self.ending.wait(0.02):
                try:
                    self._use(kept)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                    self.failed.append(str(error))

    def _use(self, kept: Any) -> None:
        with self._daemon.client("user") as new:
            self._time(new.health)
        stored = self._time(lambda: kept.store("the heron nests", expires="1h"))
        self._time(lambda: kept.recall("heron", limit=3))
        self._time(lambda: kept.forget(stored.id))

    def _time(self, call: Callable[[], Any]) -> Any:
        began = time.monotonic()
        result = call()
        self.seconds.append(time.monotonic() - began)
        return result

    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]


def megabytes(daemon: Daemon) -> float:
    assert daemon.process is not None
    for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError


def attack(daemon: Daemon, quiet: Daemon, frames: int, idle: int, slow: int) -> Outcome:
    """Attack a daemon that has been used for a moment; a fault in what users get fails at once."""
    users = [User(daemon), User(quiet)]
    for user in users:
        user.start()
    wait_until(lambda: all(len(user.seconds) > 100 for user in users), "they are in use")
    for user in users:
        user.seconds.clear()
    before, log, peak = megabytes(daemon), daemon.log.stat().st_size, 0.0
    pipe = subprocess.PIPE
    command = [sys.executable, HOSTILE, str(daemon.socket)]
    with ExitStack() as ends:
        for what, number in (("idle", idle), ("slow", slow)):
            holder = subprocess.Popen([*command, what, str(number)], stdin=pipe, stdout=pipe)
            ends.callback(holder.communicate)
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
        senders = [
            subprocess.Popen(
                [*command, "frames", str(frames // SENDERS), str(SEED + n)], stdout=pipe
            )
            for n in range(SENDERS)
        ]
        while any(sender.poll() is None for sender in senders):
            peak = max(peak, megabytes(daemon) - before)
            time.sleep(0.1)
        told = [json.loads(sender.communicate()[0]) for sender in senders]
        assert [sender.returncode for sender in senders] == [0] * SENDERS
    for user in users:
        user.ending.set()
        user.join(60)
        assert user.failed == []
    with daemon.client() as client:
        wait_until(lambda: client.status().connections == 1, "they have left")
        # What came last is given back within the minute.
        until = time.monotonic() + 90
        while (kept := megabytes(daemon) - before) > KEPT_MB and time.monotonic() < until:
            time.sleep(0.5)
    attacked, other = users
    return Outcome(
        p99=attacked.p99() - other.p99(),
        quiet=other.p99(),
        peak=peak,
        kept=kept,
        log=daemon.log.stat().st_size - log,
        sent=sum((Counter(one["kinds"]) for one in told), Counter()),
        answers=sum((Counter(one["answers"]) for one in told), Counter()),
        calls=len(attacked.seconds),
    )


@pytest.fixture
def daemons(make_daemon: Callable[..., Daemon]) -> tuple[Daemon, Daemon]:
    """Two that do not run: one to attack, one to compare it with."""
    options = ("--set=socket.max_connections=1400", "--set=upkeep.quick=null")
    return make_daemon(*options), make_daemon(*options, name="quiet")


@pytest.mark.crash
@pytest.mark.timeout(7200)
def test_a_million_hostile_frames_leave_the_daemon_and_its_users_as_they_were(daemons, figure):
    daemon, quiet = (one.start() for one in daemons)
    first, second = (attack(daemon, quiet, FRAMES // 2, idle=1000, slow=50) for _ in range(2))
    figure("hostile frames", f"{(first.sent + second.sent).total():,}")
    figure("hostile frames: answers", dict((first.answers + second.answers).most_common()))
    for name, outcome in (("first", first), ("second", second)):
        others = f"{outcome.p99 * 1e3:.1f} ms, quiet {outcome.quiet * 1e3:.1f} ms"
        figure(f"hostile frames, {name} half: p99 of others beyond a quiet daemon's", others)
        memory = f"{outcome.peak:.1f}, {outcome.kept:.1f} MB"
        figure(f"hostile frames, {name} half: memory at the most, and kept", memory)
    figure("hostile frames: log", f"{first.log + second.log:,} bytes")
    assert (first.sent + second.sent).total() >= FRAMES
    assert first.faults() == second.faults() == set()
    assert second.kept < ADDED_MB
    assert "Traceback" not in daemon.log.read_text()
    assert daemon.stop() == 0


def test_hostile_frames_leave_memory_and_log_as_they_were(daemons):
    daemon, quiet = (one.start() for one in daemons)
    outcome = attack(daemon, quiet, 2000, idle=100, slow=10)
    # How long calls take says more about the machine when there are so few.
    assert outcome.faults() <= {"p99"}
    assert "Traceback" not in daemon.log.read_text()
    assert daemon.stop() == 0


@pytest.mark.crash
def test_the_attack_notices_a_daemon_that_leaks_and_blocks_and_talks(daemons):
    daemon, quiet = daemons
    daemon.broken("harmed").start()
    outcome = attack(daemon, quiet.start(), 2000, idle=20, slow=5)
    assert {"p99", "peak", "kept", "log"} <= outcome.faults()
