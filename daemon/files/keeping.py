"""Keeping a workspace and its rows in step, in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from ..errors import ThermoclineError
from ..memory.workspace import FOLDER
from ..problems import Problems
from ..store import files
from ..store.agent_store import AgentStore
from ..store.database import translate_os
from ..store.workspace_files import Skipped, identity
from .looking import Left, Look, look
from .placing import place, remove

_LEFT: Final = "files_not_replicated"
_AT_ONCE: Final = 64
_NAMED: Final = 3


class Workspaces:
    """Brings what is new in a workspace into the memory, and what is new there into the files.

    Whoever writes into a workspace need not know of it: a file that is just being written is
    left for the next time, and one that was written meanwhile is never written over.

    Args:
        state_dir: never taken for a part of a workspace that it lies in.
        wanted: whether an agent's workspace is replicated at all.
        problems: where files that cannot be replicated are told.
    """

    def __init__(self, state_dir: Path, wanted: Callable[[], bool], problems: Problems) -> None:
        self._state_dir = state_dir
        self._wanted = wanted
        self._problems = problems
        self._left: dict[str, dict[str, Left]] = {}
        # Two agents may share a folder.
        self._one_at_a_time = asyncio.Lock()

    async def keep(self, store: AgentStore) -> None:
        """Bring one agent's workspace and memory in step.

        Raises:
            ThermoclineError: the memory or the folder cannot be read or written; nothing is lost,
                and the next call goes on.
        """
        if not self._wanted():
            self._problems.clear(_LEFT, store.place.agent)
            return
        top = (store.place.workspace or store.place.folder) / FOLDER
        async with self._one_at_a_time:
            try:
                await self._take_in(store, top)
                barred = await self._put_out(store, top)
            except OSError as error:
                raise translate_os(error, top) from error
        self._tell(store.place.agent, top, barred)

    async def keep_all(self, stores: Iterable[AgentStore]) -> None:
        """Bring several in step, as far as that is possible."""
        for store in stores:
            with suppress(ThermoclineError):
                await self.keep(store)

    async def _take_in(self, store: AgentStore, top: Path) -> None:
        """Bring what has changed on the disk into the rows."""
        never = identity(self._state_dir)
        left = self._left.get(store.place.agent, {})
        while True:
            known = await store.read(files.known)
            seen: Look = await asyncio.to_thread(look, top, known, left, never)
            if seen.found or seen.vanished:
                news = partial(files.take, found=seen.found, vanished=seen.vanished)
                await store.write(news)
            if not seen.more:
                break
        self._left[store.place.agent] = {one.path: one for one in seen.left}

    async def _put_out(self, store: AgentStore, top: Path) -> list[Skipped]:
        """Bring what has changed in the rows onto the disk."""
        known = await store.read(files.known)
        gone = {path: row.stand for path, row in known.items() if row.gone}
        if gone:
            paths = await asyncio.to_thread(remove, top, gone)
            await store.write(partial(files.removed, paths=paths))
        barred: list[Skipped] = []
        after = ""
        while group := await store.read(partial(files.unplaced, after=after, limit=_AT_ONCE)):
            after = group[-1].path
            written, cannot = await asyncio.to_thread(place, top, group)
            barred += cannot
            if written:
                await store.write(partial(files.placed, written=written))
        return barred

    def _tell(self, agent: str, top: Path, barred: Sequence[Skipped]) -> None:
        left = [(one.path, one.why) for one in self._left[agent].values()]
        left += [(one.path, one.why) for one in barred]
        if not left:
            self._problems.clear(_LEFT, agent)
            return
        named = "; ".join(f"{path} ({why})" for path, why in left[:_NAMED])
        more = f"; and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        self._problems.report(
            _LEFT,
            agent,
            f"not every file in {top} is replicated: {named}{more}",
            "make them smaller, or keep a copy elsewhere; `thermocline backup` holds them",
            lasting=False,
        )
