"""An archive that has outgrown its device: what leaves it, what stays, and how it comes back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest
from devices import AGENT, Clock
from homes import Home

from thermocline.daemon.errors import NotFound
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.store import memories, merging, remote_rows, tree_rows
from thermocline.daemon.store.remote_rows import OnReplicaAlone
from thermocline.daemon.store.transaction import Transaction

MakeHome: TypeAlias = Callable[..., Home]
MakeMemory: TypeAlias = Callable[..., Memory]


async def test_the_lowest_scores_leave_an_archive_beyond_its_limit(make_home: MakeHome) -> None:
    home = make_home()
    gone = await home.leave_half()
    assert 9 <= gone <= 12
    assert await home.noted() == [f"m{n:05d}" for n in range(gone)]
    left = (await home.rows("SELECT local_bytes, remote_only FROM archive"))[0]
    assert left[0] <= home.most * 0.96
    assert left[1] == gone
    assert [n for (n,) in await home.rows("SELECT sum(size) FROM memories")] == [left[0]]
    assert await home.thinned() == gone


async def test_what_leaves_is_in_no_file_and_no_index_and_leaves_no_trace_of_a_deletion(
    make_home: MakeHome,
) -> None:
    home = make_home()
    await home.leave_half()
    found = await home.rows("SELECT rowid FROM memory_fts WHERE memory_fts MATCH 'word0 OR word19'")
    assert len(found) == 1
    async with home.device.agents.use(AGENT, create=True) as store:
        await store.flush_faces()
    files = "".join(p.read_text() for p in (home.device.folder / "agents/default/cold").iterdir())
    assert "number 19 " in files
    assert "number 0 " not in files
    assert await home.rows("SELECT * FROM tombstones") == []
    assert await home.rows("SELECT * FROM outbox") == []
    assert (await home.device.replica.counts())["memory"] == 20


async def test_their_categories_count_them_and_are_neither_removed_nor_pruned(
    make_home: MakeHome, wall: Clock
) -> None:
    home = make_home()
    await home.fill(category="work/x")
    await home.sync()
    home.most = 1.0
    assert await home.thinned() == 20
    tree = await home.device.read(tree_rows.load)
    assert tree["work/x"].cold_count == 20
    assert await home.device.read(tree_rows.totals) == (0, 20)
    wall.seconds += 1000 * DAY
    new = await home.device.write(
        lambda tx: tree_rows.save(tx, tree_rows.load(tx.db), tree_rows.load(tx.db))
    )
    assert new is None
    await home.device.write(lambda tx: tx.db.execute("DELETE FROM tree WHERE path = 'work/x'"))
    await home.device.write(lambda tx: tree_rows.ensure(tx, "work/x"))
    assert (await home.device.read(tree_rows.load))["work/x"].cold_count == 20


async def test_nothing_leaves_that_the_replica_has_not_heard_of(
    make_home: MakeHome, make_memory: MakeMemory
) -> None:
    home = make_home()
    await home.fill()
    await home.sync()
    home.most = 1.0
    changed, used = "m00003", "m00005"

    def change(tx: Transaction) -> None:
        old = memories.find(tx.db, changed)
        memories.replace(tx, old, msgspec.structs.replace(old, text="another text"))
        memories.reinforce(tx, [used])

    await home.device.write(change)
    new = make_memory(99, created_at=home.device.now() - DAY, importance=0.1)
    await home.device.write(lambda tx: memories.insert(tx, new))
    assert await home.thinned() == 18
    assert [key for (key,) in await home.rows("SELECT id FROM memories ORDER BY id")] == [
        *(changed, used, "m00099")
    ]


async def test_nothing_leaves_while_the_replica_is_away_or_is_another(
    make_home: MakeHome, tmp_path: Path
) -> None:
    home = make_home()
    await home.fill()
    home.most = 1.0
    assert await home.thinned() == 0, "it was not sent yet"
    await home.sync()
    home.network.online = False
    assert await home.thinned() == 0
    home.network.online = True
    db = sqlite3.connect(tmp_path / "replica.db")
    db.execute("UPDATE replica_clock SET epoch = 'begun anew'")
    db.commit()
    db.close()
    assert await home.thinned() == 0
    home.url = f"file:{tmp_path / 'other.db'}"
    assert await home.thinned() == 0


async def test_nothing_leaves_to_a_replica_in_the_agents_own_folder(
    make_home: MakeHome, tmp_path: Path
) -> None:
    home = make_home(replica=tmp_path / "one" / "agents" / AGENT / "replica.db")
    await home.fill()
    await home.sync()
    home.most = 1.0
    assert await home.thinned() == 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE cold_memories SET record = replace(record, 'speaks', 'spooks')",
        "UPDATE cold_memories SET clock = clock - 1",
        "UPDATE cold_memories SET record = NULL, clock = NULL",
        "UPDATE cold_memories SET place_clock = place_clock + 1",
        "DELETE FROM cold_memories",
    ],
)
async def test_nothing_leaves_that_the_replica_does_not_show_whole_and_as_it_is(
    make_home: MakeHome,
    tmp_path: Path,
    damage: str,
) -> None:
    home = make_home()
    await home.fill(3)
    await home.sync()
    db = sqlite3.connect(tmp_path / "replica.db")
    db.execute(f"{damage} WHERE id = 'm00001'")
    db.commit()
    db.close()
    home.most = 1.0
    assert await home.thinned() == 2
    assert await home.noted() == ["m00000", "m00002"]


async def test_what_is_merged_or_superseded_stays_with_what_it_points_to(
    make_home: MakeHome,
) -> None:
    home = make_home()
    await home.fill()

    def join(tx: Transaction) -> None:
        merging.merge(tx, memories.find(tx.db, "m00000"), memories.find(tx.db, "m00001"))
        old = memories.find(tx.db, "m00002")
        memories.replace(tx, old, msgspec.structs.replace(old, superseded_by="m00003"))

    await home.device.write(join)
    await home.sync()
    home.most = 1.0
    assert await home.thinned() == 16
    stayed = [key for (key,) in await home.rows("SELECT id FROM memories ORDER BY id")]
    assert stayed == ["m00000", "m00001", "m00002", "m00003"]


async def test_a_newer_version_from_elsewhere_brings_a_memory_back(make_home: MakeHome) -> None:
    home, other = make_home("one"), make_home("two")
    await home.leave_half()
    await other.sync()

    def change(tx: Transaction) -> None:
        old = memories.find(tx.db, "m00000")
        memories.replace(tx, old, msgspec.structs.replace(old, text="an other text"))

    await other.device.write(change)
    await other.sync()
    await home.sync()
    assert "m00000" not in await home.noted()
    back = await home.device.read(lambda db: memories.find(db, "m00000"))
    assert back.text == "an other text"
    assert await home.rows("SELECT * FROM outbox") == []


async def test_what_was_left_to_the_replica_is_used_deleted_and_moved_like_the_rest(
    make_home: MakeHome,
) -> None:
    home, other = make_home("one"), make_home("two")
    await home.leave_half(category="a/b")
    await other.sync()

    def change(tx: Transaction) -> None:
        memories.reinforce(tx, ["m00000", "m00019"])
        note = remote_rows.find(tx.db, "m00001")
        assert note is not None
        memories.forget_note(tx, note)
        memories.relabel(tx, "a/b", "a")

    await home.device.write(change)
    for each in (home, other, home, other):
        await each.sync()
    there = await other.device.contents()
    assert there.counts["m00000"] == (1, home.device.now())
    assert ("memory", "m00001") in there.buried
    assert ("memory", "m00001") not in there.live
    places = {value for (kind, _), (_, value) in there.live.items() if kind == "place"}
    assert {place[0] for place in places} == {"a"}
    assert {place[1] for place in places} == {"a/b"}
    for each in (home, other):
        tally = await each.replicas.sync(AGENT)
        assert (tally.sent, tally.received) == (0, 0)


async def test_what_another_device_deletes_or_moves_is_noted_without_coming_back(
    make_home: MakeHome,
) -> None:
    home, other = make_home("one"), make_home("two")
    gone = await home.leave_half(category="a/b")
    await other.sync()

    def change(tx: Transaction) -> None:
        memories.delete(tx, memories.find(tx.db, "m00000"))
        memories.relabel(tx, "a/b", "a")

    await other.device.write(change)
    await other.sync()
    await home.sync()
    assert len(await home.noted()) == gone - 1
    assert await home.rows("SELECT DISTINCT category FROM remote_only") == [("a",)]
    assert (await home.device.read(tree_rows.load))["a"].cold_count == 19
    with pytest.raises(NotFound):
        await home.device.read(lambda db: memories.find(db, "m00000"))
    for each in (home, other):
        tally = await each.replicas.sync(AGENT)
        assert (tally.sent, tally.received) == (0, 0)


async def test_an_id_or_its_beginning_tells_that_the_memory_is_elsewhere(
    make_home: MakeHome,
) -> None:
    home = make_home()
    await home.fill(1)
    await home.sync()
    home.most = 1.0
    assert await home.thinned() == 1
    for key in ("m00000", "m0000"):
        with pytest.raises(OnReplicaAlone) as raised:
            await home.device.read(partial(memories.find, key=key))
        assert (raised.value.id, raised.value.status, raised.value.code) == (
            *("m00000", 503, "unavailable"),
        )


async def test_what_has_left_comes_back_as_it_was_once_there_is_room(make_home: MakeHome) -> None:
    home = make_home()
    await home.fill()
    await home.device.write(lambda tx: memories.reinforce(tx, ["m00000", "m00000", "m00001"]))
    await home.sync()
    before = await home.device.contents()
    size = (await home.rows("SELECT local_bytes FROM archive"))[0][0]
    home.most = size / 2
    assert await home.thinned()
    home.most = size * 10
    assert await home.thinned() == 0
    after = await home.device.contents()
    assert after == before
    assert await home.rows(
        "SELECT local_bytes - (SELECT sum(size) FROM memories) FROM archive"
    ) == [(0,)]
    tally = await home.replicas.sync(AGENT)
    assert (tally.sent, tally.received) == (0, 0)
    found = await home.rows("SELECT rowid FROM memory_fts WHERE memory_fts MATCH 'word0'")
    assert len(found) == 1


async def test_a_limit_that_was_raised_a_little_brings_back_the_best_of_what_has_left(
    make_home: MakeHome,
) -> None:
    home = make_home()
    gone = await home.leave_half()
    home.most *= 1.5
    left = await home.thinned()
    assert 0 < left < gone
    assert await home.noted() == [f"m{n:05d}" for n in range(left)]
    assert await home.thinned() == left


async def test_memories_on_a_former_replica_are_told_and_come_back_with_it(
    make_home: MakeHome, tmp_path: Path
) -> None:
    home = make_home()
    gone = await home.leave_half()
    first, home.url = home.url, f"file:{tmp_path / 'other.db'}"
    await home.sync()
    assert await home.thinned() == gone
    [problem] = home.problems.standing()
    assert problem.message.startswith(f"{gone} memories of 'default' are on a replica")
    assert (await home.ask(["m00000"])).rows == ()
    home.url, home.most = first, 0.0
    await home.sync()
    assert await home.thinned() == 0
    assert home.problems.standing() == []
    assert len(await home.rows("SELECT id FROM memories")) == 20


async def test_a_full_comparison_leaves_them_where_they_are(make_home: MakeHome) -> None:
    home = make_home()
    gone = await home.leave_half()
    await home.device.replica.sign("two", "two", 1000, home.device.now())
    await home.device.replica.retire(home.device.name, home.device.now())
    assert await home.device.replica.prune() == 1000
    await home.device.replica.retire(home.device.name, None)
    tally = await home.replicas.sync(AGENT)
    assert tally.received == 0
    assert len(await home.noted()) == gone


async def test_a_rebuilt_database_still_knows_what_is_elsewhere(make_home: MakeHome) -> None:
    home = make_home()
    await home.leave_half(category="work")
    noted = await home.noted()
    await home.replicas.close()
    await home.device.stop()
    path = home.device.folder / "agents" / AGENT / "memory.db"
    db = sqlite3.connect(path)
    root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'kv'").fetchone()[0]
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    home.device.start()
    home.begin()
    await home.device.read(remote_rows.count)
    async with home.device.agents.use(AGENT, create=True) as store:
        for _ in range(200):
            if list(store.place.folder.glob("*.corrupt-*")):
                break
            await asyncio.sleep(0.01)
        assert await home.noted() == noted
        assert (await home.device.read(tree_rows.load))["work"].cold_count == 20
    await home.sync()
    assert await home.noted() == noted


async def test_an_other_tools_row_over_what_this_device_has_not_is_the_last_that_is_known(
    make_home: MakeHome, tmp_path: Path
) -> None:
    home, other = make_home("one"), make_home("two")
    await home.leave_half()
    await other.sync()
    db = sqlite3.connect(tmp_path / "replica.db")
    db.execute(
        "INSERT OR REPLACE INTO cold_memories (id, agent_id, text, category, created_at)"
        " VALUES ('m00000', 'default', 'by another tool', 'general', 1600000000)"
    )
    db.commit()
    db.close()
    await home.sync()
    back = await home.device.read(lambda db: memories.find(db, "m00000"))
    assert back.text == "by another tool"
    # The other device still has all of it.
    for each in (other, home):
        await each.sync()
    healed = await home.device.read(lambda db: memories.find(db, "m00000"))
    assert healed.text == "memory number 0 speaks of word0"
