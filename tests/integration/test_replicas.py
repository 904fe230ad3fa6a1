"""Agents of several devices with one database, replicated by the daemon's own parts."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from daemon_process import until
from faulty_remote import Fault, FaultyRemote
from msgspec.structs import replace
from store_parts import make_agents

from thermocline.daemon.cloud.account import Account
from thermocline.daemon.cloud.databases import connect
from thermocline.daemon.cloud.loop import AgentLocal
from thermocline.daemon.cloud.replicas import Replicas
from thermocline.daemon.cloud.sealing import Sealing
from thermocline.daemon.cloud.usage import UsageLog
from thermocline.daemon.config.settings import Settings, StoreSettings, Sync
from thermocline.daemon.errors import ConfigInvalid
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.tree_nodes import Node
from thermocline.daemon.runtime import atomic
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.store.agent_paths import DeviceId
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import key_values, memories, tree_rows
from thermocline.sync import Device, Remote, Waiting, exchange

T = TypeVar("T")
NEVER = 1e6
RARELY = Sync(
    critical_seconds=NEVER, change_seconds=NEVER, poll_seconds=NEVER, shutdown_seconds=2.0
)
AGENT = "default"


class Host:
    """A device with the daemon's parts for memories and replication."""

    def __init__(self, name: str, folder: Path, url: str | None, threads: Any) -> None:
        self.name = name
        self.folder = folder
        self.url = url
        self.ahead = 0.0
        self.fault: ConfigInvalid | None = None
        self.plan: list[Fault] = []
        self.network: FaultyRemote | None = None
        self.settings = Settings(sync=RARELY)
        self.problems = Problems()
        self._threads = threads
        self._task: asyncio.Task[None] | None = None
        self.start()

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.id = DeviceId(self.folder)
        self.agents = make_agents(
            self.folder,
            self._threads,
            lambda: StoreSettings(idle_close_seconds=NEVER, max_open_agents=50),
            device=self.id,
            problems=self.problems,
            now=lambda: time.time() + self.ahead,
            # Each needs the other.
            outgoing=lambda agent, kinds: self.replicas.changed(agent, kinds),  # noqa: PLW0108
            readers=1,
        )
        self.replicas = Replicas(
            self.agents,
            account=self._account,
            connect=self._connect,
            local=lambda agent: AgentLocal(self.agents, agent),
            device=Device(self.id.id, self.name),
            rename=self._rename,
            sealing=Sealing(
                self.folder,
                lambda: self.id.id,
                {},
                lambda: self.settings.sync.seal == "on",
            ),
            settings=lambda: self.settings,
            waiting=Waiting(first=0.01, longest=0.05),
            problems=self.problems,
            usage=UsageLog(self.folder / "cloud-usage.json", atomic.write, time.time),
        )

    def run(self, **seconds: float) -> None:
        self.settings = Settings(sync=replace(RARELY, **{"poll_seconds": 30.0} | seconds))
        self._task = asyncio.create_task(self.replicas.run())

    async def write(self, change: Callable[[Transaction], T], agent: str = AGENT) -> T:
        async with self.agents.use(agent, create=True) as store:
            return await store.write(change)

    async def put(self, key: str, value: str, agent: str = AGENT) -> None:
        await self.write(lambda tx: key_values.put(tx, key, value), agent)

    async def read(self, sql: str, agent: str = AGENT) -> list[Any]:
        async with self.agents.use(agent, create=True) as store:
            return await store.read(lambda db: db.execute(sql).fetchall())

    async def values(self, agent: str = AGENT) -> dict[str, str]:
        rows = await self.read(
            "SELECT id, data->>'value' FROM rows WHERE kind = 'pair' AND live", agent
        )
        return dict(rows)

    async def status(self, agent: str = AGENT) -> Any:
        async with self.agents.use(agent, create=True) as store:
            return await self.replicas.status_of(agent, store)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self.replicas.close()
        await self.agents.close()

    def _account(
        self,
        agent: str,
        folder: Path,  # noqa: ARG002
        workspace: Path | None,  # noqa: ARG002
    ) -> Account | None:
        if self.fault is not None:
            raise self.fault
        if self.url is None:
            return None
        return Account(self.url.replace("{agent}", agent), None, "sync.url")

    async def _connect(self, account: Account) -> Remote:
        self.network = FaultyRemote(await connect(account), asyncio.sleep, self.plan)
        return self.network

    async def _rename(self) -> Device:
        return Device(await asyncio.to_thread(self.id.renew), self.name)


@pytest.fixture
async def make_host(tmp_path: Path) -> AsyncIterator[Callable[..., Host]]:
    """`make_host(name)` is a device; all have the same database in a file."""
    made: list[Host] = []
    with ThreadPoolExecutor(4) as threads:

        def make(name: str, *, url: str | None = f"file:{tmp_path}/replica.db") -> Host:
            made.append(Host(name, tmp_path / name, url, threads))
            return made[-1]

        yield make
        for host in made:
            await host.stop()


async def test_the_description_of_a_category_survives_a_device_that_hears_of_its_memories_first(
    make_host, monkeypatch
):
    monkeypatch.setattr(exchange, "PAGE_ROWS", 1)
    one, two = make_host("one"), make_host("two")
    memory = Memory(
        id="m1", text="the sky is blue", category="work", created_at=1e9, updated_at=1e9
    )
    await one.write(lambda tx: memories.insert(tx, memory))
    await one.replicas.sync(AGENT)

    def describe(tx: Transaction) -> None:
        tree_rows.save(tx, tree_rows.load(tx.db), {"work": Node("What pays the rent")})

    await one.write(describe)
    for host in (one, two, one):
        await host.replicas.sync(AGENT)
    for host in (two, one):
        assert await host.read("SELECT path, desc FROM tree") == [("work", "What pays the rent")]


async def test_what_a_closed_agent_has_not_sent_is_sent_after_a_start(make_host):
    one, two = make_host("one"), make_host("two")
    await one.put("key", "value", "other")
    one.url = None
    await one.stop()
    one.url = two.url
    one.start()
    one.run(poll_seconds=NEVER)
    await until(lambda: one.replicas.status("other").sent, "it is sent")
    two.run(poll_seconds=0.05)
    await until(lambda: two.replicas.status("other").received, "it is received")


async def test_leaving_sends_what_is_left(make_host):
    one, two = make_host("one"), make_host("two")
    await one.put("key", "value")
    await one.stop()
    await two.write(lambda _tx: None)
    await two.replicas.sync(AGENT)
    assert await two.values() == {"key": "value"}


async def test_leaving_does_not_wait_for_a_replica_that_hangs(make_host):
    one = make_host("one")
    one.plan = [Fault(delay=3600.0)]
    await one.put("key", "value")
    async with asyncio.timeout(60):
        await one.stop()


async def test_another_database_is_used_once_the_configuration_names_it(make_host, tmp_path):
    one = make_host("one")
    await one.put("key", "value")
    await one.replicas.sync(AGENT)
    first = one.replicas.status(AGENT)
    one.url, one.settings = f"file:{tmp_path}/other.db", replace(one.settings)
    await one.replicas.look_after(AGENT)
    assert one.replicas.status(AGENT).sent == first.sent
    assert one.replicas.status(AGENT).last_success is None
    await one.replicas.sync(AGENT)
    assert one.replicas.status(AGENT).sent > first.sent
    assert (tmp_path / "other.db").exists()


async def test_an_account_that_cannot_be_read_is_reported_until_it_can(make_host):
    one = make_host("one")
    await one.write(lambda _tx: None)
    one.fault = ConfigInvalid("cannot read the token")
    await one.replicas.look_after(AGENT)
    status = one.replicas.status(AGENT)
    assert (status.replica, status.message) == ("unknown", "cannot read the token")
    assert [each.code for each in one.problems.current()] == ["replica_account"]
    one.fault, one.settings = None, replace(one.settings)
    await one.replicas.look_after(AGENT)
    assert one.problems.current() == []


async def test_a_failure_that_nobody_thought_of_is_reported_by_its_kind_and_tried_again(
    make_host, monkeypatch
):
    one = make_host("one")
    await one.put("key", "value")
    cursor, failures = AgentLocal.cursor, [RuntimeError("a secret")]

    async def failing(self: AgentLocal) -> Any:
        if failures:
            raise failures.pop()
        return await cursor(self)

    monkeypatch.setattr(AgentLocal, "cursor", failing)
    monkeypatch.setattr("thermocline.daemon.cloud.loop._RETRY_SECONDS", 0.05)
    one.run(poll_seconds=NEVER)
    await until(lambda: not failures, "it fails")
    await until(lambda: one.replicas.status(AGENT).sent, "the change is sent")
    assert "secret" not in str(one.problems.current())


async def test_a_field_that_a_clock_years_ahead_has_changed_can_be_changed_again(make_host):
    one, two = make_host("one"), make_host("two")
    one.ahead = 50 * 365 * 86_400.0
    await one.put("key", "from the future")
    await one.replicas.sync(AGENT)
    await two.put("other", "an hour ago")
    await two.replicas.sync(AGENT)
    await two.put("key", "changed again")
    await two.replicas.sync(AGENT)
    await one.replicas.sync(AGENT)
    expected = {"key": "changed again", "other": "an hour ago"}
    assert await one.values() == await two.values() == expected
    clocks = await two.read("SELECT clocks->>'$.at[0]' FROM rows WHERE id = 'other'")
    assert clocks[0][0] >> 16 < (time.time() + 60) * 1000
