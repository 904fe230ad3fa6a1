"""The tab of the categories: each action against a real daemon."""

from typing import Any

import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from terminal import Terminal, terminal

from thermocline.daemon.client import Client

# Its categories are idle at once.
OPTIONS = ("--set=tree.prune_idle_days=0",)


def opened(daemon: Daemon, client: Client, **options: Any) -> Any:
    return terminal(daemon, "tree", str(client._agent), **options)


def paths(client: Client) -> set[str]:
    return {path for path in client.tree().tree if path not in {"_schema_version", "root"}}


async def choose(term: Terminal, path: str) -> None:
    """Put the cursor on a category."""
    await term.until(lambda: term.view.table.select(path), f"{path} is there")
    await term.wait_until_drawn()


async def test_categories_are_shown_with_counts_and_limits(daemon, client):
    for number in range(3):
        client.store(f"to deploy {number}", category="howto/deploy")
    client.store("to debug", category="howto/debug")
    async with opened(daemon, client) as term:
        await term.see("4 of 50")
        await term.see("2 of 4")
        await term.see("2 of 10")
        await term.see("of 2 KB")
        rows = {row.name: row for row in term.view.table.rows.values()}
        assert (rows["howto"].warm, rows["howto"].cold) == (4, 0)
        assert (rows["deploy"].warm, rows["deploy"].cold) == (3, 0)
        (line,) = [line for line in term.lines if "└─ howto " in line]
        assert line.split()[1:4] == ["howto", "4", "0"]


async def test_selecting_a_category_shows_its_memories_and_opens_them(daemon, client):
    client.store("the lamp is in the hall", category="home/hall")
    client.store("the stove is hot", category="home/kitchen")
    async with opened(daemon, client) as term:
        await choose(term, "home/kitchen")
        await term.miss("the lamp")
        await term.see("the stove is hot")
        await term.press("enter")
        assert term.view.part == "filed"
        await term.press("enter")
        await term.see("Memory")
        await term.press("escape", "shift+tab", "l")
        await term.until(lambda: term.app.tab.name == "memories", "the tab of the memories")
        await term.see("category home/kitchen")
        await term.see("1 memory")


async def test_where_there_is_little_room_enter_goes_to_the_memories(daemon, client):
    client.store("the stove is hot", category="kitchen")
    async with opened(daemon, client, size=(40, 12)) as term:
        await choose(term, "kitchen")
        await term.press("enter")
        await term.see("Memories of kitchen", "the stove is hot")


async def test_a_category_is_added_with_its_parents_and_undone(daemon, client):
    client.tree_add("projects")
    async with opened(daemon, client) as term:
        await term.press("a")
        await term.pilot.press(*"a/b/c/d/e/f")
        await term.pilot.press("ctrl+s")
        await term.until(
            lambda: term.app.screen.query_one("#fault").display, "the form says what is wrong"
        )
        assert paths(client) == {"projects"}
        await term.fill(path="projects/boat/sails", desc="what [bold]drives[/] it")
        assert paths(client) == {"projects", "projects/boat", "projects/boat/sails"}
        await choose(term, "projects/boat/sails")
        await term.see("what [bold]drives[/] it")
        await term.undo()
        await term.until(lambda: paths(client) == {"projects"}, "it is gone, with its parents")
        await choose(term, "projects")
        await term.press("a")
        await term.see("Add a category")
        await term.pilot.press(*"boat", "ctrl+s")
        await term.until(lambda: "projects/boat" in paths(client), "it is made below the chosen")


async def test_a_category_is_described_and_renamed_with_its_memories_and_undone(daemon, client):
    key = client.store("sails", category="boat/gear").id
    client.tree_add("boat", "the ketch")
    async with opened(daemon, client) as term:
        await choose(term, "boat")
        await term.press("e")
        await term.fill(desc="the yawl")
        await term.see("the yawl")
        await term.undo()
        await term.see("the ketch")
        assert client.tree().tree["boat"]["desc"] == "the ketch"
        await term.press("r")
        await term.see("1 memory goes along")
        await term.fill(to="fleet/ketch")
        await term.see("ketch")
        assert client.get(key).category == "fleet/ketch/gear"
        await term.undo()
        await term.until(lambda: paths(client) == {"boat", "boat/gear"}, "it is called as before")
        assert client.get(key).category == "boat/gear"


async def test_what_is_empty_is_removed_or_pruned_and_undone(daemon, client):
    client.tree_add("boat/gear", "sails and ropes")
    client.store("a house", category="house")
    async with opened(daemon, client) as term:
        await choose(term, "house")
        await term.press("d")
        await term.see("1 memory is filed there")
        for key, word in (("d", "remove"), ("x", "prune")):
            await choose(term, "boat")
            await term.press(key)
            await term.confirm(word)
            await term.until(lambda: paths(client) == {"house"}, "it is removed")
            if key == "x":
                await term.see("pruned 2 categories")
            await term.undo()
            await term.until(lambda: "boat/gear" in paths(client), "it is there again")
            assert client.tree().tree["boat/gear"]["desc"] == "sails and ropes"
