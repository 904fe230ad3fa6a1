"""The list of agents: one is shown, or forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from tui_pilot import seated


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for the tests of this file, with three agents."""
    made = Daemon(tmp_path_factory.mktemp("daemon")).start()
    for agent, number in (("ana", 3), ("ben", 1), ("cleo", 2)):
        with made.client(agent) as client:
            for at in range(number):
                client.store(f"{agent} knows {at}")
    yield made
    made.stop()


async def test_agents_are_listed_with_their_sizes_and_another_is_shown(daemon: Daemon) -> None:
    async with seated(daemon, "upkeep", "ana") as seat:
        await seat.press("ctrl+a")
        await seat.sees("● ana", "ben", "open", " KB")
        table = seat.app.screen.query_one("Rows")
        assert table.selected == "ana"
        table.select("ben")
        await seat.press("enter")
        await seat.until(lambda: seat.app.agent == "ben", "another agent is shown")
        await seat.sees("thermocline ben")


async def test_an_agent_is_forgotten_once_its_name_was_typed(daemon: Daemon) -> None:
    def names() -> set[str]:
        with daemon.client() as client:
            return {one.id for one in client.agents().results}

    async with seated(daemon, "upkeep", "cleo") as seat:
        await seat.press("ctrl+a")
        await seat.sees("● cleo")
        await seat.press("x")
        await seat.sees("Forget cleo", "2 memories, 0 pairs", "for good")
        await seat.enter("yes")
        await seat.press("escape")
        assert "cleo" in names()
        await seat.press("x")
        await seat.sees("Type cleo to do it")
        await seat.enter("cleo")
        await seat.hears("forgot cleo")
        assert "cleo" not in names()
        await seat.sees("ana", "ben")
        await seat.press("escape")
        await seat.sees("thermocline default")
        assert seat.app.agent == "default"


async def test_no_agent_is_forgotten_where_it_is_read_only(daemon: Daemon) -> None:
    async with seated(daemon, "upkeep", "ana", (40, 16), read_only=True) as seat:
        await seat.press("ctrl+a")
        await seat.sees("● ana", "enter shows it")
        assert "x forgets" not in seat.screen
        await seat.press("x")
        assert "Forget" not in seat.screen
