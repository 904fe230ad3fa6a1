"""A real server and the network before it, each in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_FIXTURES = Path(__file__).parents[1] / "fixtures"
sys.path.append(str(_FIXTURES))

from devices import Clock, Device  # noqa: E402 - found by the line above
from sqld_binary import sqld_binary  # noqa: E402 - likewise
from sqld_server import Sqld  # noqa: E402 - likewise

__all__ = ["Clock", "Device", "Sqld", "network", "server"]


@contextlib.contextmanager
def server(folder: Path) -> Iterator[Sqld]:
    """A server with an empty database."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Sqld(sqld_binary(), folder)
    found.start()
    try:
        yield found
    finally:
        found.stop()


@contextlib.contextmanager
def network(port: int, round_trip_ms: float) -> Iterator[str]:
    """The URL of a server on the loopback as it is seen from far away."""
    command = [sys.executable, str(_FIXTURES / "fault_proxy.py"), "--to", str(port)]
    command += ["--latency", str(round_trip_ms / 2)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
