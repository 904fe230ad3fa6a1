"""The view of the watched files: each of its actions, against a real daemon."""

from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_process import Daemon, wait_until

pytest.importorskip("textual")

from terminal import terminal


@pytest.fixture
def docs(daemon: Daemon, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Path]:
    """`docs(agent, **texts)` writes files, and has them watched and indexed for the agent."""
    del request

    def write(agent: str, **texts: str | bytes) -> Path:
        folder = tmp_path / "docs"
        folder.mkdir()
        for name, text in texts.items():
            data = text.encode() if isinstance(text, str) else text
            (folder / f"{name}.md").write_bytes(data)
        with daemon.client(agent) as client:
            client.files_add(str(folder))

            def indexed() -> bool:
                known = {Path(one.path).stem for one in client.files_list().results}
                return {*texts} <= known

            wait_until(indexed, "all are indexed")
        return folder

    return write


BOATS = "# Boats\n\n" + "Some words about boats.\n" * 60 + "\n## Sails\n\nRed sails are seen.\n"


async def test_files_are_listed_looked_at_on_request_and_a_new_one_appears_by_itself(daemon, docs):
    folder = docs("list", boats=BOATS, tides="# Tides\n\nHigh at noon.\n")
    async with terminal(daemon, "files", "list") as term:
        await term.see("docs/boats.md", "docs/tides.md", "✓ up to date")
        assert term.view.copied().endswith("boats.md")
        await term.press("r")
        await term.hear("looked at")
        (folder / "moon.md").write_text("# Moon\n\nIt is full.\n")
        await term.see("docs/moon.md")


async def test_what_is_not_indexed_is_listed_with_the_reason(daemon, docs):
    docs("problems", good="# Good\n", bad=b"\x00\x01\x02" * 100)
    async with terminal(daemon, "files", "problems") as term:
        await term.see("! 1 not indexed")
        term.view.show_part("problems")
        await term.see("Not indexed because", "it is not a text")


async def test_a_search_shows_the_text_of_the_chunk(daemon, docs):
    docs("search", boats=BOATS, tides="# Tides\n\nHigh at noon.\n")
    async with terminal(daemon, "files", "search") as term:
        await term.press("slash")
        term.app.focused.value = "red sails"
        await term.see("docs/boats.md:", "Red sails are seen.")
        await term.press("enter")
        with daemon.client("search") as client:
            hit = client.files_search("red sails").chunks[0]
        place = f"{hit.path}:{hit.start_line}"
        await term.until(lambda: term.view.copied() == place, "the chunk is selected")
        await term.press("escape")
        await term.see("docs/tides.md")
        await term.press("slash")
        term.app.focused.value = "volcano"
        await term.see("no part of a file answers")


async def test_a_path_is_added_and_removed_and_both_are_undone(daemon, docs, tmp_path):
    docs("paths", tides="# Tides\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "stars.md").write_text("# Stars\n")

    def watched() -> set[str]:
        with daemon.client("paths") as client:
            found = client.files_stats().paths
        return {Path(one.path).name for one in found if one.origin == "added"}

    async with terminal(daemon, "files", "paths") as term:
        await term.press("a")
        await term.see("Watch a folder")
        await term.paste("/does/not/exist")
        await term.see("Watch a folder", "'/does/not/exist'")
        await term.press("escape", "a")
        await term.see("Watch a folder")
        await term.paste(str(tmp_path / "more"))
        await term.hear("u undoes it")
        await term.see("more/stars.md")
        await term.press("u")
        await term.until(lambda: watched() == {"docs"}, "it is undone")
        term.view.show_part("paths")
        await term.see("Watched path", "✓ there")
        term.view.table.select(str(tmp_path / "docs"))
        await term.press("x")
        await term.until(lambda: watched() == set(), "it is no longer watched")
        await term.hear("no longer watching")
        await term.press("u")
        await term.until(lambda: watched() == {"docs"}, "that is undone")
