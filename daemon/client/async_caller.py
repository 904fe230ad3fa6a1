"""Calls to the daemon from asyncio, over a few kept connections.

Sockets are read only while a call waits, so that `stale` sees what came in between, and a client
may outlive an event loop.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self, TypeVar

from . import wire
from .caller import (
    PREPARING_SECONDS,
    SILENCE_SECONDS,
    CallCodec,
    leaving,
    repeatable,
    request_fields,
)
from .errors import AnswerLost, DaemonUnreachable, refusal

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

    from .caller import Json, Query, Row
    from .wire import Steps

T = TypeVar("T")
# Of the 256 that the daemon accepts; further calls wait for a free one.
_MOST_CONNECTIONS: Final = 8


class AsyncConnection:
    """One open connection, as `wire.Connection`; `open` makes one."""

    def __init__(self, connection: socket.socket, patience: float) -> None:
        self._incoming = wire.Incoming()
        self._socket = connection
        self._patience = patience

    @classmethod
    async def open(cls, path: str, patience: float) -> Self:
        """Connect; retry while more callers wait than the kernel's queue holds."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            async with asyncio.timeout(patience):
                # `sock_connect` takes a full queue for a connection under way.
                while True:
                    try:
                        connection.connect(path)
                    except BlockingIOError:
                        await asyncio.sleep(wire.FULL_SECONDS)
                    else:
                        return cls(connection, patience)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close it; repeated calls are safe."""
        self._socket.close()

    def stale(self) -> bool:
        """Whether the daemon closed it, or sent unrequested data, while it was idle."""
        return bool(self._incoming.buffer) or wire.readable(self._socket)

    async def converse(self, request: bytes) -> wire.Response:
        """Send one request and wait for its whole answer; raises as `wire.Connection`."""
        self._incoming.begun = False
        sent = await self._send(request)
        try:
            return await self._received(self._incoming.response())
        except wire.Broken as broken:
            broken.unsent = not (sent or broken.begun)
            raise

    async def open_stream(self, request: bytes) -> tuple[int, dict[str, str]]:
        """Send a request whose answer has no known length; read it with `chunks`."""
        await self._send(request)
        return await self._received(self._incoming.head())

    async def chunks(self, headers: dict[str, str]) -> AsyncGenerator[bytes]:
        """The pieces of a body as they come, until the daemon ends it."""
        for piece in self._incoming.chunks(headers):
            if piece is None:
                await self._fill()
            else:
                yield piece

    async def body(self, status: int, headers: dict[str, str]) -> bytes:
        """The whole body of an answer."""
        return await self._received(self._incoming.body(status, headers))

    async def _send(self, request: bytes) -> bool:
        loop, rest = asyncio.get_running_loop(), memoryview(request)
        try:
            while rest:
                # In pieces, so that the time limit is that of one wait.
                async with asyncio.timeout(self._patience):
                    await loop.sock_sendall(self._socket, rest[: wire.READ_SIZE])
                rest = rest[wire.READ_SIZE :]
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    async def _fill(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                data = await asyncio.get_running_loop().sock_recv(self._socket, wire.READ_SIZE)
        except ConnectionResetError:
            data = b""
        self._incoming.add(data)

    async def _received(self, steps: Steps[T]) -> T:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            await self._fill()


class AsyncCaller(CallCodec):
    """Connections to the daemon, kept alive between calls; any number of tasks may call at once.

    The rules for repeating a call, errors and times are those of `Caller`. A cancelled call ends
    its connection: the daemon carries it out or not. The arguments are those of `CallCodec`.
    """

    def __init__(
        self,
        socket_path: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        timeout: float = 30.0,
        program: str = "",
    ) -> None:
        super().__init__(socket_path, agent, timeout, program)
        self._idle: list[AsyncConnection] = []
        self._room: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the idle connections; the next call opens another."""
        while self._idle:
            self._idle.pop().close()

    async def request(
        self, method: str, path: str, query: Query | None = None, body: Json = None
    ) -> Json:
        """Make any call of the API; see `Caller.request`."""
        return self.parsed(await self._call(method, path, query, body))

    async def call(self, call: str, **fields: Json) -> Json:
        """Make a call such as `PUT /api/kv/{key}`; see `Caller.call`."""
        return await self.request(*request_fields(call, fields))

    async def ask(
        self, kind: type[T], method: str, path: str, query: Query | None = None, body: Json = None
    ) -> T:
        """The same as `request` for an answer of a known struct, one of those in `schemas`."""
        return self.decoded(await self._call(method, path, query, body), kind)

    async def make(self, row: Row[T], fields: dict[str, Json]) -> T:
        """Make the call of a method."""
        return row.value(self, await self._call(*row.request(fields)))

    async def stream(
        self, path: str, query: Query, last_id: str | None
    ) -> AsyncGenerator[tuple[str, str, Json]]:
        """The server-sent events of `path` as (id, type, data), until the daemon ends them.

        Raises:
            AnswerLost: the stream broke off or fell silent.
        """
        request = self._stream_request(path, query, last_id)
        events = wire.Events()
        pieces = self._pieces(request, max(self._timeout, SILENCE_SECONDS))
        try:
            async for piece in pieces:
                for event in events.feed(piece):
                    yield event
        finally:
            await pieces.aclose()

    def download(self, path: str, query: Query | None = None) -> AsyncGenerator[bytes]:
        """The bytes of an answer of any length, in pieces, over a separate connection.

        Raises:
            AnswerLost: it broke off or fell silent.
        """
        request = wire.request_of("GET", path, self._query(query), {})
        return self._pieces(request, max(self._timeout, PREPARING_SECONDS))

    async def _call(
        self, method: str, path: str, query: Query | None = None, body: Json = None
    ) -> wire.Response:
        request = self._bytes_of(method, path, query, body)
        async with self._place():
            try:
                # One deadline for all attempts, however slowly an answer drips.
                async with asyncio.timeout(self._timeout):
                    return await self._answered(method, request)
            except TimeoutError as error:
                raise self._lost(error) from error

    async def _answered(self, method: str, request: bytes) -> wire.Response:
        answer = await self._sent(method, request)
        if not leaving(answer):
            return answer
        await self.aclose()
        try:
            return await self._sent(method, request)
        except AnswerLost:
            raise
        except DaemonUnreachable:
            return answer

    async def _sent(self, method: str, request: bytes) -> wire.Response:
        try:
            return await self._once(request)
        except wire.Broken as broken:
            if not repeatable(method, broken):
                raise self._lost(broken) from broken
        try:
            return await self._once(request)
        except wire.Broken as broken:
            raise self._lost(broken) from broken

    async def _once(self, request: bytes) -> wire.Response:
        connection = await self._taken()
        reusable = False
        try:
            answer = await connection.converse(request)
            reusable = answer.reusable
        except (wire.BadAnswer, TimeoutError) as error:
            raise self._lost(error) from error
        finally:
            if reusable:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    async def _taken(self) -> AsyncConnection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.stale():
                return connection
            connection.close()
        return await self._open(self._timeout)

    async def _pieces(self, request: bytes, patience: float) -> AsyncGenerator[bytes]:
        connection = await self._open(patience)
        try:
            status, headers = await connection.open_stream(request)
            if status >= 400:
                body = await connection.body(status, headers)
                raise refusal(status, self.content(wire.Response(status, headers, body)))
            async for piece in connection.chunks(headers):
                yield piece
        except (wire.BadAnswer, wire.Broken, TimeoutError) as error:
            raise self._cut_off(error) from error
        finally:
            connection.close()

    async def _open(self, patience: float) -> AsyncConnection:
        try:
            return await AsyncConnection.open(self.socket_path, patience)
        except (OSError, ValueError) as error:
            raise self._closed(error) from error

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[None]:
        loop = asyncio.get_running_loop()
        if self._room is None or self._room[0] is not loop:
            self._room = (loop, asyncio.Semaphore(_MOST_CONNECTIONS))
        async with self._room[1]:
            yield
