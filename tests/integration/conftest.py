"""Open memories in the test's own process: real files, a real database, no socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from devices import Clock, Device
from homes import Home

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.problems import Problems
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.engine import Surroundings
from thermocline.daemon.store.opening import Place
from thermocline.daemon.store.schema import MIGRATIONS, Migration
from thermocline.daemon.store.transaction import Event, Rules
from thermocline.sync import FileRemote
from thermocline.sync.faulty import Fault, FaultyRemote


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Where readers read."""
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def problems() -> Problems:
    """What the stores of a test complain of."""
    return Problems()


@pytest.fixture
def published() -> list[tuple[str, Event]]:
    """What the stores of a test told."""
    return []


@pytest.fixture
def make_place(tmp_path: Path) -> Callable[..., Place]:
    """`make_place(...)` names a place in the test's folder, empty at first."""

    def make(
        agent: str = "default",
        *,
        folder: Path | None = None,
        workspace: Path | None = None,
        migrations: tuple[Migration, ...] = MIGRATIONS,
    ) -> Place:
        return Place(
            agent=agent,
            folder=folder or tmp_path / "agents" / agent,
            workspace=workspace,
            device="device",
            cache_kb=512,
            migrations=migrations,
        )

    return make


@pytest.fixture
async def open_store(
    make_place: Callable[..., Place],
    threads: ThreadPoolExecutor,
    problems: Problems,
    published: list[tuple[str, Event]],
) -> AsyncIterator[Callable[..., Awaitable[AgentStore]]]:
    """`await open_store(...)` opens the memory of one agent; all are closed after the test."""
    opened: list[AgentStore] = []

    async def open_one(
        place: Place | None = None,
        *,
        now: Callable[[], float] = time.time,
        rules: Rules | None = None,
        delay_seconds: float = 0.01,
        readers: int = 2,
    ) -> AgentStore:
        around = Surroundings(
            threads=threads,
            problems=problems,
            now=now,
            publish=lambda agent, event: published.append((agent, event)),
            outgoing=lambda _agent, _kinds: None,
            rules=lambda: rules or Rules(),
            readers=readers,
            face_delay_seconds=lambda: delay_seconds,
        )
        store = AgentStore(place or make_place(), around)
        await store.open()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
def wall() -> Clock:
    """A wall clock that only the test moves."""
    return Clock(1_700_000_000.0)


@pytest.fixture
async def make_device(
    tmp_path: Path, wall: Clock, threads: ThreadPoolExecutor
) -> AsyncIterator[Callable[..., Device]]:
    """`make_device(name, ...)` is a device whose remote fails by plan; all share one remote."""
    made: list[Device] = []

    def make(
        name: str,
        *,
        now: Callable[[], float] = wall,
        rules: Rules | None = None,
        plan: Iterable[Fault] = (),
        at_once: int = 500,
    ) -> Device:
        remote = FaultyRemote(FileRemote(tmp_path / "remote.db"), asyncio.sleep, plan)
        device = Device(
            *(tmp_path / name, name, remote),
            now=now,
            threads=threads,
            rules=rules or Rules(),
            at_once=at_once,
        )
        made.append(device)
        return device

    yield make
    for device in made:
        await device.stop()
        await device.remote.close()


@pytest.fixture
async def make_home(
    tmp_path: Path, wall: Clock, threads: ThreadPoolExecutor
) -> AsyncIterator[Callable[..., Home]]:
    """`make_home(name)` makes a device without warm memories; all follow the same replica."""
    made: list[Home] = []

    def make(name: str = "one", *, replica: Path | None = None, rules: Rules | None = None) -> Home:
        path = replica or tmp_path / "replica.db"
        device = Device(
            *(tmp_path / name, name, FileRemote(path)),
            now=wall,
            threads=threads,
            rules=rules or Rules(warm_max_bytes=0),
        )
        made.append(Home(device, f"file:{path}"))
        return made[-1]

    yield make
    for home in made:
        await home.stop()


@pytest.fixture
def make_memory() -> Callable[..., Memory]:
    """`make_memory(number, ...)` is a memory to insert, its id and text made of the number."""

    def make(number: int, **fields: Any) -> Memory:
        given: dict[str, Any] = {
            "id": f"m{number:05d}",
            "text": f"memory number {number} speaks of word{number}",
            "created_at": 1_700_000_000.0 + number,
            "updated_at": 1_700_000_000.0 + number,
            "writer": "test",
        }
        return Memory(**given | fields)

    return make
