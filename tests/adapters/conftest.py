"""The libraries that the adapters serve; `make adapters` installs them into `.venv/adapters`."""

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon

from thermocline.daemon.client import Client

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 120.0


@pytest.fixture
def agent() -> str:
    """Whose memory a test has to itself."""
    return uuid.uuid4().hex


@pytest.fixture
def client(shared_daemon: Daemon, agent: str) -> Iterator[Client]:
    """The same memory without the library."""
    with shared_daemon.client(agent) as made:
        yield made


@pytest.fixture
def run_example(daemon: Daemon) -> Callable[..., list[str]]:
    """`run_example(name, **env)` runs a program of `examples/` and returns the lines it prints."""

    def run(name: str, **env: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", EXAMPLES / name],
            env={"THERMOCLINE_SOCKET": str(daemon.socket), "PATH": "/usr/bin:/bin", **env},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run
