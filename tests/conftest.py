"""What many tests need: a real daemon in a process of its own, and a client for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from thermocline.daemon.client import Client, DaemonUnreachable

OURS = ("THERMOCLINE_", "XDG_", "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CONFIGURATION_DIRECTORY")
DEADLINE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def _clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No configuration of the machine that runs the tests reaches them."""
    for name in os.environ:
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


def wait_until(true: Callable[[], bool], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Poll until `true()`; fail naming `what` when the deadline passes."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(0.01)


@pytest.fixture
def eventually() -> Callable[..., None]:
    """`eventually(condition, what)` polls with a deadline."""
    return wait_until


class Daemon:
    """A real daemon in a process of its own.

    Attributes:
        state: its state folder.
        socket: its socket.
        log: what it wrote to standard error, across restarts.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.state = folder / "state"
        self.socket = folder / "t.sock"
        self.log = folder / "daemon.log"
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str, prefix: tuple[str, ...] = (), wait: bool = True) -> Daemon:
        """Start it and wait until it answers."""
        command = [
            *prefix,
            *(sys.executable, "-m", "thermocline.daemon.cli.main"),
            *("--socket", str(self.socket), "daemon", "--state-dir", str(self.state)),
            *self.options,
            *more,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        if wait:
            wait_until(self.ready, "the daemon is ready")
        return self

    def ready(self) -> bool:
        """Whether it answers; fails when it has ended instead."""
        assert self.process is not None
        assert self.process.poll() is None, f"the daemon ended: {self.log.read_text()}"
        try:
            with self.client() as client:
                return bool(client.status()["ready"])
        except DaemonUnreachable:
            return False

    def client(self, agent: str | None = None) -> Client:
        """A client of it."""
        return Client(str(self.socket), agent=agent)

    def folder(self, agent: str = "default") -> Path:
        """An agent's folder."""
        return self.state / "agents" / agent

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send the signal and wait for the end; return the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(DEADLINE_SECONDS)

    def kill(self) -> None:
        """End it as a power cut would, without a word."""
        self.stop(signal.SIGKILL)


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Makes daemons that are not started yet; all are ended after the test."""
    made: list[Daemon] = []

    def make(*options: str, name: str = "d") -> Daemon:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        made.append(Daemon(folder, *options))
        return made[-1]

    yield make
    for daemon in made:
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.stop()


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    """A daemon that runs."""
    return make_daemon().start()
