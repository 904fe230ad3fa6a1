"""Finding agents that other devices have stored in the same databases."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from thermocline.sync import Replica, SyncError

from ..errors import ThermoclineError
from ..memory.checks import is_agent
from ..runtime.problems import Problems
from ..store.agents import Agents
from .account import Accounts
from .database import Database, Databases

_log = logging.getLogger(__name__)
ACCOUNT_PROBLEM: Final = "replica_account"
# The agent whose database is searched even while it is closed.
HOME: Final = "default"
_END_SECONDS: Final = 1.0


class Discovery:
    """Opens agents that are stored in the databases in use but do not exist here.

    Args:
        agents: the memories.
        accounts, databases: where agents are replicated, and what of that is open.
        poll_seconds: the minimum time between two searches.
        problems: where an invalid account is reported.
        replicate: starts the replication of an agent.

    Attributes:
        known: agents that existed here: an agent whose folder was removed is not created again.
    """

    def __init__(
        self,
        agents: Agents,
        accounts: Accounts,
        databases: Databases,
        *,
        poll_seconds: Callable[[], float],
        problems: Problems,
        replicate: Callable[[str], Awaitable[None]],
    ) -> None:
        self._agents = agents
        self._accounts = accounts
        self._databases = databases
        self._poll_seconds = poll_seconds
        self._problems = problems
        self._replicate = replicate
        self._searched_at = float("-inf")
        self._searching: asyncio.Task[None] | None = None
        self.known: set[str] = set()

    def soon(self) -> None:
        """Start a search in the background if one is due: a database may not answer."""
        now = asyncio.get_running_loop().time()
        running = self._searching is not None and not self._searching.done()
        if not running and now - self._searched_at >= self._poll_seconds():
            self._searched_at = now
            self._searching = asyncio.create_task(self._search(), name="discovery of agents")

    async def end(self) -> None:
        """Cancel a running search."""
        if self._searching is not None:
            self._searching.cancel()
            await asyncio.wait([self._searching], timeout=_END_SECONDS)

    async def _search(self) -> None:
        seconds = self._poll_seconds()
        try:
            found = await self._accounts.of(HOME)
            if found is not None:
                await self._databases.get(found)
        except ThermoclineError as error:
            self._problems.report(ACCOUNT_PROBLEM, HOME, error.message, error.hint or "")
        for database in list(self._databases.in_use.values()):
            try:
                names = set(await database.polls.look(seconds))
            except SyncError:
                # The loops report the error.
                continue
            for agent in sorted(filter(is_agent, names - self.known)):
                await self._open(agent, database)

    async def _open(self, agent: str, database: Database) -> None:
        """Create the agent, if the configuration puts it in this database."""
        try:
            if await self._accounts.read(agent) != database.account:
                return
            if not await Replica(database.remote, agent).counts():
                # It was forgotten: only deletions are left.
                self.known.add(agent)
                return
            async with self._agents.use(agent, create=True, quietly=True):
                self.known.add(agent)
            _log.info("found the agent '%s'", agent, extra={"action": "agent_found"})
            await self._replicate(agent)
        except (SyncError, ThermoclineError) as error:
            _log.info("cannot open '%s': %s", agent, error, extra={"action": "agent_not_opened"})
