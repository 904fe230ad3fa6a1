"""What holds in every tab: keys and help, read-only, any size, hostile texts, hidden texts."""

import pytest
from daemon_process import Daemon, wait_until
from static_model import write

pytest.importorskip("textual")

from terminal import Terminal, terminal

from thermocline.daemon.client import ApiError
from thermocline.tui import feed
from thermocline.tui.dialogs import KeysScreen
from thermocline.tui.feed import ReadOnlyClient
from thermocline.tui.views import VIEWS
from thermocline.tui.views.memory_detail import MemoryDetail

SIZES = ((20, 5), (40, 12), (120, 40))
HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m bell\x07 back\x08\x08\x08 carriage\rreturn",
    "[bold red]markup[/] [/nothing] [@click=app.quit]press[/] [[ \\[ ]",
    "x" * 5000,
    "\u202eright to left\u202c \u200b\u200fשלום عليكم",
    "family 👩\u200d👩\u200d👧\u200d👦 flag 🇪🇸 wide 漢字かな" * 20,
    "e\u0301" * 200,
    "line\n\n\tafter line\n" * 300,
    "64 KiB " + "word " * 13_000,
)
tabs = pytest.mark.parametrize("tab", [tab.name for tab in VIEWS])


@pytest.fixture(scope="module")
def daemon(shared_daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Daemon:
    """A daemon that holds hostile texts wherever somebody can write one."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "[red]evil[.md").write_text(f"# Evil\n\n{HOSTILE[0]} sk-abcdefghijklmnop1234567890\n")
    with shared_daemon.client("hostile") as client:
        memories = [
            {"text": text[:65_000], "subject": text[:300], "tags": [text[:60]], "category": "a/b"}
            | {"actor": text[:100], "source": text[:100]}
            for text in HOSTILE
        ]
        client.batch(memories)
        for path in ("[red]x/[@click=app.quit]y", "\u202eturned", "漢字" * 20, "w" * 60):
            client.store("x", category=path)
            client.tree_add(path, f"about {path}")
        client.hot_update("task", {"text": "[red]x[/] [@click=app.quit]press[/]"})
        client.hot_update("event", {"text": "\u202eturned \x1b[31mred\x07 " + "w" * 400})
        client.hot_update("identity", {"\u202ekey": {"deep": ["[bold]", "\x1b[0m"]}})
        client.consolidate("quick")
        client.files_add(str(folder))
        wait_until(lambda: client.files_stats().chunks > 0, "the file is indexed")
    return shared_daemon


def harmless(term: Terminal) -> None:
    """Nothing on the screen acts on a terminal, and every line is as wide as the screen."""
    for strip in term.app.screen._compositor.render_strips():
        assert strip.cell_length == term.app.size.width
        for segment in strip:
            assert segment.text.isprintable(), ascii(segment.text)
            assert not {"\u202e", "\u200b", "\u200f"} & set(segment.text)
    assert term.app.is_running


async def test_a_digit_shows_a_tab_whose_every_key_is_in_its_help_and_in_the_palette(daemon):
    async with terminal(daemon, "overview", "hostile", (120, 60)) as term:
        for tab in VIEWS:
            await term.press(tab.key)
            assert term.app.tab.name == tab.name
            bound = {
                binding.description
                for node, binding, enabled, _ in term.app.screen.active_bindings.values()
                # The focused widget comes before its view, for instance with enter.
                if node is term.view and binding.description and enabled
            }
            assert bound >= {
                action.label
                for action in term.view.ACTIONS
                if action.key and term.view.possible(action) and action.key != "enter"
            }
            assert bound <= {one.title for one in term.app.get_system_commands(term.app.screen)}
            await term.press("question_mark")
            assert isinstance(term.app.screen, KeysScreen)
            # Those of the tab first: a low screen shows no more.
            assert term.app.screen.groups[0][0] not in {"Here", "Everywhere"}
            assert bound <= {words for _, keys in term.app.screen.groups for _, words in keys}
            await term.press("escape")


async def test_with_read_only_no_key_changes_anything_and_the_client_sends_no_change(daemon):
    async with terminal(daemon, "overview", "hostile", read_only=True) as term:
        await term.see("READ-ONLY")
        for tab in VIEWS:
            await term.press(tab.key)
            assert term.app.tab.name == tab.name
            writes = {action.key: action.label for action in term.view.ACTIONS if action.writes}
            bound = {
                binding.description: node
                for node, binding, enabled, _ in term.app.screen.active_bindings.values()
                if enabled
            }
            assert not [label for label in writes.values() if bound.get(label) is term.view]
            await term.press(*writes)
            assert len(term.app.screen_stack) == 1
            assert not term.app.query_one("Flash").line  # type: ignore[attr-defined]
        await term.press("ctrl+a")
        await term.see("● hostile", "enter shows it")
        assert "x forgets" not in term.text
        await term.press("x")
        assert "Forget" not in term.text
    async with ReadOnlyClient(str(daemon.socket), "hostile") as client:
        assert (await client.recall("anything", reinforce=False)).took_ms >= 0
        with pytest.raises(ApiError, match="read-only"):
            await client.store("nothing")


@pytest.mark.usefixtures("drawn")
@tabs
async def test_at_every_size_each_part_is_shown_and_hostile_texts_are_harmless(daemon, tab):
    async with terminal(daemon, tab, "hostile") as term:
        parts = getattr(term.view, "_parts", {"": None})
        for size in SIZES:
            await term.pilot.resize_terminal(*size)
            for part in parts:
                if part and size[1] > 12:
                    await term.until(lambda: term.view.table.region.height > 0, f"{part} is shown")
                for key in ("home", "end"):
                    await term.press(key)
                    harmless(term)
                await term.press("right")
        if tab == "files":
            await term.press("slash")
            term.app.focused.value = "evil"
            await term.see("[red]evil[.md:1", "\\x1b[31mred\\x1b[0m", " ••••••••")


async def test_the_pages_of_hostile_memories_are_harmless(daemon):
    async with terminal(daemon, "memories", "hostile", (60, 20)) as term:
        for number in range(len(HOSTILE)):
            await term.pilot.press(*["down"] * bool(number), "enter")
            await term.until(lambda: isinstance(term.app.screen, MemoryDetail), "it is open")
            harmless(term)
            await term.pilot.press("end")
            harmless(term)
            await term.pilot.press("escape")
        await term.pilot.press("/")
        await term.pilot.press(*"red")
        await term.see(" in ", "best first")
        harmless(term)


async def test_texts_are_hidden_from_others_at_every_size(daemon):
    with daemon.client("private") as client:
        client.store(
            "a private matter", subject="private", category="private/matters", tags=["private"]
        )
    # The agent's name stays.
    async with terminal(daemon, "memories", "private") as term:
        await term.see("a private matter")
        await term.press("m")
        for size in SIZES[1:]:
            await term.pilot.resize_terminal(*size)
            await term.until(lambda: term.text.count("private") == 1, "the text is hidden")
            await term.press("enter")
            await term.see("Memory")
            await term.until(lambda: term.text.count("private") <= 1, "the text is hidden")
            await term.press("escape")


async def test_what_happens_elsewhere_appears(daemon, tmp_path):
    with daemon.client("elsewhere") as client:
        client.store("the first")
        client.files_add(str(tmp_path))
        async with terminal(daemon, "tree", "elsewhere") as term:
            client.store("a house", category="house")
            await term.see("└─ house")
            await term.press("5")
            (tmp_path / "moon.md").write_text("# Moon\n\nIt is full.\n")
            await term.see("moon.md")


async def test_the_overview_names_the_encoder_and_how_much_it_has_encoded(make_daemon, tmp_path):
    pytest.importorskip("tokenizers")
    folder = write(tmp_path / "model")
    daemon = make_daemon(f'--set=llm.models.embed=["static:{folder}"]').start()
    with daemon.client() as client:
        client.store("The dog sleeps in the kitchen")
    async with terminal(daemon, "overview", "default", (200, 40)) as term:
        await term.see("encoder  static:")
        await term.see("vectors  1, of all texts")


async def test_the_overview_shows_a_memory_that_was_closed_at_once(make_daemon, monkeypatch):
    monkeypatch.setattr(feed, "_IDLE_SECONDS", 600.0)
    daemon = make_daemon("--set=store.idle_close_seconds=1").start()
    with daemon.client() as client:
        client.store("The dog sleeps in the kitchen")
        wait_until(lambda: not client.status().agents, "the agent is closed")
    async with terminal(daemon, "overview", "default", (80, 24)) as term:
        await term.see("0, no cap; 1 are warm")


async def test_of_a_link_among_the_files_no_time_is_shown(daemon, tmp_path):
    (tmp_path / "a.md").write_text("words\n")
    (tmp_path / "link.md").symlink_to("a.md")
    with daemon.client() as client:
        client.files_add(str(tmp_path))
    async with terminal(daemon, "files", "default", (100, 30)) as term:
        await term.see("link.md", "a.md")
        [line] = [line for line in term.lines if "link.md" in line and "!" in line]
        assert " d " not in line
    # A watched folder that is gone is a problem of the daemon.
    with daemon.client() as client:
        client.files_remove(str(tmp_path))


@pytest.mark.parametrize("tab", ["overview", "sync"])
async def test_without_a_replica_nothing_is_to_be_sent(daemon, tab):
    with daemon.client("alone") as client:
        client.store("The dog sleeps in the kitchen")
        assert client.live().outbox[-1]
    async with terminal(daemon, tab, "alone", (100, 40)) as term:
        await term.see("to send", "nothing yet")
        await term.wait_until_drawn()
        [line] = [line for line in term.lines if "to send" in line]
        assert line.split() == ["to", "send", "nothing", "yet"]
