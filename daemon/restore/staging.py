"""The database that a restore fills beside its place, and that an interrupted join resumes."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from thermocline.sync import Applied, HybridClock, Link, Received

from ..config.settings import Rules
from ..errors import Conflict, StoreDamaged
from ..replication.local import AgentLocal
from ..store import atomic, noted
from ..store.database import (
    FILE_NAME,
    check_pages,
    connect_writer,
    migrate,
    translate,
    translate_os,
)
from ..store.schema import MIGRATIONS
from ..store.settling import read_clock, settle
from ..store.transaction import Transaction

T = TypeVar("T")
_ORIGIN: Final = "restored_from"
_COUNT: Final = (
    "SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM rows)"
    " - (SELECT count(*) FROM outbox WHERE seen IS NULL)"
)
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
        # Called with the number of rows of each page from the replica that is on the disk.
        self.came: Callable[[int], None] = lambda _: None
        self._device = device
        self._rules = rules
        self._db: sqlite3.Connection | None = None
        self._clock = HybridClock(time.time)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="restore")

    async def resume(self, origin: str) -> bool:
        """Open the database of an interrupted run from the same replica; False: nothing usable.

        Raises:
            ThermoclineError: the disk refuses.
        """

        def run() -> bool:
            if not self.path.exists():
                return False
            for path in self.folder.iterdir():
                # Copied for a swap that did not happen; it may have changed since.
                if not path.name.startswith(FILE_NAME):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            try:
                return noted.read(self._open(), _ORIGIN, str) == origin
            except (StoreDamaged, Conflict):
                return False

        return await self._run(run)

    async def begin(self, origin: str = "") -> None:
        """Start with an empty database; that of an earlier run is removed.

        Raises:
            ThermoclineError: the disk refuses.
        """

        def run() -> None:
            atomic.make_folder(self.folder)
            self._open()

        await self.discard()
        await self._run(run)
        await self.write(lambda tx: noted.write(tx, _ORIGIN, origin))

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read from the database."""
        return await self._run(lambda: read(self._opened()))

    async def write(self, write: Callable[[Transaction], T]) -> T:
        """Run an operation in one transaction, within all limits.

        Raises:
            ThermoclineError: nothing was changed.
        """

        def run() -> T:
            db = self._opened()
            tx = Transaction(
                db, now=time.time(), device=self._device, rules=self._rules, clock=self._clock
            )
            db.execute("BEGIN IMMEDIATE")
            try:
                result = write(tx)
                settle(tx)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    with suppress(sqlite3.Error):
                        db.execute("ROLLBACK")
                raise
            return result

        return await self._run(run)

    async def count(self) -> int:
        """The number of received rows, deleted ones included."""
        return await self.read(lambda db: int(db.execute(_COUNT).fetchone()[0]))

    async def seal(self) -> None:
        """Check every page of the file, make it durable, and close it.

        Raises:
            StoreDamaged: a page is not as SQLite wrote it.
        """

        def run() -> None:
            self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            check_pages(self.path)
            self._close()
            atomic.sync_tree(self.folder)

        await self._run(run)

    async def discard(self) -> None:
        """Remove the whole folder."""

        def run() -> None:
            self._close()
            if self.folder.exists():
                shutil.rmtree(self.folder)

        await self._run(run)

    async def close(self) -> None:
        """Close the database; the received rows stay for a later run."""
        await self._run(self._close)
        self._thread.shutdown(wait=False)

    async def apply(self, rows: Sequence[Received], link: Link) -> Applied:
        """Merge a page of the replica."""
        applied = await super().apply(rows, link)
        self.came(len(rows))
        return applied

    async def _run(self, function: Callable[[], T]) -> T:
        """Run it on the thread, to its end even if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, function)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        except OSError as error:
            raise translate_os(error, self.path) from error

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
