"""Keeping an agent's archive within what its device may hold, where a replica has the rest."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from thermocline.sync import Replica, Row, SyncError

from ..errors import InvalidInput, ThermoclineError
from ..problems import Problems
from ..store import link, remote_rows, returning, thinning
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction
from .account import Account
from .asking import fetched
from .following import Following
from .replicas import Replicas

_LEFT_BEHIND: Final = "memories_left_behind"
# Some ten milliseconds of the writer's time, which a store may have to wait for.
_AT_ONCE: Final = 64
# What one look moves at most; the rest waits for the next.
_IN_ONE_LOOK: Final = 2048
# To find what may leave costs a look at the whole archive: not again and again in vain.
_PAUSE_SECONDS: Final = 3600.0


class Thinning:
    """Leaves to the replica what an archive has no room for, and takes it back where it has.

    Nothing leaves before the replica has shown it, whole and at the same version; what is on its
    way in either direction when the daemon ends is as it was.

    Args:
        replicas: the replicas of all agents.
        max_bytes: what an archive may take on this device; 0: any number.
        problems: where memories are told that only a former replica has.
    """

    def __init__(
        self, replicas: Replicas, max_bytes: Callable[[], float], problems: Problems
    ) -> None:
        self._replicas = replicas
        self._max_bytes = max_bytes
        self._problems = problems
        self._paused: dict[str, tuple[float, float]] = {}

    async def __call__(self, store: AgentStore) -> None:
        """Bring one agent's archive within its limit, as far as the replica can be reached.

        Raises:
            ThermoclineError: the memory cannot be read or written.
        """
        most = self._max_bytes()
        if not most and not await store.elsewhere():
            return
        following = await self._following(store)
        if following is None:
            return
        try:
            await self._fit(store, following, most)
        except SyncError:
            # The replicator meets the same, tells of it and tries again; so does the next look.
            return

    async def _following(self, store: AgentStore) -> Following | None:
        """What follows the agent's replica, if that works at the moment."""
        try:
            following = await self._replicas.following(store.place.agent)
        except ThermoclineError:
            # Without a replica, or with an account that is none, which is told elsewhere.
            return None
        state = following.replicator.state
        return None if state.error is not None or state.last_success is None else following

    async def _fit(self, store: AgentStore, following: Following, most: float) -> None:
        replica = following.replica
        poll = await replica.poll()
        known = await store.read(link.load)
        if poll.epoch != known.epoch or poll.pruned > known.seen or poll.seq < known.seen:
            return
        await self._tell_left_behind(store)
        if await store.elsewhere():
            await self._take_back(store, replica, most)
        if most and not _beside(following.account, store.place.folder):
            await self._leave(store, replica, most, known.epoch)

    async def _leave(self, store: AgentStore, replica: Replica, most: float, epoch: str) -> None:
        agent, (until, limit) = store.place.agent, self._paused.get(store.place.agent, (0.0, most))
        if time.monotonic() < until and limit == most:
            return

        def leaving(db: sqlite3.Connection) -> list[str]:
            return thinning.leaving(db, most, _IN_ONE_LOOK, store.now, store.rules.scoring)

        if not await store.read(partial(thinning.is_beyond, most=most)):
            return
        gone = 0
        for group in _groups(await store.read(leaving)):
            rows = await fetched(replica, group)
            gone += await store.write(partial(thinning.leave, rows=rows, epoch=epoch))
        if not gone:
            self._paused[agent] = (time.monotonic() + _PAUSE_SECONDS, most)

    async def _take_back(self, store: AgentStore, replica: Replica, most: float) -> None:
        def back(db: sqlite3.Connection) -> list[str]:
            room = most or None
            return thinning.coming_back(db, room, _IN_ONE_LOOK, store.now, store.rules.scoring)

        for group in _groups(await store.read(back)):
            rows = await fetched(replica, group)
            await store.write(partial(_taken_back, rows=rows))

    async def _tell_left_behind(self, store: AgentStore) -> None:
        agent = store.place.agent
        number = await store.read(remote_rows.left_behind) if await store.elsewhere() else 0
        if not number:
            self._problems.clear(_LEFT_BEHIND, agent)
            return
        self._problems.report(
            _LEFT_BEHIND,
            agent,
            f"{number} memories of '{agent}' are on a replica that is not followed any more",
            "follow that one again, with cold.local_max_mb 0, until they are back here",
            lasting=False,
        )


def _taken_back(tx: Transaction, rows: Sequence[Row]) -> None:
    for row in rows:
        try:
            returning.take_back(tx, row)
        except (msgspec.MsgspecError, InvalidInput):
            # A later release has written it; it stays where it is.
            continue


def _groups(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]


def _beside(account: Account, folder: Path) -> bool:
    """Whether the replica is in the agent's own folder, so that leaving it there wins nothing."""
    if account.kind != "file":
        return False
    path = Path(account.url.removeprefix("file:"))
    return path.resolve().is_relative_to(folder.resolve())
