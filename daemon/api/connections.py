"""Connections that cannot be held open for nothing: deadlines, and errors that are JSON."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from ..config.settings import Socket
from ..errors import InvalidInput, ThermoclineError, TooLarge, Unavailable

# aiohttp takes None for "no log of each request", though its types do not say so.
_NO_LOG: Final[Any] = None


class HeaderTimeout(InvalidInput):
    """A request began and its head did not arrive in time."""

    code = "timeout"
    status = 408


class Connection(RequestHandler):
    """One caller's connection.

    aiohttp closes one that is idle; this one also ends a request whose head trickles in, and
    answers in JSON what aiohttp itself refuses.
    """

    __slots__ = ("_deadline", "_socket")

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

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the deadline with the connection."""
        self.arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Give a request that begins a time to arrive in."""
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
        error = TooLarge if status in {413, 431} else InvalidInput
        text = "cannot read the request: it is no HTTP/1.1"
        answer = error_response(error(text), status=response.status)
        answer.force_close()
        return answer

    def _expire(self) -> None:
        self._deadline = None
        seconds = self._socket.header_timeout_seconds
        self.refuse(HeaderTimeout(f"the request's head did not arrive in {seconds:g} seconds"))

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
    """`{"error": …}` as bytes."""
    return msgspec.json.encode({"error": error.as_dict()})


def error_response(error: ThermoclineError, *, status: int | None = None) -> web.Response:
    """The HTTP answer that carries `error`."""
    return web.Response(
        body=error_body(error), status=status or error.status, content_type="application/json"
    )
