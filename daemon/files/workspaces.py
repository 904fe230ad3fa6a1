"""Keeps the notes of a workspace and their rows equal, in both directions.

Other programs write into a workspace without a lock: a file that is being written is left for the
next run, and a file that has changed meanwhile is never replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ..memory.workspace import FOLDER
from ..runtime.problems import Problems, first_of, unforeseen
from ..store import notes
from ..store.agent_store import AgentStore
from ..store.database import translate_os
from . import walker
from .walker import Skipped
from .workspace_files import Left, look, place_locked, remove_unfinished

_LEFT_OUT: Final = "files_not_replicated"
_TROUBLE: Final = "workspace_trouble"
_NAMED: Final = 3
_PLACED_AT_ONCE: Final = 16


class Workspaces:
    """Copies changes of a workspace into the memory, and changes of the memory into files.

    Args:
        state_dir: skipped if a workspace contains it.
        wanted: whether workspaces are replicated.
        problems: receives files that cannot be replicated.
    """

    def __init__(self, state_dir: Path, wanted: Callable[[], bool], problems: Problems) -> None:
        self._state_dir = state_dir
        self._wanted = wanted
        self._problems = problems
        self._left: dict[str, dict[str, Left]] = {}
        # Two agents may share a folder.
        self._one_at_a_time = asyncio.Lock()

    async def keep(self, store: AgentStore) -> None:
        """Synchronise one agent's workspace and memory.

        Raises:
            ThermoclineError: the memory or the folder cannot be read or written; nothing is lost,
                and the next call continues.
        """
        agent = store.place.agent
        if not self._wanted():
            self._problems.clear(_LEFT_OUT, agent)
            return
        top = (store.place.workspace or store.place.folder) / FOLDER
        async with self._one_at_a_time:
            try:
                left = await self._take_in(store, top)
                barred = await _put_out(store, top)
            except OSError as error:
                raise translate_os(error, top) from error
        self._left[agent] = {one.path: one for one in left}
        self._report(agent, top, [*left, *barred])

    async def keep_all(self, stores: Iterable[AgentStore]) -> None:
        """Synchronise several; a failure of one is reported, and the others continue."""
        for store in stores:
            agent = store.place.agent
            try:
                await self.keep(store)
            except Exception as error:  # noqa: BLE001 - of one agent alone
                kind, _ = unforeseen(error)
                message = f"cannot replicate the notes of '{agent}': {kind}"
                self._problems.report(_TROUBLE, agent, message, lasting=False)
            else:
                self._problems.clear(_TROUBLE, agent)

    async def _take_in(self, store: AgentStore, top: Path) -> list[Left]:
        """Read changed files into the rows."""
        left = self._left.get(store.place.agent, {})
        never = walker.identity(self._state_dir)
        while True:
            known = await store.read(notes.known)
            seen = await asyncio.to_thread(look, top, known, left, never)
            if seen.found or seen.vanished:
                news = partial(notes.take, found=seen.found, vanished=seen.vanished)
                await store.write(news)
            if not seen.more:
                break
        if seen.unfinished:
            await asyncio.to_thread(remove_unfinished, top, seen.unfinished)
        return seen.left

    def _report(self, agent: str, top: Path, left: Sequence[Left | Skipped]) -> None:
        named = first_of([f"{one.path} ({one.why})" for one in left], _NAMED, "; ")
        self._problems.set(
            _LEFT_OUT,
            agent,
            f"not every file in {top} is replicated: {named}" if left else None,
            "make them smaller, or keep a copy elsewhere; `thermocline backup` holds them",
            lasting=False,
        )


async def _put_out(store: AgentStore, top: Path) -> list[Skipped]:
    """Write changed rows to the disk; return the paths that are blocked."""
    barred: list[Skipped] = []
    after = ""
    while group := await store.read(partial(notes.waiting, after=after, limit=_PLACED_AT_ONCE)):
        after = group[-1].path
        written, cannot = await asyncio.to_thread(place_locked, top, group)
        barred += cannot
        if written:
            await store.write(partial(notes.placed, written=written))
    return barred
