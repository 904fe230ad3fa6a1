"""The place of a restored memory, and the database that a restore fills beside it.

Nothing in the place changes before the swap. The new folder is first renamed to a name that marks
it as complete; then the existing memory is set aside, and the new folder takes the place. A kill
between these renames is repaired by `finish`. An interrupted join resumes the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from thermocline.sync import Applied, Cursor, HybridClock, Received

from ..config.settings import Rules
from ..errors import AlreadyRunning, Conflict, StoreDamaged
from ..memory.checks import check_agent, is_agent
from ..runtime import atomic
from ..store import kinds, outbox
from ..store.agent_paths import DeviceId, StateLock
from ..store.database import meta
from ..store.database.connection import transaction
from ..store.database.memory_database import (
    FILE_NAME,
    Examination,
    connect_writer,
    migrate,
    translated,
)
from ..store.database.meta import read_clock
from ..store.database.schema import BULK, MIGRATIONS
from ..store.database.transaction import Transaction
from ..store.limits import enforce_limits, fill_warm
from ..store.records import tree_rows
from .loop import AgentLocal

_log = logging.getLogger(__name__)
WORKSPACE: Final = "memory"
# The agents that an interrupted restore of several has restored, for the same command.
RUN_FILE: Final = ".restored.json"
_STAGED: Final = ".restoring"
_COMPLETE: Final = ".restored"


class Target:
    """The place of one agent in a state folder, which need not exist.

    Files named in `beside` are kept. An invalid id is refused.
    """

    def __init__(self, state_dir: Path, agent: str, beside: Collection[str]) -> None:
        self.agent = check_agent(agent)
        self.state_dir = state_dir
        self.folder = state_dir / "agents" / agent
        self.staged = self.folder.with_name(f".{agent}{_STAGED}")
        self._beside = beside

    def is_taken(self) -> bool:
        """Whether the place has anything that is not kept."""
        if not self.folder.is_dir() or self.folder.is_symlink():
            return os.path.lexists(self.folder)
        return any(path.name not in self._beside for path in self.folder.iterdir())

    def refuse_taken(self) -> None:
        if self.is_taken():
            raise Conflict(
                f"cannot restore '{self.agent}': {self.folder} is not empty",
                hint="--replace renames what is there; --to restores elsewhere",
            )

    def free_name(self) -> Path:
        """The name under which `swap` sets the existing memory aside."""
        return atomic.free_name(self.folder, "before-restore")

    def swap(self, aside: Path) -> Path | None:
        """Put the staged folder into the place; its files are on the disk.

        What is there is set aside under the free name `aside`, which is returned if it was a
        memory.
        """
        taken = self.is_taken()
        if self.folder.is_dir():
            _copy(self.folder, self.staged, self._beside)
        for path in (self.staged, *self.staged.rglob("*")):
            give(self.state_dir, path)
        complete = self.staged.with_suffix(_COMPLETE)
        _rename(self.staged, complete)
        if os.path.lexists(self.folder):
            _rename(self.folder, aside)
        _rename(complete, self.folder)
        if not taken and aside.exists():
            # All of it was copied.
            shutil.rmtree(aside)
        return aside if taken else None


def finish(state_dir: Path, *, resume: bool = False) -> None:
    """Finish interrupted swaps: put complete folders into their places, where these are empty.

    A place that is not empty was not set aside yet, or somebody has put it back: it stays. The new
    folder stays for the same command, which calls this with `resume`; a daemon removes it. To be
    called before a memory is opened, while no other process can.
    """
    agents = state_dir / "agents"
    try:
        for folder in sorted(agents.glob(f".*{_COMPLETE}")):
            agent = folder.stem[1:]
            if not is_agent(agent):
                continue
            if Target(state_dir, agent, ()).is_taken():
                _rename(folder, folder.with_suffix(_STAGED))
            else:
                _rename(folder, agents / agent)
                _log.info("finished the restore of '%s'", agent, extra={"action": "restored"})
        atomic.remove_unfinished(agents, RUN_FILE)
        if not resume:
            # From now on a restored memory is in use: the same command does not skip it.
            atomic.remove(agents / RUN_FILE)
            for folder in agents.glob(f".*{_STAGED}"):
                agent = folder.stem[1:]
                # What the memory in use forgets stays in no copy.
                if is_agent(agent) and Target(state_dir, agent, ()).is_taken():
                    shutil.rmtree(folder)
    except OSError as error:
        _log.warning("cannot finish an interrupted restore: %s", error)


@contextlib.contextmanager
def locked(state_dir: Path, why: str) -> Iterator[None]:
    """Exclude daemons and other restores from a state folder, and finish interrupted swaps.

    The folder is made, if it is missing; a daemon that wants to start meanwhile is told `why`.
    `AlreadyRunning`: a daemon runs there.
    """
    atomic.make_folder(state_dir / "agents")
    try:
        lock = StateLock(state_dir, Path(why))
    except AlreadyRunning as error:
        raise AlreadyRunning(error.message, hint="stop it, restore, and start it again") from error
    with lock:
        give(state_dir, state_dir / "agents")
        give(state_dir, state_dir / "lock")
        finish(state_dir, resume=True)
        yield


def renewed(state_dir: Path) -> str:
    """A new id for this device: another device may use the old one. Blocking."""
    device = DeviceId(state_dir).renew()
    give(state_dir, state_dir / "device.json")
    return device


def give(state_dir: Path, path: Path) -> None:
    """Give a file restored by root to the daemon's user, the owner of the state folder."""
    if os.geteuid() == 0:
        owner = state_dir.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _rename(path: Path, target: Path) -> None:
    path.rename(target)
    atomic.sync_folder(target.parent)


def _copy(there: Path, staged: Path, names: Collection[str]) -> None:
    """Copy files durably, except those that the new folder already has."""
    for name in names:
        source, target = there / name, staged / name
        if os.path.lexists(target) or not source.exists():
            continue
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True, ignore=_special)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
    atomic.sync_tree(staged)


def _special(folder: str, names: list[str]) -> list[str]:
    """What is not a file, folder or link, and cannot be copied."""
    paths = [Path(folder, name) for name in names]
    return [
        path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())
    ]


T = TypeVar("T")
_ORIGIN: Final = "restored_from"
_COUNT: Final = (
    "SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM rows)"
    " - (SELECT count(*) FROM outbox WHERE seen IS NULL)"
)
# The newest memories are found by their words as soon as the daemon runs.
_INDEXED_AT_ONCE: Final = 1000
_CACHE_KB: Final = 32_768
_TEMPORARY: Final = ".verify-"
# Pages of the log: fewer and longer runs of it are quicker.
_LOG_PAGES: Final = 4000


class Staging(AgentLocal):
    """A database that is being filled, on its own thread.

    Each write is one commit; a kill loses no commit. An earlier run may have left the folder.
    """

    # It has no other writers.
    rows_at_once = 1 << 20

    def __init__(self, folder: Path, *, device: str, rules: Rules) -> None:
        self.folder = folder
        self.path = folder / FILE_NAME
        # Called for each page from the replica that is on the disk: the number of its rows, and
        # its end in the order.
        self.came: Callable[[int, int], None] = lambda _rows, _place: None
        # Whether an earlier run has written a part: the power may have failed since.
        self.is_resumed = False
        self._device = device
        self._rules = rules
        self._db: sqlite3.Connection | None = None
        self._clock = HybridClock(time.time)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="restore")

    async def resume(self, origin: str) -> bool:
        """Open the database of an interrupted run from the same replica; False: nothing usable."""

        def run() -> bool:
            if not self.path.exists():
                return False
            for path in self.folder.iterdir():
                # Copied for a swap that did not happen; it may have changed since.
                if not path.name.startswith(FILE_NAME):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            try:
                return meta.read(self._open(), _ORIGIN, str) == origin
            except (StoreDamaged, Conflict):
                return False

        self.is_resumed = await self._run(run)
        return self.is_resumed

    async def begin(self, origin: str = "") -> None:
        """Start with an empty database; that of an earlier run is removed."""

        def run() -> None:
            atomic.make_folder(self.folder)
            self._open()

        await self.discard()
        self.is_resumed = False
        await self._run(run)

        def mark(tx: Transaction) -> None:
            meta.write(tx, _ORIGIN, origin)
            kinds.begin_backlog(tx)
            for what in BULK:
                tx.db.execute(f"DROP {what}")

        await self.write(mark)

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return await self._run(lambda: read(self._opened()))

    async def write(self, write: Callable[[Transaction], T]) -> T:
        """Run an operation in one transaction, within all limits; an error changes nothing."""

        def run() -> T:
            db, now, device = self._opened(), time.time(), self._device
            tx = Transaction(
                db, now=now, device=device, rules=self._rules, clock=self._clock, is_bulk=True
            )
            with transaction(db):
                result = write(tx)
                enforce_limits(tx)
            return result

        return await self._run(run)

    async def count(self) -> int:
        """The number of received rows, deleted ones included."""
        return await self.read(lambda db: int(db.execute(_COUNT).fetchone()[0]))

    async def index(self) -> int:
        """Index the newest memories; return how many are left to be indexed by the daemon."""

        def complete(tx: Transaction) -> None:
            tx.is_bulk = False
            fill_warm(tx)
            tree_rows.recount(tx)
            meta.write(tx, meta.RESTORED, outbox.cursor(tx.db))
            for what, sql in BULK.items():
                kind, name = what.split()
                tx.db.execute(f"DROP {kind} IF EXISTS {name}")
                tx.db.execute(sql)
            kinds.reduce_backlog(tx, _INDEXED_AT_ONCE)

        await self.write(complete)
        return await self.read(kinds.backlog_count)

    async def check(self) -> None:
        """Check every page (`StoreDamaged`), beside what reads meanwhile."""
        await asyncio.to_thread(Examination(self.path).run)

    async def seal(self) -> None:
        """Close the file, and sync it."""

        def run() -> None:
            self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._close()
            atomic.sync_tree(self.folder)

        await self._run(run)

    async def discard(self) -> None:
        def run() -> None:
            self._close()
            if self.folder.exists():
                shutil.rmtree(self.folder)

        await self._run(run)

    async def close(self) -> None:
        """Close the database; the received rows stay for a later run."""
        await self._run(self._close)
        self._thread.shutdown(wait=False)

    async def apply(self, rows: Sequence[Received], cursor: Cursor) -> Applied:
        applied = await super().apply(rows, cursor)
        self.came(len(rows), cursor.seq)
        return applied

    async def _run(self, function: Callable[[], T]) -> T:
        """Run it on the thread, to its end even if the caller is cancelled."""
        with translated(self.path):
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _open(self) -> sqlite3.Connection:
        self._close()
        self._db = db = connect_writer(self.path, _CACHE_KB)
        migrate(db, self.path, MIGRATIONS)
        # Nothing is synced before `seal`. What a power cut damages is found by the checks, and
        # then all of it is received again.
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA secure_delete = OFF").fetchone()
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}").fetchone()
        self._clock = HybridClock(time.time, *read_clock(db))
        return db

    def _opened(self) -> sqlite3.Connection:
        assert self._db is not None
        return self._db

    def _close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()


def temporary_folder(state_dir: Path) -> Path:
    """A new folder for a copy, which `remove_leftovers` would remove. Blocking."""
    return Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=state_dir))


def remove_leftovers(state_dir: Path) -> None:
    """Remove the temporary folders of a killed daemon. Blocking."""
    for folder in state_dir.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(folder, ignore_errors=True)
