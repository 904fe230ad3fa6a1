"""A real server and the network before it, each in a process of its own."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from corpus import Corpus
from running import Running

_FIXTURES = Path(__file__).parents[1] / "fixtures"
sys.path.append(str(_FIXTURES))

from sealing import give_keys  # noqa: E402 - found by the line above
from sqld_binary import sqld_binary  # noqa: E402 - likewise
from sqld_server import Sqld  # noqa: E402 - likewise

__all__ = ["Sqld", "network", "replicating", "server", "store"]
_AT_ONCE = 500


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


def replicating(folder: Path, url: str, *, sealed: bool = False) -> Running:
    """A daemon with a replica, which it looks at only when it is asked to.

    Sealed, all of them have the keys of one owner.
    """
    settings = [f"sync.{name}=3600" for name in ("change_seconds", "poll_seconds")]
    settings += [f"sync.url={url}", "sync.critical_seconds=3600"]
    settings.append(f"sync.seal={'on' if sealed else 'off'}")
    if sealed:
        give_keys(folder / "state")
    return Running(folder, *settings)


def store(daemon: Running, number: int) -> None:
    """Store memories as an agent would, in batches."""
    made = Corpus().memories(number, time.time())
    wire = daemon.connect()
    while batch := [_body(fields) for fields in islice(made, _AT_ONCE)]:
        wire.post("/api/memory/batch", {"memories": batch})
    wire.close()


def _body(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "access_count"}
