"""Two devices of one person, one thing at a time: what each has learnt, the other knows."""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import next_millisecond, wait_until
from device import Device
from world import World

numbers = iter(range(1000))


@pytest.fixture(scope="module")
def shared(sqld_binary: Path) -> Iterator[World]:
    """Two devices that serve all tests of this module."""
    with World(sqld_binary, 2) as world:
        yield world


@pytest.fixture
def world(shared: World) -> World:
    """The same with an agent that none has had."""
    shared.begin(f"agent{next(numbers)}")
    return shared


@pytest.fixture
def pair(world: World) -> tuple[Device, Device, str]:
    """Two devices, and a memory that both have."""
    here, there = world.devices
    key = here.store("the ferry leaves at nine", category="harbour")
    there.store("a memory of its own")
    world.heal()
    return here, there, key


@pytest.fixture
def alike(pair: tuple[Device, Device, str], world: World) -> tuple[Device, Device, str, str]:
    """The same with a second memory, which both have."""
    here, there, key = pair
    other = here.store("the ferry is blue")
    world.heal()
    return here, there, key, other


# With a daemon's start or a new device: first, while the world has few agents


def test_a_line_of_another_device_survives_one_that_was_set_back_and_writes_at_once(world):
    here, there = world.devices
    here.write_note("plans.md", "one\n")
    for device in world.devices:
        device.store("a memory of its own")
    world.heal()
    copy = world.copy_device(here)
    there.write_note("plans.md", "one\ntwo\n")
    world.heal()
    world.set_device_back(here, copy)
    here.write_note("plans.md", "one\nthree\n")
    lines = "".join(world.heal().notes.values()).splitlines()
    assert {"one", "two", "three"} <= {*lines}


def test_a_copied_device_and_its_original_keep_the_changes_of_both(pair, world):
    here, _, key = pair
    twin = world.add_copy(world.copy_device(here))
    try:
        here.edit(key, text="the original's")
        twin.edit(key, outcome="the copy's")
        world.heal()
        # From here on they count uses apart.
        here.reinforce(key)
        twin.reinforce(key)
        found = world.heal().memories[key]
        ids = {
            json.loads((one.state / "device.json").read_text())["device"] for one in (here, twin)
        }
    finally:
        twin.kill()
        world.devices.remove(twin)
    assert (found["text"], found["outcome"]) == ("the original's", "the copy's")
    assert found["access_count"] == 2
    assert len(ids) == 2


def test_an_export_that_another_device_imports_does_not_pass_for_a_copied_device(pair, world):
    here, there, key = pair
    here.put_pair("colour", "green")
    here.edit(key, outcome="on time")
    lines = "\n".join(json.dumps(row) for row in here.memory.export())
    exported, ids = here.list_all(), [(d.state / "device.json").read_text() for d in (here, there)]
    world.begin(f"{here.agent}-other")
    here.put_pair("size", "small")
    reports = [there.memory.request("POST", "/api/import", body={"text": lines}) for _ in range(2)]
    arrived = world.heal()
    assert reports[1]["stored"] == {}
    assert arrived.memories == exported.memories
    assert arrived.pairs == exported.pairs | {"size": "small"}
    assert [(d.state / "device.json").read_text() for d in (here, there)] == ids
    assert "device_copied" not in here.problems()


def test_an_archive_restored_as_another_agent_makes_no_device_a_copied_one(pair, world, tmp_path):
    here, _, key = pair
    file, before = here.backup(tmp_path / "a.tar.gz"), (here.state / "device.json").read_text()
    other = world.make()
    world.begin(f"{here.agent}-other")
    for device in world.devices:
        device.put_pair("size", "small")
        device.sync()
    other.agent = here.agent
    other.restore_file(file)
    other.start().sync()
    other.kill()
    assert world.heal().memories[key]["text"] == "the ferry leaves at nine"
    assert (here.state / "device.json").read_text() == before


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(None, id="gone"),
        pytest.param(b"no database" * 1000, id="overwritten", marks=pytest.mark.crash),
    ],
)
def test_a_database_that_is_lost_comes_back_from_the_replica_by_itself(pair, world, left):
    here, _, key = pair
    here.put_pair("colour", "green")
    here.reinforce(key)
    before = world.heal()
    assert here.stop() == 0
    for path in here.folder(here.agent).glob("*.*"):
        path.unlink()
    if left is not None:
        (here.folder(here.agent) / "memory.db").write_bytes(left)
    here.start()

    def is_back() -> bool:
        # Without a file of its own the agent is found on the replica first.
        return bool(here.memories()) and here.list_all().differences(before) == []

    wait_until(is_back, "all of it is back", 15)
    here.edit(key, text="the ferry leaves at ten")
    here.reinforce(key)
    found = world.heal().memories[key]
    assert (found["text"], found["access_count"]) == ("the ferry leaves at ten", 2)


def test_an_agent_appears_by_itself_on_every_device(world):
    here, _ = world.devices
    here.store("only here so far")
    here.sync()
    other = world.make("sync.poll_seconds=1").start()
    other.agent = "default"
    other.store("of another agent")
    other.agent = here.agent
    wait_until(lambda: other.texts() == {"only here so far"}, "the agent is there", 15)
    other.kill()


def test_a_backup_of_one_device_restores_another(pair, world, tmp_path):
    here, _, key = pair
    here.put_pair("colour", "green")
    here.write_note("plans.md", "one\n")
    here.sync()
    before = here.list_all()
    file = here.backup(tmp_path / "backup.tar.gz")
    new = world.make()
    new.restore_file(file)
    new.start()
    assert before.differences(new.list_all()) == []
    new.edit(key, outcome="edited on the new one")
    contents = world.heal([*world.devices, new])
    assert contents.memories[key]["outcome"] == "edited on the new one"
    new.kill()


# One change here, another there


def test_a_text_changed_here_and_something_else_there_are_both_kept(pair, world):
    here, there, key = pair
    change = {"category": "people", "importance": 0.9, "tags": ["new"], "data": {"n": 1}}
    here.edit(key, text="the ferry leaves at ten")
    for name, value in change.items():
        there.edit(key, **{name: value})
    found = world.heal().memories[key]
    assert found["text"] == "the ferry leaves at ten"
    assert {name: found[name] for name in change} == change


def test_what_is_undone_here_is_undone_there(pair, world):
    here, _, key = pair
    here.edit(key, text="the ferry does not leave")
    world.heal()
    here.undo(key)
    assert world.heal().memories[key]["text"] == "the ferry leaves at nine"


def test_a_merge_that_is_undone_brings_both_back_on_both(pair, world):
    here, there, key = pair
    other = here.store("the ferry is blue", tags=["colour"])
    world.heal()
    before = world.heal().memories
    there.merge(other, key)
    merged = world.heal().memories
    assert (merged[other]["merged_into"], merged[key]["tags"]) == (key, ["colour"])
    here.unmerge(other)
    after = world.heal().memories
    for memory_id in (key, other):
        for field in ("text", "tags", "importance", "merged_into"):
            assert after[memory_id][field] == before[memory_id][field]


def test_two_memories_that_were_merged_into_each_other_do_not_both_disappear(alike, world):
    here, there, key, other = alike
    here.merge(key, other)
    there.merge(other, key)
    found = world.heal().memories
    assert [found[one]["merged_into"] for one in (key, other)].count(None) == 1


def test_what_was_merged_into_a_memory_that_is_forgotten_elsewhere_comes_back(alike, world):
    here, there, key, other = alike
    here.merge(key, other)
    there.forget(other)
    found = world.heal().memories
    assert other not in found
    assert found[key]["merged_into"] is None


def test_a_merge_stays_when_what_another_device_had_merged_the_same_into_is_forgotten(pair, world):
    here, there, key = pair
    others = [here.store(f"ferry {n} is blue") for n in range(6)]
    into = here.store("the ferries are blue")
    world.heal()
    for other in others:
        here.merge(other, key)
        next_millisecond()
        there.merge(other, into)
    there.forget(key)
    found = world.heal().memories
    assert {found[other]["merged_into"] for other in others} == {into}


def test_uses_of_a_memory_that_was_merged_here_and_forgotten_there_count_for_nothing(pair, world):
    here, there, key = pair
    other = here.store("the ferry is blue")
    here.reinforce(other)
    world.heal()
    here.merge(other, key)
    there.forget(other)
    assert world.heal().memories[key]["access_count"] == 0


def test_a_category_that_went_elsewhere_is_there_for_what_is_filed_in_it(pair, world):
    here, there, _ = pair
    here.add_category("boats")
    world.heal()
    there.store("the ferry is blue", category="boats")
    here.memory.tree_remove("boats")
    assert "boats" in world.heal().categories


def test_two_devices_with_a_past_of_their_own_begin_on_one_replica_and_keep_both(world):
    here, there = world.devices
    for device, word in ((here, "harbour"), (there, "airport")):
        device.store(f"about the {word}", category=word)
        device.put_pair(word, "known")
        device.write_note("plans.md", f"to the {word}\n")
    contents = world.heal()
    assert {"harbour", "airport"} <= contents.pairs.keys() & contents.categories.keys()
    assert len(contents.memories) == 2
    lines = "".join(contents.notes.values()).splitlines()
    assert {"to the harbour", "to the airport"} <= {*lines}


def test_when_nothing_has_changed_only_the_device_notes_that_it_was_there(pair):
    here, _, _ = pair
    # What a wake-up of the loop still has to do is done with the first.
    here.sync()

    def written() -> int:
        # The server adds to its account only a moment after the answer.
        usage = here.memory.sync_status().usage
        assert usage is not None
        return usage.month.rows_written

    before = written()
    for _ in range(5):
        here.sync()
    assert written() <= before + 5


@pytest.mark.plain
def test_rows_and_fields_of_a_later_release_are_kept_and_passed_on(pair, world):
    here, _, key = pair
    later = [int(time.time() * 1000) << 16, "later"]
    put_row(world, here.agent, "dream", "d1", {"text": "of the sea"}, {"at": later})
    data, clocks = row(world, here.agent, "memory", key)
    clocks.setdefault("fields", {})["mood"] = later
    put_row(world, here.agent, "memory", key, data | {"mood": "calm"}, clocks)
    world.heal()
    world.wipe_server()
    here.edit(key, outcome="arrived")
    world.heal()
    assert row(world, here.agent, "dream", "d1")[0] == {"text": "of the sea"}
    found, _ = row(world, here.agent, "memory", key)
    assert (found["mood"], found["outcome"]) == ("calm", "arrived")


def row(world: World, agent: str, kind: str, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Data and clocks of a row on the server."""
    where = "agent_id = ? AND kind = ? AND id = ?"
    [[data, clocks]] = world.server.query(
        f"SELECT data, clocks FROM rows WHERE {where}", agent, kind, key
    )
    return json.loads(data), json.loads(clocks)


def put_row(
    world: World, agent: str, kind: str, key: str, data: dict[str, Any], clocks: dict[str, Any]
) -> None:
    """What a device of another release does."""
    texts = [json.dumps(one, sort_keys=True, separators=(",", ":")) for one in (data, clocks)]
    version = hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()
    world.server.query("UPDATE replica_clock SET seq = seq + 1 WHERE agent_id = ?", agent)
    world.server.query(
        "INSERT OR REPLACE INTO rows (agent_id, kind, id, seq, version, device, data, clocks)"
        " SELECT agent_id, ?, ?, seq, ?, 'later', ?, ? FROM replica_clock WHERE agent_id = ?",
        *(kind, key, version, *texts, agent),
    )
