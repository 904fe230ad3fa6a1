"""The indexes of all open agents: watches their folders by inotify, and starts their updates."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from ..config.settings import IndexSettings
from ..runtime.problems import Problems, first_names
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.database.transaction import Event
from ..store.records import watched
from .chunk_index import ChunkIndex
from .walker import Identity

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify


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
        self._watcher = Watcher(self._on_changes)
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
                return await index.wait_in_step()
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
        is_lost = time.monotonic() < self._lost_until
        if not folders and not is_lost:
            self._problems.clear(_LOST, "/files")
        if not self._rules().watch or is_lost:
            folders = {}
        if not (at_once or self._soon.is_set()) and folders == self._watcher.folders:
            return set()
        self._soon.clear()
        try:
            read = partial(self._watcher.changes, folders)
            changes = await self._loop.run_in_executor(self._thread, read)
        except WatchLostError as error:
            scans = max((index.scan_seconds for index in self._indexes.values()), default=0.0)
            self._lost_until = time.monotonic() + max(_LOST_SECONDS, _LOST_SCANS * scans)
            # The library cannot say which file has changed if its name is not UTF-8.
            fix = "rename it" if "decode" in str(error) else "raise fs.inotify.max_user_watches"
            self._problems.report(
                _LOST,
                "/files",
                f"cannot watch the files: {error}",
                f"they are looked at every few seconds; {fix}",
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

    def _on_changes(self) -> None:
        with suppress(RuntimeError):  # The daemon has stopped.
            self._loop.call_soon_threadsafe(self._soon.set)

    def _is_busy(self) -> bool:
        """Whether an agent was used since the last call."""
        uses = sum(map(self._agents.uses, self._indexes))
        changed, self._uses = uses != self._uses, uses
        return changed


# The polling interval of the waiting thread, which takes 0.03 % of a processor.
_STEP_SECONDS: Final = 0.2
# A change that is not reported after this time never is.
_UNREPORTED_SECONDS: Final = 2
_SOON_SECONDS: Final = 0.001
# Folders may vanish while a watch is set up.
_TRIES: Final = 10


class WatchLostError(Exception):
    """Changes may have been missed, or cannot be seen at all."""


class Watcher:
    """The changes in some folders since the last call of `changes`.

    Each folder is watched without its subfolders, so that no link is followed and excluded folders
    cost nothing. `changed` is called on another thread after a change.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._watch: _Watch | None = None
        self.folders: dict[str, Identity] = {}  # those that are watched

    def changes(self, folders: Mapping[str, Identity]) -> set[str]:
        """Watch these folders from now on; return the paths that changed since the last call.

        A newly watched folder counts as changed. Blocking; not thread-safe. `WatchLostError`:
        changes were lost, or the system's limit of watches is reached; all watching has ended.
        """
        try:
            changed = self._watch.drain() if self._watch is not None else set()
            if folders != self.folders:
                changed |= {path for path, at in folders.items() if self.folders.get(path) != at}
                # The old watch ends after the new one starts, so that no change is missed.
                new = _Watch(list(folders), self._changed) if folders else None
                if self._watch is not None:
                    changed |= self._watch.drain()
                    self._watch.stop.set()
                self._watch, self.folders = new, dict(folders)
        except WatchLostError:
            self.close()
            raise
        return changed

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.stop.set()
        self._watch, self.folders = None, {}


class _Watch:
    """A set of watched folders, and the thread that waits for changes.

    A file without a name is watched with them: the kernel reports changes in their order, so that
    all before a change of this file are known once that is.

    Raises:
        WatchLostError: the system's limit of watches is reached.
    """

    def __init__(self, folders: list[str], changed: Callable[[], None]) -> None:
        self.stop = threading.Event()
        self._changed = changed
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._lost = ""
        self._last = os.memfd_create("changes")
        self._last_path = f"/proc/self/fd/{self._last}"
        try:
            self._notify = _begin([*folders, self._last_path])
        except WatchLostError:
            os.close(self._last)
            raise
        threading.Thread(target=self._wait, name="file changes", daemon=True).start()

    def drain(self) -> set[str]:
        """The paths that changed since the last call; `WatchLostError` if some were lost."""
        with self._lock:
            self._take()
            seen, self._seen = self._seen, set()
        return seen

    def _take(self) -> None:
        """Note all that has changed until now."""
        if self._lost:
            raise WatchLostError(self._lost)
        until = time.monotonic() + _UNREPORTED_SECONDS
        os.utime(self._last)
        while self._last_path not in self._seen:
            try:
                # Returning without a change would drop a change that comes just then.
                changes = self._notify.watch(0, 0, _UNREPORTED_SECONDS * 1_000, _Pauses())
            except RuntimeError as error:
                self._lose(str(error))
            if isinstance(changes, str) or time.monotonic() > until:
                self._lose("the system does not report changes")
            self._seen.update(path for _, path in changes)
        self._seen.remove(self._last_path)

    def _lose(self, reason: str) -> NoReturn:
        self._lost = reason
        self.stop.set()
        raise WatchLostError(reason)

    def _wait(self) -> None:
        while not self.stop.wait(_STEP_SECONDS):
            with self._lock, suppress(WatchLostError):
                self._take()
            if self._seen or self._lost:
                self._changed()
        with self._lock:
            self._notify.close()
            os.close(self._last)


class _Pauses:
    """Asked by `watch` between two looks: changes are there in 30 microseconds, or much later."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def is_set(self) -> bool:
        """Wait for a moment, if there was no change for a millisecond."""
        if time.monotonic() - self._begun > _SOON_SECONDS:
            time.sleep(_SOON_SECONDS)
        return False


def _begin(folders: list[str]) -> RustNotify:
    # Imported when there is something to watch.
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415

    for _ in range(_TRIES):
        try:
            return RustNotify(folders, False, False, 300, False, True)
        except FileNotFoundError:
            folders = [folder for folder in folders if Path(folder).exists()]
        except (OSError, RuntimeError) as error:
            raise WatchLostError(str(error)) from error
    raise WatchLostError("folders keep vanishing")
