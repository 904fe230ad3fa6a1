"""The view of the watched files: each of its actions, against a real daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon, wait_until

pytest.importorskip("textual")

from tui_pilot import seated

SIZES = [(40, 12), (40, 24), (80, 12), (80, 24), (120, 40)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for the tests of this file."""
    made = Daemon(tmp_path_factory.mktemp("daemon")).start()
    yield made
    made.stop()


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


async def test_files_are_listed_with_their_chunks_and_the_one_under_the_cursor_is_read(
    daemon: Daemon, docs: Callable[..., Path]
) -> None:
    docs("list", boats=BOATS, tides="# Tides\n\nHigh at noon.\n")
    async with seated(daemon, "files", "list") as seat:
        await seat.sees("docs/boats.md", "docs/tides.md", "✓ in step", "# Boats")
        with daemon.client("list") as client:
            chunks = client.files_chunks(seat.view.open.path).results
        assert f"chunk 1 of {len(chunks)}" in seat.screen
        await seat.press("n")
        second = chunks[1]
        await seat.sees(f"chunk 2 of {len(chunks)}, lines {second.start_line}-{second.end_line}")
        assert seat.view.copied().endswith(f"boats.md:{second.start_line}")
        await seat.press("N")
        await seat.sees("chunk 1 of")
        await seat.press("down")
        await seat.sees("High at noon.", "chunk 1 of 1, lines 1-3 of 3")


async def test_what_is_not_indexed_is_listed_with_the_reason(
    daemon: Daemon, docs: Callable[..., Path]
) -> None:
    docs("problems", good="# Good\n", bad=b"\x00\x01\x02" * 100)
    async with seated(daemon, "files", "problems") as seat:
        await seat.sees("! 1 not indexed")
        await seat.press("p")
        await seat.sees("Not indexed because", "it is not a text")
        assert "docs/good.md" not in seat.screen
        await seat.press("escape")
        await seat.sees("docs/good.md")


async def test_a_search_shows_the_chunk_in_its_file(
    daemon: Daemon, docs: Callable[..., Path]
) -> None:
    docs("search", boats=BOATS, tides="# Tides\n\nHigh at noon.\n")
    async with seated(daemon, "files", "search") as seat:
        await seat.press("slash")
        seat.app.focused.value = "red sails"
        await seat.sees("docs/boats.md:", "Red sails are seen.", "of 66")
        await seat.press("enter", "enter")
        await seat.until(lambda: seat.view.has_class("-open"), "the file is open")
        with daemon.client("search") as client:
            hit = client.files_search("red sails").chunks[0]
        assert seat.view.copied() == f"{hit.path}:{hit.start_line}"
        await seat.press("escape", "escape")
        await seat.sees("docs/tides.md")
        await seat.press("slash")
        seat.app.focused.value = "volcano"
        await seat.sees("no part of a file answers")


async def test_a_path_is_added_and_removed_and_both_are_undone(
    daemon: Daemon, docs: Callable[..., Path], tmp_path: Path
) -> None:
    docs("paths", tides="# Tides\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "stars.md").write_text("# Stars\n")

    def watched() -> set[str]:
        with daemon.client("paths") as client:
            found = client.files_stats().paths
        return {Path(one.path).name for one in found if one.origin == "added"}

    async with seated(daemon, "files", "paths") as seat:
        await seat.press("a")
        await seat.sees("Watch a folder")
        await seat.enter(str(tmp_path / "more"))
        await seat.hears("u undoes it")
        await seat.sees("more/stars.md")
        await seat.press("u")
        await seat.until(lambda: watched() == {"docs"}, "it is undone")
        await seat.press("w")
        await seat.sees("Watched path", "✓ there")
        seat.view.query_one("Rows").select(str(tmp_path / "docs"))
        await seat.press("x")
        await seat.until(lambda: watched() == set(), "it is no longer watched")
        await seat.hears("no longer watching")
        await seat.press("u")
        await seat.until(lambda: watched() == {"docs"}, "that is undone")


async def test_a_path_that_does_not_exist_is_refused_in_words(daemon: Daemon) -> None:
    with daemon.client("wrong") as client:
        client.store("something")
    async with seated(daemon, "files", "wrong") as seat:
        await seat.press("a")
        await seat.sees("Watch a folder")
        await seat.enter("/does/not/exist")
        await seat.sees("Watch a folder", "'/does/not/exist'")


async def test_every_file_is_looked_at_on_request(
    daemon: Daemon, docs: Callable[..., Path]
) -> None:
    docs("look", tides="# Tides\n", boats=BOATS)
    async with seated(daemon, "files", "look") as seat:
        await seat.press("r")
        await seat.hears("looked at")


async def test_a_new_file_appears_by_itself(daemon: Daemon, docs: Callable[..., Path]) -> None:
    folder = docs("live", tides="# Tides\n")
    async with seated(daemon, "files", "live") as seat:
        (folder / "moon.md").write_text("# Moon\n\nIt is full.\n")
        await seat.sees("docs/moon.md")


async def test_what_is_in_a_file_cannot_act_on_the_terminal_and_secrets_are_dots(
    daemon: Daemon, docs: Callable[..., Path]
) -> None:
    evil = "# Evil\n\n\x1b[31mred\x1b]0;title\x07 [bold]loud[/bold] sk-abcdefghijklmnop1234567890\n"
    docs("evil", **{"[red]evil[": evil})
    async with seated(daemon, "files", "evil") as seat:
        await seat.sees("\\x1b[31mred\\x1b]0;title\\x07 [bold]loud[/bold] ••••••••")
        await seat.sees("[red]evil[.md  chunk 1 of 1")
        assert "\x1b" not in seat.screen
        await seat.press("m")
        await seat.until(lambda: "Evil" not in seat.screen, "texts are hidden")


@pytest.mark.parametrize("size", SIZES)
async def test_each_size_has_a_list_and_a_file(
    daemon: Daemon, docs: Callable[..., Path], size: tuple[int, int]
) -> None:
    agent = f"size-{size[0]}-{size[1]}"
    docs(agent, boats=BOATS, tides="# Tides\n\nHigh at noon.\n")
    async with seated(daemon, "files", agent, size) as seat:
        await seat.sees("docs/boats.md", "docs/tides.md")
        await seat.press("enter")
        await seat.sees("# Boats", "Some words about boats.")
        await seat.press("escape")
        await seat.sees("docs/tides.md")


async def test_nothing_is_changed_where_it_is_read_only(
    daemon: Daemon, docs: Callable[..., Path]
) -> None:
    docs("reader", tides="# Tides\n")
    async with seated(daemon, "files", "reader", read_only=True) as seat:
        await seat.sees("docs/tides.md")
        for key in ("a", "r"):
            await seat.press(key)
        assert len(seat.app.screen_stack) == 1
        assert not seat.app.query_one("Flash").line
