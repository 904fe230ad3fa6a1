"""Real clients on a person's desk, beside a real daemon and a model that does as it is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from client_programs import Desk, installed
from daemon_process import Daemon
from fake_models import FakeModel


@pytest.fixture(scope="session", autouse=True)
def _programs() -> None:
    """They are installed; `make clients` does that first."""
    assert installed(), "the clients are not installed: make clients"


@pytest.fixture
def desk(tmp_path: Path, daemon: Daemon) -> Desk:
    """A home of its own, and the way to the daemon."""
    return Desk(tmp_path / "home", daemon.socket)


@pytest.fixture
def model() -> Iterator[FakeModel]:
    """The model that the clients ask."""
    with FakeModel() as made:
        yield made
