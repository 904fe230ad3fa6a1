"""A remote that is a file: for a device without an account, through the same code."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from .failures import Refused, SyncError, TryLater, classify, made
from .ports import Result, SqlStatement, check, plain
from .row_format import Value

# The limits of a server, so that what works here works there: of one answer, and of one value.
MOST_ANSWER_BYTES: Final = 10_000_000
MOST_VALUE_BYTES: Final = 5_000_000

T = TypeVar("T")
# SQLite steps between two checks for cancellation: under a millisecond.
_STEPS: Final = 20_000
_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    # Rows reported as sent are not sent again: they have to survive a power cut.
    "PRAGMA synchronous = FULL",
    # What a device forgets leaves the file, and the log after each write; see `_empty_log`.
    "PRAGMA secure_delete = ON",
    # The file may come from anywhere: nothing in its schema is executed.
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)
_BY_ERRNO: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "disk_full"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "forbidden"),
    # The folder of a disk that is not mounted; made here, it would be on another disk.
    errno.ENOENT: "offline",
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST), "not_found"),
    **dict.fromkeys((errno.ELOOP, errno.ENAMETOOLONG), "not_found"),
}


class FileRemote:
    """A SQLite file as a remote, safe to share between processes.

    It is opened by the first batch, and created if missing, in a folder that exists; the next batch
    notices a file that was removed or replaced. A batch that has returned survives a power cut.
    Batches run one at a time, on `threads` or else on the event loop's own; one waits
    `busy_seconds` for another process that writes.
    """

    def __init__(
        self, path: Path, busy_seconds: float = 5.0, *, threads: Executor | None = None
    ) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None
        self._opened = (0, 0)
        self._closed = self._is_logged = False
        self._threads = threads
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"FileRemote({str(self._path)!r})"

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        check(statements)
        if self._closed:
            raise Refused("bad_request", f"cannot use {self._path}: it was closed")
        if not statements:
            return []
        cancelled = threading.Event()
        running = await self._begin(partial(self._batch, tuple(statements), cancelled))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.shield(await self._begin(self._disconnect))

    async def _begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Start something on a thread, after the previous one has ended, cancelled or not."""
        await self._turn.acquire()
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except BaseException:
            self._turn.release()
            raise
        running.add_done_callback(self._over)
        return running

    def _over(self, running: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not running.cancelled():
            # Retrieved here, since the caller may be gone.
            running.exception()

    def _batch(
        self, statements: Sequence[SqlStatement], cancelled: threading.Event
    ) -> list[Result]:
        try:
            return _run(self._ready(), statements, cancelled)
        except Exception as error:  # noqa: BLE001 -- only errors of the tree leave a remote
            # SQLite may quote unreadable content, perhaps of a memory: the cause is dropped.
            raise self._as_sync_error(error) from None
        finally:
            self._empty_log(wrote=not _only_reads(statements))

    def _empty_log(self, *, wrote: bool) -> None:
        """Move the log, which has copies of deleted rows, into the file, unless it is read."""
        self._is_logged |= wrote
        connection = self._connection
        if not self._is_logged or connection is None:
            return
        # The batch is committed: an error shows again with the next.
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA busy_timeout = 0").close()
            try:
                [busy, *_] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                self._is_logged = bool(busy)
            finally:
                connection.execute(f"PRAGMA busy_timeout = {self._busy_seconds * 1000:.0f}").close()

    def _ready(self) -> sqlite3.Connection:
        if self._connection is not None and self._opened != _identity(self._path):
            self._disconnect()
        if self._connection is None:
            self._connection = self._connect()
            self._opened = _identity(self._path)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        # For its owner only; SQLite gives its log the same mode. An existing file is not opened:
        # closing it would drop the locks that this process holds on it through another connection.
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        with suppress(FileExistsError):
            os.close(os.open(self._path, flags, 0o600))
        for ending in ("", "-wal", "-shm", "-journal"):
            _refuse_irregular(self._path.with_name(self._path.name + ending))
        connection = sqlite3.connect(
            self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
            for pragma in _PRAGMAS:
                connection.execute(pragma).close()
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _as_sync_error(self, error: Exception) -> SyncError:
        """The error with the file's name, and a hint for files."""
        known = _of_a_file(error) or classify(error)
        code, hint, name = known.code, known.hint, self._path.name
        if code in ("damaged", "disk_error"):
            self._disconnect()
        if code == "damaged":
            hint = f"if it was a replica, remove {self._path}, {name}-wal and {name}-shm: they are"
            hint += " created again; else name another file"
        elif code == "offline":
            hint = f"attach or mount the disk, or make the folder {self._path.parent}"
        elif isinstance(error, SyncError) and code == "not_found":
            hint = f"name a file in place of {self._path}"
        elif code in ("forbidden", "not_found"):
            hint = f"let the user of this process read and write {self._path} and its folder"
        message = f"{known.message} ({self._path})"
        unreadable = code == "not_found" and isinstance(error, sqlite3.Error)
        if code == "forbidden" or (unreadable and self._path.is_file()):
            # Nothing reports when a disk or a folder becomes writable again.
            return TryLater("read_only", message, hint=hint)
        return type(known)(code, message, hint=hint)


def _run(
    connection: sqlite3.Connection, statements: Sequence[SqlStatement], cancelled: threading.Event
) -> list[Result]:
    """Run a batch. Read-only batches are interrupted once the caller is cancelled."""
    reads = _only_reads(statements)
    # Reading first and then writing would fail if another process wrote in between.
    connection.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
    try:
        connection.set_progress_handler(cancelled.is_set if reads else None, _STEPS)
        results = _execute(connection, statements)
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have ended the transaction themselves.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        connection.set_progress_handler(None, _STEPS)
    return results


def _only_reads(statements: Sequence[SqlStatement]) -> bool:
    return all(statement.sql.lstrip()[:6].upper() == "SELECT" for statement in statements)


def _execute(connection: sqlite3.Connection, statements: Sequence[SqlStatement]) -> list[Result]:
    results = []
    room = MOST_ANSWER_BYTES
    for statement in statements:
        before = connection.total_changes
        rows: list[tuple[Value, ...]] = []
        with closing(connection.execute(statement.sql, statement.args)) as cursor:
            for line in cursor:
                rows.append(plain(line))
                room -= sum(map(_size, rows[-1]))
                if room < 0:
                    raise made("too_large", f"more than {MOST_ANSWER_BYTES} bytes")
        affected = 0
        # SQLite does not reset the number of changes for statements that read.
        if connection.total_changes != before:
            [affected] = connection.execute("SELECT changes()").fetchone()
        results.append(Result(tuple(rows), affected))
    return results


def _size(value: Value) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    return 8


def _refuse_irregular(path: Path) -> None:
    """SQLite would follow a link to another user's file, and wait for the other end of a FIFO."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise made("not_found", f"{path.name} is not a regular file")


def _identity(path: Path) -> tuple[int, int]:
    """The device and inode of the file at the path; (0, 0) if there is no file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _of_a_file(error: Exception) -> SyncError | None:
    """The code of an error that comes from a disk instead of a network."""
    if isinstance(error, OSError):
        return made(_BY_ERRNO.get(error.errno or 0, "disk_error"), error.strerror or "")
    if isinstance(error, sqlite3.Error) and not getattr(error, "sqlite_errorname", None):
        # The module's own errors: it cannot decode a text, or a statement is not one.
        if isinstance(error, sqlite3.OperationalError):
            return made("damaged", "a text is not UTF-8")
        return made("sql", str(error))
    return None
