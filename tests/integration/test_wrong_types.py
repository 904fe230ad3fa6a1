"""Cells of the replica that are of another type than their column, which SQLite lets be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import changes
import msgspec
import pytest
from devices import AGENT, Device, meet
from restoring import measure, restore

from thermocline.daemon.errors import StoreDamaged
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import key_values, memories
from thermocline.daemon.store.transaction import Transaction
from thermocline.sync import FileRemote, Refused, Replica, Statement

MakeDevice = Callable[..., Device]
MakeMemory = Callable[..., Memory]

# As SQL: a text, a fraction, bytes, and numbers that are too high for an integer.
NO_INTEGERS: Final = ("'x'", "1.5", "x'c3'", "1e300", "-9e999")
# What is put into a column of texts becomes one, but for this.
NO_TEXT: Final = ("x'c3'",)
STATEMENT: Final = {
    **dict.fromkeys(
        ("id", "text", "category", "record", "device", "place", "place_device"), NO_TEXT
    ),
    **dict.fromkeys(("importance", "created_at", "access_count"), NO_INTEGERS),
    **dict.fromkeys(("clock", "place_clock", "seq"), NO_INTEGERS),
    "digest": NO_TEXT,
}
OBJECT: Final = {
    **dict.fromkeys(("kind", "id", "data", "device", "digest"), NO_TEXT),
    **dict.fromkeys(("clock", "seq"), NO_INTEGERS),
}
SAID: Final = [(column, value) for column in STATEMENT for value in STATEMENT[column]]
KEPT: Final = [(column, value) for column in OBJECT for value in OBJECT[column]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The replica's file."""
    return tmp_path / "remote.db"


def run(path: Path, *sql: str) -> list[Any]:
    """What statements find in the replica's file, written past all that knows its tables."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return [row for each in sql for row in db.execute(each)]


def poison(path: Path) -> None:
    """Put every wrong value into every column, each in a row of its own."""
    cold = "UPDATE cold_memories SET {} = {} WHERE id = 'm{:05d}'"
    rest = "UPDATE objects SET {} = {} WHERE kind = 'kv' AND id = 'k{}'"
    sql = [cold.format(*each, number) for number, each in enumerate(SAID)]
    run(path, *sql, *(rest.format(*each, number) for number, each in enumerate(KEPT)))


async def filled(device: Device, make_memory: MakeMemory) -> Device:
    """A device that has told the replica of a row for every cell, and of two that stay sound."""

    def fill(tx: Transaction) -> None:
        for number in (*range(len(SAID)), 99999):
            memories.insert(tx, make_memory(number))
        for number in range(len(KEPT)):
            key_values.put(tx, f"k{number}", "value")
        key_values.put(tx, "good", "value")

    await device.write(fill)
    await device.sync()
    return device


def change(tx: Transaction) -> None:
    """Make a later version of every row."""
    for number in range(len(SAID)):
        old = memories.find(tx.db, f"m{number:05d}")
        memories.replace(tx, old, msgspec.structs.replace(old, text="anew", category="anew"))
    for number in range(len(KEPT)):
        key_values.put(tx, f"k{number}", "anew")


async def test_every_device_goes_on_and_a_later_version_takes_the_place_of_what_is_wrong(
    make_device: MakeDevice, make_memory: MakeMemory, path: Path
) -> None:
    one = await filled(make_device("one"), make_memory)
    # So that every kind of wrong value ends a page.
    two = make_device("two", at_once=1)
    poison(path)
    assert (await two.sync(look=True)).refused > 0
    assert (await two.sync(look=True)).refused == 0
    found = await two.contents()
    assert {("kv", "good"), ("memory", "m99999")} <= found.live.keys()
    # A row whose place was a text got another; it was sound but for that.
    assert ("memory", f"m{SAID.index(('seq', NO_INTEGERS[0])):05d}") in found.live
    await one.sync(look=True)
    await one.write(change)
    await one.sync()
    await two.sync()
    here, there = await one.contents(), await two.contents()
    assert here.shared == there.shared
    assert here.queued == there.queued == []


async def test_what_is_asked_beside_the_rounds_is_answered(
    make_device: MakeDevice, make_memory: MakeMemory, path: Path
) -> None:
    one = await filled(make_device("one"), make_memory)
    poison(path)
    replica = Replica(one.remote, AGENT)
    ids = [f"m{number:05d}" for number in (*range(len(SAID)), 99999)]
    assert "m99999" in {row.id for row in await replica.fetch(ids)}
    assert "m99999" in {row.id for row in await replica.search(["speaks"], 999)}
    assert "m99999" in await replica.matching(["speaks"], 1 << 40, 999)
    assert {row.kind for row in await replica.of_kinds(frozenset({"kv"}))} == {"kv"}
    assert (await replica.counts())["memory"] == len(ids)
    assert len(await replica.displaced()) == 2 * len(NO_INTEGERS) + 3


async def test_a_restore_brings_all_that_can_be_read_and_names_the_rest(
    make_device: MakeDevice, make_memory: MakeMemory, path: Path, tmp_path: Path
) -> None:
    one = await filled(make_device("one"), make_memory)
    await one.changed(changes.drop("good"))
    poison(path)
    run(path, "UPDATE objects SET clock = 'x' WHERE id = 'good'")
    [measured] = await measure(one.remote, tmp_path / "to")
    assert measured.counts["memory"] == len(SAID) + 1
    refused = await restore(one.remote, tmp_path / "to", AGENT)
    assert not refused.restored
    assert isinstance(refused.failed[AGENT], StoreDamaged)
    assert "rows are damaged on the replica" in refused.failed[AGENT].message
    outcome = await restore(one.remote, tmp_path / "to", AGENT, keep_going=True)
    [restored] = outcome.restored
    assert not outcome.failed
    assert "rows are damaged on the replica" in restored.lost[0]
    # What is wrong in a column that only other tools read is no matter.
    numbers = [each for each in SAID if each[0] in ("clock", "place_clock", "seq")]
    texts = ("id", "record", "place", "digest")
    # What is infinite comes as nothing, which does in two of them.
    assert restored.memories == len(SAID) + 1 - (len(numbers) - 2) - len(texts)


EVERY: Final = ("'x'", "1.5", "x'c3'")


@pytest.mark.parametrize("value", EVERY)
async def test_an_order_that_is_none_goes_on_behind_all_rows(
    make_device: MakeDevice, make_memory: MakeMemory, path: Path, value: str
) -> None:
    one, two = make_device("one"), make_device("two")
    for number in range(3):
        await one.changed(changes.store(make_memory(number)))
    await meet(one, two)
    run(path, f"UPDATE replica_clock SET seq = {value}, pruned = {value}")
    await two.changed(changes.store(make_memory(4)))
    assert len((await meet(one, two)).counts) == 4
    await one.changed(changes.store(make_memory(5)))
    assert len((await meet(one, two)).counts) == 5


@pytest.mark.parametrize("value", EVERY)
async def test_a_note_of_a_device_that_is_none_loses_no_trace_of_a_deletion(
    make_device: MakeDevice, make_memory: MakeMemory, path: Path, value: str
) -> None:
    one, two = make_device("one"), make_device("two")
    await one.changed(changes.store(make_memory(1)))
    await meet(one, two)
    replica = Replica(one.remote, AGENT)
    seen = (await replica.poll()).seq
    for device in ("one", "two"):
        await replica.sign(device, device, seen, 1.0)
    await one.changed(changes.delete("m00001"))
    await replica.sign("one", "one", (await replica.poll()).seq, 2.0)
    columns = ("first_at", "last_at", "seen", "retired_at")
    sets = ", ".join(f"{column} = {value}" for column in columns)
    run(path, f"UPDATE replica_devices SET {sets} WHERE device_id = 'two'")
    run(path, f"UPDATE replica_clock SET pruned = {value}")
    assert await replica.prune() == 0
    assert (await replica.behind("one", 99))["two"] > 0
    [found] = [one for one in await replica.devices() if one.id == "two"]
    assert (found.seen, found.retired_at) == (0 if value != "1.5" else 1, None)
    assert (await replica.look("two")).retired is None
    assert not (await meet(one, two)).counts
    await replica.sign("two", "two", 99, 3.0)
    [found] = [one for one in await replica.devices() if one.id == "two"]
    assert (found.last_at, found.seen) == (3, 99)


@pytest.mark.parametrize("value", [*EVERY, "0", "NULL"])
async def test_a_critical_state_of_no_version_is_replaced(
    make_device: MakeDevice, path: Path, value: str
) -> None:
    one = make_device("one")
    await one.changed(changes.update_hot("lesson", {"text": "tie the boats"}))
    run(path, f"UPDATE critical_state SET version = {value}, data = x'c3'")
    await one.sync(look=True)
    await one.changed(changes.update_hot("lesson", {"text": "mend the nets"}))
    [(data, version)] = run(path, "SELECT data, version FROM critical_state")
    assert "mend the nets" in data
    assert isinstance(version, int)
    assert version > 0


async def test_tables_of_other_tools_with_ids_that_are_no_texts_come_to_an_end(
    make_device: MakeDevice, path: Path
) -> None:
    one = make_device("one")
    await FileRemote(path).batch(
        [
            Statement("CREATE TABLE warm_memory (id, agent_id, content, event_type, timestamp)"),
            Statement("INSERT INTO warm_memory VALUES (x'c3', ?1, 'lost', 'x', 'x')", (AGENT,)),
            Statement("INSERT INTO warm_memory VALUES ('w', ?1, 'found', 'x', 1e300)", (AGENT,)),
        ]
    )
    await one.sync()
    assert await one.ids() == {"w"}


async def test_a_table_of_another_tool_that_is_named_as_ours_is_an_error_of_the_remote(
    path: Path,
) -> None:
    run(
        path,
        "CREATE TABLE schema_version (version TEXT)",
        "INSERT INTO schema_version VALUES ('v1')",
    )
    remote = FileRemote(path)
    with pytest.raises(Refused) as refused:
        await Replica(remote, AGENT).prepare(1.0)
    assert refused.value.code == "sql"
    await remote.close()
