"""One-off calls: a database that a caller names, and that the agent does not follow."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from thermocline.sync import Replica, Row, SyncError, Tally, TryLater

from ..errors import ReplicaAway, ReplicaRefused, ThermoclineError
from ..store import incoming, link, memories, memory_rows, outgoing
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.transaction import Transaction
from .account import Account
from .local import AgentLocal
from .replicas import Connect, Question, answer

T = TypeVar("T")
_MOST_OPEN: Final = 4
_MOST_CONFLICTS: Final = 5
_BY_ANOTHER_TOOL: Final = -1


class OneOffs:
    """Calls of databases that are opened for one call each, and closed after it.

    How far the agent's own replica was followed, and what that still has to hear, is not touched;
    but what a call brings into the memory, its own replica has to hear as well.

    Args:
        agents: the memories.
        connect: opens a remote.
        device: this device's id.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        agents: Agents,
        connect: Connect,
        device: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._agents = agents
        self._connect = connect
        self._device = device
        self._now = now
        self._room = asyncio.Semaphore(_MOST_OPEN)

    async def ask(self, agent: str, account: Account, question: Question[T]) -> T:
        """Ask a database something about an agent, which need not be known here.

        Raises:
            ReplicaAway, ReplicaRefused: it did not answer, or refused.
        """
        async with self._replica(agent, account) as replica:
            return await answer(replica, question, self._now())

    async def send(self, agent: str, account: Account, ids: Sequence[str]) -> Tally:
        """Send memories, by their ids or the beginnings of them.

        Raises:
            NotFound: there is no such memory, or no such agent.
            ReplicaAway, ReplicaRefused: the database did not answer, or refused.
        """
        async with self._agents.use(agent, create=False) as store:
            rows = await store.read(partial(_statements, ids=ids))
        async with self._replica(agent, account) as replica:
            await replica.prepare(self._now())
            # A text may be nearly as long as a batch may be.
            for row in rows:
                await replica.push([row])
        return Tally(sent=len(rows))

    async def send_critical(self, agent: str, account: Account) -> Tally:
        """Send the hot state and the tree, once what others have written there is merged in.

        Raises:
            NotFound: there is no such agent.
            ReplicaAway, ReplicaRefused: the database did not answer, or refused.
        """
        local, tally = AgentLocal(self._agents, agent), Tally()
        async with (
            self._agents.use(agent, create=False) as store,
            self._replica(agent, account) as replica,
        ):
            await replica.prepare(self._now())
            for _ in range(_MOST_CONFLICTS):
                known = await self._merge(store, local, replica, tally)
                rows = await store.read(_critical)
                if rows:
                    await replica.push(rows)
                    tally.sent = len(rows)
                data = await local.critical()
                if await replica.put_critical(data, known, self._device, self._now()) is not None:
                    return tally
        raise ReplicaAway("busy", "the database: others write the critical state all the time")

    async def _merge(
        self, store: AgentStore, local: AgentLocal, replica: Replica, tally: Tally
    ) -> int:
        """Take in what is there; return the version of the critical state that this knows."""
        found = await replica.critical()
        rows = await replica.of_kinds(outgoing.CRITICAL)
        tally.received += await store.write(partial(_take_in, rows=rows))
        if found is None:
            return 0
        data, version = found
        if version == _BY_ANOTHER_TOOL and not await local.adopt_critical(data):
            tally.refused += 1
        return version

    @asynccontextmanager
    async def _replica(self, agent: str, account: Account) -> AsyncIterator[Replica]:
        async with self._room:
            try:
                remote = await self._connect(account)
                try:
                    yield Replica(remote, agent)
                finally:
                    await remote.close()
            except SyncError as error:
                raise _ours(error, account) from error


def _ours(error: SyncError, account: Account) -> ThermoclineError:
    """The error of our tree: of a database that nothing is tried again with by itself."""
    message = f"the database: {error.message}"
    if isinstance(error, TryLater):
        return ReplicaAway(error.code, message, hint="ask again later")
    return ReplicaRefused(error.code, message, hint=account.way_out(error.code) or error.hint)


def _statements(db: sqlite3.Connection, ids: Sequence[str]) -> list[Row]:
    keys = [memories.find(db, key).id for key in ids]
    found = (outgoing.row_of(db, memory_rows.KIND, key) for key in keys)
    return [row for row in found if row is not None]


def _critical(db: sqlite3.Connection) -> list[Row]:
    found = (outgoing.row_of(db, kind, key) for kind, key in link.every(db, outgoing.CRITICAL))
    return [row for row in found if row is not None]


def _take_in(tx: Transaction, rows: Sequence[Row]) -> int:
    """Merge rows of which the agent's own replica has not heard; return how many were new.

    To merge takes the marks away of what the replica has: here it is another that has it.
    """
    followed, new = link.load(tx.db), 0
    for row in rows:
        if row.deleted and outgoing.row_of(tx.db, row.kind, row.id) is None:
            continue
        waiting = link.mark(tx.db, row.kind, row.id)
        changed = incoming.merge(tx, [row], followed).changed
        if changed or waiting is not None:
            tx.changed(row.kind, row.id, max(row.clock, waiting or 0))
        new += changed
    return new
