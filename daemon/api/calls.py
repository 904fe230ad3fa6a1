"""One request: its agent, its parameters and its body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec

from ..config.settings import Settings
from ..errors import InvalidInput, ShuttingDown, TooLarge
from ..memory.checks import check_agent, shown
from ..operations.access import Peer
from ..operations.operation import Daemon, Operation
from .bus import Bus
from .connections import PeerConnection
from .http import HttpRequest, RequestTimeout

T = TypeVar("T")
# A larger body needs one of the few places for large ones.
_SMALL_BODY_BYTES: Final = 16_384


class Services(Daemon, frozen=True, kw_only=True):
    """The daemon and what only its edge needs."""

    bus: Bus
    stopping: asyncio.Event


class Call(msgspec.Struct, frozen=True):
    """One request.

    Attributes:
        peer: the caller.
        operation: the requested operation.
        parts: the variable parts of the path.
        agent: whose memory it concerns; `agent_named`: whether the request names it.
    """

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
async def ending(call: Call) -> AsyncIterator[asyncio.Future[None]]:
    """A future that is done once the caller or the daemon leaves."""
    waiting = asyncio.ensure_future(_either_leaves(call))
    try:
        yield waiting
    finally:
        waiting.cancel()


async def _either_leaves(call: Call) -> None:
    events = (call.connection.gone, call.services.stopping)
    either = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in either:
            task.cancel()


async def unless_left(call: Call, left: asyncio.Future[None], work: Awaitable[T], what: str) -> T:
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
        f"cannot take the body: the limit is {limit} bytes", hint="send several smaller requests"
    )
