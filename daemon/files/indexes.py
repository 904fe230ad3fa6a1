"""The indexes of all open agents: watches their folders, and starts their updates."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from ..config.settings import IndexSettings
from ..runtime.problems import Problems, first_names
from ..store import watched
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.transaction import Event
from .chunk_index import ChunkIndex
from .walker import Identity
from .watcher import Watcher, WatchLostError

# The interval of checks without events: for single files, and roots that appear or vanish.
_IDLE_SECONDS: Final = 2.0
# The interval while changes are coming in.
_CHANGING_SECONDS: Final = 0.05
# The pause after a failure to watch: in seconds, and as a multiple of the time of a scan.
_LOST_SECONDS: Final = 5.0
_LOST_SCANS: Final = 50.0
_LOST: Final = "files_not_watched"
_MISSING: Final = "watched_path_missing"
_NAMED: Final = 3


class Indexes:
    """Keeps the index of each open agent up to date.

    Closed agents are not watched; when an agent is opened, everything is scanned again. `granted`
    are the paths that the configuration gives each agent; `state_dir` is never indexed, except an
    agent's own notes.
    """

    def __init__(
        self,
        agents: Agents,
        rules: Callable[[], IndexSettings],
        granted: dict[str, tuple[str, ...]],
        *,
        state_dir: Path,
        publish: Callable[[str, Event], None],
        problems: Problems,
    ) -> None:
        self._agents = agents
        self._rules = rules
        self._granted = granted
        self._state_dir = state_dir
        self._publish = publish
        self._problems = problems
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._indexes: dict[str, ChunkIndex] = {}
        self._soon = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._watcher = Watcher(self._told)
        self._watched: dict[str, Identity] = {}
        self._looking = asyncio.Lock()
        self._lost_until = 0.0
        self._uses = 0
        agents.followers.append(self._soon.set)

    async def run(self) -> None:
        """Follow the files until cancelled; then end what is under way."""
        try:
            while True:
                changing = await self.check(at_once=False)
                wait = _CHANGING_SECONDS if changing else _IDLE_SECONDS
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._soon.wait()
        finally:
            for index in self._indexes.values():
                await index.leave()
            self._indexes.clear()
            self._watcher.close()

    def granted(self, agent: str) -> tuple[Path, ...]:
        """The paths that the configuration gives an agent."""
        return tuple(Path(os.path.realpath(path)) for path in self._granted.get(agent, ()))

    def of(self, store: AgentStore) -> ChunkIndex:
        """The index of an open agent."""
        agent = store.place.agent
        index = self._indexes.get(agent)
        if index is None or index.store is not store:
            index = self._indexes[agent] = ChunkIndex(
                store,
                self._rules,
                self.granted(agent),
                state_dir=self._state_dir,
                thread=self._thread,
                publish=self._publish,
                busy=self._is_busy,
                # There may be other folders to watch.
                brought=self._soon.set,
                problems=self._problems,
            )
            self._soon.set()
        return index

    def on_event(self, agent: str, event: Event) -> None:
        """Handle an event of an agent: its paths may have changed."""
        if event.type == watched.EVENT and agent in self._indexes:
            self._indexes[agent].mark_dirty()
            self._soon.set()

    async def catch_up(self, store: AgentStore, seconds: float) -> bool | None:
        """Wait for an index that is not up to date; None if it was when this was called."""
        index = self.of(store)
        if index.in_step.is_set():
            update = index.last
            await self.check(at_once=True)
            if index.in_step.is_set():
                # Another caller may have had it updated meanwhile.
                return True if index.last is not update else None
        return await self.in_step(store, seconds)

    async def in_step(self, store: AgentStore, seconds: float) -> bool:
        """Wait until an agent's index is up to date; False if it fails, or takes more `seconds`."""
        index = self.of(store)
        try:
            async with asyncio.timeout(seconds):
                await self.check(at_once=True)
                return await index.settled()
        except TimeoutError:
            return False

    async def check(self, *, at_once: bool) -> bool:
        """Handle changes, and start updates that are due; whether changes are still coming in.

        `at_once`: neither wait for a notification nor for further changes.
        """
        async with self._looking:
            await self._follow()
            changes = await self._changes(at_once=at_once)
            now = time.monotonic()
            debounce = self._rules().debounce_ms / 1000
            waiting = False
            for index in self._indexes.values():
                index.changed(changes)
                index.tick(at_once=at_once)
                if index.since is not None:
                    waiting = True
                    if at_once or not changes or now - index.since >= debounce:
                        index.begin()
            return waiting

    async def _follow(self) -> None:
        """Create the index of each newly opened agent; drop those of closed agents."""
        stores = self._agents.open_stores()
        for agent, index in list(self._indexes.items()):
            if stores.get(agent) is not index.store:
                del self._indexes[agent]
                await index.leave()
                self._problems.clear(_MISSING, agent)
        for store in stores.values():
            state = self.of(store).state
            named = first_names(state.missing, _NAMED)
            self._problems.set(
                _MISSING,
                store.place.agent,
                f"not on this device: {named}" if named else None,
                "bring the files here, or `thermocline index remove` the path",
                lasting=False,
            )

    async def _changes(self, *, at_once: bool) -> set[str]:
        """The changed places; if changes may have been missed, everything is rescanned."""
        folders = {p: i for index in self._indexes.values() for p, i in index.folders.items()}
        if not self._rules().watch or time.monotonic() < self._lost_until:
            folders = {}
        if not (at_once or self._soon.is_set()) and folders == self._watched:
            return set()
        self._soon.clear()
        try:
            read = partial(self._watcher.changes, folders)
            changes = await self._loop.run_in_executor(self._thread, read)
            self._watched = folders
        except WatchLostError as error:
            self._watched = {}
            scans = max((index.scan_seconds for index in self._indexes.values()), default=0.0)
            self._lost_until = time.monotonic() + max(_LOST_SECONDS, _LOST_SCANS * scans)
            self._problems.report(
                _LOST,
                "/files",
                f"cannot watch the files: {error}",
                "they are looked at every few seconds; raise fs.inotify.max_user_watches",
                lasting=False,
            )
            for index in self._indexes.values():
                index.mark_dirty()
            return set()
        if folders:
            self._problems.clear(_LOST, "/files")
        for index in self._indexes.values():
            index.watching = bool(folders) or (self._rules().watch and not index.folders)
        return changes

    def _told(self) -> None:
        with suppress(RuntimeError):  # The daemon has stopped.
            self._loop.call_soon_threadsafe(self._soon.set)

    def _is_busy(self) -> bool:
        """Whether an agent was used since the last call."""
        uses = sum(map(self._agents.uses, self._indexes))
        changed, self._uses = uses != self._uses, uses
        return changed
