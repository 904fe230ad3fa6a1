"""Open memories in the test's own process: real files, a real database, no socket."""

import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from empty_database import copy_empty_databases
from store_parts import store_context

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.store.agent_paths import AgentPaths
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.transaction import Event


@pytest.fixture(scope="session", autouse=True)
def _empty_databases() -> None:
    """The stores in the test's own process begin with a copy."""
    copy_empty_databases()


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
def make_place(tmp_path: Path) -> Callable[..., AgentPaths]:
    """`make_place(...)` names a place in the test's folder, empty at first."""

    def make(
        agent: str = "default",
        *,
        folder: Path | None = None,
        workspace: Path | None = None,
    ) -> AgentPaths:
        return AgentPaths(
            agent=agent,
            folder=folder or tmp_path / "agents" / agent,
            workspace=workspace,
        )

    return make


@pytest.fixture
async def open_store(
    make_place: Callable[..., AgentPaths],
    threads: ThreadPoolExecutor,
    problems: Problems,
    published: list[tuple[str, Event]],
    tmp_path: Path,
) -> AsyncIterator[Callable[..., Awaitable[AgentStore]]]:
    """`await open_store(...)` opens the memory of one agent; all are closed after the test."""
    opened: list[AgentStore] = []

    async def open_one(
        place: AgentPaths | None = None,
        *,
        now: Callable[[], float] = time.time,
        rules: Rules | None = None,
        delay_seconds: float = 0.01,
        readers: int = 2,
    ) -> AgentStore:
        context = store_context(
            tmp_path,
            threads,
            problems=problems,
            now=now,
            publish=lambda agent, event: published.append((agent, event)),
            rules=lambda: rules or Rules(),
            readers=readers,
            state_file_delay_seconds=lambda: delay_seconds,
        )
        store = AgentStore(place or make_place(), context)
        await store.open()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may open more than 1,000 files; without that the test is skipped."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if wanted < 1500:
        pytest.skip("this process may not open 1,000 connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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
