"""Group commit: what arrives together is written together, and each caller hears its own result."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from thermocline.daemon.errors import Conflict, InvalidInput, ShuttingDown, ThermoclineError
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import key_values, memories
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database import connect_writer, migrate
from thermocline.daemon.store.schema import MIGRATIONS
from thermocline.daemon.store.settling import settle
from thermocline.daemon.store.transaction import Event, Rules, Transaction
from thermocline.daemon.store.writer import Committed, Writer

OpenStore: TypeAlias = Callable[..., Awaitable[AgentStore]]
MakeMemory: TypeAlias = Callable[..., Memory]


async def count(store: AgentStore) -> int:
    return await store.read(
        lambda db: int(db.execute("SELECT count(*) FROM memories").fetchone()[0])
    )


async def test_the_failure_of_one_operation_leaves_the_others_of_its_commit(
    open_store: OpenStore, make_memory: MakeMemory
) -> None:
    store = await open_store()

    def fail_late(tx: Transaction) -> None:
        memories.insert(tx, make_memory(99))
        raise InvalidInput("no")

    def break_a_rule(tx: Transaction) -> None:
        tx.db.execute("INSERT INTO kv VALUES (NULL, NULL, NULL, NULL, NULL, NULL)")

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
        InvalidInput,
        ThermoclineError,
        Conflict,
        OverflowError,
    ]
    assert await count(store) == 40


async def test_what_a_failed_operation_did_is_not_told(
    open_store: OpenStore, make_memory: MakeMemory, published: list[tuple[str, Event]]
) -> None:
    store = await open_store()

    def fail_late(tx: Transaction) -> None:
        memories.insert(tx, make_memory(99))
        raise InvalidInput("no")

    await asyncio.gather(
        store.write(lambda tx: memories.insert(tx, make_memory(1))),
        store.write(fail_late),
        store.write(lambda tx: memories.insert(tx, make_memory(2))),
        return_exceptions=True,
    )
    stored = [event.data["id"] for _, event in published if event.type == "memory.stored"]
    assert stored == ["m00001", "m00002"]


async def test_operations_run_in_the_order_in_which_they_came(open_store: OpenStore) -> None:
    store = await open_store()
    seen: list[int] = []
    await asyncio.gather(*(store.write(lambda _, n=n: seen.append(n)) for n in range(600)))
    assert seen == list(range(600))


async def test_a_result_is_given_only_once_another_connection_sees_it(
    open_store: OpenStore,
) -> None:
    store = await open_store()
    for number in range(20):
        await store.write(lambda tx, n=number: key_values.put(tx, "key", str(n)))
        other = sqlite3.connect(store.place.database)
        assert other.execute("SELECT value FROM kv").fetchone() == (str(number),)
        other.close()


async def test_versions_of_one_memory_strictly_increase(open_store: OpenStore) -> None:
    store = await open_store()
    versions: list[int] = []
    await asyncio.gather(
        *(store.write(lambda tx: versions.append(tx.version())) for _ in range(300))
    )
    assert versions == sorted(set(versions))


async def test_a_cancelled_caller_does_not_cancel_the_write(open_store: OpenStore) -> None:
    store = await open_store()
    task = asyncio.create_task(store.write(lambda tx: key_values.put(tx, "key", "kept")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.write(lambda _: None)
    assert await store.read(lambda db: key_values.get(db, "key").value) == "kept"


class Bench:
    """A writer by itself."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "memory.db"
        self.told: list[Committed] = []
        self.settle: Callable[[Transaction], None] = settle
        self.ticks = iter(range(1, 1_000_000))

    def told_of(self, committed: Committed) -> None:
        self.told.append(committed)

    def _settle(self, tx: Transaction) -> None:
        self.settle(tx)

    def open(self) -> Writer:
        db = connect_writer(self.path, 512)
        migrate(db, self.path, MIGRATIONS)
        return Writer(
            self.path,
            db,
            begin=lambda db: Transaction(
                db, now=1.0, device="d", rules=Rules(), tick=lambda: next(self.ticks)
            ),
            settle=self._settle,
            committed=self.told_of,
            loop=asyncio.get_running_loop(),
        )


async def test_closing_commits_what_is_queued_and_refuses_the_rest(tmp_path: Path) -> None:
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


async def test_a_failure_before_the_commit_reaches_everybody_and_the_writer_goes_on(
    tmp_path: Path,
) -> None:
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
    bench.settle = settle
    await writer.submit(lambda tx: key_values.put(tx, "after", "v"))
    pairs = await writer.submit(lambda tx: tx.db.execute("SELECT key FROM kv").fetchall())
    assert pairs == [("after",)]
    await writer.close()


async def test_a_listener_that_fails_does_not_keep_callers_waiting(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    errors: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))

    def fail(_: Committed) -> None:
        raise RuntimeError("listener")

    bench.told_of = fail  # type: ignore[method-assign]
    writer = bench.open()
    pair = await writer.submit(lambda tx: key_values.put(tx, "key", "v"))
    assert pair.value == "v"
    assert [str(error) for error in errors] == ["listener"]
    await writer.close()


async def test_a_group_of_nothing_but_failures_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    writer = bench.open()

    def fail(tx: Transaction) -> None:
        key_values.put(tx, "key", "v")
        raise InvalidInput("no")

    results = await asyncio.gather(*(writer.submit(fail) for _ in range(5)), return_exceptions=True)
    assert {type(result) for result in results} == {InvalidInput}
    assert await writer.submit(lambda tx: tx.db.execute("SELECT * FROM kv").fetchall()) == []
    # Only the last, which did no harm, was told of.
    assert [committed.events for committed in bench.told] == [()]
    await writer.close()
