"""A damaged or missing database is rebuilt from what is left of it and the state files."""

import asyncio
import contextlib
import random
import shutil
import sqlite3
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_files import PAGE, ruin, ruin_all_but_the_first, set_aside
from store_parts import settled

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.errors import ThermoclineError, Unavailable
from thermocline.daemon.importers.intake import Intake
from thermocline.daemon.importers.state_files import take
from thermocline.daemon.memory.scoring import WarmLimits
from thermocline.daemon.store.agent_paths import AgentPaths
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import hot_rows, key_values, memories, uses
from thermocline.daemon.store.records.memory_rows import SELECT, from_row

# Room for all memories of a test in the warm file.
ROOMY = Rules(warm=WarmLimits(max_kb=1000))
# So little that most of them are in the archive, which no state file shows.
CROWDED = Rules(warm=WarmLimits(max_kb=4))


async def filled(
    open_store,
    make_memory,
    place: AgentPaths,
    size: int,
    rules: Rules = ROOMY,
) -> None:
    """A memory with something of every kind in it, closed, and its state files written."""
    store = await open_store(place, rules=rules)

    def fill(tx: Transaction) -> None:
        for number in range(size):
            memories.insert(
                tx, make_memory(number, created_at=time.time(), category=f"area/part{number % 7}")
            )
            key_values.put(tx, f"key{number}", f"value {number}")
        state = hot_rows.load(tx.db)
        state.identity["agent_name"] = "Ada"
        hot_rows.save(tx, state)

    await store.write(fill)
    await store.close()


async def reopened(open_store, make_memory, place: AgentPaths) -> AgentStore:
    """The memory that `filled` leaves, of 60, open again and at rest."""
    await filled(open_store, make_memory, place, 60)
    store = await open_store(place, rules=ROOMY)
    await settled()
    return store


async def held(store: AgentStore) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """The texts, the pairs and the identity that the store knows."""

    def read(db: sqlite3.Connection) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
        found = {memory.id: memory.text for memory in map(from_row, db.execute(SELECT))}
        pairs = dict(
            db.execute(
                "SELECT id, data ->> 'value' FROM rows WHERE kind = 'pair' AND live"
            ).fetchall()
        )
        return found, pairs, hot_rows.load(db).identity

    return await store.read(read)


def expected(make_memory, size: int) -> tuple[Any, ...]:
    texts = {m.id: m.text for m in map(make_memory, range(size))}
    pairs = {f"key{number}": f"value {number}" for number in range(size)}
    return texts, pairs, {"agent_name": "Ada"}


def without_pairs(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the state files show: key-value pairs are in the database and the replica alone."""
    texts, _, identity = found
    return texts, identity


async def test_garbage_in_the_log_leaves_what_a_file_shows_to_be_imported(
    open_store, make_place, make_memory
):
    origin = make_place("origin")
    store = await open_store(origin)
    for number in range(20):
        await store.write(
            lambda tx, number=number: (
                memories.insert(tx, make_memory(number, created_at=time.time())),
                key_values.put(tx, f"key{number}", f"value {number}"),
            )
        )
    assert await store.flush_state_files()
    # As a power cut leaves it: the log holds nearly everything.
    killed = make_place("killed")
    shutil.copytree(origin.folder, killed.folder)
    log = killed.folder / "memory.db-wal"
    size = log.stat().st_size
    assert size > 20 * PAGE
    with log.open("r+b") as file:
        file.seek(size // 2)
        file.write(random.Random(3).randbytes(size // 2))
    # SQLite takes the part of the log that is whole for all of it.
    store = await open_store(killed)
    await store.flush_state_files()
    [aside] = killed.folder.glob("warm-memory.json.changed-*")
    content, at = aside.read_bytes(), aside.stat().st_mtime

    def take_in(tx: Transaction) -> None:
        take(content, aside.name, Intake(tx, edited_at=at), written_at=at)

    await store.write(take_in)
    texts, _, _ = await held(store)
    assert texts == {m.id: m.text for m in map(make_memory, range(20))}


async def test_damage_under_way_is_mended_and_the_calls_that_meet_it_are_answered(
    open_store, make_place, make_memory, problems
):
    place = make_place()
    store = await reopened(open_store, make_memory, place)
    await store.flush_state_files()
    with place.database.open("r+b") as file:
        size = place.database.stat().st_size
        file.seek(PAGE)
        file.write(random.Random(5).randbytes(size - PAGE))
    answers = await asyncio.gather(
        *(held(store) for _ in range(20)),
        *(store.write(lambda tx, n=n: key_values.put(tx, f"n{n}", "new")) for n in range(20)),
    )
    assert len(answers) == 40
    texts, pairs, identity = await held(store)
    before = expected(make_memory, 60)
    assert (texts, identity) == (before[0], before[2])
    assert pairs.items() <= (before[1] | {f"n{n}": "new" for n in range(20)}).items()
    assert "database_rebuilt" in {problem.code for problem in problems.current()}


async def test_a_fault_of_the_program_inside_a_call_repairs_nothing(
    open_store, make_place, make_memory, problems
):
    store = await reopened(open_store, make_memory, make_place())
    before = await held(store)
    marked = "UPDATE meta SET value = 'marked' WHERE key = 'index_version'"
    await store.write(lambda tx: tx.db.execute(marked).rowcount)
    for _ in range(3):
        with pytest.raises(TypeError):
            await store.read(lambda _db: None + 1)  # type: ignore[operator]
        with pytest.raises(KeyError):
            await store.write(lambda tx: tx.counted["nothing"])
    # A rebuilt index would have the version of this release.
    version = "SELECT value FROM meta WHERE key = 'index_version'"
    assert await store.read(lambda db: db.execute(version).fetchone()) == ("marked",)
    assert await held(store) == before
    assert problems.current() == []
    assert set_aside(store.place.folder) == []


async def test_damage_that_only_the_state_files_writer_meets_is_mended(
    open_store, make_place, make_memory, problems
):
    place = make_place()
    store = await reopened(open_store, make_memory, place)
    ruin_all_but_the_first(place.database)
    deadline = time.monotonic() + 60
    while "database_rebuilt" not in {problem.code for problem in problems.current()}:
        assert time.monotonic() < deadline
        # Pages that a connection has read before would be read no more.
        await store.read(lambda db: db.execute("PRAGMA shrink_memory").fetchall())
        store.request_state_files(["warm", "hot", "kv"])
        await asyncio.sleep(0.05)
    assert without_pairs(await held(store)) == without_pairs(expected(make_memory, 60))


async def test_what_was_deleted_does_not_come_back_by_a_rebuild(
    open_store, make_place, make_memory
):
    place = make_place()
    await filled(open_store, make_memory, place, 60)
    store = await open_store(place, rules=ROOMY, delay_seconds=600.0)

    def forget(tx: Transaction) -> None:
        memories.delete(tx, memories.find(tx.db, "m00007"))
        key_values.delete(tx, "key7")
        hot_rows.save(tx, msgspec.structs.replace(hot_rows.load(tx.db), identity={"n": 1}))

    await store.write(forget)
    killed = make_place("killed")
    # The state files still show what was deleted a moment ago.
    shutil.copytree(place.folder, killed.folder)
    await store.close()
    ruin(killed.database, "turns")
    store = await open_store(killed, rules=ROOMY)
    await settled()
    await store.write(lambda tx: tx.count("retrieval_count"))
    texts, pairs, identity = await held(store)
    assert len(texts) == 59
    assert len(pairs) == 59
    assert identity == {"n": 1}


async def test_the_archive_comes_back_from_a_damaged_database_but_for_the_rows_on_a_bad_page(
    open_store, make_place, make_memory
):
    place = make_place()
    await filled(open_store, make_memory, place, 600, CROWDED)
    db = sqlite3.connect(place.database)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    roots = {row[0] for row in db.execute("SELECT rootpage FROM sqlite_schema")}
    # A leaf of the table of memories and one of the rows, found by what they hold; a single row
    # may stand above the leaves.
    db.close()
    content = bytearray(place.database.read_bytes())
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    bad = [
        next(
            number
            for number, page in enumerate(pages)
            if number + 1 not in roots and page[0] == kind and mark in page
        )
        for kind, mark in ((13, b"memory number 300 "), (10, b"value 30"))
    ]
    for number in bad:
        content[number * PAGE : (number + 1) * PAGE] = bytes(PAGE)
    place.database.write_bytes(content)
    store = await open_store(place, rules=CROWDED)
    await settled()
    texts, pairs, identity = await held(store)
    expected_texts, expected_pairs, expected_identity = expected(make_memory, 600)
    assert texts.items() <= expected_texts.items()
    assert pairs.items() <= expected_pairs.items()
    assert 570 < len(texts) < 600
    assert 560 < len(pairs) < 600
    assert identity == expected_identity


async def test_uses_are_neither_lost_nor_counted_twice_by_a_rebuild(
    open_store, make_place, make_memory
):
    place = make_place()
    await filled(open_store, make_memory, place, 5)
    store = await open_store(place, rules=ROOMY)
    await store.write(lambda tx: uses.reinforce(tx, ["m00001", "m00002"]))
    await store.write(lambda tx: uses.reinforce(tx, ["m00001"]))
    await store.close()

    async def counts(place: AgentPaths) -> dict[str, int]:
        opened = await open_store(place, rules=ROOMY)
        async with asyncio.timeout(60):
            while not (place.folder / "takeover-report.json").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        await settled()
        found = await opened.read(
            lambda db: dict(db.execute("SELECT id, access_count FROM memories").fetchall())
        )
        await opened.close()
        return found

    whole = {f"m{number:05d}": {1: 2, 2: 1}.get(number, 0) for number in range(5)}
    for table in ("memories", "rows"):
        copy = make_place(f"without-{table}")
        shutil.copytree(place.folder, copy.folder)
        ruin(copy.database, table)
        assert await counts(copy) == whole
    for path in place.folder.glob("memory.db*"):
        path.unlink()
    assert await counts(place) == whole


@pytest.mark.parametrize("removed", ["memory.db*", "memory.db", "memory.db-wal"])
async def test_a_database_removed_under_way_is_written_anew_with_all_that_was_acknowledged(
    open_store, make_place, make_memory, problems, removed
):
    place = make_place()
    store = await open_store(place)
    await store.write(lambda tx: memories.insert(tx, make_memory(1)))
    for path in place.folder.glob(removed):
        path.unlink()
    writes = [
        asyncio.create_task(store.write(lambda tx, n=n: memories.insert(tx, make_memory(n))))
        for n in range(2, 40)
    ]
    await asyncio.gather(store.check_files(), *writes)
    await store.close()
    store = await open_store(place)
    assert len((await held(store))[0]) == 39
    assert "database_removed" in {problem.code for problem in problems.current()}
    assert {path.name for path in place.folder.glob("memory.db*")} <= {
        "memory.db",
        "memory.db-shm",
        "memory.db-wal",
    }


async def test_a_database_put_in_the_place_of_one_in_use_is_set_aside(
    open_store, make_place, make_memory, problems
):
    place, other = make_place(), make_place("other")
    store = await open_store(place)
    for agent, number in ((await open_store(other), 1), (store, 2)):
        await agent.write(lambda tx, n=number: memories.insert(tx, make_memory(n)))
    await store.check_files()
    assert problems.current() == []
    shutil.copy(other.database, other.folder / "copy").rename(place.database)
    await store.write(lambda tx: memories.insert(tx, make_memory(3)))
    # More readers than have been connected yet: none may connect to the other file.
    together = threading.Barrier(2)
    reads = [store.read(lambda _: together.wait(timeout=1)) for _ in range(2)]
    refused = await asyncio.gather(*reads, return_exceptions=True)
    assert {type(error) for error in refused} <= {Unavailable, threading.BrokenBarrierError}
    await store.check_files()
    await store.close()
    (problem,) = problems.current()
    (aside,) = place.folder.glob("memory.db.changed-*")
    assert aside.name in problem.message
    store = await open_store(place)
    assert set((await held(store))[0]) == {"m00002", "m00003"}


async def test_a_rebuild_that_the_disk_refuses_is_tried_again_by_the_next_call(
    open_store, make_place, make_memory, problems
):
    place = make_place()
    store = await reopened(open_store, make_memory, place)
    await store.flush_state_files()
    ruin_all_but_the_first(place.database)
    await store.read(lambda db: db.execute("PRAGMA shrink_memory").fetchall())
    obstacle = place.folder / "memory.db.building"
    obstacle.mkdir()
    with pytest.raises(ThermoclineError):
        await held(store)
    obstacle.rmdir()
    assert without_pairs(await held(store)) == without_pairs(expected(make_memory, 60))
    assert "rebuild_failed" not in {problem.code for problem in problems.current()}


def is_rebuilt(client: Any) -> bool:
    return "database_rebuilt" in {problem.code for problem in client.status().problems}


def test_rows_that_a_flipped_bit_hides_are_missed_when_the_daemon_starts(make_daemon, eventually):
    """The head of a page says how many entries it has: with a smaller number no read fails."""
    daemon = make_daemon().start()
    with daemon.client() as client:
        client.batch([{"text": f"heron {n}"} for n in range(20)])
        # The first time a database is opened it is read as a whole, too.
        eventually(lambda: client.status().agents["default"].memories == 20, "they are there")
    daemon.stop()
    daemon.start()
    database = daemon.folder() / "memory.db"
    with contextlib.closing(sqlite3.connect(database)) as db:
        checked = "SELECT 1 FROM meta WHERE key = 'checked_at'"
        # The daemon reads the whole database behind its other work.
        eventually(lambda: db.execute(checked).fetchone() is not None, "the database is checked")
    daemon.stop()
    with contextlib.closing(sqlite3.connect(database)) as db:
        root = "SELECT rootpage FROM sqlite_schema WHERE name = 'memories_by_time'"
        [[page]] = db.execute(root).fetchall()
    content = bytearray(database.read_bytes())
    content[(page - 1) * PAGE + 4] -= 4
    database.write_bytes(content)
    daemon.start()
    with daemon.client() as client:
        eventually(partial(is_rebuilt, client), "the database is rebuilt")
        assert client.list(limit=1).total == 20


@pytest.mark.parametrize(
    "damage",
    [
        # An index of no known format, and pages in whose place SQLite finds no fault in empty ones.
        "UPDATE memory_fts_config SET v = 0 WHERE k = 'version'",
        "DELETE FROM term_counts",
        "DELETE FROM memory_fts_terms",
    ],
)
def test_recall_answers_after_the_full_text_was_damaged(make_daemon, eventually, damage):
    daemon = make_daemon().start()
    with daemon.client() as client:
        client.store("the heron nests at pier 4")
    assert daemon.stop() == 0
    with contextlib.closing(sqlite3.connect(daemon.folder() / "memory.db")) as db:
        db.execute(damage)
        db.commit()
    with daemon.start().client() as client:
        eventually(lambda: client.recall("where does the heron nest?").results, "it is found")


def remove(folder: Path) -> None:
    """Remove a folder in which a daemon writes: what it made meanwhile goes with the next try."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def test_an_agent_whose_folder_is_removed_under_way_is_forgotten(make_daemon, eventually):
    daemon = make_daemon("--set", "store.state_file_check_seconds=0.1").start()
    with daemon.client("ada") as client:
        client.store("a secret of ada")
        remove(daemon.folder("ada"))

        def closed() -> bool:
            return "ada" not in {agent.id for agent in client.agents().results}

        eventually(closed, "the agent is closed")
        assert "ada" not in client.status().agents
        assert not daemon.folder("ada").exists()
        client.store("a new beginning")
        remove(daemon.folder("ada"))
        # Stored before the daemon looks at the folder again, and yet on the disk.
        client.store("another beginning")
        assert client.list().total == 1
        assert (daemon.folder("ada") / "memory.db").exists()


async def test_a_database_that_only_seems_malformed_is_opened_again_and_not_rebuilt(
    open_store, make_place
):
    place = make_place()
    store = await open_store(place)
    tries: list[int] = []

    def delete(tx: Transaction) -> None:
        tries.append(1)
        if len(tries) == 1:
            # An index has no text like it, which FTS5 takes for damage.
            wrong = (
                "INSERT INTO pair_fts(pair_fts, rowid, key, value) VALUES ('delete', 9, 'a', 'b')"
            )
            tx.db.execute(wrong)
        key_values.put(tx, "key", "value")

    await store.write(delete)
    assert len(tries) == 2
    assert not [*place.folder.glob("*.corrupt-*")]
    assert (await store.read(lambda db: key_values.PAIRS.get(db, "key"))).value == "value"


async def test_an_index_that_has_lost_its_totals_is_made_again_and_no_row_is(
    open_store, make_place, make_memory
):
    place = make_place()
    store = await reopened(open_store, make_memory, place)
    await store.write(
        lambda tx: tx.db.execute("UPDATE memory_fts_data SET block = x'0101' WHERE id = 1")
    )
    # The writer has its own copy of the totals until it commits to the index.
    await store.close()
    store = await open_store(place, rules=ROOMY)
    await store.write(lambda tx: [memories.forget(tx, f"m0000{number}") for number in range(3)])
    assert set_aside(place.folder) == [], "it was taken for damage"
    texts, pairs, _ = await held(store)
    assert len(texts) == 57
    assert len(pairs) == 60
    words = "SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'word41'"
    assert await store.read(lambda db: db.execute(words).fetchone()) == (1,)


async def test_a_database_that_is_being_checked_is_whole_when_it_is_closed(open_store, make_memory):
    """The connection of the check would move the log into the database after the closing."""
    store = await open_store()
    await store.write(lambda tx: [memories.insert(tx, make_memory(n)) for n in range(3000)])
    await store.close()
    for n in range(3000, 3005):
        with contextlib.closing(sqlite3.connect(store.place.database)) as db, db:
            db.execute("DELETE FROM meta WHERE key = 'checked_at'")
        store = await open_store(store.place)
        await store.write(lambda tx, n=n: memories.insert(tx, make_memory(n)))
        await store.close()
        assert not store.place.database.with_name("memory.db-wal").exists()
