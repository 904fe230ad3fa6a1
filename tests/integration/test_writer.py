"""Group commit: what arrives together is written together, and each caller hears its own result."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from agent_files import set_aside

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.errors import Conflict, InvalidInput, ShuttingDown, ThermoclineError
from thermocline.daemon.store.agent_paths import FailedSyncs
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.memory_database import connect_writer, first_value, migrate
from thermocline.daemon.store.database.schema import MIGRATIONS
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.limits import enforce_limits
from thermocline.daemon.store.records import key_values, memories
from thermocline.daemon.store.records.similar import find_same
from thermocline.daemon.store.writer import Writer
from thermocline.sync import HybridClock


async def count(store: AgentStore) -> int:
    return await store.read(
        lambda db: int(db.execute("SELECT count(*) FROM memories").fetchone()[0])
    )


async def test_the_failure_of_one_operation_leaves_the_others_of_its_commit(
    open_store, make_memory
):
    store = await open_store()

    def fail_late(tx: Transaction) -> None:
        memories.insert(tx, make_memory(99))
        raise InvalidInput("no")

    def break_a_rule(tx: Transaction) -> None:
        tx.db.execute("INSERT INTO rows VALUES (NULL, NULL, NULL, NULL, NULL)")

    results = await asyncio.gather(
        *(store.write(lambda tx, n=n: memories.insert(tx, make_memory(n))) for n in range(20)),
        store.write(fail_late),
        store.write(break_a_rule),
        store.write(lambda tx: memories.insert(tx, make_memory(0))),
        store.write(lambda tx: tx.db.execute("SELECT ?", (2**70,))),
        *(store.write(lambda tx, n=n: memories.insert(tx, make_memory(n))) for n in range(20, 40)),
        return_exceptions=True,
    )
    failures = [result for result in results if isinstance(result, BaseException)]
    assert [type(failure) for failure in failures] == [
        InvalidInput, ThermoclineError, Conflict, OverflowError,
    ]  # fmt: skip
    assert await count(store) == 40


async def test_a_cancelled_caller_does_not_cancel_the_write(open_store):
    store = await open_store()
    task = asyncio.create_task(store.write(lambda tx: key_values.put(tx, "key", "kept")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.write(lambda _: None)
    assert await store.read(lambda db: key_values.PAIRS.get(db, "key").value) == "kept"


class Bench:
    """A writer by itself."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "memory.db"
        self.told: list[Transaction] = []
        self.settle: Callable[[Transaction], None] = enforce_limits
        self.clock = HybridClock(lambda: 1.0)
        self.failed_syncs = FailedSyncs()

    def told_of(self, committed: Transaction) -> None:
        self.told.append(committed)

    def _settle(self, tx: Transaction) -> None:
        self.settle(tx)

    def open(self) -> Writer:
        db = connect_writer(self.path)
        migrate(db, self.path, MIGRATIONS)
        return Writer(
            self.path,
            db,
            begin=lambda db, cache: Transaction(
                db, now=1.0, device="d", rules=Rules(), clock=self.clock, cache=cache
            ),
            enforce_limits=self._settle,
            committed=self.told_of,
            loop=asyncio.get_running_loop(),
            failed_syncs=self.failed_syncs,
        )


async def test_closing_commits_what_is_queued_and_refuses_the_rest(tmp_path):
    writer = Bench(tmp_path).open()
    queued = [
        asyncio.create_task(writer.submit(lambda tx, n=n: key_values.put(tx, f"k{n}", "v")))
        for n in range(500)
    ]
    await asyncio.sleep(0)
    await writer.close()
    assert len(await asyncio.gather(*queued)) == 500
    with pytest.raises(ShuttingDown):
        await writer.submit(lambda _: None)
    await writer.close()


async def test_a_failure_before_the_commit_reaches_everybody_and_the_writer_goes_on(tmp_path):
    bench = Bench(tmp_path)
    writer = bench.open()

    def refuse(_: Transaction) -> None:
        raise RuntimeError("cannot settle")

    bench.settle = refuse
    results = await asyncio.gather(
        *(writer.submit(lambda tx, n=n: key_values.put(tx, f"k{n}", "v")) for n in range(5)),
        return_exceptions=True,
    )
    assert {type(result) for result in results} == {RuntimeError}
    bench.settle = enforce_limits
    await writer.submit(lambda tx: key_values.put(tx, "after", "v"))
    pairs = await writer.submit(lambda tx: tx.db.execute("SELECT id FROM rows").fetchall())
    assert pairs == [("after",)]
    await writer.close()


async def test_a_listener_that_fails_does_not_keep_callers_waiting(tmp_path):
    bench = Bench(tmp_path)
    errors: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))

    def fail(_: Transaction) -> None:
        raise RuntimeError("listener")

    bench.told_of = fail  # type: ignore[method-assign]
    writer = bench.open()
    pair = await writer.submit(lambda tx: key_values.put(tx, "key", "v"))
    assert pair.value == "v"
    assert [str(error) for error in errors] == ["listener"]
    await writer.close()


async def test_a_commit_that_may_not_outlast_a_power_loss_is_an_error_and_listeners_hear_of_it(
    tmp_path,
):
    bench = Bench(tmp_path)
    writer = bench.open()
    log = tmp_path / "memory.db-wal"
    aside = tmp_path / "aside"

    def put(tx: Transaction) -> None:
        key_values.put(tx, "key", "v")
        # A sync of all files fails meanwhile, and the log cannot be written again.
        bench.failed_syncs.note()
        log.rename(aside)
        log.mkdir()

    with pytest.raises(ThermoclineError) as caught:
        await writer.submit(put)
    assert "the change stands" in str(caught.value.hint)
    assert [committed.outgoing for committed in bench.told] == [frozenset({"pair"})]
    log.rmdir()
    aside.rename(log)
    pairs = await writer.submit(lambda tx: tx.db.execute("SELECT id FROM rows").fetchall())
    assert pairs == [("key",)]
    await writer.close()


async def test_what_stands_before_a_failed_operation_in_its_commit_is_found_by_its_words(
    open_store, make_memory
):
    store = await open_store()
    old = await store.write(lambda tx: memories.insert(tx, make_memory(1)))

    def fail_late(tx: Transaction) -> None:
        # A text that goes has the texts before it indexed at once.
        memories.replace(tx, old, msgspec.structs.replace(old, text="about something else"))
        raise InvalidInput("no")

    new = [msgspec.structs.replace(make_memory(n), text=f"zebra number {n}") for n in (2, 3)]
    await asyncio.gather(
        store.write(lambda tx: memories.insert(tx, new[0])),
        store.write(fail_late),
        store.write(lambda tx: memories.insert(tx, new[1])),
        return_exceptions=True,
    )
    for memory in (old, *new):
        found = await store.read(lambda db, text=memory.text: find_same(db, text, store.now))
        assert found is not None
        assert found.id == memory.id
    assert await store.read(lambda db: find_same(db, "about something else", store.now)) is None


async def test_a_failed_rescue_of_a_removed_database_leaves_the_only_handle_open(
    open_store, make_memory
):
    store = await open_store()
    await store.write(lambda tx: memories.insert(tx, make_memory(1)))
    in_the_way = store.place.folder / "memory.db.building"
    in_the_way.mkdir()
    store.place.database.unlink()
    with pytest.raises(ThermoclineError):
        await store.check_files()
    await store.write(lambda tx: memories.insert(tx, make_memory(2)))
    in_the_way.rmdir()
    await store.check_files()
    assert store.place.database.exists()
    assert await count(store) == 2


async def test_an_index_of_another_release_is_built_anew_when_the_memory_is_opened(
    open_store, make_memory
):
    store = await open_store()
    await store.write(lambda tx: memories.insert(tx, make_memory(1, text="the heron nests")))
    await store.write(lambda tx: key_values.put(tx, "bird", "a bittern"))

    def as_another_release(tx: Transaction) -> None:
        tx.db.execute("INSERT INTO memory_fts(memory_fts) VALUES ('delete-all')")
        tx.db.execute("INSERT INTO memory_fts(rowid, text) VALUES (1, 'otherwise cut')")
        tx.db.execute("INSERT INTO pair_fts(pair_fts) VALUES ('delete-all')")
        tx.db.execute("DELETE FROM pairs")
        tx.db.execute("UPDATE meta SET value = '0' WHERE key = 'index_version'")

    await store.write(as_another_release)
    await store.close()
    again = await open_store(store.place)

    def forget(tx: Transaction) -> None:
        memories.forget(tx, "m00001")

    await again.write(forget)
    words = "SELECT count(*) FROM memory_fts WHERE memory_fts MATCH ?"
    for word in ("heron", "otherwise"):
        found = await again.read(lambda db, word=word: db.execute(words, (word,)).fetchone())
        assert found == (0,)
    pairs = "SELECT key FROM pairs WHERE row IN (SELECT rowid FROM pair_fts('bittern'))"
    assert await again.read(lambda db: db.execute(pairs).fetchall()) == [("bird",)]
    assert set_aside(store.place.folder) == [], "it was taken for damage"


async def test_a_look_at_a_closed_memory_leaves_no_log_beside_it(open_store):
    store = await open_store()
    await store.close()
    path = store.place.database
    assert first_value(path.parent, "SELECT count(*) FROM memories", -1) == 0
    assert {file.name for file in path.parent.glob("memory.db*")} == {"memory.db"}
