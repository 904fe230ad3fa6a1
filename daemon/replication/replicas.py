"""The replication of all agents: begun when a memory is opened, ended when it owes nothing."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import msgspec

from thermocline.sync import (
    Device,
    Remote,
    Replica,
    SchemaMissing,
    SyncError,
    Tally,
    Timing,
    TryLater,
    Waiting,
)

from ..errors import NotFound, ReplicaAway, ReplicaRefused, ThermoclineError
from ..problems import Problems
from ..store import link
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.owing import owes
from .account import Account
from .following import Following, Standing
from .local import AgentLocal

T = TypeVar("T")
_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1.0
_ACCOUNT_PROBLEM: Final = "replica_account"
_EXPOSED: Final = "token_exposed"

FindAccount: TypeAlias = Callable[[str, Path, Path | None], Account | None]
Connect: TypeAlias = Callable[[Account], Awaitable[Remote]]
Question: TypeAlias = Callable[[Replica], Awaitable[T]]


class Plan(msgspec.Struct, frozen=True):
    """When replicas are told and asked."""

    timing: Timing
    shutdown_seconds: float


class Replicas:
    """Follows each open agent's replica, and those of closed agents that still owe it something.

    Args:
        agents: the memories.
        account: finds an agent's account; called on a thread, again and again, so that what
            somebody has mended is noticed.
        connect: opens a remote.
        device: this device.
        plan: when to act.
        waiting: when to try again.
        problems: where what a person has to mend is told.
    """

    def __init__(
        self,
        agents: Agents,
        *,
        account: FindAccount,
        connect: Connect,
        device: Device,
        plan: Callable[[], Plan],
        waiting: Waiting,
        problems: Problems,
    ) -> None:
        self._agents = agents
        self._account = account
        self._connect = connect
        self._device = device
        self._plan = plan
        self._waiting = waiting
        self._problems = problems
        self._following: dict[str, Following] = {}
        # How it stood when an agent was followed the last time: what is counted goes on.
        self._before: dict[str, Standing] = {}
        self._remotes: dict[Account, Remote] = {}
        self._starting = asyncio.Lock()
        self._owing: set[str] = set()
        # Of agents whose account cannot be used: why.
        self._accountless: dict[str, ThermoclineError] = {}
        # Agents that the configuration gave no replica, when it was asked last.
        self._without: set[str] = set()
        # What is ending, though perhaps nobody waits for it any more.
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def device(self) -> Device:
        """This device, as the others see it."""
        return self._device

    def changed(self, agent: str, kinds: frozenset[str]) -> None:
        """An agent's rows of these kinds have changed."""
        following = self._following.get(agent)
        if following is not None:
            following.changed(kinds)

    async def run(self) -> None:
        """Begin and end what has to be, until cancelled."""
        names = await asyncio.to_thread(self._agents.names)
        self._owing = await asyncio.to_thread(owes, self._agents.place, names)
        while True:
            for agent in sorted(self._agents.open_stores().keys() | self._owing):
                await self.look_after(agent)
            for agent, following in list(self._following.items()):
                if following.ended:
                    await self._end(following)
                elif agent not in self._agents.open_stores():
                    await self._finish(following)
            await asyncio.sleep(_LOOK_SECONDS)

    async def look_after(self, agent: str) -> None:
        """Follow the agent's replica by the account in force; report an account that is none."""
        try:
            following = await self._start(agent)
        except ThermoclineError as error:
            self._owing.discard(agent)
            self._accountless[agent] = error
            self._problems.report(_ACCOUNT_PROBLEM, agent, error.message, error.hint or "")
        else:
            self._accountless.pop(agent, None)
            self._problems.clear(_ACCOUNT_PROBLEM, agent)
            self._tell_exposed(agent, following)

    async def sync(self, agent: str, *, critical_only: bool = False) -> Tally:
        """Send and receive everything, or the critical state alone, now.

        Raises:
            NotFound: the configuration gives the agent no replica.
            ThermoclineError: the memory cannot be used, or the replica cannot be reached.
        """
        following = await self.following(agent)
        try:
            return await following.replicator.sync(urgent_only=critical_only)
        except SyncError as error:
            raise as_ours(error, following.account) from error

    async def following(self, agent: str) -> Following:
        """What follows the agent's replica.

        Raises:
            NotFound: the configuration gives the agent no replica.
            ThermoclineError: the account is no account.
        """
        following = await self._start(agent)
        if following is None:
            raise NotFound(
                f"'{agent}' has no replica: cold.backend is none",
                hint="set cold.backend to turso or file",
            )
        return following

    async def account(self, agent: str) -> Account | None:
        """Where the configuration in force puts the agent's replica; None: nowhere.

        Raises:
            ConfigInvalid: a named file cannot be read, or holds no credentials.
        """
        return await asyncio.to_thread(self._account, agent, *self._agents.place(agent))

    async def ask(self, agent: str, question: Question[T]) -> T:
        """Ask the agent's replica something, now.

        Raises:
            NotFound: the configuration gives the agent no replica.
            ThermoclineError: the account is no account, or the replica does not answer.
        """
        following = await self.following(agent)
        try:
            return await answer(following.replica, question, time.time())
        except SyncError as error:
            raise as_ours(error, following.account) from error

    def standing(self, agent: str) -> Standing:
        """How an agent's replication stands."""
        standing, error = self._standing(agent), self._accountless.get(agent)
        if error is None or standing.error:
            return standing
        return msgspec.structs.replace(
            standing, error=error.code, message=error.message, hint=error.hint or ""
        )

    async def close(self, most_seconds: float = math.inf) -> None:
        """Send what is left, as far as the time allows, and end."""
        seconds = min(self._plan().shutdown_seconds, most_seconds)
        owing = {agent for agent, following in self._following.items() if following.owing}
        stores = self._agents.open_stores()
        last = [
            asyncio.create_task(self._last(agent, stores.get(agent)))
            for agent in owing | stores.keys()
        ]
        if last:
            await asyncio.wait(last, timeout=seconds)
        for task in last:
            task.cancel()
        await asyncio.gather(*last, return_exceptions=True)
        for following in list(self._following.values()):
            await self._end(following)
        await asyncio.gather(*self._ending)
        await asyncio.gather(*(remote.close() for remote in self._remotes.values()))

    async def _last(self, agent: str, store: AgentStore | None) -> None:
        try:
            # One that was opened a moment ago is not followed yet.
            following = await self._start(agent)
            if following is None:
                return
            queued = await store.read(link.queued) if store is not None else {}
            if following.owing or queued:
                await following.replicator.sync()
        except (SyncError, ThermoclineError) as error:
            _log.info("the last changes wait: %s", error, extra={"action": "sync_unfinished"})

    async def _finish(self, following: Following) -> None:
        """Of a memory that was closed, send what is left at once, and then end."""
        if not following.owing:
            await self._end(following)
        elif following.replicator.state.phase == "idle":
            following.replicator.mended()

    def _standing(self, agent: str) -> Standing:
        following, before = self._following.get(agent), self._before.get(agent)
        if following is not None:
            found = following.standing()
            return found if before is None else found.after(before)
        if agent in self._accountless:
            return Standing(replica="unknown", phase="stopped")
        return Standing(replica="none" if agent in self._without else "unknown")

    def _tell_exposed(self, agent: str, following: Following | None) -> None:
        if following is None or not following.account.exposed:
            self._problems.clear(_EXPOSED, agent)
            return
        path = following.account.token_file
        self._problems.report(
            _EXPOSED,
            agent,
            f"every user of this machine can read the token in {path}",
            f"chmod 600 {path}",
            lasting=False,
        )

    async def _start(self, agent: str) -> Following | None:
        """Follow the agent's replica by the configuration in force, if there is one."""
        account = await self.account(agent)
        async with self._starting:
            following, timing = self._following.get(agent), self._plan().timing
            if following is not None:
                if (following.account, following.timing) == (account, timing):
                    return following
                await self._end(following)
            if account is None:
                self._without.add(agent)
                return None
            self._without.discard(agent)
            return await self._follow(agent, account, timing)

    async def _follow(self, agent: str, account: Account, timing: Timing) -> Following:
        if account not in self._remotes:
            try:
                self._remotes[account] = await self._connect(account)
            except SyncError as error:
                raise as_ours(error, account) from error
        following = Following(
            agent,
            account,
            self._remotes[account],
            AgentLocal(self._agents, agent),
            self._device,
            timing=timing,
            waiting=self._waiting,
            problems=self._problems,
        )
        self._following[agent] = following
        return following

    async def _end(self, following: Following) -> None:
        """End it, also where whoever wants it to gives up meanwhile."""
        ending = asyncio.create_task(self._end_now(following))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        await asyncio.shield(ending)

    async def _end_now(self, following: Following) -> None:
        """End it, unless somebody has meanwhile, and perhaps begun another in its place."""
        agent = following.agent
        if self._following.get(agent) is not following:
            return
        self._before[agent] = self._standing(agent)
        del self._following[agent]
        self._owing.discard(agent)
        await following.end()
        if all(other.account != following.account for other in self._following.values()):
            remote = self._remotes.pop(following.account, None)
            if remote is not None:
                await remote.close()


async def answer(replica: Replica, question: Question[T], now: float) -> T:
    """Ask a replica; make its tables first where they are missing.

    Raises:
        SyncError: it did not answer, or refused.
    """
    try:
        return await question(replica)
    except SchemaMissing:
        await replica.prepare(now)
        return await question(replica)


def as_ours(error: SyncError, account: Account | None = None) -> ThermoclineError:
    """The error of our tree that stands for one of the replica's; its account knows the way out."""
    kind = ReplicaAway if isinstance(error, TryLater) else ReplicaRefused
    hint = None if account is None else account.way_out(error.code)
    return kind(error.code, f"the replica: {error.message}", hint=hint or error.hint or None)
