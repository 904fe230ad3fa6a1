"""The databases that agents share, and finding agents that other devices have stored in them.

Each database has one connection, and one poll for the agents that are in use here.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from thermocline.sync import FileRemote, Heads, Remote, SyncError, TryLater, Usage, poll_interval

from ..errors import ReplicaAway, ReplicaRefused, ThermoclineError
from ..memory.checks import is_agent
from ..runtime.problems import Problems
from ..runtime.process import load_tls
from ..store.agents import Agents
from .account import Account, Accounts
from .sealing import Sealing

_CLOSE_SECONDS: Final = 2.0

Connect: TypeAlias = Callable[[Account], Awaitable[Remote]]


class Database:
    """The remote of an account, shared by the agents that use it."""

    def __init__(self, account: Account, remote: Remote) -> None:
        self.account = account
        self.remote = remote
        self.heads = Heads(remote)

    async def close(self) -> None:
        """Close the connection, or abandon it after two seconds."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.remote.close()
        except TimeoutError:
            # A hanging disk is only released when the process ends.
            return


class Databases:
    """The open databases, by their accounts."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connecting = asyncio.Lock()
        self.in_use: dict[Account, Database] = {}

    async def get(self, account: Account) -> Database:
        async with self._connecting:
            if account not in self.in_use:
                with our_errors(account):
                    remote = await self._connect(account)
                self.in_use[account] = Database(account, remote)
            return self.in_use[account]

    async def release(self, account: Account) -> None:
        database = self.in_use.pop(account, None)
        if database is not None:
            await database.close()

    async def close(self) -> None:
        await asyncio.gather(*(database.close() for database in self.in_use.values()))
        self.in_use.clear()


async def connect(
    account: Account,
    threads: Executor | None = None,
    count: Callable[[str, Usage], None] = lambda _url, _usage: None,
) -> Remote:
    """The remote of an account, which need not be reachable yet.

    Files are read and written on `threads`; calls to the cloud are counted by URL. The cloud client
    is only loaded if it is used, and what all replication needs by the first remote. An address
    that would send the token unencrypted is refused.
    """
    await asyncio.to_thread(importlib.import_module, "tenacity")
    if account.kind == "file":
        return FileRemote(Path(account.url.removeprefix("file:")), threads=threads)
    await asyncio.to_thread(load_tls)
    turso = await asyncio.to_thread(importlib.import_module, "thermocline.sync.turso")
    token = account.token.reveal() if account.token is not None else None
    remote: Remote = await turso.connect(account.url, token, count=partial(count, account.url))
    return remote


@contextmanager
def our_errors(account: Account | None = None) -> Iterator[None]:
    """Raise the daemon's errors in place of the replica's."""
    try:
        yield
    except SyncError as error:
        raise as_ours(error, account) from error


def as_ours(error: SyncError, account: Account | None = None) -> ThermoclineError:
    """The daemon's error for an error of the replica, with a hint from its account."""
    kind = ReplicaAway if isinstance(error, TryLater) else ReplicaRefused
    hint = None if account is None else account.way_out(error.code)
    return kind(error.code, f"the replica: {error.message}", hint=hint or error.hint or None)


_log = logging.getLogger(__name__)
ACCOUNT_PROBLEM: Final = "replica_account"
# The agent whose database is searched even while it is closed.
HOME: Final = "default"
_END_SECONDS: Final = 1.0


class Discovery:
    """Opens agents that are stored in the databases in use but do not exist here.

    A search reads a row for every agent of a database. The next is later while nothing new appears,
    by at least a second for each of these rows. `sealing` makes each agent's replica, and tells
    which agent a sealed one is. `poll_seconds` is the shortest time between two searches.
    """

    def __init__(
        self,
        agents: Agents,
        accounts: Accounts,
        databases: Databases,
        *,
        sealing: Sealing,
        poll_seconds: Callable[[], float],
        problems: Problems,
        replicate: Callable[[str], Awaitable[None]],
    ) -> None:
        self._agents = agents
        self._accounts = accounts
        self._databases = databases
        self._sealing = sealing
        # The agents of sealed names, "" for those that cannot be told.
        self._sealed: dict[str, str] = {}
        self._poll_seconds = poll_seconds
        self._problems = problems
        self._replicate = replicate
        self._next_at = float("-inf")
        # When the last of them appeared.
        self._appeared_at: float | None = None
        self._searching: asyncio.Task[None] | None = None
        # Agents that existed here: an agent whose folder was removed is not created again.
        self.known: set[str] = set()

    def soon(self) -> None:
        """Start a search in the background if one is due: a database may not answer."""
        now = asyncio.get_running_loop().time()
        running = self._searching is not None and not self._searching.done()
        if not running and now >= self._next_at:
            self._searching = asyncio.create_task(self._search(), name="discovery of agents")

    async def now(self) -> None:
        """Search now, whether or not a search is due."""
        await self.end()
        await self._search()

    async def end(self) -> None:
        if self._searching is not None:
            self._searching.cancel()
            await asyncio.wait([self._searching], timeout=_END_SECONDS)

    async def _search(self) -> None:
        begun, rows = asyncio.get_running_loop().time(), 0
        if self._appeared_at is None:
            self._appeared_at = begun
        try:
            account = await self._accounts.read(HOME)
            if account is not None:
                await self._databases.get(account)
        except ThermoclineError as error:
            self._problems.report(ACCOUNT_PROBLEM, HOME, error.message, error.hint or "")
        for database in list(self._databases.in_use.values()):
            try:
                names = [await self._name(database, name) for name in await database.heads.all()]
            except SyncError:
                # The loops report the error.
                continue
            rows += len(names)
            for agent in sorted(filter(is_agent, {*names} - self.known)):
                self._appeared_at = begun
                await self._open(agent, database)
        interval = poll_interval(self._poll_seconds(), begun - self._appeared_at)
        self._next_at = begun + max(interval, rows)

    async def _name(self, database: Database, name: str) -> str:
        """The agent that a name in the database stands for; "": a sealed one of somebody else."""
        if is_agent(name):
            return name
        if self._sealing.is_on and not self._sealed.get(name):
            try:
                keychain = await self._sealing.keychain()
                self._sealed[name] = await keychain.agent_of(database.remote, name) or ""
            except ThermoclineError:
                # The loops report the error.
                return ""
        return self._sealed.get(name, "")

    async def _open(self, agent: str, database: Database) -> None:
        try:
            if await self._accounts.read(agent) != database.account:
                return
            there = await self._sealing.replicas(agent, database.remote, database.heads)
            if not any([await replica.has_rows() for replica in there if replica is not None]):
                # It was forgotten: only deletions are left.
                self.known.add(agent)
                return
            async with self._agents.use(agent, create=True, quietly=True):
                self.known.add(agent)
            _log.info("found the agent '%s'", agent, extra={"action": "agent_found"})
            await self._replicate(agent)
        except (SyncError, ThermoclineError) as error:
            _log.info("cannot open '%s': %s", agent, error, extra={"action": "agent_not_opened"})
