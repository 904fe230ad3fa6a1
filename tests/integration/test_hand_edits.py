"""State files that others change: set aside and reported, and nothing in them is obeyed."""

import asyncio
import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.memory import hot
from thermocline.daemon.runtime import atomic
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import hot_rows, key_values, memories, memory_md
from thermocline.daemon.store.records.documents import FILES, HOT_FILE, MARKDOWN_FILE, WARM_FILE
from thermocline.daemon.store.records.memory_rows import SELECT, from_row

NAMES = tuple(FILES.values())


def name_agent(name: str) -> Callable[[Transaction], None]:
    """Set the name in the hot state, which MEMORY.md shows."""

    def write(tx: Transaction) -> None:
        hot_rows.save(tx, hot.update(hot_rows.load(tx.db), "identity", {"name": name}, tx.now))

    return write


@pytest.fixture
async def store(open_store, make_place, make_memory) -> AgentStore:
    """A memory with something of every kind, and the files that show it."""
    opened = await open_store(make_place())

    def write(tx: Transaction) -> None:
        for number in range(4):
            memories.insert(tx, make_memory(number, category="work/boat"))
        key_values.put(tx, "key", "value")

    await opened.write(write)
    await opened.write(name_agent("Ada"))
    assert await opened.flush_state_files()
    return opened


async def everything(store: AgentStore) -> Any:
    """All that the database says."""
    return await store.read(
        lambda db: (
            [from_row(row).text for row in db.execute(SELECT)],
            db.execute("SELECT path, desc FROM tree").fetchall(),
            hot_rows.load(db),
        )
    )


def asides(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.changed-*"))


def codes(problems: Problems) -> list[str]:
    return [problem.code for problem in problems.current()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
async def test_a_changed_file_is_set_aside_reported_and_written_again(
    store, open_store, problems, name, stopped
):
    before = await everything(store)
    path = store.place.folder / name
    shown = json.loads(path.read_text())
    edited = path.read_text().replace("memory", "MEMORY").replace("0", "7").encode() + b"\n\n"
    if stopped:
        await store.close()
    path.write_bytes(edited)
    if stopped:
        store = await open_store(store.place)
        assert await store.flush_state_files()
    else:
        await store.check_files()
    assert await everything(store) == before
    [aside] = asides(path)
    assert aside.read_bytes() == edited
    if name != WARM_FILE:  # Its scores fade.
        assert json.loads(path.read_text()) == shown
    [problem] = problems.current()
    assert (problem.code, problem.lasting) == ("state_file_set_aside", False)
    assert f"thermocline import {aside}" in problem.hint


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"\xff\xfe", b"[" * 100_000, b"null"],
    ids=["cut", "empty", "no text", "deep", "null"],
)
async def test_no_content_is_obeyed(store, name, content):
    before = await everything(store)
    path = store.place.folder / name
    path.write_bytes(content)
    await store.check_files()
    assert await everything(store) == before
    assert [aside.read_bytes() for aside in asides(path)] == [content]
    assert len(path.read_bytes()) > 10


@pytest.mark.parametrize("name", [*NAMES, MARKDOWN_FILE])
async def test_a_removed_file_comes_back(store, problems, name):
    (store.place.folder / name).unlink()
    await store.check_files()
    assert (store.place.folder / name).stat().st_size > 2
    assert problems.current() == []


async def test_a_file_that_is_still_being_written_keeps_all_its_writer_writes(store):
    path = store.place.folder / WARM_FILE
    with path.open("w") as file:
        file.write("the first ")
        file.flush()
        await store.write(name_agent("meanwhile"))
        await store.check_files()
        file.write("and the last")
    assert [aside.read_text() for aside in asides(path)] == ["the first and the last"]
    assert json.loads(path.read_text())


async def test_a_file_changed_while_the_others_are_written_is_not_replaced(store, monkeypatch):
    path, sync = store.place.folder / HOT_FILE, atomic.sync

    def write_meanwhile(replacements: Any) -> None:
        path.write_text("by hand, just now")
        monkeypatch.setattr(atomic, "sync", sync)
        sync(replacements)

    monkeypatch.setattr(atomic, "sync", write_meanwhile)
    await store.write(name_agent("Grace"))
    await store.flush_state_files()
    assert path.read_text() == "by hand, just now"
    await store.flush_state_files()
    assert [aside.read_text() for aside in asides(path)] == ["by hand, just now"]
    assert "Grace" in path.read_text()


# What is no plain file


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    """A file outside of the folder, which nobody changes."""
    path, content = tmp_path / "secret.json", '[{"id": "s", "text": "secret"}]'
    path.write_text(content)
    yield path
    assert path.read_text() == content


def put_link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def put_hard_link(path: Path, secret: Path) -> None:
    os.link(secret, path)


def put_pipe(path: Path, _secret: Path) -> None:
    os.mkfifo(path)


def put_folder(path: Path, _secret: Path) -> None:
    path.mkdir()


def put_huge_file(path: Path, _secret: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


@pytest.mark.parametrize("put", [put_link, put_hard_link, put_pipe, put_folder, put_huge_file])
@pytest.mark.parametrize("name", NAMES)
async def test_what_takes_a_files_place_is_set_aside_unread(store, secret, name, put):
    path = store.place.folder / name
    path.unlink()
    put(path, secret)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with asyncio.timeout(60):
        await store.check_files()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 100_000
    assert len(asides(path)) == 1
    assert json.loads(path.read_text())
    assert not path.is_symlink()
    assert "secret" not in path.read_text()


@pytest.mark.parametrize("put", [put_link, put_hard_link, put_pipe, put_folder, put_huge_file])
async def test_a_memory_md_that_is_no_plain_file_is_left_alone_and_reported(
    store, secret, problems, put
):
    path = store.place.folder / MARKDOWN_FILE
    path.unlink()
    put(path, secret)
    stood = path.lstat()
    await store.write(name_agent("Grace"))
    async with asyncio.timeout(60):
        await store.check_files()
        assert await store.flush_state_files()
    assert (path.lstat().st_ino, path.lstat().st_size) == (stood.st_ino, stood.st_size)
    assert codes(problems) == ["memory_md_left"]
    assert "Grace" in (store.place.folder / HOT_FILE).read_text()
    path.rmdir() if path.is_dir() else path.unlink()
    await store.check_files()
    assert "Grace" in path.read_text()
    assert problems.current() == []


# MEMORY.md belongs to its people


@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_a_hand_written_memory_md_keeps_every_byte_and_its_mode(
    open_store, make_place, tmp_path, problems, eol
):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    path = workspace / MARKDOWN_FILE
    mine = ("\ufeff# Ada's notes\n\n- buy paint  \n- caf\u00e9" + "\n").replace("\n", eol).encode()
    path.write_bytes(mine)
    path.chmod(0o664)
    store = await open_store(make_place(workspace=workspace))
    await store.write(name_agent("Grace"))
    assert await store.flush_state_files()
    written = path.read_bytes()
    assert written.startswith(mine)
    assert b"- **Name:** Grace" in written
    assert written.count(b"\n") == written.count(eol.encode())
    assert path.stat().st_mode & 0o777 == 0o664
    # It is edited before and behind the section, and the hot state changes.
    path.write_bytes(b"before" + eol.encode() + written + b"behind")
    await store.check_files()
    await store.write(name_agent("Edith"))
    assert await store.flush_state_files()
    text = path.read_bytes().decode()
    assert memory_md.outside_section(text).split() == ["before", *mine.decode().split(), "behind"]
    assert "- **Name:** Edith" in text
    assert "Grace" not in text
    assert asides(path) == []
    assert problems.current() == []


async def test_an_edit_inside_of_the_section_is_kept_as_a_copy(store, problems):
    path = store.place.folder / MARKDOWN_FILE
    path.write_text("mine\n" + path.read_text().replace("Ada", "Bo, by hand"))
    await store.check_files()
    [aside] = asides(path)
    assert "- **Name:** Bo, by hand" in aside.read_text()
    assert memory_md.BEGIN not in aside.read_text()
    assert path.read_text().startswith("mine\n")
    assert "- **Name:** Ada" in path.read_text()
    assert codes(problems) == ["state_file_set_aside"]
    await store.check_files()
    await store.close()
    assert asides(path) == [aside]
    aside.unlink()
    assert problems.current() == []


@pytest.mark.parametrize("marker", [memory_md.BEGIN, memory_md.END])
@pytest.mark.parametrize("damage", ["missing", "twice"])
async def test_damaged_markers_are_reported_and_the_file_left_alone(
    store, problems, marker, damage
):
    path = store.place.folder / MARKDOWN_FILE
    whole = path.read_text()
    damaged = whole.replace(marker, "" if damage == "missing" else f"{marker}\n{marker}")
    path.write_text(damaged)
    await store.check_files()
    await store.write(name_agent("Grace"))
    assert await store.flush_state_files()
    assert path.read_text() == damaged
    [problem] = problems.current()
    assert problem.code == "memory_md_left"
    assert memory_md.BEGIN in problem.hint
    path.write_text(whole)
    await store.check_files()
    assert "Grace" in path.read_text()
    assert problems.current() == []


async def test_a_workspace_that_cannot_be_written_keeps_no_other_file_from_it(
    open_store, make_place, make_memory, problems, tmp_path
):
    store = await open_store(make_place(workspace=tmp_path / "away"))
    await store.write(lambda tx: memories.insert(tx, make_memory(1)))
    await store.write(name_agent("Ada"))
    assert not await store.flush_state_files()
    assert "word1" in (store.place.folder / WARM_FILE).read_text()
    assert codes(problems) == ["state_files_behind"]
    (tmp_path / "away").mkdir()
    assert await store.flush_state_files()
    assert problems.current() == []


# Kills and power cuts


@pytest.mark.parametrize("lost", ["names", "nothing"])
async def test_after_a_power_cut_between_two_writes_no_file_counts_as_changed(
    store, open_store, problems, monkeypatch, lost
):
    """The digests were durable before the files took their names, or did not."""
    folder, finish = store.place.folder, atomic.Replacement.finish

    def cut(new: atomic.Replacement) -> os.stat_result:
        if lost == "nothing":
            finish(new)
        raise OSError(5, "the power is gone")

    for name in ("Grace", "Edith"):
        monkeypatch.setattr(atomic.Replacement, "finish", cut)
        await store.write(name_agent(name))
        assert not await store.flush_state_files()
        await store.close()
        monkeypatch.setattr(atomic.Replacement, "finish", finish)
        store = await open_store(store.place, delay_seconds=600.0)
        await store.check_files()
    problems.clear("state_files_behind", "default")
    assert await store.flush_state_files()
    assert "Edith" in (folder / HOT_FILE).read_text()
    assert [*folder.glob("*.changed-*"), *folder.glob(".*.tmp")] == []
    assert problems.current() == []
