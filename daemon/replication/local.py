"""One agent's memory as the replicator sees it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from thermocline.sync import Link, Mark, Merged, Outgoing, Row

from ..store import critical, incoming, link, mending, outgoing
from ..store.agents import Agents
from ..store.transaction import Transaction

# Beyond this others would wait for the writer for more than some hundredths of a second.
_SWEPT_AT_ONCE: Final = 256
_MERGED_AT_ONCE: Final = 64


class AgentLocal:
    """The rows of one agent, opened for as long as each call takes.

    Every method raises `ThermoclineError` where the memory cannot be opened, read or written.
    """

    def __init__(self, agents: Agents, agent: str) -> None:
        self._agents = agents
        self._agent = agent

    async def link(self) -> Link:
        """How far the replica was followed."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.read(link.load)

    async def relink(self, to: Link) -> None:
        """Begin with another replica."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            await store.write(partial(link.relink, link=to))

    async def outgoing(self, kinds: frozenset[str] | None, limit: int) -> list[Outgoing]:
        """What the replica still has to hear."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.read(partial(outgoing.read, kinds=kinds, limit=limit))

    async def sent(self, marks: Sequence[Mark], seq: int, to: Link) -> None:
        """The replica has heard of these rows."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            await store.write(partial(link.sent, marks=marks, seq=seq, link=to))

    async def merge(self, rows: Sequence[Row], to: Link) -> Merged:
        """Take over what is newer in `rows`."""
        changed = refused = 0
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            while len(rows) > _MERGED_AT_ONCE:
                group, rows = rows[:_MERGED_AT_ONCE], rows[_MERGED_AT_ONCE:]
                merged = await store.write(partial(_merge_some, rows=group))
                changed, refused = changed + merged.changed, refused + merged.refused
            merged = await store.write(partial(incoming.merge, rows=rows, to=to))
            return Merged(changed + merged.changed, refused + merged.refused)

    async def forget_before(self, seq: int) -> None:
        """Drop the tombstones that every device has received."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            await store.write(partial(link.forget_before, seq=seq))

    async def sweep(self, keep: frozenset[tuple[str, str]]) -> int:
        """Remove what was deleted elsewhere so long ago that no trace of it is left."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            gone = await store.read(partial(link.sweep, keep=keep))
            removed = 0
            for start in range(0, len(gone), _SWEPT_AT_ONCE):
                group = gone[start : start + _SWEPT_AT_ONCE]
                removed += await store.write(partial(_remove, gone=group))
            return removed

    async def critical(self) -> str:
        """The hot state and the tree in EvoClaw's shape."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.read(partial(critical.document, now=store.now, rules=store.rules))

    async def adopt_critical(self, data: str) -> bool:
        """Add what another tool's hot state and tree have and ours has not."""
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.write(partial(critical.adopt, data=data))


def _merge_some(tx: Transaction, rows: Sequence[Row]) -> Merged:
    """Merge a part of what came: an interruption leads back to where all of it begins."""
    return incoming.merge(tx, rows, link.load(tx.db))


def _remove(tx: Transaction, gone: Sequence[tuple[str, str]]) -> int:
    """Remove what nobody has changed since it was looked at."""
    removed = [one for one in gone if not link.awaited(tx.db, *one)]
    for kind, key in removed:
        incoming.remove(tx, kind, key)
    if removed:
        mending.swept(tx)
        # The state files show a version that is not to be taken for this one.
        tx.version()
    return len(removed)
