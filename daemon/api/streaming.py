"""Answers of unknown length: sent in pieces, as fast as the caller reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import aclosing

from aiohttp.web_response import StreamResponse

from ..errors import ShuttingDown
from ..operations.operation import Stream
from ..operations.scope import Scope
from .calls import Call, ending, unless_left

_log = logging.getLogger(__name__)


async def streamed(call: Call, scope: Scope, kind: str, stream: Stream) -> StreamResponse:
    """Send a stream, and end it as soon as the caller or the daemon leaves.

    A failure before the first piece is answered as an error. After that it can only show as an
    incomplete answer, which callers do not take for a complete one.
    """
    response = StreamResponse(headers={"Content-Type": kind})
    if stream.name:
        response.headers["Content-Disposition"] = f'attachment; filename="{stream.name}"'
    if call.request.method == "HEAD":
        async with scope.store(exists=True):
            await response.prepare(call.request)
        return response
    pieces = stream.pieces
    async with aclosing(pieces), ending(call) as left:
        left.add_done_callback(lambda _: stream.give_up())

        def following() -> Awaitable[bytes | None]:
            return unless_left(call, left, anext(pieces, None), "send the rest")

        try:
            piece = await following()
            await response.prepare(call.request)
        except ConnectionError:
            return response  # The caller has left.
        try:
            while piece is not None:
                if piece:
                    await response.write(piece)
                piece = await following()
            await response.write_eof()
        except BaseException as error:
            _break_off(call, error)
            if not isinstance(error, Exception):
                raise
    return response


def _break_off(call: Call, error: BaseException) -> None:
    """Abort the connection: a normal end would mean that the answer is complete."""
    if not isinstance(error, (ConnectionError, ShuttingDown, asyncio.CancelledError)):
        _log.error("an answer broke off: %s", error, extra={"action": "stream_failed"})
    transport = call.request.transport
    if transport is not None:
        transport.abort()
