"""All agents of the daemon: opened on first use, closed when idle, limited by quotas."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from thermocline.sync import HybridClock

from ..config.settings import Quotas, StoreSettings
from ..errors import (
    NotFound,
    QuotaReached,
    ShuttingDown,
    ThermoclineError,
    Unavailable,
    translate_os,
)
from ..memory.checks import check_agent, is_agent
from ..runtime import atomic
from .agent_paths import AgentPaths, StoreContext
from .agent_store import AgentStore
from .database import chunk_database
from .database.connection import register_functions, scalar
from .database.memory_database import FILE_NAME, migrate
from .database.schema import MIGRATIONS
from .database.transaction import Transaction
from .engine import has_database

T = TypeVar("T")
_log = logging.getLogger(__name__)
_UNREADABLE: Final = "agent_unreadable"
_TROUBLE: Final = "agent_trouble"
# How long a new caller waits for the users of a memory whose folder was removed.
_USERS_SECONDS: Final = 5.0
# Appended to the name of a folder that is being removed; not valid in an agent's id.
_FORGOTTEN: Final = ".forgotten"


class Agents:
    """Opens and closes the stores of agents; one open store is shared by all callers.

    `workspaces` are those outside `state_dir`, by agent; `settings` the limits on open stores.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        workspaces: dict[str, Path],
        context: StoreContext,
        settings: Callable[[], StoreSettings],
    ) -> None:
        self._folder = state_dir / "agents"
        self._workspaces = workspaces
        self._context = context
        self._settings = settings
        self._open: dict[str, AgentStore] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._uses: dict[str, int] = {}
        self._closed = False
        # Called whenever an agent was opened or closed.
        self.followers: list[Callable[[], None]] = []

    @contextlib.asynccontextmanager
    async def use(
        self, agent: str, *, create: bool, quietly: bool = False, or_empty: bool = False
    ) -> AsyncIterator[AgentStore]:
        """The agent's store, which stays open until the block ends.

        With `create` a new memory may be created; that of the default agent always may. A `quietly`
        use does not count against closing it as idle. With `or_empty` an agent that does not exist
        is read as one without memories.

        Raises:
            InvalidInput: the id is not valid.
            NotFound: the agent does not exist and may not be created.
        """
        check_agent(agent)
        create = create or agent == "default"
        if or_empty and not create and not self._exists(agent):
            yield EmptyStore(self.place(agent), self._context)
            return
        store = await self._get(agent, create=create)
        store.in_use += 1
        try:
            yield store
        finally:
            store.in_use -= 1
            if not quietly:
                store.last_used = time.monotonic()
                self._uses[agent] = self.uses(agent) + 1

    def place(self, agent: str) -> AgentPaths:
        """The agent's folder, and its workspace elsewhere, if it has one."""
        return AgentPaths(agent, self._folder / agent, self._workspaces.get(agent))

    def uses(self, agent: str) -> int:
        """How often an agent was used since the start, other than quietly."""
        return self._uses.get(agent, 0)

    def open_stores(self) -> dict[str, AgentStore]:
        return dict(self._open)

    def names(self) -> list[str]:
        """Every agent, open or not."""
        # Folders that a restore has set aside or not finished are there too.
        names = {path.name for path in self._folder.glob("*") if is_agent(path.name)}
        return sorted({name for name in names if self._is_seen(name)} | self._open.keys())

    def size_bytes(self, agent: str) -> int:
        """What an agent's folder takes on the disk; its database where no folder can be opened.

        Blocking.
        """
        folder = self._folder / agent
        try:
            return _size(folder)
        except OSError:
            # Status is most needed when the process has as many files open as it may.
            total = 0
            for name in (FILE_NAME, f"{FILE_NAME}-wal"):
                with contextlib.suppress(OSError):
                    total += (folder / name).stat().st_size
            return total

    async def close_idle(self) -> None:
        """Close idle agents, and agents whose folder was removed."""
        for agent, store in self.open_stores().items():
            if not store.place.folder.exists():
                await self._close(agent, unless_used=True)
        await self._close_idle(self._settings())
        # A free lock has no waiters.
        self._opening = {
            agent: lock
            for agent, lock in self._opening.items()
            if lock.locked() or agent in self._open
        }

    def finish_forgetting(self) -> None:
        """Finish removals that a crash interrupted. Blocking."""
        for left in self._folder.glob(f"*{_FORGOTTEN}"):
            shutil.rmtree(left, ignore_errors=True)

    async def forget(self, agent: str) -> None:
        """Close an agent and remove its folder. After a crash it exists whole, or not at all."""
        folder = self._folder / agent
        async with self._opening.setdefault(agent, asyncio.Lock()):
            store = self._open.pop(agent, None)
            if store is not None:
                await store.close()
            self._uses.pop(agent, None)
            try:
                await asyncio.to_thread(_remove, folder)
            except OSError as error:
                raise translate_os(error, folder) from error
            _log.info("forgot the agent '%s'", agent, extra={"action": "agent_forgotten"})

    async def close(self) -> None:
        """Close every store: acknowledged writes are on the disk and in the state files."""
        self._closed = True
        # By the locks, which include stores that are being opened.
        await asyncio.gather(*(self._close(agent) for agent in list(self._opening)))

    def _is_seen(self, agent: str) -> bool:
        """Whether the agent exists. A folder that cannot be read is reported as a problem."""
        try:
            exists = self._exists(agent)
        except ThermoclineError as error:
            self._context.problems.report(_UNREADABLE, agent, error.message, error.hint or "")
            return False
        self._context.problems.clear(_UNREADABLE, agent)
        return exists

    def _exists(self, agent: str) -> bool:
        folder = self._folder / agent
        try:
            if has_database(folder) or agent in self._workspaces:
                return True
            return folder.is_dir() and self._context.importer.is_there(self.place(agent))
        except OSError as error:
            raise translate_os(error, folder) from error

    async def _get(self, agent: str, *, create: bool) -> AgentStore:
        if self._closed:
            raise ShuttingDown("cannot serve: the daemon is stopping")
        store = self._open.get(agent)
        if store is not None and not store.place.folder.exists():
            # The folder was removed a moment ago: this call starts a new memory.
            await self._leave_removed(agent, store)
            store = self._open.get(agent)
        if store is not None:
            return store
        self._require(agent, create=create)
        async with self._opening.setdefault(agent, asyncio.Lock()):
            store = self._open.get(agent)
            if store is None:
                # It may have been forgotten meanwhile.
                self._require(agent, create=create)
                await self._close_idle(self._settings(), room_for=1)
                store = AgentStore(self.place(agent), self._context)
                await store.open()
                _log.info("opened the memory of '%s'", agent, extra={"action": "agent_opened"})
                self._open[agent] = store
                for code in (_UNREADABLE, _TROUBLE):
                    self._context.problems.clear(code, agent)
                self._wake_followers()
        return store

    def _require(self, agent: str, *, create: bool) -> None:
        if not create and not self._exists(agent):
            raise NotFound(
                f"no agent is called '{agent}'",
                field="agent",
                hint="its memory begins with the first thing stored for it",
            )

    async def _leave_removed(self, agent: str, store: AgentStore) -> None:
        """Close a store whose folder was removed: later writes would be lost."""
        deadline = time.monotonic() + _USERS_SECONDS
        while store.in_use and time.monotonic() < deadline:  # noqa: ASYNC110 - users are brief
            await asyncio.sleep(0.01)
        await self._close(agent, unless_used=True)
        if self._open.get(agent) is store:
            raise Unavailable(
                f"cannot open the memory of '{agent}': its folder was removed while it is in use",
                hint="try again in a moment",
            )

    def _wake_followers(self) -> None:
        for follow in self.followers:
            follow()

    async def _close_idle(self, settings: StoreSettings, room_for: int = 0) -> None:
        now = time.monotonic()
        idle = sorted(
            (store.last_used, agent) for agent, store in self._open.items() if not store.in_use
        )
        surplus = max(0, len(self._open) + room_for - settings.max_open_agents)
        for number, (used, agent) in enumerate(idle):
            is_idle = now - used > settings.idle_close_seconds
            if number < surplus or (is_idle and not self._open[agent].refused):
                await self._close(agent, unless_used=True)

    async def _close(self, agent: str, *, unless_used: bool = False) -> None:
        async with self._opening.setdefault(agent, asyncio.Lock()):
            store = self._open.get(agent)
            # It may have come into use while another store was closed.
            if store is None or (unless_used and store.in_use):
                return
            del self._open[agent]
            await store.close()
            self._wake_followers()
            _log.info("closed the memory of '%s'", agent, extra={"action": "agent_closed"})


def _remove(folder: Path) -> None:
    """Remove a folder: first its name, in one step, then its content."""
    gone = folder.with_name(folder.name + _FORGOTTEN)
    if gone.exists():
        shutil.rmtree(gone)
    folder.rename(gone)
    atomic.sync_folder(folder.parent)
    shutil.rmtree(gone)


def _size(folder: Path) -> int:
    """The bytes of all files below `folder`, without inner folders that cannot be listed now.

    Temporary files may go while they are counted.
    """
    total = 0
    os.scandir(folder).close()
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - many
    return total


class EmptyStore(AgentStore):
    """An empty memory that stores nothing and leaves no trace on the disk."""

    exists = False

    async def read(
        self,
        read: Callable[[sqlite3.Connection], T],
        *,
        seconds: float | None = None,  # noqa: ARG002 - there is nothing that takes long
        is_long: bool = False,  # noqa: ARG002 - likewise
    ) -> T:
        """Run `read` on an empty database."""
        return await asyncio.get_running_loop().run_in_executor(
            self._context.threads, _on_empty, read
        )

    async def write(self, operation: Callable[[Transaction], T]) -> T:
        """Run `operation` on an empty database, which is then discarded."""

        def written(db: sqlite3.Connection) -> T:
            context = self._context
            with_clock = HybridClock(context.now)
            tx = Transaction(
                db, now=self.now, device=context.device.id, rules=self.rules, clock=with_clock
            )
            return operation(tx)

        return await self.read(written)

    def note_answer(self, used: Sequence[str] | None, chars: int) -> None:
        """Nothing is counted."""


def _on_empty(read: Callable[[sqlite3.Connection], T]) -> T:
    db = sqlite3.connect(":memory:", isolation_level=None)
    register_functions(db)
    try:
        migrate(db, Path(":memory:"), MIGRATIONS)
        chunk_database.attach_none(db)
        return read(db)
    finally:
        db.close()


def require_room(db: sqlite3.Connection, agent: str, quotas: Quotas) -> None:
    """Raise `QuotaReached` if the agent has its maximum number of memories or of bytes."""
    if quotas.memories:
        memories = scalar(db, "SELECT count(*) FROM memories")
        if memories >= quotas.memories:
            raise _reached(agent, f"{memories} memories", "quotas.memories")
    if quotas.megabytes:
        # Without free pages: deleting makes room at once.
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (scalar(db, f"PRAGMA main.{name}") for name in names)
        megabytes = (pages - free) * size / (1 << 20)
        if megabytes >= quotas.megabytes:
            raise _reached(agent, f"{megabytes:.1f} MB", "quotas.megabytes")


def _reached(agent: str, has: str, key: str) -> QuotaReached:
    return QuotaReached(
        f"cannot store more for '{agent}': it has {has}, and may have no more",
        hint=f"forget some, or raise {key}",
    )
