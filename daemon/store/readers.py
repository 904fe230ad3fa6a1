"""A small pool of reading connections, so that readers do not wait for the writer."""

from __future__ import annotations

import asyncio
import math
import queue
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeVar

from ..errors import ShuttingDown, TooSlow
from .database import connect_reader, translate

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


class Readers:
    """Connections that are opened on demand and reused.

    `limit` is the maximum number of connections, each with a page cache of `cache_kb`; further
    readers wait. `threads` are shared with other agents.
    """

    def __init__(
        self,
        path: Path,
        *,
        limit: int,
        cache_kb: int,
        threads: Executor,
        connect: Callable[[Path, int], sqlite3.Connection] = connect_reader,
    ) -> None:
        self._path = path
        self._cache_kb = cache_kb
        self._threads = threads
        self._connect = connect
        self._idle: queue.LifoQueue[sqlite3.Connection | None] = queue.LifoQueue()
        for _ in range(limit):
            self._idle.put(None)
        self._limit = limit
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
            return await loop.run_in_executor(self._threads, self._run, read, seconds)

    def _run(self, read: Callable[[sqlite3.Connection], T], seconds: float | None) -> T:
        db = self._idle.get()
        try:
            if self._closed:
                raise ShuttingDown(f"cannot read {self._path}: it is closed")
            if db is None:
                db = self._connect(self._path, self._cache_kb)
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
            self._idle.put(db)

    def renew(self, between: Callable[[], None]) -> None:
        """Close every connection and call `between`; connections reopen on demand. Blocking."""
        taken = [self._idle.get() for _ in range(self._limit)]
        try:
            for db in taken:
                if db is not None:
                    db.close()
            between()
        finally:
            for _ in taken:
                self._idle.put(None)

    def close(self) -> None:
        """Wait for running readers, close the connections, refuse waiting readers. Blocking."""
        self._closed = True
        for _ in range(self._limit):
            db = self._idle.get()
            if db is not None:
                db.close()
        # A waiting reader takes one of these, finds it closed, and puts it back.
        for _ in range(self._limit):
            self._idle.put(None)
