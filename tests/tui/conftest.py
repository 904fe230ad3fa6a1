"""What the tests of the views share: one daemon for a file, and an agent for a test."""

import itertools
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from daemon_process import Daemon

from thermocline.daemon.client import Client

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _draws_when_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen is drawn when a test reads it, or with `drawn` after each change as well.

    Drawing each change for nobody takes half of the time.
    """
    if "drawn" in request.fixturenames or find_spec("textual") is None:
        return
    from textual._compositor import Compositor  # noqa: PLC0415 - an extra that may not be there

    render = Compositor.render_update

    def render_update(compositor: Compositor, full: bool = False, **options: Any) -> Any:
        if full:
            return render(compositor, full, **options)
        compositor._dirty_regions.clear()
        return None

    monkeypatch.setattr(Compositor, "render_update", render_update)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrolling takes no time; whether a key has done its work is looked at after 5 ms, not 20."""
    if find_spec("textual") is not None:
        monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
        monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.005)


@pytest.fixture
def drawn() -> None:
    """Draw after each change, as on a terminal."""


@pytest.fixture(scope="module")
def daemon(shared_daemon: Daemon) -> Daemon:
    """The module's daemon."""
    return shared_daemon


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client of an agent of the test's own."""
    with daemon.client(f"agent{next(_numbers)}") as made:
        yield made
