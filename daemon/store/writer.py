"""The thread that writes an agent's database, with group commit.

Operations that arrive during a commit share the next: under load many callers share one fsync, and
a single caller never waits for others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ..errors import ShuttingDown, ThermoclineError, translate_os
from .agent_paths import FailedSyncs
from .database.connection import BUSY_MILLISECONDS, begin, roll_back
from .database.memory_database import LOG_PAGES, translate, translated
from .database.transaction import Transaction, WriterCache, acting

T = TypeVar("T")
Operation = Callable[[Transaction], T]

# Caused by a wrong value, and leave the transaction intact; other errors of SQLite concern the
# disk, the file or the whole transaction.
OF_ONE_CALLER: Final = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)

# Beyond this the transaction itself, not the fsync, is what callers wait for.
_GROUP: Final = 256
# No number of failed syncs: the log is to be written again.
_UNTRUSTED: Final = -1
# The size of the parts in which the log is read and written again, and of what stands in it before
# its first page and before each page, in bytes.
_PART: Final = 1_048_576
_LOG_HEAD: Final = 32
_PAGE_HEAD: Final = 24


class _Spoiled(Exception):
    """A group must be undone as a whole, because one of its operations failed after it had written.

    Savepoints would undo it alone, but cost every operation two statements and a write of the
    full-text index; and after ROLLBACK TO, FTS5 of SQLite 3.40 may take an index that was changed
    since the savepoint for malformed.
    """


class _Job(msgspec.Struct, eq=False):
    """A submitted operation with the future of its caller."""

    operation: Operation[Any]
    future: asyncio.Future[Any]
    durable: bool = True
    # Called behind the commit, outside a transaction; its result is the job's.
    after: Callable[[], Any] | None = None
    by: str = msgspec.field(default_factory=acting.get)
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Runs operations in order, in groups, each group in one durable transaction.

    `enforce_limits` runs before the commit; `committed` is called on the event loop with a
    transaction that was committed, before its callers return. All writers share `failed_syncs`.
    """

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        *,
        begin: Callable[[sqlite3.Connection, WriterCache], Transaction],
        enforce_limits: Operation[None],
        committed: Callable[[Transaction], None],
        loop: asyncio.AbstractEventLoop,
        failed_syncs: FailedSyncs,
    ) -> None:
        self._path = path
        self._db = db
        self._begin = begin
        self._enforce_limits = enforce_limits
        self._committed = committed
        self._loop = loop
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        # As the connection was opened: each commit is synced.
        self._durable = True
        self._cache = WriterCache()
        self._failed_syncs = failed_syncs
        # What an earlier process, or the closing before, could not sync may be in the log.
        self._trusted = _UNTRUSTED
        # The database's file, once pages of it were written again.
        self._file: int | None = None
        self._thread = threading.Thread(target=self._run, name=f"writer {path}", daemon=True)
        self._thread.start()

    async def submit(self, operation: Operation[T], *, durable: bool = True) -> T:
        """Run `operation`; return its result once the commit is on the disk, or raise its error.

        A cancelled caller does not cancel the operation: it may still be committed. If not
        `durable`, it returns before the commit is synced; the next durable commit syncs both.
        """
        if self._closed:
            raise ShuttingDown(f"cannot write to {self._path}: it is being closed")
        result: T = await self._queued(operation, durable=durable)
        return result

    async def truncate_log(self) -> bool:
        """Move the log into the database and empty it, after all queued operations.

        False: a reader still needs the log, or the database is being closed, which empties it.
        """
        if self._closed:
            return False
        return bool(await self._queued(after=self._truncate_log))

    async def copy_into(self, path: Path) -> None:
        """Write a copy, durably, after all queued operations. Further ones are refused.

        If it fails, writing goes on.
        """
        self._closed = True
        try:
            await self._queued(after=partial(self._copy_into, path))
        except BaseException:
            self._closed = False
            raise

    async def close(self) -> None:
        """Commit all queued operations, then close the database. Further writes are refused."""
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _queued(
        self, operation: Operation[Any] = lambda _: None, **more: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put(_Job(operation, future, **more))
        return future

    def _run(self) -> None:
        going = True
        while going:
            group, going = self._take()
            try:
                self._commit_and_answer(group)
            except _Spoiled:
                # One by one, so that a failure undoes a transaction of its own.
                for job in group:
                    job.result = job.error = None
                    self._commit_and_answer([job])
        # Closing moves what is left; a disk that refuses does not keep the database open.
        with contextlib.suppress(sqlite3.Error, ThermoclineError):
            self._move_log()
        self._db.close()
        if self._file is not None:
            os.close(self._file)

    def _take(self) -> tuple[list[_Job], bool]:
        """Wait for a job, then take all that are queued. False: close after these."""
        group: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            group.append(job)
            if len(group) == _GROUP:
                return group, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _commit_and_answer(self, group: list[_Job]) -> None:
        if group:
            committed = self._commit(group)
            self._loop.call_soon_threadsafe(self._answer, group, committed)

    def _commit(self, group: list[_Job]) -> Transaction | None:
        durable = any(job.durable for job in group)
        try:
            if durable and self._trusted != self._failed_syncs.count:
                self._rewrite()
            if durable != self._durable:
                self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                # SQLite does not say that a checkpoint could not sync what was not synced before.
                pages = LOG_PAGES if durable else 0
                self._db.execute(f"PRAGMA wal_autocheckpoint = {pages}").fetchone()
                self._durable = durable
            begin(self._db)
            # Given back by the commit: after a failure the next transaction reads again.
            cache, self._cache = self._cache, WriterCache()
            transaction = self._begin(self._db, cache)
            for job in group:
                self._run_job(job, transaction, alone=len(group) == 1)
            if all(job.error is not None for job in group):
                self._db.execute("ROLLBACK")
                return None
            self._enforce_limits(transaction)
            self._db.execute("COMMIT")
            self._cache = transaction.cache
        except _Spoiled:
            roll_back(self._db)
            raise
        except Exception as error:  # noqa: BLE001 - the callers get any error
            self._fail(group, error)
            return None
        self._make_durable(group, durable=durable)
        return transaction

    def _make_durable(self, group: list[_Job], *, durable: bool) -> None:
        """See that a commit outlasts a power loss; its callers get an error if that is in doubt."""
        try:
            if durable and self._trusted != self._failed_syncs.count:
                self._rewrite()
        except ThermoclineError as error:
            error.hint = "the change stands, but may be lost with the power: check the disk"
            for job in group:
                job.error = job.error or error
            return
        for job in group:
            try:
                job.result = job.after() if job.after is not None else job.result
            except ThermoclineError as error:
                job.error = error

    def _copy_into(self, path: Path) -> None:
        with translated(path):
            path.unlink(missing_ok=True)
            self._db.execute("VACUUM INTO ?", (str(path),))
            with path.open("rb") as copy:
                os.fsync(copy.fileno())

    def _truncate_log(self) -> bool:
        # Waiting for readers would make all writers wait.
        self._db.execute("PRAGMA busy_timeout = 0")
        try:
            self._move_log()
            return not self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except (sqlite3.Error, ThermoclineError):
            # The commit stands; the log is moved later. It may not have been synced: see `_fail`.
            self._trusted = _UNTRUSTED
            return False
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")

    def _move_log(self) -> None:
        """Move the log into the database before it is emptied.

        If a sync fails meanwhile, only the log names the pages that must be written again.
        """
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if self._trusted != self._failed_syncs.count:
            self._rewrite()

    def _rewrite(self) -> None:
        """Write the log and its pages in the database again, because a sync has failed since.

        The kernel drops the pages that it could not write, takes them for written, and a later sync
        succeeds: commits behind such a gap in the log, and pages that a checkpoint was moving into
        the database, would be lost with the power. They are written as this process reads them.
        """
        failed = self._failed_syncs.count
        try:
            with self._path.with_name(f"{self._path.name}-wal").open("r+b", buffering=0) as log:
                at = 0
                while part := os.pread(log.fileno(), _PART, at):
                    at += os.pwrite(log.fileno(), part, at)
                if at:
                    os.fdatasync(log.fileno())
                    self._rewrite_pages(log.fileno(), at)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise translate_os(error, self._path) from error
        self._trusted = failed

    def _rewrite_pages(self, log: int, length: int) -> None:
        if self._file is None:
            # Closing it before the connections would release SQLite's locks.
            self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        size = int.from_bytes(os.pread(log, 4, 8))
        places = range(_LOG_HEAD, length, _PAGE_HEAD + size)
        for number in {int.from_bytes(os.pread(log, 4, at)) for at in places}:
            at = (number - 1) * size
            if number and (page := os.pread(self._file, size, at)):
                os.pwrite(self._file, page, at)
        os.fdatasync(self._file)

    def _run_job(self, job: _Job, transaction: Transaction, *, alone: bool) -> None:
        """Run an operation so that its failure undoes only itself; `_Spoiled` if it had written."""
        transaction.writer = job.by
        if alone:
            job.result = job.operation(transaction)
            return
        written, snapshot = self._db.total_changes, transaction.snapshot()
        try:
            job.result = job.operation(transaction)
        except OF_ONE_CALLER as error:
            job.error = translate(error, self._path)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - it belongs to this caller alone
            job.error = error
        if job.error is not None:
            if self._db.total_changes != written:
                raise _Spoiled
            transaction.restore_snapshot(snapshot)

    def _fail(self, group: list[_Job], error: Exception) -> None:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_FSYNC:
            # It was to write earlier commits too, which were not synced.
            self._trusted = _UNTRUSTED
        try:
            roll_back(self._db)
        except sqlite3.Error as second:
            error = second
        if isinstance(error, sqlite3.Error):
            cause, error = error, translate(error, self._path)
            error.__cause__ = cause
        for job in group:
            job.error = job.error or error

    def _answer(self, group: list[_Job], committed: Transaction | None) -> None:
        try:
            if committed is not None:
                self._committed(committed)
        finally:
            for job in group:
                if job.future.done():
                    continue
                if job.error is None:
                    job.future.set_result(job.result)
                else:
                    job.future.set_exception(job.error)
