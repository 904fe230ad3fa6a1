"""Connections: deadlines, errors as JSON, and a log that misbehaving callers cannot fill."""

from __future__ import annotations

import asyncio
import logging
import select
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web_server
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from ..config.settings import Socket
from ..errors import InvalidInput, ThermoclineError, TooLarge, TooManyRequests, Unavailable
from ..operations.access import UNKNOWN_PEER, Peer, peer_of
from .turns import Turns

# aiohttp accepts None for "no log of each request", though its types do not say so.
_NO_LOG: Final[Any] = None
_log = logging.getLogger(__name__)
_COMPLAINT_SECONDS: Final = 60.0
# The maximum size of a read, and of unread data, for one connection.
_READ_BYTES: Final = 8_192
_LARGE_BODIES: Final = 16


class Complaints:
    """Logs callers' mistakes: at most one line per minute and kind, without received data."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._since: dict[str, int] = {}

    def note(self, action: str, what: str) -> None:
        """Log `what`, or count it for the next line."""
        self._since[action] = self._since.get(action, 0) + 1
        now = time.monotonic()
        if now - self._last.get(action, -_COMPLAINT_SECONDS) < _COMPLAINT_SECONDS:
            return
        self._last[action] = now
        _log.warning("%s (%d times)", what, self._since.pop(action), extra={"action": action})


class ArrivedLate(InvalidInput):
    """A request began and did not arrive in time."""

    code = "timeout"
    status = 408


class NotHttp(InvalidInput):
    """The received bytes are not a request."""

    def __init__(self) -> None:
        super().__init__("cannot read the request: it is not HTTP/1.1")


class PeerConnection(RequestHandler):
    """One caller's connection.

    aiohttp closes idle connections; this class also ends a request whose head arrives too slowly,
    disconnects a caller that does not read its answers, and refuses malformed requests in JSON.
    A caller that has closed only its own side still gets its answers.

    Attributes:
        gone: set when the caller has left.
        large_bodies: room for bodies that are more than a few pages, shared by all connections.
        peer: who connected.
    """

    __slots__ = (
        *("_complaints", "_deadline", "_ended", "_newest", "_socket", "_unread"),
        *("_turns", "gone", "large_bodies", "peer"),
    )

    def __init__(
        self,
        server: Server,
        loop: asyncio.AbstractEventLoop,
        settings: Socket,
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=settings.idle_timeout_seconds,
            tcp_keepalive=False,
            lingering_time=2.0,
            access_log=_NO_LOG,
            read_bufsize=_READ_BYTES,
        )
        self._socket = settings
        self._complaints = server.complaints
        self._turns = server.turns
        self.large_bodies = server.large_bodies
        self.peer = UNKNOWN_PEER
        self._ended = False
        self._newest: Any = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read little at a time: other callers wait while one chunk is processed."""
        # asyncio's transports have this attribute, though its documentation does not say so.
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]
        self.peer = peer_of(transport.get_extra_info("socket"))
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel the deadlines with the connection."""
        self.arrived()
        self._was_read()
        self.gone.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Set a deadline for a caller that does not read."""
        super().pause_writing()
        transport = self.transport
        if self._unread is None and transport is not None:
            self._unread = self._loop.call_later(self._socket.body_timeout_seconds, transport.abort)

    def resume_writing(self) -> None:
        """Cancel the deadline: the caller reads again."""
        self._was_read()
        super().resume_writing()

    def _was_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def data_received(self, data: bytes) -> None:
        """Set a deadline for a request that begins to arrive."""
        # A sending caller is not idle: the head of a request has its own deadline.
        self._next_keepalive_close_time = self._loop.time() + self._socket.idle_timeout_seconds
        if self._deadline is None and self._current_request is None:
            self._deadline = self._loop.call_later(
                self._socket.header_timeout_seconds, self._expire
            )
        super().data_received(data)
        if self._messages:
            self._newest = self._messages[-1][1]

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for answers that are still due; True: it stays open."""
        waiting = self._waiter is not None and not self._waiter.done()
        if waiting or self._newest is None or not self._newest.is_eof() or self._has_left():
            return False
        self._ended = True
        if not self._messages:
            self.close()
        return True

    @property
    def is_idle(self) -> bool:
        """Whether it is between two requests, or before its first."""
        return self._current_request is None and not self._messages and self._deadline is None

    def _has_left(self) -> bool:
        """Whether the caller closed both directions, so that no answer can be read."""
        transport = self.transport
        if transport is None:
            return True
        poll = select.poll()
        poll.register(transport.get_extra_info("socket"), 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    async def finish_response(
        self, request: BaseRequest, resp: StreamResponse, start_time: float | None
    ) -> tuple[StreamResponse, bool]:
        """Send the answer; after the last answer to a half-closed caller, close the connection."""
        if self._ended and not self._messages:
            self.close()
        return await super().finish_response(request, resp, start_time)

    def arrived(self) -> None:
        """The head is complete: the deadline is met."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    async def turn(self, agent: str = "") -> None:
        """Wait until this caller's request about `agent` may begin."""
        await self._turns.take(self.peer.pid, agent)

    def _make_error_handler(self, err_info: Any) -> Callable[..., Awaitable[StreamResponse]]:
        answer = super()._make_error_handler(err_info)

        async def handler(request: BaseRequest) -> StreamResponse:
            await self.turn()
            return await answer(request)

        return handler

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """The answer to received bytes that are not a request, as JSON."""
        self.arrived()
        if isinstance(exc, ConnectionError):
            raise exc  # The caller has left.
        if exc is not None and not isinstance(exc, HttpProcessingError):
            self.log_exception(exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun")
        error: ThermoclineError
        if isinstance(exc, LineTooLong) or "Too many headers" in (message or ""):
            most = f"{self.max_field_size} bytes a line, {self.max_headers} lines"
            error = TooLarge(f"cannot read the request: its head is over {most}")
            status = 431
        else:
            error = NotHttp()
        self._complaints.note("malformed_request", "refused a malformed request")
        answer = error_response(error, status=status)
        answer.force_close()
        return answer

    def log_exception(self, *_args: Any, **kw: Any) -> None:
        """Log an error of aiohttp without its message, which may quote received data."""
        kind = type(kw.get("exc_info")).__name__
        self._complaints.note("connection_failed", f"a connection failed with {kind}")

    def _expire(self) -> None:
        self._deadline = None
        seconds = self._socket.header_timeout_seconds
        self.refuse(ArrivedLate(f"the request's head did not arrive in {seconds:g} seconds"))

    def refuse(self, error: ThermoclineError) -> None:
        """Answer at once and close, outside any request."""
        transport = self.transport
        if transport is not None:
            transport.write(_refusal(error))
        self.force_close()

    def refuse_malformed(self) -> None:
        """Refuse a malformed request that aiohttp accepted."""
        self._complaints.note("malformed_request", "refused a malformed request")
        self.refuse(NotHttp())


class Beyond(asyncio.Protocol):
    """A connection beyond the limit. Refusing it costs an answer, but no parser."""

    def __init__(self, server: Server, limit: int) -> None:
        self._server = server
        self._limit = limit

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the place of an idle connection, or answer why not, and close."""
        assert isinstance(transport, asyncio.Transport)
        if self._server.make_room(peer_of(transport.get_extra_info("socket"))):
            connection = self._server.connection()
            transport.set_protocol(connection)
            connection.connection_made(transport)
            return
        self._server.complaints.note("connection_refused", "turned connections away: too many")
        error = Unavailable(
            f"cannot take another connection: {self._limit} are open",
            hint="close some, or raise socket.max_connections",
        )
        transport.write(_refusal(error))
        transport.close()


class Server(web_server.Server):
    """Makes connections up to the limit, and holds what they share.

    Attributes:
        accepted: called when a connection is made.
    """

    def __init__(self, handler: Any, settings: Any) -> None:
        super().__init__(handler)
        self._settings = settings
        self._arriving = 0
        self.accepted: Callable[[], None] = lambda: None
        self.complaints = Complaints()
        self.turns = Turns(self._loop)
        self.large_bodies = asyncio.Semaphore(_LARGE_BODIES)

    def protocol(self) -> asyncio.Protocol:
        """A connection with the time-outs in force, or its refusal."""
        settings = self._settings().socket
        if len(self._connections) + self._arriving >= settings.max_connections:
            return Beyond(self, settings.max_connections)
        return self.connection()

    def connection(self) -> PeerConnection:
        """A new connection."""
        self._arriving += 1
        return PeerConnection(self, self._loop, self._settings().socket)

    def make_room(self, newcomer: Peer) -> bool:
        """Close an idle connection of the process that has the most, for one that has far fewer.

        So a process that opens many connections does not keep other processes out.
        """
        ours = [one for one in self.connections if isinstance(one, PeerConnection)]
        open_of = Counter(connection.peer.pid for connection in ours)
        (most_of, most), *_ = open_of.most_common(1)
        if open_of[newcomer.pid] >= most // 2:
            return False
        for connection in ours:
            if connection.peer.pid == most_of and connection.is_idle:
                connection.force_close()
                return True
        return False

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        """Count it as open."""
        self._arriving -= 1
        self.accepted()
        super().connection_made(handler, transport)

    async def drain(self, seconds: float) -> None:
        """Wait for running requests; after `seconds`, abort them."""
        # aiohttp alone would wait twice as long for a caller that does not read.
        ending = asyncio.get_running_loop().call_later(seconds, self._abort)
        await self.shutdown(seconds)
        ending.cancel()

    def _abort(self) -> None:
        for connection in self.connections:
            if connection.transport is not None:
                connection.transport.abort()


def error_body(error: ThermoclineError) -> bytes:
    """`{"error": …}` as bytes, whatever the message quotes."""
    # Bytes of a head that are not UTF-8 are lone surrogates in Python.
    fields = {
        name: value.encode(errors="backslashreplace").decode()
        for name, value in error.as_dict().items()
    }
    return msgspec.json.encode({"error": fields})


def error_response(error: ThermoclineError, *, status: int | None = None) -> Response:
    """The HTTP answer that carries `error`."""
    response = Response(
        body=error_body(error), status=status or error.status, content_type="application/json"
    )
    if isinstance(error, TooManyRequests):
        response.headers["Retry-After"] = str(error.seconds)
    return response


def _refusal(error: ThermoclineError) -> bytes:
    """The whole answer as bytes, for a connection without a request."""
    body = error_body(error)
    head = (
        f"HTTP/1.1 {error.status} {error.code}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
