"""The index of one agent: updates the chunks from the files, one file at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from ..config.settings import IndexSettings
from ..errors import ShuttingDown, StoreDamaged, ThermoclineError, reason_of
from ..memory.records import FilesBrought, IndexState, WatchedPath
from ..runtime.fingerprint import Fingerprint
from ..runtime.problems import Problems
from ..store.agent_store import AgentStore
from ..store.database import chunk_database
from ..store.database.memory_database import translated
from ..store.database.transaction import Event
from ..store.records import indexed_files, watched
from . import walker
from .index_database import IndexDatabase, ReadFile, read_file
from .scanning import IndexRoot, Scan, missing, root_fingerprint, roots_of, scan
from .walker import Identity

T = TypeVar("T")
# From this many changed paths on, everything is scanned, which is cheaper and safer.
_MANY: Final = 2_000
# The pause after a failure.
_AGAIN_SECONDS: Final = 5.0
_FAILED: Final = "index_failed"
# The longest wait of each file for recalls, in steps of 5 ms.
_PAUSES: Final = 20
# Between two events of progress.
_PROGRESS_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 1.0


class ChunkIndex:
    """The index of one open agent. Everything that blocks runs on one thread, shared by all agents.

    `granted` are the paths that the configuration gives the agent; `state_dir` is never indexed;
    `thread` executes one call at a time; `busy` says whether the processor is needed for something
    else; `brought` is called after each update.
    """

    def __init__(  # noqa: PLR0913 - what all indexes share
        self,
        store: AgentStore,
        rules: Callable[[], IndexSettings],
        granted: tuple[Path, ...],
        *,
        state_dir: Path,
        thread: Executor,
        publish: Callable[[str, Event], None],
        busy: Callable[[], bool],
        brought: Callable[[], None],
        problems: Problems,
    ) -> None:
        self.store = store
        self._rules = rules
        self._granted = granted
        self._never = walker.identity(state_dir)
        self._thread = thread
        self._publish = publish
        self._busy = busy
        self._brought = brought
        self._problems = problems
        self._database = IndexDatabase(store.place)
        self._place = store.place
        self._not_before = 0.0
        self.roots: list[IndexRoot] = []
        self.folders: dict[str, Identity] = {}  # the folders to watch; the watcher sets `watching`
        self.watching = False
        self.scan_seconds = 0.0  # the duration of the last scan of everything
        self.in_step = asyncio.Event()  # set while the index matches the files, as far as is known
        self._task: asyncio.Task[None] | None = None
        self._paths: set[str] = set()
        self._whole = True
        self._in_force: IndexSettings | None = None
        # The monotonic time since which work is waiting, or None.
        self.since: float | None = time.monotonic()
        self._rescanned = float("-inf")
        self._singles: dict[str, Fingerprint] = {}
        self._ticked = float("-inf")
        self._missing: list[str] = []
        self._files = self._left_out = 0
        self._to_read = 0
        self._reported_at = 0.0
        self._last_sync_at: float | None = None
        self._failure: ThermoclineError | None = None
        self.last = FilesBrought()  # what the last update brought, an object of its own for each
        store.leave_chunks = self.leave

    @property
    def state(self) -> IndexState:
        return IndexState(
            dirty=not self.in_step.is_set(),
            syncing=self._task is not None and not self._task.done(),
            last_sync_at=self._last_sync_at,
            watched_files=self._files,
            left_out=self._left_out,
            watching=self.watching,
            to_read=self._to_read,
            missing=self._missing,
        )

    def paths(self) -> list[WatchedPath]:
        granted = {str(path) for path in self._granted}
        return [
            WatchedPath(
                str(root.top),
                "workspace" if root.of_agent else "config" if root.name in granted else "added",
                str(root.top) in self._missing,
            )
            for root in self.roots
        ]

    def place_of(self, path: str) -> tuple[Path, str] | None:
        """The root folder of a path of the index, and the path below it."""
        root = next((root for root in self.roots if root.holds(path)), None)
        if root is None:
            return None
        below = root.below(path)
        return (root.top, below) if below else (root.top.parent, root.top.name)

    def mark_dirty(self) -> None:
        """Scan everything again, since changes may have been missed."""
        self._whole = True
        self._dirty()

    def changed(self, places: Iterable[str]) -> None:
        """Scan these places on the disk again."""
        paths = set(filter(None, map(self._path_of, places)))
        if paths:
            self._paths |= paths
            self._dirty()

    def tick(self, *, at_once: bool) -> None:
        """Notice changes without events: settings, single files, roots that appear or vanish.

        The files are looked at once a second, or now.
        """
        rules = self._rules()
        if self._in_force is not None and rules is not self._in_force and rules != self._in_force:
            self.mark_dirty()
        due = rules.interval_minutes * 60
        if due and time.monotonic() - self._rescanned > due and not self._whole:
            self.mark_dirty()
        now = time.monotonic()
        if not at_once and now - self._ticked < _TICK_SECONDS:
            return
        self._ticked = now
        for root in self.roots:
            place = str(root.top)
            fingerprint = root_fingerprint(root.top)
            if self._singles.get(place, fingerprint) != fingerprint:
                self.changed([place])
            self._singles[place] = fingerprint

    def begin(self) -> None:
        """Start an update if work is waiting and no update is running."""
        if self.since is None or time.monotonic() < self._not_before:
            return
        if self._task is None or self._task.done():
            name = f"index of {self._place.agent}"
            self._task = asyncio.get_running_loop().create_task(self._catch_up(), name=name)

    async def wait_in_step(self) -> bool:
        """Wait until the index is up to date; False if its update fails: it is repeated later."""
        while not self.in_step.is_set():
            if self._task is not None and not self._task.done():
                await asyncio.wait([self._task])
            elif self._failure is not None:
                return False
            else:
                await self.in_step.wait()
        return True

    async def sync(self) -> FilesBrought:
        """Scan everything, and return when the index is up to date."""
        self.mark_dirty()
        self._not_before = 0.0
        while not self.in_step.is_set():
            self.begin()
            if self._task is not None:
                await asyncio.wait([self._task])
            if self._failure is not None:
                raise self._failure
        return self.last

    async def leave(self) -> None:
        """Cancel a running update and close the database; a later update scans everything."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._run(self._database.close)
        self.mark_dirty()

    def _dirty(self) -> None:
        self.in_step.clear()
        if self.since is None:
            self.since = time.monotonic()

    async def _catch_up(self) -> None:
        """Update the index; a failure is reported, and the update repeated later."""
        # Keeps the agent from being closed as idle.
        self.store.in_use += 1
        try:
            self._failure = None
            await self.store.chunks_renewed()
            with translated(self._place.folder / chunk_database.FILE_NAME):
                await self._bring_all()
            self._problems.clear(_FAILED, self._place.agent)
        except ShuttingDown:
            self._not_before = time.monotonic() + _AGAIN_SECONDS
        except ThermoclineError as error:
            self._not_before = time.monotonic() + _AGAIN_SECONDS
            if isinstance(error, StoreDamaged):
                await self.store.renew_chunks()
            agent = self._place.agent
            message = f"cannot index the files of '{agent}': {error.message}"
            self._problems.report(_FAILED, agent, message, error.hint or "", lasting=False)
            self._failure = error
        finally:
            self.store.in_use -= 1
            self._brought()

    async def _bring_all(self) -> None:
        counts = {"added": 0, "updated": 0, "moved": 0, "removed": 0}
        while self.since is not None:
            whole = self._whole or len(self._paths) > _MANY
            paths, self._paths = self._paths, set()
            self._whole, self.since = False, None
            try:
                await self._step(paths, counts, whole=whole)
            except BaseException:
                # The next attempt scans everything.
                self.mark_dirty()
                raise
        self.last = FilesBrought(**counts)
        self._last_sync_at = self.store.now
        self._to_read = 0
        self.in_step.set()
        if any(counts.values()):
            self._emit("files.synced", **counts)

    async def _step(self, paths: set[str], counts: dict[str, int], *, whole: bool) -> None:
        rules = self._rules()
        if whole:
            self._in_force = rules
            self._rescanned = time.monotonic()
            await self._read_roots()
        begun = time.monotonic()
        database = self._database
        result = await self._run(partial(self._scan, rules, None if whole else paths))
        if whole:
            self.scan_seconds = time.monotonic() - begun
        known = await self._run(partial(database.known, rules, None if whole else result.seen))
        if whole:
            self.folders = result.folders
        else:
            unscanned = {
                p: i for p, i in self.folders.items() if not self._below_any(p, result.seen)
            }
            self.folders = unscanned | result.folders
        gone = known.keys() - result.present.keys()
        news = [
            path
            for path, fingerprint in result.present.items()
            if known.get(path) != fingerprint or (path in paths and path not in result.reasons)
        ]
        self._to_read = len(news)
        moves = await self._run(partial(database.digests, gone)) if gone and news else {}
        for path in sorted(news):
            await self._yield()
            change = await self._take(path, result, known, moves, gone)
            self._to_read -= 1
            if change:
                counts[change] += 1
                now = time.monotonic()
                if now - self._reported_at > _PROGRESS_SECONDS and self._to_read:
                    self._reported_at = now
                    self._emit("files.progress", to_read=self._to_read)
        if gone:
            await self._run(partial(database.use, indexed_files.drop, sorted(gone)))
            counts["removed"] += len(gone)
        self._files, self._left_out = await self._run(
            partial(database.use, indexed_files.file_counts)
        )
        if whole:
            await self._run(partial(database.note_cutting, rules))
        while await self._run(partial(database.use, indexed_files.merge, self.store.now)):
            await self._yield()

    def _path_of(self, place: str) -> str | None:
        """The path in the index of a place on the disk; of nested roots the inner one counts."""
        candidates = [
            (len(str(root.top)), path) for root in self.roots if (path := root.path_of(place))
        ]
        return max(candidates)[1] if candidates else None

    def _below_any(self, place: str, seen: Iterable[str]) -> bool:
        path = self._path_of(place)
        return path is None or any(path == item or path.startswith(f"{item}/") for item in seen)

    async def _read_roots(self) -> None:
        added = await self.store.read(watched.paths)
        self.roots = roots = roots_of(self._place, {*map(str, self._granted), *added})
        self._missing = await self._run(partial(missing, roots))
        self._singles = {str(root.top): root_fingerprint(root.top) for root in roots}

    def _scan(self, rules: IndexSettings, paths: Iterable[str] | None) -> Scan:
        if paths is None:
            return scan(self.roots, rules, self._never)
        if any(root.name in paths for root in self.roots):
            self._missing = missing(self.roots)
        return scan(self.roots, rules, self._never, sorted(paths))

    async def _take(
        self,
        path: str,
        result: Scan,
        known: Mapping[str, Fingerprint],
        moves: dict[str, str],
        gone: set[str],
    ) -> str:
        """Index one file; return the change, or ""."""
        fingerprint, reason = result.present[path], result.reasons.get(path, "")
        file = ReadFile(path, fingerprint, reason=reason)
        if not reason:
            try:
                limit = self._rules().max_file_kb * 1024
                file = await read_file(path, self.place_of(path), limit, self._thread)
            except FileNotFoundError:
                if path in known:
                    gone.add(path)
                return ""
            except OSError as error:
                file = ReadFile(path, fingerprint, reason=reason_of(error))
        take = partial(self._database.take, file, self._rules(), moves, gone, self.store.now)
        return await self._run(take)

    async def _yield(self) -> None:
        """Wait while recalls are being answered."""
        for _ in range(_PAUSES):
            if not self._busy():
                break
            await asyncio.sleep(0.005)

    def _emit(self, kind: str, **data: Any) -> None:
        self._publish(self._place.agent, Event(kind, data))

    def _run(self, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work)
