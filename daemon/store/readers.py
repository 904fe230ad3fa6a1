"""A small pool of reading connections, so that readers do not wait for the writer.

While the disk refuses an agent's writes (`WriteHealth`), they read what is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import sqlite3
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from ..errors import DiskFull, ReadOnly, ShuttingDown, ThermoclineError, TooSlow, Unavailable
from ..runtime.problems import Problems
from .database import meta
from .database.memory_database import connect_reader, translate
from .database.meta import read_clock
from .database.transaction import Transaction

T = TypeVar("T")
# Steps of SQLite between two checks of the time: a few milliseconds.
_STEPS: Final = 50_000
# The process that asked; 0: the daemon itself.
process: ContextVar[int] = ContextVar("process", default=0)


class _Slots:
    """A number of slots, for which processes take turns, however often each of them asks."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(process.get(), deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        while self._waiting:
            key = next(iter(self._waiting))
            queue = self._waiting.pop(key)
            turn = queue.popleft()
            # Behind the others.
            if queue:
                self._waiting[key] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


# Whether it has no connection, its number, its connection.
_Place: TypeAlias = tuple[bool, int, sqlite3.Connection | None]


class _Connected(Exception):
    """No further connection can be opened, for want of files, but there is one already."""


class Readers:
    """Connections that are opened on demand and reused.

    `limit` is the maximum number of connections; further readers wait. `threads` are
    shared with other agents.
    """

    def __init__(
        self,
        path: Path,
        *,
        limit: int,
        threads: Executor,
        connect: Callable[[Path], sqlite3.Connection] = connect_reader,
    ) -> None:
        self._path = path
        self._threads = threads
        self._connect = connect
        # Connections come before places that have none yet.
        self._idle: queue.PriorityQueue[_Place] = queue.PriorityQueue()
        for number in range(limit):
            self._idle.put((True, number, None))
        self._limit = limit
        self._connected = False
        self._free = _Slots(limit)
        # Long reads leave a connection to others, if there are several.
        self._long = _Slots(max(1, limit - 1))
        self._closed = False

    async def run(
        self,
        read: Callable[[sqlite3.Connection], T],
        seconds: float | None = None,
        *,
        is_long: bool = False,
    ) -> T:
        """Call `read` on a thread, in one snapshot of the database; its errors are raised.

        Once it has begun it is interrupted after `seconds` (`TooSlow`). With `is_long` it reads the
        whole database.
        """
        # The threads are shared: waiting for a connection must not occupy one.
        async with AsyncExitStack() as slots:
            if is_long:
                await slots.enter_async_context(self._long)
            await slots.enter_async_context(self._free)
            loop = asyncio.get_running_loop()
            with contextlib.suppress(_Connected):
                return await loop.run_in_executor(self._threads, self._run, read, seconds)
            # Keeping its slot, it waits until another reader gives a connection back.
            return await self.run(read, seconds)

    def _run(self, read: Callable[[sqlite3.Connection], T], seconds: float | None) -> T:
        _, number, db = self._idle.get()
        try:
            if self._closed:
                raise ShuttingDown(f"cannot read {self._path}: it is closed")
            if db is None:
                db = self._new_connection()
            db.execute("BEGIN")
            until = math.inf if seconds is None else time.monotonic() + seconds
            if seconds is not None:
                db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            try:
                return read(db)
            except sqlite3.OperationalError as error:
                if time.monotonic() <= until:
                    raise
                raise TooSlow(
                    f"gave the answer up after {seconds:g} seconds",
                    hint="ask for less at once, or raise limits.query_seconds",
                ) from error
            finally:
                db.set_progress_handler(None, 0)
                if db.in_transaction:
                    db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        finally:
            self._idle.put((db is None, number, db))

    def _new_connection(self) -> sqlite3.Connection:
        try:
            db = self._connect(self._path)
        except Unavailable as error:
            if self._connected:
                raise _Connected from error
            raise
        self._connected = True
        return db

    def renew(self, between: Callable[[], None]) -> None:
        """Close every connection and call `between`; connections reopen on demand. Blocking."""
        taken = [self._idle.get() for _ in range(self._limit)]
        try:
            for _, _, db in taken:
                if db is not None:
                    db.close()
            self._connected = False
            between()
        finally:
            for _, number, _ in taken:
                self._idle.put((True, number, None))

    def close(self) -> None:
        """Wait for running readers, close the connections, refuse waiting readers. Blocking."""
        # A waiting reader gets a place without a connection, and finds that this is closed.
        self._closed = True
        self.renew(lambda: None)


Refused: TypeAlias = DiskFull | ReadOnly
# A disk with less counts as full.
_ROOM: Final = 1_048_576


class WriteHealth:
    """Whether the disk currently refuses an agent's writes.

    `readers` makes readers of a database that is not open for writing.
    """

    def __init__(self, agent: str, problems: Problems, readers: Callable[[], Readers]) -> None:
        self._agent = agent
        self._problems = problems
        self._readers = readers
        self._error: Refused | None = None
        self.standby: Readers | None = None  # reads while the database cannot be opened for writing

    @property
    def degraded(self) -> bool:
        """Whether a write was refused and none has succeeded since."""
        return self._error is not None

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        """Run a write, and report a refusal. In standby it is refused without being tried."""
        if self.standby is not None and self._error is not None:
            raise type(self._error)(self._error.message, hint=self._error.hint)
        try:
            yield
        except (DiskFull, ReadOnly) as error:
            self.record(error)
            raise

    def record(self, error: Refused) -> None:
        """The disk refused a write."""
        self._error = error
        self._problems.report(error.code, self._agent, error.message, error.hint or "")

    def recovered(self) -> None:
        """The disk accepts writes."""
        self._error = None
        for kind in (DiskFull, ReadOnly):
            self._problems.clear(kind.code, self._agent)

    async def enter_standby(self, error: Refused) -> None:
        """Read from now on without opening the database for writing; else raise `error`."""
        self.record(error)
        standby = self._readers()
        try:
            await standby.run(read_clock)
        except ThermoclineError:
            await asyncio.to_thread(standby.close)
            # The caller gets the error; nothing will check later whether it is over.
            self.recovered()
            raise error from None
        self.standby = standby

    async def leave_standby(self) -> None:
        """Close the standby readers, so that the database can be opened."""
        if self.standby is not None:
            await asyncio.to_thread(self.standby.close)


def take_room(folder: Path) -> None:
    """Raise OSError unless the disk has room for more than the database's log has in reserve."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_ROOM))


def probe(tx: Transaction) -> None:
    """The smallest write, to learn whether the disk accepts one."""
    meta.write(tx, "probe", tx.now)
