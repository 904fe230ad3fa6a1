"""Calls of the daemon from an asyncio program, over a few kept connections.

Sockets are read only while a call waits, so that `stale` sees what came in between, and a client
may outlive an event loop.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Self, TypeVar

from .caller import BaseCaller
from .wire import Events, Wait

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .caller import Json, Query
    from .wire import Steps, StreamSteps


T = TypeVar("T")
# Of the 256 that the daemon accepts; further calls wait for a free one.
_MOST_CONNECTIONS: Final = 8


class AsyncCaller(BaseCaller):
    """Connections to the daemon, kept alive between calls; any number of tasks may call at once.

    Calls return coroutines. A cancelled call ends its connection: the daemon carries it out or
    not.
    """

    _room: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the idle connections; the next call opens another."""
        self.close_idle()

    async def stream(
        self, path: str, query: Query, last_id: str | None
    ) -> AsyncGenerator[tuple[str, str, Json]]:
        """Events of `path` as (id, type, data), until they end or break off (`AnswerLost`)."""
        events = Events()
        async with aclosing(_run_stream(self._stream_of(path, query, last_id))) as pieces:
            async for piece in pieces:
                for event in events.feed(piece):
                    yield event

    def download(self, path: str, query: Query | None = None) -> AsyncGenerator[bytes]:
        """An answer in pieces, over a separate connection; `AnswerLost` if it breaks off."""
        return _run_stream(self._file_of(path, query))

    async def _run(self, steps: Steps[T]) -> T:
        loop = asyncio.get_running_loop()
        if self._room is None or self._room[0] is not loop:
            self._room = (loop, asyncio.Semaphore(_MOST_CONNECTIONS))
        async with self._room[1]:
            try:
                wait = next(steps)
                while True:
                    wait = next(steps) if await _ready(wait) else steps.throw(TimeoutError())
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                steps.close()


async def _run_stream(steps: StreamSteps) -> AsyncGenerator[bytes]:
    is_late = False
    try:
        while True:
            piece = steps.throw(TimeoutError()) if is_late else next(steps)
            is_late = isinstance(piece, Wait) and not await _ready(piece)
            if not isinstance(piece, Wait):
                yield piece
    except StopIteration:
        return
    finally:
        steps.close()


async def _ready(wait: Wait) -> bool:
    """As `Wait.block`, while other tasks go on."""
    if wait.socket is None:
        await asyncio.sleep(wait.seconds)
        return True
    loop = asyncio.get_running_loop()
    is_ready = asyncio.Event()
    if wait.writes:
        loop.add_writer(wait.socket, is_ready.set)
    else:
        loop.add_reader(wait.socket, is_ready.set)
    try:
        async with asyncio.timeout(wait.seconds):
            await is_ready.wait()
    except TimeoutError:
        return False
    finally:
        if wait.writes:
            loop.remove_writer(wait.socket)
        else:
            loop.remove_reader(wait.socket)
    return True
