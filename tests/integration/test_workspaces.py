"""The notes of a workspace travel with the memory, and nobody's words are lost on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from desks import Desk, meet
from devices import Device

from thermocline.daemon.errors import ThermoclineError
from thermocline.daemon.files import placing
from thermocline.daemon.memory.workspace import LARGEST
from thermocline.daemon.store import files, link
from thermocline.daemon.store.files import Content, Stand, Unplaced
from thermocline.sync import Row

MakeDesk: TypeAlias = Callable[[str], Desk]
NOTE = "2026-03-01.md"


@pytest.fixture
def make_desk(make_device: Callable[..., Device]) -> MakeDesk:
    """`make_desk(name)` is a device with notes; all share one remote."""
    return lambda name: Desk(make_device(name))


@pytest.fixture
def here(make_desk: MakeDesk) -> Desk:
    return make_desk("here")


@pytest.fixture
async def two(make_desk: MakeDesk) -> tuple[Desk, Desk]:
    """Two devices that have the same note."""
    one, other = make_desk("one"), make_desk("other")
    one.write(NOTE, "breakfast\nlunch\ndinner\n")
    await meet(one, other)
    return one, other


async def test_a_note_reaches_another_device_and_so_do_its_changes(make_desk: MakeDesk) -> None:
    one, other = make_desk("one"), make_desk("other")
    one.write(NOTE, "# März\n")
    one.write("skills/tea/SKILL.md", "boil\r\nwater")
    assert await meet(one, other) == {NOTE: "# März\n", "skills/tea/SKILL.md": "boil\r\nwater"}
    changed_at = (one.top / NOTE).stat().st_mtime
    assert (other.top / NOTE).stat().st_mtime == pytest.approx(changed_at, abs=1e-5)
    other.write(NOTE, "# March\n")
    assert (await meet(one, other))[NOTE] == "# March\n"
    (one.top / NOTE).unlink()
    assert await meet(one, other) == {"skills/tea/SKILL.md": "boil\r\nwater"}
    one.write(NOTE, "again\n")
    assert (await meet(one, other))[NOTE] == "again\n"


async def test_what_two_devices_have_added_is_in_both(two: tuple[Desk, Desk]) -> None:
    one, other = two
    one.write(NOTE, one.read(NOTE) + "tea\n")
    other.write(NOTE, other.read(NOTE) + "cake\n")
    assert await meet(one, other) == {NOTE: "breakfast\nlunch\ndinner\ncake\ntea\n"}


async def test_a_contradiction_is_kept_beside_the_note(two: tuple[Desk, Desk]) -> None:
    one, other = two
    one.write(NOTE, "breakfast\nsoup\ndinner\n")
    other.write(NOTE, "breakfast\nfish\ndinner\n")
    notes = await meet(one, other)
    assert len(notes) == 2
    assert notes.pop(NOTE) == "breakfast\nfish\ndinner\n"
    [(name, text)] = notes.items()
    assert name.startswith("2026-03-01.conflict-one-")
    assert text == "breakfast\nsoup\ndinner\n"


async def test_an_edit_whose_acknowledgement_was_lost_contradicts_nothing(
    two: tuple[Desk, Desk],
) -> None:
    one, other = two
    before = await one.device.read(link.load)
    one.write(NOTE, "breakfast\nsoup\ndinner\n")
    await one.keep()
    rows = await one.device.local.outgoing(None, 500)
    await one.device.replica.push([each.row for each in rows if each.row is not None])
    one.write(NOTE, "breakfast\nmuch soup\ndinner\n")
    assert await one.device.read(link.load) == before
    assert await meet(one, other) == {NOTE: "breakfast\nmuch soup\ndinner\n"}


async def test_a_deletion_wins_over_an_older_edit_and_loses_to_a_later_one(
    two: tuple[Desk, Desk],
) -> None:
    one, other = two
    one.write("kept.md", "kept\n")
    await meet(one, other)
    (one.top / NOTE).unlink()
    await one.sync()
    await other.device.sync()
    # It is still on the disk, and somebody goes on with it.
    other.write(NOTE, "breakfast and more\n")
    assert (await meet(one, other))[NOTE] == "breakfast and more\n"
    other.write(NOTE, "one more line\n")
    await other.keep()
    (one.top / NOTE).unlink()
    await one.sync()
    assert await meet(one, other) == {"kept.md": "kept\n"}


async def test_what_was_written_since_is_never_written_over(two: tuple[Desk, Desk]) -> None:
    one, other = two
    one.write(NOTE, "breakfast\nlunch\ndinner\ntea\n")
    await one.sync()
    await other.device.sync()
    other.write(NOTE, "late breakfast\nlunch\ndinner\n")
    assert await meet(one, other) == {NOTE: "late breakfast\nlunch\ndinner\ntea\n"}


async def test_a_folder_that_is_missing_or_was_emptied_deletes_nothing(
    two: tuple[Desk, Desk],
) -> None:
    one, other = two
    one.write("second.md", "second\n")
    await meet(one, other)
    one.top.rename(one.top.with_name("elsewhere"))
    await one.sync()
    one.top.mkdir()
    await one.sync()
    await other.sync()
    assert set(other.notes()) == {NOTE, "second.md"}
    one.write("third.md", "third\n")
    one.write("second.md", "second\n")
    assert set(await meet(one, other)) == {"second.md", "third.md"}


async def test_a_lost_device_gets_its_notes_back(
    two: tuple[Desk, Desk], make_desk: MakeDesk
) -> None:
    one, _ = two
    one.write("episodes.jsonl", '{"summary": "tea"}\n')
    await one.sync()
    again = make_desk("again")
    again.write("episodes.jsonl", '{"summary": "cake"}\n')
    again.write(NOTE, "breakfast\nlunch\ndinner\nand then\n")
    notes = await meet(one, again)
    assert notes[NOTE] == "breakfast\nlunch\ndinner\nand then\n"
    assert sorted(notes["episodes.jsonl"].splitlines()) == [
        '{"summary": "cake"}',
        '{"summary": "tea"}',
    ]
    assert len(notes) == 2


async def test_what_cannot_be_replicated_is_told_and_left_alone(two: tuple[Desk, Desk]) -> None:
    one, other = two
    one.write("large.md", "x" * (LARGEST + 1))
    (one.top / "latin.txt").write_bytes("Größe".encode("latin-1"))
    (one.top / "picture.png").write_bytes(b"\x89PNG")
    (one.top / "link.md").symlink_to("/etc/hostname")
    (one.top / "pipe.md").unlink(missing_ok=True)
    os.mkfifo(one.top / "pipe.md")
    for _ in range(2):
        await one.sync()
        [problem] = one.problems.standing()
        assert problem.code == "files_not_replicated"
        assert not problem.lasting
        assert "memory/large.md (it has 256 KB, and up to 256 KB are replicated)" in problem.message
        assert "memory/latin.txt (it is no UTF-8 text)" in problem.message
    (one.top / "pipe.md").unlink()
    await other.sync()
    assert set(other.notes()) == {NOTE}
    one.write("large.md", "small")
    (one.top / "latin.txt").unlink()
    await one.sync()
    assert one.problems.standing() == []


async def test_nothing_is_written_through_a_link(two: tuple[Desk, Desk], tmp_path: Path) -> None:
    one, other = two
    outside = tmp_path / "outside"
    outside.mkdir()
    (other.top / "skills").symlink_to(outside)
    (other.top / "file.md").symlink_to(outside / "file.md")
    one.write("skills/SKILL.md", "boil\n")
    one.write("file.md", "text\n")
    await one.sync()
    await other.sync()
    assert list(outside.iterdir()) == []
    [problem] = other.problems.standing()
    assert "memory/skills/SKILL.md (something else than a file or a folder is there)" in (
        problem.message
    )
    (other.top / "skills").unlink()
    (other.top / "file.md").unlink()
    assert set(await meet(one, other)) == {NOTE, "skills/SKILL.md", "file.md"}


@pytest.mark.parametrize("path", ["memory/../up.md", "elsewhere.md", "memory/x.sh", "memory/.x.md"])
async def test_a_row_that_leads_elsewhere_is_refused(here: Desk, path: str) -> None:
    row = Row(kind="file", id=path, data='{"text":"x","modified_at":1}', clock=5, device="evil")
    merged = await here.device.local.merge([row], await here.device.local.link())
    assert (merged.changed, merged.refused) == (0, 1)


async def test_a_kill_between_writing_and_noting_changes_nothing(two: tuple[Desk, Desk]) -> None:
    one, other = two
    one.write(NOTE, "breakfast\nlunch\ndinner\ntea\n")
    await one.sync()
    await other.device.sync()
    waiting = await other.device.read(lambda db: files.unplaced(db, "", 9))
    placing.place(other.top, waiting)
    (other.top / ".thermocline-unfinished").write_text("half a no")
    await other.device.stop()
    other.device.start()
    other.start()
    before = await other.device.read(lambda db: db.execute("SELECT clock FROM files").fetchall())
    await other.keep()
    assert await other.device.read(lambda db: files.unplaced(db, "", 9)) == []
    after = await other.device.read(lambda db: db.execute("SELECT clock FROM files").fetchall())
    assert after == before
    one.write(NOTE, "all new\n")
    await one.sync()
    await other.sync()
    assert other.read(NOTE) == "all new\n"
    assert not (other.top / ".thermocline-unfinished").exists()


async def test_switched_off_it_leaves_the_disk_alone(two: tuple[Desk, Desk]) -> None:
    one, other = two
    one.wanted = other.wanted = False
    one.write(NOTE, "mine alone\n")
    await meet(one)
    await other.sync()
    assert other.read(NOTE) == "breakfast\nlunch\ndinner\n"


async def test_a_disk_that_refuses_is_an_error_with_its_reason(here: Desk) -> None:
    here.write(NOTE, "x\n")
    here.top.chmod(0)
    try:
        if os.geteuid():
            with pytest.raises(ThermoclineError):
                await here.keep()
    finally:
        here.top.chmod(0o700)
    await here.keep()
    assert await here.device.read(link.queued) == {"file": 1}


def test_a_file_that_stands_otherwise_is_not_replaced_nor_removed(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("somebody's")
    wanted = Unplaced("memory/note.md", Content("ours", 1.0), Stand(3, 4))
    assert placing.place(tmp_path, [wanted]) == ([], [])
    assert placing.remove(tmp_path, {"memory/note.md": Stand(3, 4), "memory/no/x.md": Stand(1, 1)})
    assert note.read_text() == "somebody's"
    assert [path.name for path in tmp_path.iterdir()] == ["note.md"]


def test_a_restored_daemon_writes_the_notes_at_once(
    make_daemon: Callable[..., Any], eventually: Callable[..., None], tmp_path: Path
) -> None:
    replica = f"sync.url=file:{tmp_path / 'replica.db'}"
    first = make_daemon("--set", replica, name="first").start()
    notes = first.folder() / "memory"
    (notes / "skills").mkdir(parents=True)
    (notes / "skills" / "tea.md").write_text("boil")
    with first.client() as memory:
        memory.store("the kettle is blue")
    # What came in the first second of its life is sent all the same.
    assert first.stop() == 0
    second = make_daemon("--set", replica, name="second")
    command = [sys.executable, "-m", "thermocline.daemon.cli.main", "restore"]
    command += ["--url", f"file:{tmp_path / 'replica.db'}", "--to", str(second.state)]
    restored = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert restored.returncode == 0, restored.stderr
    second.start()
    note = second.folder() / "memory" / "skills" / "tea.md"
    eventually(lambda: note.exists() and note.read_text() == "boil", "the note is back")
    with second.client() as memory:
        assert memory.recall("kettle")["results"]
