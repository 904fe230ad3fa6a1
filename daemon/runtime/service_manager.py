"""What systemd and the daemon tell each other: signals, readiness, state, signs of life, a socket.

Without systemd, and for a daemon that was not started by it, every call does nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Final

from ..errors import Conflict

_log = logging.getLogger(__name__)
_FIRST_PASSED: Final = 3
# Without a watchdog only the state that people see is kept up to date.
_STATUS_SECONDS: Final = 10.0
# How long a start may take from the latest sign of life on.
_START_SECONDS: Final = 60.0
_SEND_SECONDS: Final = 1.0


class ProcessSignals:
    """Turns signals into events of the loop.

    Attributes:
        stopping: set by the first SIGTERM or SIGINT. A second one ends the process at once;
            acknowledged changes are safe in any case.
        reload: set by SIGHUP.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stopping = asyncio.Event()
        self.reload = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.reload.set)

    def _stop(self, number: int) -> None:
        if self.stopping.is_set():
            os._exit(128 + number)
        self.stopping.set()


class ServiceManager:
    """The daemon's line to the service manager that started it.

    The variables of the protocol are removed from the environment: the model's process must not
    speak for the daemon.
    """

    def __init__(self, env: MutableMapping[str, str]) -> None:
        pid = str(os.getpid())
        self._address = _address(env.pop("NOTIFY_SOCKET", ""))
        watchdog, meant = env.pop("WATCHDOG_USEC", ""), env.pop("WATCHDOG_PID", pid)
        microseconds = int(watchdog) if watchdog.isdecimal() and meant == pid else 0
        self._watchdog_seconds = microseconds / 1e6
        passed, meant = env.pop("LISTEN_FDS", ""), env.pop("LISTEN_PID", "")
        self._passed = int(passed) if passed.isdecimal() and meant == pid else 0
        env.pop("LISTEN_FDNAMES", None)
        self._ready = False
        self._status = ""

    def passed_socket(self) -> socket.socket | None:
        """The socket that systemd listens on for the daemon, if it passed one.

        Raises:
            Conflict: it passed several, or another sort of socket.
        """
        if not self._passed:
            return None
        if self._passed > 1:
            raise Conflict(
                f"cannot use {self._passed} sockets: the daemon listens on one",
                hint="leave one ListenStream= in thermocline.socket",
            )
        passed = socket.socket(fileno=_FIRST_PASSED)
        passed.set_inheritable(False)
        if (
            passed.family != socket.AF_UNIX
            or passed.type != socket.SOCK_STREAM
            or not isinstance(passed.getsockname(), str)
            or not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        ):
            raise Conflict(
                "cannot use the socket that was passed: it is no listening Unix socket with a path",
                hint="give thermocline.socket a ListenStream= with a path, and Accept=no",
            )
        return passed

    def ready(self, status: str) -> None:
        self._ready = True
        self._status = _line(status)
        self._send("READY=1", f"STATUS={self._status}")

    def stopping(self) -> None:
        self._ready = False
        self._send("STOPPING=1", "STATUS=finishing requests and sending queued changes")

    def show(self, status: str) -> None:
        line = _line(status)
        if line != self._status:
            self._status = line
            self._send(f"STATUS={line}")

    @contextlib.contextmanager
    def reloading(self) -> Iterator[None]:
        """Say that the configuration is read again, until the block ends."""
        if not self._ready:
            yield
            return
        since = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send("RELOADING=1", f"MONOTONIC_USEC={since}")
        try:
            yield
        finally:
            self._send("READY=1")

    async def run(self, fault: Callable[[], str], status: Callable[[], str]) -> None:
        """Give signs of life and show the state, until cancelled.

        Runs on the loop that serves the callers: when that is stuck, the watchdog is not fed,
        and systemd restarts the daemon. `fault` says why the daemon must be restarted, or nothing.
        """
        if self._address is None:
            await asyncio.Event().wait()
        while True:
            wrong = fault()
            if not self._ready:
                self._send(f"EXTEND_TIMEOUT_USEC={int(_START_SECONDS * 1e6)}")
            elif wrong:
                self.show(f"waiting for a restart by the watchdog: {wrong}")
            else:
                self._send("WATCHDOG=1")
                self.show(status())
            await asyncio.sleep(self._watchdog_seconds / 3 or _STATUS_SECONDS)

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                line.settimeout(_SEND_SECONDS)
                line.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            _log.debug("cannot tell systemd: %s", error, extra={"action": "notify_failed"})


def _address(text: str) -> str | None:
    """The address of systemd's socket; `@` stands for the zero byte of an abstract one."""
    if text.startswith("@"):
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _line(text: str) -> str:
    """`text` as one line: another would be a message of its own to systemd."""
    return " ".join(text.split())
