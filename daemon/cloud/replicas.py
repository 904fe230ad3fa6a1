"""The replication of all agents: a loop for each agent that is open or has unsent changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import astuple

from thermocline.sync import (
    Device,
    Local,
    Remote,
    Replica,
    Round,
    RoundResult,
    SchemaMissing,
    SyncError,
    Waiting,
)

from ..config.settings import Settings
from ..errors import NotFound, ThermoclineError
from ..runtime.problems import Problems
from ..schemas.sync import ReplicationStatus
from ..store import outbox
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from .account import Account, Accounts
from .databases import ACCOUNT_PROBLEM, HOME, Connect, Databases, Discovery, our_errors
from .loop import Loop
from .sealing import Sealing
from .usage import UsageLog

T = TypeVar("T")
_log = logging.getLogger(__name__)
# The interval of checks of the configuration and for ended loops.
_LOOK_SECONDS: Final = 5.0
# The same while searching for agents, or while closed ones have unsent rows.
_BUSY_SECONDS: Final = 1.0
_ROUNDS: Final = 100
_WAYS_OUT: Final = {
    "sync.url": "set sync.url to libsql://…, https://… or file:/path/on/another/disk",
    "cold.backend": "set cold.backend to turso or file",
}

# From an agent's id, folder and workspace; None: not replicated. Runs on a thread.
FindAccount: TypeAlias = Callable[[str, Path, Path | None], Account | None]


class Replicas:
    """Replicates each open agent, and closed ones whose replica lacks rows or is to be sealed.

    Agents that other devices have stored in the same database are opened automatically. `account`
    and `connect` find an agent's account and open its remote; `local` has an agent's rows, as the
    replicator sees them; `rename` gives this device another id, after its folder was copied; `done`
    is called with the duration of each round of an agent, in milliseconds.
    """

    def __init__(  # noqa: PLR0913 - the collaborators of the composition root
        self,
        agents: Agents,
        *,
        account: FindAccount,
        connect: Connect,
        local: Callable[[str], Local],
        device: Device,
        rename: Callable[[], Awaitable[Device]],
        sealing: Sealing,
        settings: Callable[[], Settings],
        waiting: Waiting,
        problems: Problems,
        usage: UsageLog,
        done: Callable[[str, float], None] = lambda _agent, _ms: None,
    ) -> None:
        self._agents = agents
        self._accounts = Accounts(lambda agent: account(*astuple(agents.place(agent))))
        self._local = local
        # This device as other devices see it.
        self.device = device
        self._rename = rename
        self.sealing = sealing
        self._settings = settings
        self._waiting = waiting
        self._problems = problems
        self._usage = usage
        self._done = done
        self._loops: dict[str, Loop] = {}
        # The last state of an agent's loop: the next loop continues its counts.
        self._before: dict[str, ReplicationStatus] = {}
        self._rounds: dict[str, deque[Round]] = {}
        self._databases = Databases(connect)
        self._starting = asyncio.Lock()
        # Closed agents whose replica may lack something, or is still to be sealed.
        self._owing: set[str] = set()
        # The address of the replica of `HOME`, None if it has none; "": not looked yet.
        self._home: str | None = ""
        self._discovery = Discovery(
            agents,
            self._accounts,
            self._databases,
            sealing=sealing,
            poll_seconds=lambda: settings().sync.poll_seconds,
            problems=problems,
            replicate=self.look_after,
        )
        self._changed = asyncio.Event()
        agents.followers.append(self._changed.set)

    def changed(self, agent: str, kinds: frozenset[str]) -> None:
        loop = self._loops.get(agent)
        if loop is not None:
            loop.changed(kinds)

    def poll_soon(self, agent: str) -> None:
        """Look at once for what other devices have sent: a question here had no answer."""
        loop = self._loops.get(agent)
        if loop is not None:
            loop.replicator.poll_soon()

    async def run(self) -> None:
        """Start and end loops as needed, until cancelled."""
        names = await asyncio.to_thread(self._agents.names)
        self._discovery.known.update(names)
        self._owing = await asyncio.to_thread(
            lambda: {name for name in names if outbox.unsent(self._agents.place(name).folder)}
        )
        while True:
            self._changed.clear()
            open_agents = self._agents.open_stores().keys()
            self._discovery.known |= open_agents
            await self._find_owing()
            for agent in sorted(open_agents | self._owing):
                await self.look_after(agent)
            for agent, loop in list(self._loops.items()):
                if loop.ended:
                    await self._end(loop)
                elif agent not in self._agents.open_stores():
                    # A closed memory's unsent rows are sent at once.
                    if not loop.owing:
                        await self._end(loop)
                    elif loop.replicator.state.phase == "idle":
                        loop.replicator.wake()
            if any(loop.replicator.copied for loop in self._loops.values()):
                await self._take_other_id()
            self._discovery.soon()
            await self._usage.save()
            closing = self._loops.keys() - self._agents.open_stores().keys()
            poll_seconds = self._settings().sync.poll_seconds
            busy = bool(self._databases.in_use) and poll_seconds < _LOOK_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BUSY_SECONDS if closing or busy else _LOOK_SECONDS):
                    await self._changed.wait()

    async def _find_owing(self) -> None:
        """Find closed agents that another replica lacks since, or whose replica is to be sealed."""
        home = None
        with contextlib.suppress(ThermoclineError):
            account = await self._accounts.read(HOME)
            home = None if account is None else account.url
        is_other, self._home = self._home not in ("", home), home
        known = self._discovery.known
        owing = known if is_other else await self.sealing.switching(known)
        if owing and home is not None:
            self._owing |= owing & {*await asyncio.to_thread(self._agents.names)}

    async def look_after(self, agent: str) -> None:
        """Replicate the agent by the account in force; report an unusable account."""
        try:
            loop = await self._start(agent)
        except ThermoclineError as error:
            # What the configuration named before is not what it names now.
            if (running := self._loops.get(agent)) is not None:
                await self._end(running)
            self._owing.discard(agent)
            if (known := self._accounts.known.get(agent)) is not None:
                known.error = error
            self._problems.report(ACCOUNT_PROBLEM, agent, error.message, error.hint or "")
        else:
            self._problems.clear(ACCOUNT_PROBLEM, agent)
            path = loop.account.token_file if loop is not None and loop.account.exposed else ""
            text = f"every user of this machine can read the token in {path}" if path else None
            self._problems.set("token_exposed", agent, text, f"chmod 600 {path}", lasting=False)
            if loop is None:
                self._owing.discard(agent)

    async def sync(self, agent: str, *, urgent_only: bool = False) -> RoundResult:
        """Receive everything, and send everything or the critical state; else `NotFound`."""
        loop = await self._needed(agent)
        with our_errors(loop.account):
            result = await loop.replicator.sync(urgent_only=urgent_only)
        if result.copied:
            await self._take_other_id()
            return await self.sync(agent, urgent_only=urgent_only)
        return result

    async def account(self, agent: str) -> Account | None:
        """The agent's replica by the configuration in force, if any; errors as for `account_of`."""
        return await self._accounts.read(agent)

    async def ask(self, agent: str, question: Callable[[Replica], Awaitable[T]]) -> T:
        """Send a request to the agent's replica, now; `NotFound` if it is not replicated."""
        loop = await self._needed(agent)
        with our_errors(loop.account):
            try:
                return await question(loop.replica)
            except SchemaMissing:
                await loop.replica.prepare(time.time())
                return await question(loop.replica)

    async def ask_each(
        self, agent: str, others: Iterable[str], question: Callable[[Replica], Awaitable[T]]
    ) -> list[T]:
        """`ask` for an agent, and for each other database with which others had contact.

        The first error is raised once all were asked.
        """
        answers: dict[Account, T] = {}
        errors = []
        for name in (agent, *others):
            try:
                account = await self._accounts.read(name)
                if account is None or account in answers:
                    continue
                if name == agent or (await self._local(name).cursor()).epoch:
                    answers[account] = await self.ask(name, question)
            except ThermoclineError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return [*answers.values()]

    async def remote(self, agent: str, account: Account | None = None) -> Remote:
        """The database of an agent, or of an account, as it is, for its keys.

        `NotFound`: the agent is not replicated.
        """
        account = account or await self._accounts.read(agent)
        if account is None:
            raise self._not_replicated(agent)
        return (await self._databases.get(account)).remote

    async def restart(self) -> None:
        """End every loop, start those of open agents as configured now, and look for others."""
        async with self._starting:
            await asyncio.gather(*map(self._end, list(self._loops.values())))
        for agent in sorted(self._agents.open_stores()):
            await self.look_after(agent)
        await self._discovery.now()

    def keys_changed(self) -> None:
        """Publish the keys in the databases in use, and seal older rows with them, soon."""
        for loop in self._loops.values():
            loop.replicator.sign_soon()

    async def wake(self, agents: Iterable[str]) -> None:
        """Replicate those of some agents that are replicated, also what has stopped."""
        for agent in sorted(self._loops.keys() & {*agents}):
            with contextlib.suppress(ThermoclineError):
                await self.sync(agent)

    def status(self, agent: str) -> ReplicationStatus:
        """The state of an agent's replication, as far as known without opening its memory."""
        loop, known = self._loops.get(agent), self._accounts.known.get(agent)
        error = known.error if known is not None else None
        if loop is not None:
            before = self._before.get(agent)
            status = loop.status() if before is None else loop.status().after(before)
            if loop.account.kind == "turso":
                sync = self._settings().sync
                usage = self._usage.of(loop.account.url, sync.prices, sync.budget)
                status = msgspec.structs.replace(status, usage=usage)
        elif error is not None:
            status = ReplicationStatus(replica="unknown", phase="stopped")
        else:
            status = ReplicationStatus(replica="unknown")
            if known is not None and known.account is None:
                key = self._settings().key_to_replicate
                status = ReplicationStatus(replica="none", configured_by=key)
        if error is None or status.error:
            return status
        return msgspec.structs.replace(
            status, error=error.code, message=error.message, hint=error.hint or ""
        )

    def rounds(self, agent: str) -> Sequence[Round]:
        """The last rounds of an agent since the daemon started, latest first."""
        return [*reversed(self._rounds.get(agent, ()))]

    def _note(self, agent: str, round_: Round) -> None:
        rounds = self._rounds.setdefault(agent, deque(maxlen=_ROUNDS))
        if rounds and round_.alike(rounds[-1]):
            round_ = msgspec.structs.replace(round_, times=rounds.pop().times + 1)
        rounds.append(round_)
        self._done(agent, round_.ms)

    async def status_of(self, agent: str, store: AgentStore) -> ReplicationStatus:
        """The state of an open agent's replication, with its outbox."""
        queued, aside = await store.read(lambda db: (outbox.queued(db), outbox.refused(db)))
        status = self.status(agent)
        reasons = tuple(f"{kind} {key[:100]}: {reason}" for kind, key, reason in aside[:10])
        return msgspec.structs.replace(
            status,
            queued=sum(queued.values()),
            outbox=queued,
            set_aside=len(aside),
            notes=tuple(dict.fromkeys((*status.notes, *reasons))),
        )

    async def close(self, most_seconds: float = math.inf) -> None:
        """Send unsent rows within the time limit, and end."""
        seconds = min(self._settings().sync.shutdown_seconds, most_seconds)
        await self._discovery.end()
        stores = self._agents.open_stores()
        owing = {agent for agent, loop in self._loops.items() if loop.owing}
        last = [
            asyncio.create_task(self._last(agent, stores.get(agent)))
            for agent in owing | stores.keys()
        ]
        if last:
            _, late = await asyncio.wait(last, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await asyncio.gather(*map(self._end, list(self._loops.values())))
        await self._databases.close()
        await self._usage.save(at_once=True)

    async def _last(self, agent: str, store: AgentStore | None) -> None:
        try:
            # An agent opened a moment ago has no loop yet.
            loop = await self._start(agent)
            if loop is None:
                return
            queued = await store.read(outbox.queued) if store is not None else {}
            if loop.owing or queued:
                await loop.replicator.sync()
        except (SyncError, ThermoclineError) as error:
            _log.info("the last changes wait: %s", error, extra={"action": "sync_unfinished"})

    async def _take_other_id(self) -> None:
        """Take another device id: another device uses this one, since the folder was copied."""
        async with self._starting:
            copied = [loop for loop in self._loops.values() if loop.replicator.copied]
            if not copied:
                return
            await asyncio.gather(*map(self._end, list(self._loops.values())))
            before = self.device.id
            self.device = await self._rename()
        text = (
            f"the replica has changes of {before} that this device never made, as after copying"
            f" the folder: this device is {self.device.id} now"
        )
        self._problems.report("device_copied", before, text, lasting=False)

    def _not_replicated(self, agent: str) -> NotFound:
        hint = _WAYS_OUT[self._settings().key_to_replicate]
        return NotFound(f"'{agent}' is not replicated: no replica is configured", hint=hint)

    async def _needed(self, agent: str) -> Loop:
        loop = await self._start(agent)
        if loop is None:
            raise self._not_replicated(agent)
        return loop

    async def _start(self, agent: str) -> Loop | None:
        """Replicate the agent by the configuration in force, if it names a replica."""
        account = await self._accounts.read(agent)
        timing = self._settings().sync
        async with self._starting:
            loop = self._loops.get(agent)
            if loop is not None:
                if (loop.account, loop.timing) == (account, timing):
                    return loop
                await self._end(loop)
            if account is None:
                return None
            database = await self._databases.get(account)
            self._loops[agent] = loop = Loop(
                *await self.sealing.replicas(agent, database.remote, database.heads),
                database,
                self._local(agent),
                self.device,
                timing=timing,
                waiting=self._waiting,
                problems=self._problems,
                done=partial(self._note, agent),
                hold_seconds=partial(self._usage.hold_seconds, account.url, timing.budget),
            )
            return loop

    async def _end(self, loop: Loop) -> None:
        """End it, even if the caller is cancelled."""
        await asyncio.shield(self._end_now(loop))

    async def _end_now(self, loop: Loop) -> None:
        """End it, unless it was replaced by another."""
        agent = loop.agent
        if self._loops.get(agent) is not loop:
            return
        self._before[agent] = self.status(agent)
        del self._loops[agent]
        self._owing.discard(agent)
        await loop.end()
        home = self._accounts.known.get(HOME)
        used = {other.account for other in self._loops.values()} | {home.account if home else None}
        if loop.account not in used:
            await self._databases.release(loop.account)
