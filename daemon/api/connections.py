"""Connections that cannot be held open for nothing: deadlines, and errors that are JSON."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from ..config.settings import Socket
from ..errors import InvalidInput, ThermoclineError, TooLarge, Unavailable

# aiohttp takes None for "no log of each request", though its types do not say so.
_NO_LOG: Final[Any] = None


class ArrivedLate(InvalidInput):
    """A request began and did not arrive in time."""

    code = "timeout"
    status = 408


class Connection(RequestHandler):
    """One caller's connection.

    aiohttp closes one that is idle; this one also ends a request whose head trickles in and a
    caller that does not read its answers, and answers in JSON what aiohttp itself refuses.

    Attributes:
        gone: set when the caller has left.
    """

    __slots__ = ("_deadline", "_socket", "_unread", "gone")

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, settings: Socket) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=settings.idle_timeout_seconds,
            tcp_keepalive=False,
            lingering_time=2.0,
            access_log=_NO_LOG,
        )
        self._socket = settings
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the deadlines with the connection."""
        self.arrived()
        self._was_read()
        self.gone.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give a caller that does not read a time to begin in."""
        super().pause_writing()
        transport = self.transport
        if self._unread is None and transport is not None:
            self._unread = self._loop.call_later(self._socket.body_timeout_seconds, transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        self._was_read()
        super().resume_writing()

    def _was_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def data_received(self, data: bytes) -> None:
        """Give a request that begins a time to arrive in."""
        # Whoever sends is not idle: a head that is on its way has a deadline of its own.
        self._next_keepalive_close_time = self._loop.time() + self._socket.idle_timeout_seconds
        if self._deadline is None and self._current_request is None:
            self._deadline = self._loop.call_later(
                self._socket.header_timeout_seconds, self._expire
            )
        super().data_received(data)

    def arrived(self) -> None:
        """The head is complete: the deadline is met."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what is not even a request, as JSON."""
        self.arrived()
        response = super().handle_error(request, status, exc, message)
        if isinstance(exc, LineTooLong) or "Too many headers" in (message or ""):
            most = f"{self.max_field_size} bytes a line, {self.max_headers} lines"
            error: ThermoclineError = TooLarge(f"cannot read the request: its head is over {most}")
            answer = error_response(error, status=431)
        else:
            error = InvalidInput("cannot read the request: it is no HTTP/1.1")
            answer = error_response(error, status=response.status)
        answer.force_close()
        return answer

    def _expire(self) -> None:
        self._deadline = None
        seconds = self._socket.header_timeout_seconds
        self.refuse(ArrivedLate(f"the request's head did not arrive in {seconds:g} seconds"))

    def refuse(self, error: ThermoclineError) -> None:
        """Answer at once and close, outside any request."""
        transport = self.transport
        if transport is not None:
            body = error_body(error)
            head = (
                f"HTTP/1.1 {error.status} {error.code}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            transport.write(head.encode() + body)
        self.force_close()


class Server(web.Server):
    """Makes connections, no more of them than the limit."""

    def __init__(self, handler: Any, settings: Any) -> None:
        super().__init__(handler)
        self._settings = settings

    def __call__(self) -> Connection:
        """A connection with the time-outs that are in force now."""
        return Connection(self, self._loop, self._settings().socket)

    async def drain(self, seconds: float) -> None:
        """Let running requests end, then end what still runs: no later than after `seconds`."""
        # aiohttp alone would wait twice as long for a caller that does not read.
        ending = asyncio.get_running_loop().call_later(seconds, self._abort)
        await self.shutdown(seconds)
        ending.cancel()

    def _abort(self) -> None:
        for connection in self.connections:
            if connection.transport is not None:
                connection.transport.abort()

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        """Take it in, or turn it away with the reason."""
        limit = self._settings().socket.max_connections
        super().connection_made(handler, transport)
        if len(self.connections) > limit:
            handler.refuse(
                Unavailable(
                    f"cannot take another connection: {limit} are open",
                    hint="close some, or raise socket.max_connections",
                )
            )


def error_body(error: ThermoclineError) -> bytes:
    """`{"error": …}` as bytes, whatever the message quotes."""
    # A head may hold bytes that are no UTF-8, which Python keeps as lone surrogates.
    fields = {
        name: value.encode(errors="backslashreplace").decode()
        for name, value in error.as_dict().items()
    }
    return msgspec.json.encode({"error": fields})


def error_response(error: ThermoclineError, *, status: int | None = None) -> web.Response:
    """The HTTP answer that carries `error`."""
    return web.Response(
        body=error_body(error), status=status or error.status, content_type="application/json"
    )
