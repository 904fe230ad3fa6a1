"""Connections to the socket: their requests in order, deadlines, limits, and how they end.

A caller costs at most a read of `READ_BYTES` at a time, what `RequestReader` lets wait, and one
answer that it does not read. What it does not do in time ends its connection.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from ..config.settings import Socket
from ..errors import ThermoclineError
from ..operations.access import Peer, peer_of
from .fairness import FairQueue, RateLimitedLog
from .http import (
    READ_BYTES,
    HttpRequest,
    HttpResponse,
    RequestReader,
    RequestTimeout,
    error_response,
)  # fmt: skip

_LINGER_SECONDS: Final = 2.0
# The statuses of requests that are wrong in themselves.
_MISTAKES: Final = {400, 405, 408, 413, 431}


class Deadline:
    """Calls a function, unless it is set again or cleared within its time.

    It is set for every request: a timer that is due earlier is left, and then waits for the rest.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due = 0.0
        self._expire: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float, expire: Callable[[], None]) -> None:
        """Call `expire` in `seconds`, in place of what was to be called."""
        self._due, self._expire = self._loop.time() + seconds, expire
        if self._timer is not None and self._timer.when() > self._due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._ring)

    def clear(self) -> None:
        self._expire = None

    def end(self) -> None:
        """Call nothing, and leave no timer behind."""
        self._expire = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        if self._expire is not None and self._due > self._loop.time():
            self._timer = self._loop.call_at(self._due, self._ring)
        elif self._expire is not None:
            self._expire()


Handler: TypeAlias = Callable[[HttpRequest, "PeerConnection"], Awaitable[HttpResponse]]


class Host(Protocol):
    """What the connections of a daemon share; see `Server`."""

    loop: asyncio.AbstractEventLoop
    handler: Handler
    turns: FairQueue
    mistakes: RateLimitedLog
    large_bodies: asyncio.Semaphore
    stopping: bool

    def opened(self, connection: PeerConnection, /) -> None:
        """Count a connection as open."""

    def lost(self, connection: PeerConnection, /) -> None:
        """Count it no more."""


class PeerConnection(asyncio.Protocol):
    """One caller's connection: its requests are answered one after another, in their order.

    A caller that has closed only its own side still gets its answers.

    Attributes:
        gone: set when the caller has left.
        large_bodies: room for bodies that are more than a few pages, shared by all connections.
    """

    _transport: asyncio.Transport
    peer: Peer

    def __init__(self, host: Host, settings: Socket) -> None:
        self._host = host
        self._settings = settings
        self._reader = RequestReader()
        self._serving: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._half_closed = self._ending = self._paused = False
        # What the caller has to send: a request, the rest of a head, or its leaving.
        self._arrival = Deadline(host.loop)
        # And that it reads what was sent to it.
        self._departure = Deadline(host.loop)
        self._head_is_due = False
        self.large_bodies = host.large_bodies
        self.gone = asyncio.Event()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        # asyncio's transports have this attribute, though its documentation does not say so.
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        self._transport = transport
        self.peer = peer_of(transport.get_extra_info("socket"))
        self._host.opened(self)
        self._await_request()

    def connection_lost(self, _: BaseException | None) -> None:
        """Begin no more requests; a request that is being answered goes on."""
        self._reader.end()
        self._arrival.end()
        self.resume_writing()
        self._departure.end()
        self.gone.set()
        self._host.lost(self)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        if self._serving is None and self._reader.waiting:
            self._serving = self._host.loop.create_task(self._serve())
        elif self._serving is None and self._reader.in_head and not self._head_is_due:
            self._await_head()
        self.balance()

    def eof_received(self) -> bool:
        """Answer what has arrived, if the caller still reads; True: the connection stays open."""
        self._half_closed = True
        self._reader.eof()
        return self._serving is not None and not self._ending and not self._has_left()

    def pause_writing(self) -> None:
        self._writable = self._host.loop.create_future()
        self._departure.set(self._settings.body_timeout_seconds, self.abort)

    def resume_writing(self) -> None:
        self._departure.clear()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Answering

    async def _serve(self) -> None:
        try:
            while self._reader.waiting:
                request = self._reader.waiting.popleft()
                if isinstance(request, ThermoclineError):
                    await self.turn()
                    self._host.turns.note_mistake(self.peer.pid)
                    self._host.mistakes.log("malformed_request", "refused a malformed request")
                    self._refuse(request)
                    return
                self._arrival.clear()
                self._head_is_due = False
                if not await self._answer(request):
                    self._end(complete=request.body.complete)
                    return
                self.balance()
        except ConnectionError:
            self.abort()
        except Exception as error:  # noqa: BLE001 - its message may quote received data
            name = type(error).__name__
            self._host.mistakes.log("connection_failed", f"a connection failed with {name}")
            self.abort()
        finally:
            self._serving = None
        if self._half_closed or self.gone.is_set():
            self._close()
        elif self._reader.in_head:
            self._await_head()
        else:
            self._await_request()

    async def _answer(self, request: HttpRequest) -> bool:
        """Answer it, and return whether another may follow."""
        response = await self._host.handler(request, self)
        if response.status in _MISTAKES:
            self._host.turns.note_mistake(self.peer.pid)
        is_last = self._half_closed and not self._reader.waiting
        leaves = is_last or not (request.persistent and request.body.complete)
        response.closes = response.closes or leaves or self._host.stopping
        self.write(response.to_send(request.method))
        await self.drain()
        return not response.closes

    async def turn(self, agent: str = "") -> None:
        """Wait until this caller's request about `agent` may begin."""
        await self._host.turns.acquire(self.peer.pid, agent)

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait while the caller has too much to read; `ConnectionResetError` if it has left."""
        if self._writable is not None:
            await self._writable
        if self._transport.is_closing():
            raise ConnectionResetError

    def balance(self) -> None:
        """Read from the socket only what there is room for."""
        pause = self._reader.is_full
        if pause != self._paused and not self._half_closed and not self._transport.is_closing():
            self._paused = pause
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # Deadlines

    def _await_request(self) -> None:
        self._head_is_due = False
        self._arrival.set(self._settings.idle_timeout_seconds, self._close)

    def _await_head(self) -> None:
        self._head_is_due = True
        self._arrival.set(self._settings.header_timeout_seconds, self._refuse_late_head)

    def _refuse_late_head(self) -> None:
        seconds = self._settings.header_timeout_seconds
        self._refuse(RequestTimeout(f"the request's head did not arrive in {seconds:g} seconds"))

    # Ending

    @property
    def is_idle(self) -> bool:
        """Whether it is between two requests, or before its first."""
        return self._serving is None and not self._reader.in_head

    def close_if_idle(self) -> None:
        """Close it unless a request arrives or is answered; then it closes behind the answer."""
        if self.is_idle:
            self._close()

    def abort(self) -> None:
        self._transport.abort()

    def _refuse(self, error: ThermoclineError) -> None:
        """Answer at once and close, outside any request."""
        self.write(refusal(error))
        self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        """Close behind the last answer, to a request that has arrived or has not.

        Were the rest of a request left unread, the caller would see its connection broken instead
        of the answer.
        """
        self._reader.closed = True
        self.balance()
        if complete or self._half_closed:
            self._close()
        elif not self._transport.is_closing():
            self._ending = True
            self._transport.write_eof()
            self._arrival.set(_LINGER_SECONDS, self.abort)

    def _close(self) -> None:
        """Close it once what was written is read."""
        self._reader.closed = True
        self._arrival.end()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._departure.set(self._settings.body_timeout_seconds, self.abort)

    def _has_left(self) -> bool:
        """Whether the caller closed both directions, so that no answer can be read."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))


def refusal(error: ThermoclineError) -> bytes:
    """The whole answer that carries `error`, outside any request."""
    response = error_response(error)
    response.closes = True
    return response.to_send()
