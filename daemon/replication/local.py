"""One agent's memory as the replicator sees it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from thermocline.sync import Applied, Link, Pending, Received

from ..store import apply, outbox
from ..store.agents import Agents
from ..store.transaction import Transaction

T = TypeVar("T")


class AgentLocal:
    """The rows of one agent, opened for each call; implements `Local`.

    Every method raises `ThermoclineError` if the memory cannot be opened, read or written.
    """

    # Larger transactions would delay other writers by some hundredths of a second.
    rows_at_once = 256

    def __init__(self, agents: Agents, agent: str) -> None:
        self._agents = agents
        self._agent = agent

    async def link(self) -> Link:
        """The position up to which the replica was received."""
        return await self.read(outbox.link)

    async def pending(
        self, kinds: frozenset[str] | None, limit: int, max_bytes: int
    ) -> list[Pending]:
        """Rows that the replica does not have."""
        read = partial(outbox.pending, kinds=kinds, limit=limit, max_bytes=max_bytes)
        return await self.read(read)

    async def taken(self, rows: Sequence[Pending], link: Link) -> None:
        """The replica has these versions now."""
        await self.write(partial(outbox.taken, rows=rows, link=link))

    async def apply(self, rows: Sequence[Received], link: Link) -> Applied:
        """Merge rows of the replica. After an interruption all of them are merged again."""
        total = Applied()
        while len(rows) > self.rows_at_once:
            part, rows = rows[: self.rows_at_once], rows[self.rows_at_once :]
            total += await self.write(partial(apply.apply, came=part))

        def last(tx: Transaction) -> Applied:
            applied = apply.apply(tx, rows)
            outbox.follow(tx, link)
            return applied

        return total + await self.write(last)

    async def over(self, rows: Sequence[Pending]) -> None:
        """The replica has other versions in place of these rows."""
        await self.write(partial(outbox.over, rows=rows))

    async def set_aside(self, row: Pending, reason: str) -> None:
        """The replica cannot take this version."""
        await self.write(partial(outbox.set_aside, row=row, reason=reason))

    async def offer_all(self, link: Link) -> None:
        """Mark all rows as pending, for another replica."""
        await self.write(partial(outbox.offer_all, link=link))

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read from the memory."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.read(read)

    async def write(self, write: Callable[[Transaction], T]) -> T:
        """Write to the memory, in one transaction."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.write(write)
