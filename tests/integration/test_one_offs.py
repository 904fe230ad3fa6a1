"""Calls of a database that is named for one call, in the test's own process and on real files."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.errors import NotFound, ReplicaAway, ReplicaRefused
from thermocline.daemon.memory import hot
from thermocline.daemon.problems import Problems
from thermocline.daemon.replication.account import Account, Secret
from thermocline.daemon.replication.once import OneOffs
from thermocline.daemon.store import hot_rows, link, memories, tree_rows
from thermocline.daemon.store.agents import Agents, Keeping
from thermocline.daemon.store.engine import Surroundings
from thermocline.daemon.store.transaction import Rules, Transaction
from thermocline.sync import FileRemote, Link, Refused, Replica, Result, Statement
from thermocline.sync.faulty import Fault, FaultyRemote

THERE = Account("https://example.org", Secret("t"), "the call")


class Host:
    """One device with the agent `nova`, whose one-off calls all go to one file."""

    def __init__(self, folder: Path, device: str, path: Path, threads: ThreadPoolExecutor) -> None:
        rules = Rules()
        around = Surroundings(
            threads=threads,
            problems=Problems(),
            now=lambda: 1_790_000_000.0,
            publish=lambda _agent, _event: None,
            outgoing=lambda _agent, _kinds: None,
            rules=lambda: rules,
            readers=1,
            face_delay_seconds=lambda: 60.0,
        )
        keeping = Keeping(idle_close_seconds=60.0, max_open_agents=8, look_seconds=60.0)
        self.agents = Agents(
            folder,
            workspaces={},
            device=device,
            cache_kb=512,
            around=around,
            keeping=lambda: keeping,
        )
        self.plan: list[Fault] = []
        self.open = self.most_open = self.opened = 0
        self.path = path
        self.calls = OneOffs(self.agents, self._connect, device, lambda: 1_790_000_000.0)

    async def _connect(self, account: Account) -> Counted:
        assert account == THERE
        self.opened += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        plan, self.plan = self.plan, []
        return Counted(FaultyRemote(FileRemote(self.path), asyncio.sleep, plan), self)

    async def write(self, operation: Callable[[Transaction], Any]) -> Any:
        async with self.agents.use("nova", create=True) as store:
            return await store.write(operation)

    async def read(self, read: Callable[[sqlite3.Connection], Any]) -> Any:
        async with self.agents.use("nova", create=True) as store:
            return await store.read(read)

    async def hot(self, key: str, value: Any) -> None:
        await self.write(
            lambda tx: hot_rows.save(tx, hot.update(hot_rows.load(tx.db), key, value, tx.now))
        )

    async def lessons(self) -> set[str]:
        state = await self.read(hot_rows.load)
        return {lesson["text"] for lesson in state.lessons}


class Counted:
    """A remote that counts itself as open until it is closed."""

    def __init__(self, inner: FaultyRemote, host: Host) -> None:
        self._inner = inner
        self._host = host

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        return await self._inner.batch(statements)

    async def close(self) -> None:
        self._host.open -= 1
        await self._inner.close()


@pytest.fixture
async def make_host(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> AsyncIterator[Callable[..., Host]]:
    """`make_host(device)` is a device; all of them share one database."""
    made: list[Host] = []

    def make(device: str = "one") -> Host:
        made.append(Host(tmp_path / device, device, tmp_path / "there.db", threads))
        return made[-1]

    yield make
    for host in made:
        await host.agents.close()
        assert host.open == 0


@pytest.fixture
def there(tmp_path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """`there(sql, ...)` runs SQL on the database, as another tool would."""

    def run(sql: str, *args: Any) -> list[tuple[Any, ...]]:
        db = sqlite3.connect(tmp_path / "there.db")
        with db:
            rows = db.execute(sql, args).fetchall()
        db.close()
        return rows

    return run


@pytest.fixture
def evoclaws(there: Callable[..., list[tuple[Any, ...]]]) -> Callable[[Any], None]:
    """`evoclaws(state)` makes the database one of EvoClaw's, with this critical state."""

    def make(state: Any) -> None:
        there(
            "CREATE TABLE cold_memories (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL,"
            " text TEXT NOT NULL, category TEXT NOT NULL, importance REAL DEFAULT 0.5,"
            " created_at INTEGER NOT NULL, access_count INTEGER DEFAULT 0)"
        )
        there(
            "CREATE TABLE critical_state (agent_id TEXT PRIMARY KEY, data TEXT NOT NULL,"
            " updated_at INTEGER NOT NULL)"
        )
        there("INSERT INTO critical_state VALUES ('nova', ?, 1700000000)", json.dumps(state))

    return make


def critical_of(there: Callable[..., list[tuple[Any, ...]]]) -> Any:
    [(data,)] = there("SELECT data FROM critical_state WHERE agent_id = 'nova'")
    return json.loads(data)


def lessons_in(document: Any) -> set[str]:
    return {lesson["text"] for lesson in document["hot_state"]["critical_lessons"]}


async def queued(host: Host) -> dict[str, int]:
    return dict(await host.read(link.queued))


async def test_a_memory_is_sent_and_the_agents_own_replica_has_still_to_hear_of_it(
    make_host, make_memory, there
):
    host = make_host()
    await host.write(lambda tx: [memories.insert(tx, make_memory(n)) for n in (1, 2)])
    waiting = await queued(host)
    tally = await host.calls.send("nova", THERE, ["m00001"])
    assert tally.sent == 1
    assert there("SELECT agent_id, id, text FROM cold_memories") == [
        ("nova", "m00001", "memory number 1 speaks of word1")
    ]
    assert await queued(host) == waiting
    assert await host.read(link.load) == Link()


async def test_sending_twice_and_what_is_unknown(make_host, make_memory, there):
    host = make_host()
    await host.write(lambda tx: memories.insert(tx, make_memory(1)))
    for _ in range(2):
        await host.calls.send("nova", THERE, ["m0000"])
    assert there("SELECT count(*) FROM cold_memories") == [(1,)]
    opened = host.opened
    with pytest.raises(NotFound, match="no memory has the id 'zzzzz'"):
        await host.calls.send("nova", THERE, ["zzzzz"])
    with pytest.raises(NotFound, match="no agent is called 'nobody'"):
        await host.calls.send("nobody", THERE, ["m00001"])
    assert host.opened == opened


async def test_the_critical_state_of_two_devices_is_joined_and_neither_is_lost(make_host, there):
    one, two = make_host("one"), make_host("two")
    await one.hot("lesson", {"text": "measure twice", "importance": 0.9})
    await two.hot("lesson", {"text": "cut once", "importance": 0.9})
    await two.write(lambda tx: tree_rows.ensure(tx, "wood/oak"))
    await one.calls.send_critical("nova", THERE)
    tally = await two.calls.send_critical("nova", THERE)
    assert tally.received == 1
    found = critical_of(there)
    assert lessons_in(found) == {"measure twice", "cut once"}
    assert "wood/oak" in found["tree_nodes"]
    assert await two.lessons() == {"measure twice", "cut once"}
    await one.calls.send_critical("nova", THERE)
    assert await one.lessons() == await two.lessons()
    assert critical_of(there)["hot_state"] == found["hot_state"]


async def test_what_came_from_elsewhere_has_to_reach_the_own_replica_as_well(make_host):
    one, two = make_host("one"), make_host("two")
    await one.hot("lesson", {"text": "measure twice", "importance": 0.9})
    await one.calls.send_critical("nova", THERE)
    await two.write(lambda tx: tree_rows.ensure(tx, "wood"))
    await two.write(lambda tx: tx.db.execute("DELETE FROM outbox"))
    await two.calls.send_critical("nova", THERE)
    assert await queued(two) == {"hot": 1}
    await two.write(lambda tx: tx.db.execute("DELETE FROM outbox"))
    await two.calls.send_critical("nova", THERE)
    assert await queued(two) == {}
    assert await two.read(link.load) == Link()


async def test_an_entry_that_was_removed_elsewhere_is_removed_here(make_host, there):
    one, two = make_host("one"), make_host("two")
    await one.hot("identity", {"agent_name": "Nova", "mood": "calm"})
    await one.calls.send_critical("nova", THERE)
    await two.write(lambda tx: tree_rows.ensure(tx, "wood"))
    await two.calls.send_critical("nova", THERE)
    await two.write(
        lambda tx: hot_rows.save(tx, hot.remove(hot_rows.load(tx.db), "identity", "mood"))
    )
    await two.calls.send_critical("nova", THERE)
    await one.calls.send_critical("nova", THERE)
    assert critical_of(there)["hot_state"]["identity"] == {"agent_name": "Nova"}
    assert (await one.read(hot_rows.load)).identity == {"agent_name": "Nova"}


async def test_a_change_that_waits_for_the_own_replica_goes_on_waiting(make_host):
    host = make_host()
    await host.hot("lesson", {"text": "measure twice", "importance": 0.9})
    waiting = await queued(host)
    assert waiting["hot"] == 1
    await host.calls.send_critical("nova", THERE)
    await host.calls.send_critical("nova", THERE)
    assert await queued(host) == waiting


async def test_evoclaws_critical_state_is_taken_over_before_it_is_replaced(
    make_host, there, evoclaws
):
    state = {
        "hot_state": {"critical_lessons": [{"text": "never force-push", "importance": 0.9}]},
        "tree_nodes": {"projects": {"desc": "what we build", "warm_count": 3, "cold_count": 1}},
        "timestamp": 1_700_000_000,
    }
    evoclaws(state)
    host = make_host()
    await host.hot("lesson", {"text": "measure twice", "importance": 0.9})
    await host.calls.send_critical("nova", THERE)
    found = critical_of(there)
    assert lessons_in(found) == {"never force-push", "measure twice"}
    assert found["tree_nodes"]["projects"]["desc"] == "what we build"
    assert await host.lessons() == {"never force-push", "measure twice"}


async def test_a_critical_state_that_makes_no_sense_is_counted_and_replaced(
    make_host, there, evoclaws
):
    evoclaws([])
    host = make_host()
    await host.hot("lesson", {"text": "measure twice", "importance": 0.9})
    tally = await host.calls.send_critical("nova", THERE)
    assert tally.refused == 1
    assert lessons_in(critical_of(there)) == {"measure twice"}


async def test_a_lost_answer_is_an_error_and_asking_again_is_safe(make_host, make_memory, there):
    host = make_host()
    await host.write(lambda tx: memories.insert(tx, make_memory(1)))
    await host.calls.ask("nova", THERE, lambda replica: replica.prepare(0.0))
    # The version is asked for first; then the row is pushed.
    host.plan = [Fault(), Fault("after")]
    with pytest.raises(ReplicaAway) as caught:
        await host.calls.send("nova", THERE, ["m00001"])
    assert caught.value.code == "replica_offline"
    assert caught.value.status == 503
    assert host.open == 0
    await host.calls.send("nova", THERE, ["m00001"])
    assert there("SELECT count(*) FROM cold_memories") == [(1,)]


async def test_what_a_person_has_to_mend_is_another_error(make_host):
    host = make_host()
    host.plan = [Fault("before", error=lambda: Refused("unauthorized"))]
    with pytest.raises(ReplicaRefused) as caught:
        await host.calls.ask("nova", THERE, lambda replica: replica.poll())
    assert (caught.value.code, caught.value.status) == ("replica_unauthorized", 502)
    assert caught.value.hint
    assert host.open == 0


async def test_few_databases_are_open_at_once_and_none_is_left_open(make_host):
    host = make_host()
    going, full, waiting = asyncio.Event(), asyncio.Event(), 0

    async def wait(_replica: Replica) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 4:
            full.set()
        await going.wait()

    async def let_go() -> None:
        await full.wait()
        # Whoever else may come in has come by then.
        for _ in range(50):
            await asyncio.sleep(0)
        going.set()

    calls = (host.calls.ask("nova", THERE, wait) for _ in range(12))
    await asyncio.gather(let_go(), *calls)
    assert host.opened == 12
    assert host.most_open == 4
    assert host.open == 0


async def test_missing_tables_are_made_on_the_way(make_host, there):
    host = make_host()
    assert await host.calls.ask("nova", THERE, lambda replica: replica.search(["x"], 5)) == []
    assert there("SELECT count(*) FROM cold_memories") == [(0,)]
