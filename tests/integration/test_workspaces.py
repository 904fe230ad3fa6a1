"""The notes of a workspace travel with the memory, and nobody's words are lost on the way."""

import fcntl
import itertools
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest
from device import Device, ending

from thermocline.daemon.memory.agent_files import LARGEST

Two: TypeAlias = tuple[Device, Device]
NOTE = "2026-03-01.md"
MEALS = "breakfast\nlunch\ndinner\n"
_agents = (f"agent-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("devices")
    url = f"file:{folder / 'replica.db'}"
    one, other = (Device(folder / name, f"sync.device_name={name}", url=url) for name in "ab")
    with ending(one, other):
        yield one.start(), other.start()


@pytest.fixture
def two(running: Two) -> Two:
    """Two devices of a fresh agent, with the same note."""
    one, other = running
    one.agent = other.agent = next(_agents)
    for device in running:
        device.put_pair("here", "now")
    one.write_note(NOTE, MEALS)
    meet(one, other)
    return one, other


def meet(*devices: Device) -> dict[str, str]:
    """Let each replicate until all know what all know; fail unless they then show the same."""
    for device in devices * 3:
        device.sync()
    found = [device.notes() for device in devices]
    assert all(notes == found[0] for notes in found)
    return found[0]


def left_out(device: Device) -> str:
    """What is reported of files that are not replicated; "" if nothing is."""
    problems = device.memory.status().problems
    found = [p.message for p in problems if p.code == "files_not_replicated"]
    return found[0] if found else ""


def test_a_note_reaches_another_device_and_so_do_its_changes(two):
    one, other = two
    one.write_note(NOTE, "# März\n")
    one.write_note("skills/tea/SKILL.md", "boil\r\nwater")
    assert meet(one, other) == {NOTE: "# März\n", "skills/tea/SKILL.md": "boil\r\nwater"}
    changed_at = (one.desk / NOTE).stat().st_mtime
    assert (other.desk / NOTE).stat().st_mtime == pytest.approx(changed_at, abs=1e-5)
    (one.desk / NOTE).unlink()
    assert meet(one, other) == {"skills/tea/SKILL.md": "boil\r\nwater"}
    one.write_note(NOTE, "again\n")
    assert meet(one, other)[NOTE] == "again\n"


def test_undoing_the_latest_edit_of_a_note_changes_its_file_at_once(two):
    one, _ = two
    one.write_note(NOTE, MEALS + "tea\n")
    one.memory.undo(id=f"memory/{NOTE}", kind="note")
    assert one.read_note(NOTE) == MEALS


def test_what_two_devices_added_is_in_both(two):
    one, other = two
    one.write_note(NOTE, MEALS + "tea\n")
    other.write_note(NOTE, "nap\n" + MEALS + "cake\n")
    found = meet(one, other)
    assert set(found) == {NOTE}
    assert sorted(found[NOTE].split()) == sorted(["nap", *MEALS.split(), "tea", "cake"])


def test_a_contradiction_is_kept_beside_the_note_and_counted(two):
    one, other = two
    one.write_note(NOTE, "breakfast\nsoup\ndinner\n")
    one.sync()
    other.write_note(NOTE, "breakfast\nfish\ndinner\n")
    assert other.sync()["conflicts"] == 1
    found = meet(one, other)
    assert found.pop(NOTE) == "breakfast\nfish\ndinner\n"
    [(name, text)] = found.items()
    assert name.startswith("2026-03-01.conflict-")
    assert text == "breakfast\nsoup\ndinner\n"
    assert other.memory.request("GET", "/api/sync")["lost_values"] == 1


def test_a_deletion_wins_over_an_older_edit_and_loses_to_a_later_one(two):
    one, other = two
    one.write_note("kept.md", "kept\n")
    meet(one, other)
    (one.desk / NOTE).unlink()
    one.sync()
    other.write_note(NOTE, "breakfast and more\n")
    assert meet(one, other)[NOTE] == "breakfast and more\n"
    other.write_note(NOTE, "one more line\n")
    other.command("sync", "--help")
    (one.desk / NOTE).unlink()
    one.sync()
    (other.desk / NOTE).unlink()
    assert meet(one, other) == {"kept.md": "kept\n"}


def test_a_folder_that_is_missing_or_was_emptied_deletes_nothing(two):
    one, other = two
    one.write_note("second.md", "second\n")
    meet(one, other)
    one.desk.rename(one.desk.with_name("elsewhere"))
    one.sync()
    one.desk.mkdir()
    one.sync()
    other.sync()
    assert set(other.notes()) == {NOTE, "second.md"}
    one.write_note("third.md", "third\n")
    one.write_note("second.md", "second\n")
    assert set(meet(one, other)) == {"second.md", "third.md"}


def test_what_cannot_be_replicated_is_reported_and_left_alone(two):
    one, other = two
    one.write_note("large.md", "x" * (LARGEST + 1))
    (one.desk / "latin.txt").write_bytes("Größe".encode("latin-1"))
    (one.desk / "picture.png").write_bytes(b"\x89PNG")
    (one.desk / "link.md").symlink_to("/etc/hostname")
    os.mkfifo(one.desk / "pipe.md")
    for _ in range(2):
        one.sync()
        assert "memory/large.md (it has 256 KB, the limit is 256 KB)" in left_out(one)
        assert "memory/latin.txt (it is not valid UTF-8)" in left_out(one)
    (one.desk / "pipe.md").unlink()
    other.sync()
    assert set(other.notes()) == {NOTE}
    one.write_note("large.md", "small")
    (one.desk / "latin.txt").unlink()
    one.sync()
    assert left_out(one) == ""
    unnamable = [one.desk / "two\nlines.md", one.desk / os.fsdecode(b"sch\xf6n.md")]
    for path in unnamable:
        path.write_text("text")
    one.sync()
    assert r"memory/two\nlines.md (its name has a control character)" in left_out(one)
    assert r"memory/sch\udcf6n.md (its name is too long or not valid UTF-8)" in left_out(one)
    for path in unnamable:
        path.unlink()
    one.desk.rename(one.desk.with_name("elsewhere"))
    one.desk.symlink_to(one.desk.with_name("elsewhere"))
    one.sync()
    assert "memory (a link)" in left_out(one)
    one.desk.unlink()
    one.desk.write_text("no folder")
    one.sync()


def test_without_a_replica_no_file_is_missed_there(daemon, calls_of):
    call = calls_of(daemon)
    call.store("the boat is red")
    notes = daemon.folder() / "memory"
    notes.mkdir()
    (notes / "latin.txt").write_bytes("Größe".encode("latin-1"))
    assert call("POST", "/api/undo", {"id": "memory/none.md", "kind": "note"}).status == 404
    problems = call.ok("GET", "/api/status")["problems"]
    assert [one["code"] for one in problems] == []


def test_many_files_that_are_not_utf_8_hold_up_no_note(two):
    one, other = two
    for number in range(20):
        (one.desk / f"{number}.txt").write_bytes(b"\xff" * 250_000)
    one.write_note("z.md", "last\n")
    one.sync()
    other.sync()
    assert other.notes() == {NOTE: MEALS, "z.md": "last\n"}


def test_nothing_is_written_through_a_link(two, tmp_path):
    one, other = two
    (other.desk / "skills").symlink_to(tmp_path)
    (other.desk / "file.md").symlink_to(tmp_path / "file.md")
    one.write_note("skills/SKILL.md", "boil\n")
    one.write_note("file.md", "text\n")
    one.sync()
    other.sync()
    assert list(tmp_path.iterdir()) == []
    what = "memory/skills/SKILL.md (something else than a file or a folder is there)"
    assert what in left_out(other)
    (other.desk / "skills").unlink()
    (other.desk / "file.md").unlink()
    assert set(meet(one, other)) == {NOTE, "skills/SKILL.md", "file.md"}


@pytest.mark.parametrize("kind", ["pipe", "hard link"])
def test_a_pipe_or_link_with_the_name_of_a_temporary_file_hangs_and_harms_nothing(
    two, tmp_path, kind
):
    one, other = two
    trap, outside = other.desk / ".thermocline-unfinished", tmp_path / "outside"
    outside.write_text("somebody's")
    if kind == "pipe":
        os.mkfifo(trap)
    else:
        trap.hardlink_to(outside)
    one.write_note(NOTE, MEALS + "tea\n")
    one.sync()
    other.sync()
    assert other.read_note(NOTE) == MEALS + "tea\n"
    assert outside.read_text() == "somebody's"
    trap.unlink()


def test_a_note_of_the_year_2300_stops_no_replication(two):
    one, other = two
    one.write_note("late.md", "late\n")
    os.utime(one.desk / "late.md", (10_413_792_000, 10_413_792_000))
    assert set(meet(one, other)) == {NOTE, "late.md"}
    assert (other.desk / "late.md").stat().st_mtime <= time.time()


def test_what_a_killed_process_left_is_removed(two):
    one, other = two
    left = other.desk / f".thermocline-{'0' * 16}"
    left.write_text("half a no")
    other.kill()
    one.write_note(NOTE, MEALS + "tea\n")
    one.sync()
    other.start()
    other.sync()
    assert other.read_note(NOTE) == MEALS + "tea\n"
    assert not left.exists()


def test_what_two_agents_learn_on_their_own_is_known_to_both(two):
    one, other = two
    for device in two:
        device.memory.context()  # Each makes the missing files.
    one.write_note("knowledge.md", "# Knowledge\n\n- pond-2 is production\n")
    for device, lesson in ((one, "migrate first"), (other, "ask Carla")):
        device.memory.reflect(type="insight", context="deploy", lesson=lesson)
        name = lesson.split()[0]
        device.memory.add_skill(id=name, description=f"how to {lesson}", text=f"{lesson}\n")
    notes = meet(one, other)
    assert notes["knowledge.md"] == "# Knowledge\n\n- pond-2 is production\n"
    assert not any(".conflict-" in name for name in notes)
    for device in two:
        learned = {entry.lesson for entry in device.memory.reflections().results}
        assert learned == {"migrate first", "ask Carla"}
        known = {skill.id: skill.description for skill in device.memory.skills().results}
        assert known == {"migrate": "how to migrate first", "ask": "how to ask Carla"}
        assert device.memory.skill("ask").text == "ask Carla\n"
        shown = device.memory.context("what about Carla?").text
        assert isinstance(shown, str)
        assert "pond-2 is production" in shown
        assert "ask Carla" in shown


def test_what_is_being_written_is_not_taken_for_what_a_killed_process_left(two):
    one, _ = two
    one.memory.context()
    name = f".thermocline-{'0' * 16}"
    with (one.desk / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (one.desk / name).write_text("half")
        with ThreadPoolExecutor(1) as threads:
            syncing = threads.submit(one.try_sync)
            (one.desk / name).rename(one.desk / "whole.md")
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert syncing.result()
    assert one.notes()["whole.md"] == "half"
