"""One agent's index: brings the chunks in step with the files, one file at a time."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ..config.settings import IndexSettings
from ..errors import ShuttingDown, StoreDamaged, ThermoclineError
from ..runtime.problems import Problems
from ..store import chunk_database, chunk_tables, watched
from ..store.agent_store import AgentStore
from ..store.chunk_tables import FileContent, FileStand
from ..store.database import translate, translate_os
from ..store.transaction import Event
from . import walker
from .file_content import content_of, keeps_title, signature, text_of
from .scanning import IndexRoot, Scan, missing, scan, stand_of
from .walker import Identity

T = TypeVar("T")
# From so many changed paths on, looking at all is cheaper, and safer: some may have been lost.
_MANY: Final = 2_000
# A file that is still being written is read as it is after so many attempts.
_ATTEMPTS: Final = 3
# A file that changed so shortly before it was read may change again with the same times.
_JUST_NOW_NS: Final = 50_000_000
# After a failure.
_AGAIN_SECONDS: Final = 5.0
_FAILED: Final = "index_failed"
_BEING_WRITTEN_SECONDS: Final = 0.1
_CUTTING: Final = "cutting"
# How long each file waits for others at most, in steps of 5 ms.
_PAUSES: Final = 20
_UNKNOWN: Final = FileStand(-1, -1, -1, -1)
# Between two events of progress.
_PROGRESS_SECONDS: Final = 1.0


class FilesBrought(msgspec.Struct, frozen=True):
    """What bringing the index in step has changed, in files."""

    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0


class IndexStanding(msgspec.Struct, frozen=True):
    """Where an index stands; `missing` are paths that are not on this device."""

    dirty: bool = False
    syncing: bool = False
    last_sync_at: float | None = None
    watched_files: int = 0
    watching: bool = False
    to_read: int = 0
    missing: list[str] = []


class ChunkIndex:
    """The index of one open agent. Everything that blocks runs on one thread, shared with others.

    Args:
        store: of the agent.
        rules: gives the settings in force.
        granted: the paths that the configuration gives the agent.
        state_dir: no part of what is indexed.
        thread: an executor of one thread.
        publish: told events.
        busy: whether somebody else needs the processor.
        problems: where failures are reported.

    Attributes:
        folders: those to watch; `watching` is set by whoever does.
        in_step: set while the index is as the files are, as far as is known.
        scan_seconds: how long the last look at everything took.
    """

    def __init__(  # noqa: PLR0913 - what it needs of all indexes together
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
        self._db: sqlite3.Connection | None = None
        self._place = store.place
        self._not_before = 0.0
        self.roots: list[IndexRoot] = []
        self.folders: dict[str, Identity] = {}
        self.watching = False
        self.scan_seconds = 0.0
        self.in_step = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._paths: set[str] = set()
        self._whole = True
        self._in_force: IndexSettings | None = None
        self._attempts: dict[str, int] = {}
        self._since: float | None = time.monotonic()
        self._rescanned = float("-inf")
        self._singles: dict[str, FileStand | None] = {}
        self._missing: list[str] = []
        self._files = 0
        self._to_read = 0
        self._told = 0.0
        self._last_sync_at: float | None = None
        self._failure: ThermoclineError | None = None
        self.last = FilesBrought()
        store.leave_chunks = self.leave

    @property
    def state(self) -> IndexStanding:
        """Where it stands."""
        return IndexStanding(
            dirty=not self.in_step.is_set(),
            syncing=self._task is not None and not self._task.done(),
            last_sync_at=self._last_sync_at,
            watched_files=self._files,
            watching=self.watching,
            to_read=self._to_read,
            missing=self._missing,
        )

    def paths(self) -> list[tuple[str, str, bool]]:
        """The paths that are watched, where each comes from, and whether it is not there."""
        granted = {str(path) for path in self._granted}
        return [
            (
                str(root.top),
                "workspace" if root.of_agent else "config" if root.name in granted else "added",
                str(root.top) in self._missing,
            )
            for root in self.roots
        ]

    def place_of(self, path: str) -> tuple[Path, str] | None:
        """The folder of a root and what follows it, of a path of the index."""
        root = next((root for root in self.roots if root.holds(path)), None)
        if root is None:
            return None
        below = root.below(path)
        return (root.top, below) if below else (root.top.parent, root.top.name)

    @property
    def since(self) -> float | None:
        """Since when something is to be done that was not begun; monotonic."""
        return self._since

    def doubt(self) -> None:
        """Look at everything again: something may have been missed."""
        self._whole = True
        self._dirty()

    def changed(self, places: Iterable[str]) -> None:
        """Look at these places on the disk again."""
        found = set(filter(None, map(self._path_of, places)))
        if found:
            self._paths |= found
            self._dirty()

    def tick(self) -> None:
        """Notice what no event tells: other settings, single files, roots that come and go."""
        rules = self._rules()
        if self._in_force is not None and rules is not self._in_force and rules != self._in_force:
            self.doubt()
        due = rules.interval_minutes * 60
        if due and time.monotonic() - self._rescanned > due and not self._whole:
            self.doubt()
        for root in self.roots:
            place = str(root.top)
            stand = _stand_of(root.top)
            if self._singles.get(place, stand) != stand:
                self.changed([place])
            self._singles[place] = stand

    def begin(self) -> None:
        """Bring the index in step, unless that is under way."""
        if self._since is None or time.monotonic() < self._not_before:
            return
        if self._task is None or self._task.done():
            name = f"index of {self._place.agent}"
            self._task = asyncio.get_running_loop().create_task(self._bring(), name=name)

    async def sync(self) -> FilesBrought:
        """Look at everything, and return when the index is in step.

        Raises:
            ThermoclineError: that cannot be done now.
        """
        self.doubt()
        self._not_before = 0.0
        while not self.in_step.is_set():
            self.begin()
            if self._task is not None:
                await asyncio.wait([self._task])
            if self._failure is not None:
                raise self._failure
        return self.last

    async def leave(self) -> None:
        """End what is under way, and close the database; all of it begins anew when it is due."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._run(self._close)
        self.doubt()

    def _dirty(self) -> None:
        self.in_step.clear()
        if self._since is None:
            self._since = time.monotonic()

    async def _bring(self) -> None:
        """Do what is to be done; a failure is reported, and what is left is tried again later."""
        # An agent whose files are read is not closed as idle.
        self.store.in_use += 1
        try:
            self._failure = None
            await self._bring_all()
            self._problems.clear(_FAILED, self._place.agent)
        except ShuttingDown:
            self._not_before = time.monotonic() + _AGAIN_SECONDS
        except (ThermoclineError, sqlite3.Error, OSError) as error:
            await self._failed(error)
        finally:
            self.store.in_use -= 1
            self._brought()

    async def _failed(self, error: ThermoclineError | sqlite3.Error | OSError) -> None:
        self._not_before = time.monotonic() + _AGAIN_SECONDS
        path = self._place.folder / chunk_database.FILE_NAME
        if isinstance(error, sqlite3.Error):
            error = translate(error, path)
        elif isinstance(error, OSError):
            error = translate_os(error, path)
        if isinstance(error, StoreDamaged):
            await self.store.renew_chunks()
        agent = self._place.agent
        message = f"cannot index the files of '{agent}': {error.message}"
        self._problems.report(_FAILED, agent, message, error.hint or "", lasting=False)
        self._failure = error

    async def _bring_all(self) -> None:
        counts = {"added": 0, "updated": 0, "moved": 0, "removed": 0}
        while self._since is not None:
            whole = self._whole or len(self._paths) > _MANY
            paths, self._paths = self._paths, set()
            self._whole, self._since = False, None
            try:
                await self._step(paths, counts, whole=whole)
            except BaseException:
                # The next attempt looks at everything.
                self.doubt()
                raise
            if self._attempts:
                await asyncio.sleep(_BEING_WRITTEN_SECONDS)
        self.last = FilesBrought(**counts)
        self._last_sync_at = self.store.now
        self._to_read = 0
        self.in_step.set()
        if any(counts.values()):
            self._tell("files.synced", **counts)

    async def _step(self, paths: set[str], counts: dict[str, int], *, whole: bool) -> None:
        rules = self._rules()
        if whole:
            self._in_force = rules
            self._rescanned = time.monotonic()
            await self._read_roots()
        begun = time.monotonic()
        found = await self._run(partial(self._scan, rules, None if whole else paths))
        if whole:
            self.scan_seconds = time.monotonic() - begun
        known = await self._run(partial(self._known, None if whole else found.seen))
        if whole:
            self.folders = found.folders
        else:
            kept = {p: i for p, i in self.folders.items() if not self._below_any(p, found.seen)}
            self.folders = kept | found.folders
        gone = known.keys() - found.present.keys()
        news = [
            path
            for path, stand in found.present.items()
            if known.get(path) != stand or (path in paths and path not in found.reasons)
        ]
        self._to_read = len(news)
        before = await self._run(partial(self._digests, gone)) if gone and news else {}
        for path in sorted(news):
            await self._yield()
            change = await self._take(path, found, known, before, gone)
            self._to_read -= 1
            if change:
                counts[change] += 1
                self._progress()
        if gone:
            await self._run(lambda: chunk_tables.drop(self._open(), sorted(gone)))
            counts["removed"] += len(gone)
        self._files = await self._run(lambda: chunk_tables.file_count(self._open()))
        if whole:
            await self._run(lambda: chunk_tables.note(self._open(), _CUTTING, signature(rules)))
        while await self._run(lambda: chunk_tables.merge(self._open(), self.store.now)):
            await self._yield()

    def _path_of(self, place: str) -> str | None:
        """The path in the index of a place on the disk: of roots in roots the inner one counts."""
        found = [(len(str(one.top)), path) for one in self.roots if (path := one.path_of(place))]
        return max(found)[1] if found else None

    def _below_any(self, place: str, seen: Iterable[str]) -> bool:
        path = self._path_of(place)
        return path is None or any(path == one or path.startswith(f"{one}/") for one in seen)

    async def _read_roots(self) -> None:
        place = self._place
        home = place.workspace or place.folder
        roots = [
            IndexRoot(home / "memory", "memory", of_agent=True),
            IndexRoot(place.markdown, place.markdown.name, of_agent=True),
        ]
        added = await self.store.read(watched.paths)
        tops = dict.fromkeys([*map(str, self._granted), *added])
        for top in sorted(tops):
            if not any(one.holds(top) for one in roots if not one.of_agent):
                roots.append(IndexRoot(Path(top), top))
        self.roots = roots
        self._missing = await self._run(
            partial(missing, [one for one in roots if not one.of_agent])
        )
        self._singles = {str(root.top): _stand_of(root.top) for root in roots}

    def _scan(self, rules: IndexSettings, paths: Iterable[str] | None) -> Scan:
        if paths is None:
            return scan(self.roots, rules, self._never)
        if any(root.name in paths for root in self.roots):
            self._missing = missing(one for one in self.roots if not one.of_agent)
        return scan(self.roots, rules, self._never, sorted(paths))

    def _known(self, seen: Iterable[str] | None) -> dict[str, FileStand]:
        db = self._open()
        if seen is None:
            # Cut otherwise than now: each file is read again.
            stale = chunk_tables.noted(db, _CUTTING) != signature(self._rules())
            known = chunk_tables.known(db)
            return dict.fromkeys(known, _UNKNOWN) if stale else known
        return {p: s for one in seen for p, s in chunk_tables.known(db, one).items()}

    def _digests(self, paths: Iterable[str]) -> dict[str, str]:
        db = self._open()
        found = ((chunk_tables.digest_of(db, path), path) for path in paths)
        return {digest: path for digest, path in found if digest}

    async def _take(
        self,
        path: str,
        found: Scan,
        known: Mapping[str, FileStand],
        before: dict[str, str],
        gone: set[str],
    ) -> str:
        """Index one file; return what was done, or ""."""
        stand: FileStand | None = found.present[path]
        reason, content = found.reasons.get(path, ""), b""
        if not reason:
            try:
                reason, content, stand = await self._read(path)
            except FileNotFoundError:
                if path in known:
                    gone.add(path)
                return ""
            except OSError as error:
                reason = (error.strerror or "it cannot be read").lower()
        if stand is None:
            # It is being written: its turn comes again.
            self._paths.add(path)
            self._dirty()
            return ""
        store = partial(self._store, path, stand, content, reason, before, gone)
        return await self._run(store)

    async def _read(self, path: str) -> tuple[str, bytes, FileStand | None]:
        """The content of a file or the reason why it is left out; without a stand: not now."""
        import aiofiles  # noqa: PLC0415 - when there is something to read

        limit = self._rules().max_file_kb * 1024
        place = self.place_of(path)
        if place is None:
            raise FileNotFoundError
        handle = await self._run(partial(walker.open_below, *place))
        async with aiofiles.open(handle, "rb", executor=self._thread) as file:
            first = stand_of(os.fstat(handle))
            if first.size > limit:
                return (
                    f"it has {first.size // 1024} KB, the limit is {limit // 1024} KB",
                    b"",
                    first,
                )
            content = await file.read(limit + 1)
            stand = stand_of(os.fstat(handle))
        unsettled = stand != first or len(content) != stand.size
        attempts = self._attempts.pop(path, 0) + 1
        if unsettled and attempts < _ATTEMPTS:
            self._attempts[path] = attempts
            return "", b"", None
        if unsettled or time.time_ns() - stand.mtime < _JUST_NOW_NS:
            stand = msgspec.structs.replace(stand, ctime=0)
        return "", content, stand

    def _store(
        self,
        path: str,
        stand: FileStand,
        content: bytes,
        reason: str,
        before: dict[str, str],
        gone: set[str],
    ) -> str:
        db, rules = self._open(), self._rules()
        text = ""
        if not reason:
            text, reason = text_of(content, own=path == self._place.markdown.name)
        said = text.encode() if not reason else reason.encode()
        digest = f"{'-' * bool(reason)}{hashlib.sha256(said).hexdigest()}"
        was = chunk_tables.digest_of(db, path)
        stale = chunk_tables.noted(db, _CUTTING) not in {None, signature(rules)}
        if was == digest and not stale:
            chunk_tables.touch(db, path, stand)
            return ""
        old = before.get(digest)
        if was is None and old in gone and not stale and keeps_title(db, old, path):
            # Taken once: two copies of one file are two files.
            gone.discard(old)
            del before[digest]
            chunk_tables.move(db, old, path, stand)
            return "moved"
        file = FileContent(digest, reason=reason)
        if not reason:
            file = content_of(path, text, digest, rules)
        chunk_tables.put(db, path, stand, file, self.store.now)
        return "added" if was is None else "updated"

    async def _yield(self) -> None:
        """Let the answers to others go first."""
        for _ in range(_PAUSES):
            if not self._busy():
                break
            await asyncio.sleep(0.005)

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._told > _PROGRESS_SECONDS and self._to_read:
            self._told = now
            self._tell("files.progress", to_read=self._to_read)

    def _tell(self, kind: str, **data: Any) -> None:
        self._publish(self._place.agent, Event(kind, data))

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = chunk_database.open_index(self._place.folder, self._place.cache_kb)
        return self._db

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _run(self, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work)


def _stand_of(path: Path) -> FileStand | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    # A folder's times say nothing that its own events do not.
    is_folder = path.is_dir()
    return FileStand(0, 0, 0, found.st_ino) if is_folder else stand_of(found)
