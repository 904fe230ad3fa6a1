"""The terminal view's frame, against a real daemon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from daemon_process import Daemon, until

pytest.importorskip("textual")

from thermocline.tui.app import ThermoclineApp


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for the tests of this file."""
    made = Daemon(tmp_path_factory.mktemp("daemon")).start()
    yield made
    made.stop()


async def test_the_view_opens_on_the_first_tab_and_digits_switch(daemon: Daemon) -> None:
    app = ThermoclineApp(daemon.client)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: app.settled, "the first tab is drawn")
        assert app.tab.name == "overview"
        await pilot.press("2")
        assert app.tab.name == "memories"
        await until(lambda: app.settled, "the second tab is drawn")
