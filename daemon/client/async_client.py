"""Talk to the daemon from an asyncio program, over a few kept connections.

async with AsyncClient(agent="assistant") as memory:
    await memory.store("Ana prefers tea", category="people/ana", importance=0.8)
    for result in (await memory.recall("what does Ana drink?")).results:
        print(result.text)

Sockets are read only while a call waits, so that `stale` sees what came in between, and a client
may outlive an event loop.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Self, TypeVar

from .caller import BaseCaller
from .client import Calls
from .wire import Events, Lines, Wait

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

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


class AsyncClient(Calls, AsyncCaller):
    """The methods of `Client` as coroutines; see `AsyncCaller` for the connections."""

    def backup(self, *, seal: bool = False) -> AsyncGenerator[bytes]:
        """All of the agent's memory as one archive (a `.tar.gz`), as `Client.backup`."""
        return self.download("/api/backup", {"seal": seal or None})

    async def export(self) -> AsyncGenerator[dict[str, Json]]:
        """All rows, an object each with its `kind`; raises `AnswerLost` if it breaks off."""
        lines = Lines()
        async with aclosing(self.download("/api/export")) as pieces:
            async for piece in pieces:
                for line in lines.feed(piece):
                    yield json.loads(line)

    def events(
        self, types: Sequence[str] = (), last_id: str | None = None
    ) -> AsyncGenerator[tuple[str, str, Json]]:
        """Events from now on, as (id, type, data), as `Client.events`."""
        return self.stream("/api/events", {"types": ",".join(types) or None}, last_id)
