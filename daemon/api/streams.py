"""Answers of unknown length: files and lists as they are read, and the daemon's events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec

from ..errors import InvalidInput, ShuttingDown
from ..memory.checks import shown
from ..operations.operation import Operation, Scope, Stream
from .calls import Call, Published, ending, unless_left
from .http import HttpResponse

_log = logging.getLogger(__name__)
_KEEP_ALIVE_SECONDS: Final = 15.0


class StreamedResponse(HttpResponse):
    """A response that is sent as fast as the caller reads: `begin`, `write`, …, and its end.

    A caller that does not see the end knows that something is missing.
    """

    def __init__(self, call: Call, headers: Mapping[str, str]) -> None:
        super().__init__(b"", 200, headers)
        self._connection = call.connection
        self._chunked = not call.request.is_http_1_0
        self._begun = False
        self.closes = not call.request.persistent

    def begin(self) -> None:
        self._connection.write(self.head("Transfer-Encoding: chunked" if self._chunked else ""))
        self._begun = True

    async def write(self, piece: bytes) -> None:
        """Send a piece. Raises `ConnectionResetError`: the caller has left."""
        if piece:
            chunk = b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece
            self._connection.write(chunk)
            await self._connection.drain()

    def to_send(self, method: str = "GET") -> bytes:
        """Its end."""
        return b"0\r\n\r\n" if self._begun and self._chunked and method != "HEAD" else b""


async def streamed(call: Call, scope: Scope, kind: str, stream: Stream) -> HttpResponse:
    """Send a stream, and end it as soon as the caller or the daemon leaves.

    A failure before the first piece is answered as an error. After that it can only show as an
    incomplete answer, which callers do not take for a complete one.
    """
    headers = {"Content-Type": kind}
    if stream.name:
        headers["Content-Disposition"] = f'attachment; filename="{stream.name}"'
    response = StreamedResponse(call, headers)
    if call.request.method == "HEAD":
        async with scope.store(exists=True):
            response.begin()
        return response
    pieces = stream.pieces
    async with aclosing(pieces), ending(call) as left:
        left.add_done_callback(lambda _: stream.give_up())

        def following() -> Awaitable[bytes | None]:
            return unless_left(call, left, anext(pieces, None), "send the rest")

        piece = await following()
        response.begin()
        try:
            while piece is not None:
                await response.write(piece)
                piece = await following()
        except BaseException as error:
            # A normal end would mean that the answer is complete.
            call.connection.abort()
            if not isinstance(error, ConnectionError | ShuttingDown | asyncio.CancelledError):
                _log.error("an answer broke off: %s", error, extra={"action": "stream_failed"})
            if not isinstance(error, Exception):
                raise
    return response


# Events


async def events(call: Call, types: tuple[str, ...] = ()) -> HttpResponse:
    """Send server-sent events until one side leaves.

    Only those of some `types`: full names, or a prefix such as `memory`.

    A call without an agent receives the events of every agent that the caller may read.

    With the header `Last-Event-ID`, missed events come first, as far as they are still known.
    """
    last_id = call.request.header("last-event-id", "0")
    if not (last_id.isascii() and last_id.isdigit()) or len(last_id) > 18:
        raise InvalidInput(f"cannot go on from event {shown(last_id)}: it is not a number")
    after = int(last_id) if call.request.headers("last-event-id") else None
    response = StreamedResponse(
        call, {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    )
    with call.services.bus.listen(after) as queue:
        response.begin()
        if call.request.method == "HEAD":
            return response
        await response.write(b": connected\n\n")
        async with ending(call) as left:
            while not left.done():
                event = await _next(queue, left)
                if event is None:
                    await response.write(b": keep-alive\n\n")
                elif _is_wanted(call, types, event):
                    fields = {"agent": event.agent, "time": event.time, **event.data}
                    frame = (event.id, event.type.encode(), msgspec.json.encode(fields))
                    await response.write(b"id: %d\nevent: %s\ndata: %s\n\n" % frame)
    response.closes = True
    return response


async def _next(queue: asyncio.Queue[Published], left: asyncio.Future[Any]) -> Published | None:
    """The next event; None if there was none for a while, or one side is leaving."""
    getting = asyncio.ensure_future(queue.get())
    try:
        waited: set[asyncio.Future[Any]] = {getting, left}
        await asyncio.wait(waited, timeout=_KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        return getting.result() if getting.done() else None
    finally:
        getting.cancel()


def _is_wanted(call: Call, types: tuple[str, ...], event: Published) -> bool:
    if types and not any(event.type == kind or event.type.startswith(f"{kind}.") for kind in types):
        return False
    if call.agent_named and event.agent not in {"", call.agent}:
        return False
    return not event.agent or call.services.gate.role(call.peer, event.agent) is not None


EVENTS: Final = Operation(
    "GET", "/api/events", type="text/event-stream", agent=False, by_hand=True
).done_by(events)
