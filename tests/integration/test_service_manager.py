"""The daemon as a service: what it tells systemd, and the socket that systemd gives it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import DEADLINE_SECONDS, PROGRAM, until

from thermocline.daemon.client import Client
from thermocline.daemon.runtime.service_manager import ServiceManager

# Passes what systemd would pass, and becomes the daemon.
LAUNCHER = """
import os, sys
for place, number in enumerate(map(int, sys.argv[1].split(","))):
    os.dup2(number, 3 + place)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(sys.argv[1].count(",") + 1))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


class Systemd:
    """The socket on which a service tells systemd of its state."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.line.bind(str(self.path))
        self.line.settimeout(DEADLINE_SECONDS)
        self.told: list[str] = []

    def until(self, words: str) -> str:
        """Listen until a message has these words, and return it."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            self.told.append(self.line.recv(65_536).decode())
            if words in self.told[-1]:
                return self.told[-1]
        raise AssertionError(f"{words!r} was not among {self.told[-5:]}")

    def waiting(self) -> list[bytes]:
        """What has arrived and was not read."""
        found = []
        self.line.setblocking(False)
        try:
            while True:
                found.append(self.line.recv(65_536))
        except BlockingIOError:
            return found
        finally:
            self.line.settimeout(DEADLINE_SECONDS)


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    one = Systemd(tmp_path)
    yield one
    one.line.close()


def test_systemd_hears_of_the_start_a_reload_a_missing_socket_and_the_end(
    systemd, make_daemon, monkeypatch
):
    monkeypatch.setenv("NOTIFY_SOCKET", str(systemd.path))
    monkeypatch.setenv("WATCHDOG_USEC", "150000")
    daemon = make_daemon().start(wait=False)
    ready = systemd.until("READY=1")
    assert f"STATUS=serving 1 open agent on {daemon.socket}" in ready
    assert systemd.told[0].startswith("EXTEND_TIMEOUT_USEC=")
    assert daemon.ready()  # the moment that systemd lets others start
    systemd.until("WATCHDOG=1")

    daemon.process.send_signal(signal.SIGHUP)
    assert "MONOTONIC_USEC=" in systemd.until("RELOADING=1")
    systemd.until("READY=1")

    daemon.socket.unlink()  # nobody reaches it any more, though it runs
    systemd.until(f"STATUS=waiting for a restart by the watchdog: {daemon.socket} is gone")
    systemd.waiting()
    daemon.process.send_signal(signal.SIGTERM)
    systemd.until("STOPPING=1")
    assert daemon.process.wait(DEADLINE_SECONDS) == 0
    assert not any("WATCHDOG=1" in told for told in systemd.told[-2:])


def test_a_daemon_that_cannot_start_says_why(systemd, make_daemon, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(systemd.path))
    daemon = make_daemon("--set=warm.max_kb=many").start(wait=False)
    assert "warm.max_kb" in systemd.until("STATUS=the configuration has errors")
    assert daemon.process.wait(DEADLINE_SECONDS) == 2


async def test_a_stuck_loop_feeds_no_watchdog(systemd):
    manager = ServiceManager({"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": "30000"})
    manager.ready("serving")
    feeding = asyncio.create_task(manager.run(lambda: "", lambda: "serving"))
    await until(lambda: b"WATCHDOG=1" in systemd.waiting(), "the watchdog is fed")
    systemd.waiting()
    threading.Event().wait(0.2)  # six times as long as the watchdog waits
    assert systemd.waiting() == []
    await until(lambda: b"WATCHDOG=1" in systemd.waiting(), "the watchdog is fed")
    feeding.cancel()


def test_a_state_of_several_lines_is_one_message_and_a_reload_says_ready_only_after_it(systemd):
    manager = ServiceManager({"NOTIFY_SOCKET": str(systemd.path)})
    with manager.reloading():
        pass
    assert systemd.waiting() == []
    manager.ready("a file called 'x\nMAINPID=1'")
    assert systemd.line.recv(65_536) == b"READY=1\nSTATUS=a file called 'x MAINPID=1'"


def test_what_is_meant_for_another_process_is_ignored_and_nothing_is_inherited():
    env = {
        "NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "LISTEN_PID": "1",
        "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x", "HOME": "/",
    }  # fmt: skip
    assert ServiceManager(env).passed_socket() is None
    assert env == {"HOME": "/"}


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that systemd listens on, before any daemon runs."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.bind(str(tmp_path / "passed.sock"))
    one.listen(512)
    yield one
    one.close()


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`launch(socket, …)` starts a daemon as systemd does for a socket."""
    started: list[subprocess.Popen[str]] = []

    def start(*passed: socket.socket) -> subprocess.Popen[str]:
        numbers = [one.fileno() for one in passed]
        command = [sys.executable, "-c", LAUNCHER, ",".join(map(str, numbers)), *PROGRAM]
        process = subprocess.Popen(
            [*command, "daemon", "--state-dir", str(tmp_path / "state")],
            pass_fds=numbers,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_callers_wait_while_the_daemon_restarts(listening, launch):
    path = listening.getsockname()
    stored: list[str] = []

    def store(text: str) -> None:
        with Client(path, timeout=DEADLINE_SECONDS) as client:
            stored.append(client.store(text).id)

    for turn in range(2):
        # No daemon runs, and none ever did in the first turn.
        texts = [f"turn {turn}, caller {number}" for number in range(6)]
        callers = [threading.Thread(target=store, args=(text,)) for text in texts]
        for caller in callers:
            caller.start()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as first:
            first.connect(path)
            first.sendall(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
            daemon = launch(listening)
            first.settimeout(DEADLINE_SECONDS)
            assert first.recv(12) == b"HTTP/1.1 200"
        for caller in callers:
            caller.join(DEADLINE_SECONDS)
        assert len(stored) == 6 * (turn + 1)
        with Client(path) as client:
            assert client.status().socket == path
            assert client.status().agents["default"].memories == len(stored)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(DEADLINE_SECONDS) == 0
        assert os.path.exists(path)  # noqa: PTH110 - the file is systemd's


@pytest.mark.parametrize("kind", ["two", "datagrams"])
def test_a_passed_socket_that_is_of_no_use_is_refused(kind, listening, launch, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(tmp_path / "other.sock"))
        passed = (listening, listening) if kind == "two" else (other,)
        daemon = launch(*passed)
        _, said = daemon.communicate(timeout=DEADLINE_SECONDS)
    assert daemon.returncode == 1
    assert "thermocline.socket" in said
