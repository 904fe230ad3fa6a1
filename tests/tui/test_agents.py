"""The list of agents: one is shown, or forgotten."""

import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from terminal import terminal


@pytest.fixture(scope="module")
def daemon(shared_daemon: Daemon) -> Daemon:
    """The daemon of this file, with three agents."""
    for agent, number in (("ana", 3), ("ben", 1), ("cleo", 2)):
        with shared_daemon.client(agent) as client:
            for at in range(number):
                client.store(f"{agent} knows {at}")
    return shared_daemon


async def test_agents_are_listed_with_their_sizes_and_another_is_shown(daemon):
    async with terminal(daemon, "upkeep", "ana") as term:
        await term.press("ctrl+a")
        await term.see("● ana", "ben", "open", " KB")
        table = term.app.screen.query_one("PagedTable")
        assert table.row.id == "ana"
        table.select("ben")
        await term.press("enter")
        await term.until(lambda: term.app.agent == "ben", "another agent is shown")
        await term.see("thermocline ben")


async def test_an_agent_is_forgotten_once_its_name_was_typed(daemon):
    def names() -> set[str]:
        with daemon.client() as client:
            return {one.id for one in client.agents().results}

    async with terminal(daemon, "upkeep", "cleo") as term:
        await term.press("ctrl+a")
        await term.see("● cleo")
        await term.press("x")
        await term.see("Forget cleo", "2 memories, 0 pairs", "for good")
        await term.paste("yes")
        await term.press("escape")
        assert "cleo" in names()
        await term.press("x")
        await term.see("Type cleo to do it")
        await term.paste("cleo")
        await term.hear("forgot cleo")
        assert "cleo" not in names()
        await term.see("ana", "ben")
        await term.press("escape")
        await term.see("thermocline default")
        assert term.app.agent == "default"
