"""What the tests of the views share: one daemon for a file, and an agent for a test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from daemon_process import Daemon

from thermocline.daemon.client import Client

_numbers = itertools.count()


@pytest.fixture(scope="module")
def daemon(shared_daemon: Daemon) -> Daemon:
    """The module's daemon."""
    return shared_daemon


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client of an agent of the test's own."""
    with daemon.client(f"agent{next(_numbers)}") as made:
        yield made
