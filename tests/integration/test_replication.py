"""Rows that travel from one device to another over a remote, and what becomes of them there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import changes
import pytest
from devices import AGENT, Clock, Device, meet

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.store import link, memories
from thermocline.daemon.store.transaction import Transaction
from thermocline.sync import Link, Row, TryLater
from thermocline.sync.faulty import Fault

HOUR = 3600.0


@pytest.fixture
def one(make_device: Callable[..., Device]) -> Device:
    return make_device("one")


@pytest.fixture
def two(make_device: Callable[..., Device]) -> Device:
    return make_device("two")


async def texts(device: Device) -> dict[str, str]:
    live = (await device.contents()).live
    return {key: fields["text"] for (kind, key), (_, fields) in live.items() if kind == "memory"}


async def accesses(device: Device, key: str) -> int:
    return (await device.contents()).counts[key][0]


async def test_everything_that_makes_up_an_agent_reaches_another_device(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    everything = [
        *(changes.store(make_memory(number, category=f"a/b{number}")) for number in range(5)),
        changes.merge("m00000", "m00001"),
        changes.merge("m00003", "m00004"),
        changes.unmerge("m00003"),
        changes.supersede("m00001", "m00002"),
        changes.reinforce("m00002", 3),
        changes.add_category("c/d", "what it is for"),
        changes.put("key", "value"),
        changes.update_hot("identity", {"name": "Ada"}),
        changes.update_hot("lesson", {"text": "look twice"}),
        lambda tx: memories.archive(tx, ["m00002"]),
    ]
    for change in everything:
        await one.write(change)
    found = await meet(one, two)
    kinds = {kind for kind, _ in found.live}
    assert kinds == {"memory", "place", "hot", "tree", "kv", "merge", "apart", "use", "metric"}
    assert found.counts["m00002"][0] == 3


async def test_a_store_waits_for_a_part_of_what_came_and_an_interruption_repeats_all_of_it(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    def fill(tx: Transaction) -> None:
        for number in range(200):
            memories.insert(tx, make_memory(number))

    await one.write(fill)
    rows = [outgoing.row for outgoing in await one.local.outgoing(None, 500) if outgoing.row]
    end = Link(epoch="there", seen=9)
    async with two.agents.use(AGENT, create=True) as store:
        merging = asyncio.create_task(two.local.merge(rows, end))
        await asyncio.sleep(0)

        def look(tx: Transaction) -> tuple[int, Link]:
            [number] = tx.db.execute("SELECT count(*) FROM memories").fetchone()
            return number, link.load(tx.db)

        number, begun = await store.write(look)
        assert number < 200
        assert begun == Link()
        assert (await merging).changed == len(rows)
        number, ended = await store.write(look)
    assert (number, ended) == (200, end)


async def test_an_idle_round_asks_the_remote_once_and_writes_nothing(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    await one.write(changes.store(make_memory(1)))
    await meet(one, two)
    for device in (one, two):
        before, commits = device.remote.batches, len(device.changes)  # type: ignore[attr-defined]
        tally = await device.sync()
        assert (tally.sent, tally.received) == (0, 0)
        assert device.remote.batches == before + 1  # type: ignore[attr-defined]
        assert len(device.changes) == commits


async def test_of_two_edits_the_later_stays_on_every_device_alike_though_their_clocks_differ(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory]
) -> None:
    early, late = Clock(1_700_000_000.0), Clock(1_700_000_000.0 + HOUR)
    one, two = make_device("one", now=early), make_device("two", now=late)
    await two.changed(changes.store(make_memory(1)))
    await one.sync()
    # Whoever has seen the other's version writes above it, whatever its own clock shows.
    await one.changed(changes.change("m00001", text="by the one that is behind"))
    await meet(two, one)
    assert await texts(two) == {"m00001": "by the one that is behind"}
    await one.write(changes.change("m00001", text="by one"))
    await two.write(changes.change("m00001", text="by two"))
    await meet(one, two)
    assert await texts(one) == {"m00001": "by two"}


async def test_what_it_says_and_where_it_is_filed_are_changed_apart(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    await one.write(changes.store(make_memory(1, category="a")))
    await meet(one, two)
    await one.write(changes.change("m00001", category="b"))
    await one.write(lambda tx: memories.archive(tx, ["m00001"]))
    await two.write(changes.change("m00001", text="changed"))
    found = await meet(one, two)
    assert found.live["memory", "m00001"][1]["text"] == "changed"
    category, _, archived_at = found.live["place", "m00001"][1]
    assert (category, archived_at) == ("b", one.now())


async def test_a_deletion_goes_before_older_edits_and_a_newer_edit_before_it(
    one: Device, two: Device, make_memory: Callable[..., Memory], wall: Clock
) -> None:
    for number in (1, 2):
        await one.write(changes.store(make_memory(number)))
    await meet(one, two)
    await two.write(changes.change("m00001", text="older"))
    await one.write(changes.delete("m00002"))
    wall.seconds += 1
    await one.write(changes.delete("m00001"))
    await two.write(changes.change("m00002", text="newer"))
    await meet(one, two)
    assert await texts(one) == {"m00002": "newer"}


async def test_the_remote_takes_no_edit_that_is_older_than_a_deletion(
    one: Device, two: Device, make_memory: Callable[..., Memory], wall: Clock
) -> None:
    await one.write(changes.store(make_memory(1)))
    await meet(one, two)
    await two.write(changes.change("m00001", text="older"))
    [late] = await two.local.outgoing(frozenset({"memory"}), 1)
    wall.seconds += 1
    await one.changed(changes.delete("m00001"))
    await two.replica.push([late.row])
    assert not (await two.replica.statements((0, ""), 500)).rows


async def test_what_is_changed_while_its_row_is_sent_is_sent_again(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    push = one.replica.push

    async def meanwhile(rows: Sequence[Row]) -> int:
        place = await push(rows)
        one.replica.push = push  # type: ignore[method-assign]
        await one.write(changes.put("key", "second"))
        await one.write(changes.change("m00001", text="second"))
        return place

    one.replica.push = meanwhile  # type: ignore[method-assign]
    await one.write(changes.put("key", "first"))
    await one.write(changes.store(make_memory(1)))
    found = await meet(one, two)
    assert found.live["kv", "key"][1][0] == "second"
    assert found.live["memory", "m00001"][1]["text"] == "second"


async def test_the_uses_of_all_devices_add_up_even_of_what_was_deleted_and_came_back(
    one: Device, two: Device, make_memory: Callable[..., Memory], wall: Clock
) -> None:
    await one.write(changes.store(make_memory(1, access_count=10)))
    await meet(one, two)
    for device, times in ((one, 2), (two, 3), (one, 1)):
        await device.write(changes.reinforce("m00001", times))
    await meet(one, two)
    assert await accesses(one, "m00001") == 16
    await one.write(changes.delete("m00001"))
    wall.seconds += 1
    await two.write(changes.reinforce("m00001", 1))
    await two.write(changes.change("m00001", text="still wanted"))
    await meet(one, two)
    assert await accesses(one, "m00001") == 17


async def test_a_memory_stored_again_under_its_id_goes_on_with_its_count(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    await one.write(changes.store(make_memory(1)))
    await one.write(changes.reinforce("m00001", 2))
    await meet(one, two)
    await one.write(changes.delete("m00001"))
    await one.write(changes.store(make_memory(1)))
    await one.write(changes.reinforce("m00001", 1))
    await meet(one, two)
    assert await accesses(two, "m00001") == 3


async def test_undoing_a_merge_takes_its_counts_off_on_every_device(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    await one.write(changes.store(make_memory(1, access_count=5)))
    await one.write(changes.store(make_memory(2)))
    await one.write(changes.merge("m00001", "m00002"))
    await meet(one, two)
    assert await accesses(two, "m00002") == 5
    await one.write(changes.reinforce("m00002", 1))
    await one.write(changes.unmerge("m00001"))
    await meet(one, two)
    assert await accesses(two, "m00002") == 1


async def test_the_last_use_stays_the_last_when_a_clock_is_set_back(
    one: Device, two: Device, make_memory: Callable[..., Memory], wall: Clock
) -> None:
    await one.write(changes.store(make_memory(1)))
    await one.write(changes.reinforce("m00001", 1))
    last = wall.seconds
    await meet(one, two)
    wall.seconds -= DAY
    await one.write(changes.reinforce("m00001", 1))
    found = await meet(one, two)
    assert found.counts["m00001"] == (2, last)


async def test_what_was_merged_into_a_memory_that_is_deleted_elsewhere_comes_back(
    one: Device, two: Device, make_memory: Callable[..., Memory], wall: Clock
) -> None:
    for number in (1, 2, 3):
        await one.write(changes.store(make_memory(number)))
    await meet(one, two)
    await one.write(changes.merge("m00001", "m00002"))
    await one.write(changes.supersede("m00003", "m00002"))
    wall.seconds += 1
    await two.write(changes.delete("m00002"))
    found = await meet(one, two)
    assert ("memory", "m00002") not in found.live
    assert found.live["memory", "m00001"][1]["merged_into"] is None
    assert found.live["memory", "m00003"][1]["superseded_by"] is None


async def test_two_memories_that_were_merged_into_each_other_do_not_both_disappear(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    for number in (1, 2):
        await one.write(changes.store(make_memory(number)))
    await meet(one, two)
    await one.write(changes.merge("m00001", "m00002"))
    await two.write(changes.merge("m00002", "m00001"))
    found = await meet(one, two)
    merged = [found.live["memory", f"m0000{n}"][1]["merged_into"] for n in (1, 2)]
    assert merged.count(None) == 1


async def test_a_category_that_went_elsewhere_is_made_anew_for_what_is_filed_in_it(
    one: Device, two: Device, make_memory: Callable[..., Memory], wall: Clock
) -> None:
    await one.write(changes.add_category("a", ""))
    await meet(one, two)
    await two.write(changes.store(make_memory(1, category="a")))
    wall.seconds += 1
    await one.changed(changes.remove_category("a"))
    await two.sync()
    assert ("tree", "a") in (await two.contents()).live
    assert ("tree", "a") in (await meet(one, two)).live


async def test_a_restart_knows_of_versions_that_came_with_deletions_of_what_was_never_here(
    make_device: Callable[..., Device],
) -> None:
    ahead, one = make_device("ahead", now=Clock(1_800_000_000.0)), make_device("one")
    await one.sync()
    await ahead.write(changes.put("key", "first"))
    await ahead.changed(changes.drop("key"))
    await one.sync()
    await one.stop()
    one.start()
    await one.write(changes.put("key", "second"))
    found = await meet(one, ahead)
    assert found.live["kv", "key"][1][0] == "second"


async def test_two_devices_with_a_past_of_their_own_begin_on_one_remote_and_keep_both(
    one: Device, two: Device, make_memory: Callable[..., Memory]
) -> None:
    await one.write(changes.store(make_memory(1, category="a")))
    await one.write(changes.put("key", "of one"))
    await one.write(changes.put("mine", "1"))
    await two.write(changes.store(make_memory(2, category="b")))
    await two.write(changes.put("key", "of two"))
    await two.write(changes.update_hot("identity", {"name": "Ada"}))
    found = await meet(one, two)
    assert await texts(one) == {n: make_memory(int(n[1:])).text for n in ("m00001", "m00002")}
    assert {key for key in found.live if key[0] in ("kv", "hot")} == {
        ("kv", "key"),
        ("kv", "mine"),
        ("hot", "identity/name"),
    }


async def test_what_an_answer_that_was_lost_has_stored_is_not_stored_twice(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory]
) -> None:
    two = make_device("two")
    for batch in range(12):
        one = make_device(f"one{batch}", plan=[*[Fault()] * batch, Fault("after")])
        number = 10 * batch
        await one.write(changes.store(make_memory(number)))
        await one.write(changes.reinforce(make_memory(number).id, 2))
        failed = False
        try:
            await one.sync()
        except TryLater:
            failed = True
        assert failed == (one.remote.batches == batch + 1), batch  # type: ignore[attr-defined]
        found = await meet(one, two)
        assert found.counts[make_memory(number).id][0] == 2
        await one.stop()


async def test_a_remote_that_was_set_back_is_given_what_it_lacks_by_all_though_it_grows_again(
    one: Device, two: Device, make_memory: Callable[..., Memory], tmp_path: Path
) -> None:
    await one.write(changes.store(make_memory(1)))
    await meet(one, two)
    with closing(sqlite3.connect(tmp_path / "remote.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    earlier = (tmp_path / "remote.db").read_bytes()
    await one.changed(changes.store(make_memory(2)))
    await two.changed(changes.store(make_memory(3)))
    seen = (await two.local.link()).seen
    replace(tmp_path, earlier)
    number = 10
    while (await one.local.link()).seen <= seen:
        await one.changed(changes.store(make_memory(number)))
        number += 1
    found = await meet(one, two)
    assert {"m00001", "m00002", "m00003", "m00010"} <= found.counts.keys()


async def test_another_remote_is_given_everything(
    one: Device, two: Device, make_memory: Callable[..., Memory], tmp_path: Path
) -> None:
    await one.write(changes.store(make_memory(1)))
    await one.write(changes.reinforce("m00001", 2))
    before = await meet(one, two)
    replace(tmp_path, None)
    assert (await meet(one, two)).shared == before.shared


def replace(folder: Path, content: bytes | None) -> None:
    """Put another file in the place of the remote, as no client does."""
    for name in ("remote.db-wal", "remote.db-shm", "remote.db"):
        (folder / name).unlink(missing_ok=True)
    if content is not None:
        (folder / "remote.db").write_bytes(content)
