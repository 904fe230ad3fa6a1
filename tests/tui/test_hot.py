"""The tab of the hot state: each action against a real daemon."""

from typing import Any

import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from terminal import Terminal, terminal

from thermocline.daemon.client import Client


@pytest.fixture
def client(client: Client) -> Client:
    """The test's client, whose agent has something in each section."""
    client.hot_update("identity", {"agent_name": "Skipper"})
    client.hot_update("owner_profile", {"name": "Ana", "wishes": ["tea", "no emoji"]})
    client.hot_update("project", {"name": "Harbor", "status": "active", "team": "blue"})
    client.hot_update("event", {"text": "the gateway is live", "timestamp": 1_700_000_000})
    client.hot_update("task", {"text": "write the runbook", "status": "pending"})
    client.hot_update("lesson", {"text": "ask before pushing", "importance": 0.9})
    client.store("the gate code is 4711", importance=0.95)
    return client


def opened(daemon: Daemon, client: Client, **options: Any) -> Any:
    return terminal(daemon, "hot", str(client._agent), **options)


def state(client: Client) -> Any:
    return client.hot().state


async def choose(term: Terminal, name: str) -> None:
    """Put the cursor on an entry."""
    await term.until(lambda: term.view.table.select(name), f"{name} is there")
    await term.pilot.pause()


async def test_the_state_is_shown_in_sections_with_its_size(daemon, client):
    async with opened(daemon, client) as term:
        for told in (
            *("Identity       1", "agent_name: Skipper", "Owner          2", "tea, no emoji"),
            *("Projects       1", "Harbor  active", "Events         1", "the gateway is live"),
            *("Tasks          1", "○ write the runbook", "Lessons        1", "d ago"),
            *("Critical  ask before pushing", "Hot memories   1", "the gate code is 4711"),
            *("of 5 KB", "Where the room goes"),
        ):
            await term.see(told)


async def test_an_entry_of_each_section_is_edited_and_undone(daemon, client):
    wishes = {"name": "Ana", "wishes": ["coffee"]}
    harbor = {"name": "Harbor 2", "status": "done", "team": "blue"}
    live = {"text": "the gateway is live again", "timestamp": 1_700_000_000}
    wanted: list[tuple[str, dict[str, str], Any]] = [
        ("agent_name", {"value": "Bosun"}, lambda s: s["identity"] == {"agent_name": "Bosun"}),
        ("wishes", {"value": '["coffee"]'}, lambda s: s["owner_profile"] == wishes),
        (
            *("Harbor", {"name": "Harbor 2", "status": "done"}),
            lambda s: s["active_context"]["projects"] == [harbor],
        ),
        (
            *("the gateway is live", {"text": "the gateway is live again"}),
            lambda s: s["active_context"]["events"] == [live],
        ),
        (
            *("write the runbook", {"status": "done"}),
            lambda s: [one["status"] for one in s["active_context"]["tasks"]] == ["done"],
        ),
        (
            *("ask before pushing", {"importance": "0.5"}),
            lambda s: [one["importance"] for one in s["critical_lessons"]] == [0.5],
        ),
    ]
    before = state(client)
    async with opened(daemon, client) as term:
        for name, values, fits in wanted:
            await choose(term, name)
            await term.press("e")
            await term.fill(**values)
            await term.until(lambda: fits(state(client)), f"{name} is changed")  # noqa: B023
            await term.undo()
            await term.until(lambda: state(client) == before, f"{name} is as before")
    assert len(client.list().results) == 1


async def test_an_entry_of_each_section_is_removed_and_undone(daemon, client):
    before = state(client)
    async with opened(daemon, client) as term:
        for name in (
            *("agent_name", "wishes", "Harbor", "the gateway is live"),
            *("write the runbook", "ask before pushing"),
        ):
            await choose(term, name)
            await term.press("d")
            await term.confirm("remove")
            await term.until(lambda: name not in str(state(client)), f"{name} is gone")  # noqa: B023
            await term.wait_until_drawn()
            await term.undo()
            await term.until(lambda: state(client) == before, f"{name} is as before")


async def test_an_entry_is_added_and_undone_and_a_value_that_is_no_json_refused(daemon, client):
    async with opened(daemon, client) as term:
        await choose(term, "write the runbook")
        await term.press("a", "enter")
        await term.fill(text="rotate [bold]keys[/]")
        await term.see("○ rotate [bold]keys[/]")
        assert [one["text"] for one in state(client)["active_context"]["tasks"]] == [
            "write the runbook",
            "rotate [bold]keys[/]",
        ]
        await term.undo()
        await term.miss("rotate")
        before = state(client)
        await choose(term, "wishes")
        await term.press("e")
        term.app.screen.query_one("#field-value").text = "[broken"
        await term.pilot.press("ctrl+s")
        await term.see("write it as JSON")
        assert state(client) == before


async def test_a_hot_memory_is_opened_and_only_its_pin_removed(daemon, client):
    (memory,) = client.list().results
    async with opened(daemon, client) as term:
        await choose(term, memory.id)
        await term.press("d")
        await term.see("it is hot by its score")
        client.update(memory.id, pinned=True)
        await term.press("d")
        await term.see("unpinned")
        assert not client.get(memory.id).pinned
        await choose(term, memory.id)
        await term.press("enter")
        await term.see(f"Memory {memory.id[:8]}")
