"""One request: its agent, its parameters and its body; and the events that requests listen to."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar

import msgspec

from ..config.settings import Settings
from ..errors import InvalidInput, ShuttingDown, TooLarge
from ..memory.checks import check_agent, shown
from ..operations.access import Peer
from ..operations.operation import Daemon, Operation
from ..store.database.transaction import Event
from .connections import PeerConnection
from .http import HttpRequest, RequestTimeout

T = TypeVar("T")
# A larger body needs one of the few places for large ones.
_SMALL_BODY_BYTES: Final = 16_384
# The events kept for a listener who comes back, and for one who falls behind.
_HISTORY: Final = 1000
_BEHIND: Final = 1000


class Services(Daemon, frozen=True, kw_only=True):
    """The daemon and what only its edge needs."""

    bus: Bus
    stopping: asyncio.Event


class Call(msgspec.Struct, frozen=True):
    """One request; `agent_named`: whether it names the agent that it concerns."""

    services: Services
    request: HttpRequest
    connection: PeerConnection
    operation: Operation
    parts: Mapping[str, str]
    peer: Peer
    settings: Settings
    agent: str
    agent_named: bool


def agent_of(request: HttpRequest, default: str) -> tuple[str, bool]:
    """The agent a request names, or `default`, and whether it names one; else `InvalidInput`."""
    names = [*request.query.get("agent", ()), *request.headers("x-agent")]
    if len(set(names)) > 1:
        named = " and ".join(map(shown, dict.fromkeys(names)))
        raise InvalidInput(
            f"cannot tell the agent: the call names {named}",
            field="agent",
            hint="give one ?agent= or one X-Agent",
        )
    # An empty name is a caller's mistake, not the default.
    return check_agent(names[0] if names else default), bool(names)


async def read_body(call: Call) -> bytes:
    """The whole body; `InvalidInput` if it is broken or late, `TooLarge` beyond the limit."""
    limit, body = call.settings.socket.max_body_bytes, call.request.body
    if call.request.length > limit:
        raise _too_large(limit)
    if body.complete:
        return await _read_within(call, limit)
    if call.request.header("expect").lower() == "100-continue":
        call.connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    seconds = call.settings.socket.body_timeout_seconds
    try:
        async with asyncio.timeout(seconds), ending(call) as left:
            reading = _read_within(call, limit)
            return await unless_left(call, left, reading, "take the rest of the request")
    except TimeoutError as error:
        raise RequestTimeout(f"the request's body did not arrive in {seconds:g} seconds") from error


async def _read_within(call: Call, limit: int) -> bytes:
    raw = bytearray()
    async with AsyncExitStack() as room:
        while chunk := await call.request.body.read():
            call.connection.balance()
            if len(raw) <= _SMALL_BODY_BYTES < len(raw) + len(chunk):
                await room.enter_async_context(call.connection.large_bodies)
            raw += chunk
            if len(raw) > limit:
                raise _too_large(limit)
    return bytes(raw)


@asynccontextmanager
async def ending(call: Call) -> AsyncIterator[asyncio.Future[Any]]:
    """A future that is done once the caller or the daemon leaves."""
    events = (call.connection.gone, call.services.stopping)
    leaving = [asyncio.ensure_future(event.wait()) for event in events]
    first = asyncio.ensure_future(asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED))
    try:
        yield first
    finally:
        for task in (first, *leaving):
            task.cancel()


async def unless_left(call: Call, left: asyncio.Future[Any], work: Awaitable[T], what: str) -> T:
    """The result of `work`; if the daemon or the caller leaves, it is cancelled and that raised."""
    doing = asyncio.ensure_future(work)
    waited: set[asyncio.Future[Any]] = {doing, left}
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing})
    if not doing.cancelled():
        return doing.result()
    if call.services.stopping.is_set():
        raise ShuttingDown(f"cannot {what}: the daemon is stopping")
    raise ConnectionResetError


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"cannot take the body: the limit is {limit} bytes",
        hint="send several smaller requests, or raise socket.max_body_bytes",
    )


class Published(msgspec.Struct, frozen=True):
    """One event, with its number and time, of one agent (or of the daemon: "")."""

    id: int
    agent: str
    type: str
    time: float
    data: dict[str, Any]


class Bus:
    """Passes each event to all listeners. For the event loop's thread only.

    A listener that falls a thousand events behind loses the oldest, and can tell by the numbers.
    """

    def __init__(self) -> None:
        self._next = 1
        self._history: deque[Published] = deque(maxlen=_HISTORY)
        self._listeners: set[asyncio.Queue[Published]] = set()

    def publish(self, agent: str, event: Event) -> None:
        published = Published(self._next, agent, event.type, time.time(), event.data)
        self._next += 1
        self._history.append(published)
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(published)

    @contextmanager
    def listen(self, after: int | None) -> Iterator[asyncio.Queue[Published]]:
        """A queue of the events from now on, and of the history after number `after`.

        A number not issued yet is from before a restart: then all known events are newer.
        """
        if after is not None and after >= self._next:
            after = 0
        queue: asyncio.Queue[Published] = asyncio.Queue(_BEHIND)
        for published in self._history if after is not None else ():
            if published.id > (after or 0):
                queue.put_nowait(published)
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
