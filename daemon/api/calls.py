"""One request: its agent, its parameters and its body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest

from ..config.settings import Settings
from ..errors import InvalidInput, ShuttingDown, TooLarge
from ..memory.checks import check_agent, shown
from ..operations.access import Peer
from ..operations.operation import Operation
from ..operations.scope import Daemon
from ..shapes.common import convert
from . import json_body
from .bus import Bus
from .connections import ArrivedLate, PeerConnection

T = TypeVar("T")
_CHUNK: Final = 16_384
# A larger body needs one of the few places for large ones.
_SMALL: Final = 16_384


class Services(Daemon, frozen=True, kw_only=True):
    """The daemon and what only its edge needs."""

    bus: Bus
    stopping: asyncio.Event


class NoParameters(msgspec.Struct, forbid_unknown_fields=True):
    """The query of an operation without parameters."""


class Call(msgspec.Struct, frozen=True):
    """One request.

    Attributes:
        peer: the caller.
        operation: the requested operation.
        parts: the variable parts of the path.
        agent: whose memory it concerns; `agent_named`: whether the request names it.
    """

    services: Services
    request: BaseRequest
    operation: Operation
    parts: Mapping[str, str]
    peer: Peer
    settings: Settings
    agent: str
    agent_named: bool

    @property
    def connection(self) -> PeerConnection:
        """The connection of the request."""
        protocol = self.request.protocol
        assert isinstance(protocol, PeerConnection)
        return protocol


def agent_of(request: BaseRequest, default: str) -> tuple[str, bool]:
    """The agent that a request names, or `default`; and whether it names one.

    Raises:
        InvalidInput: it names several agents, or an invalid id.
    """
    given = [*request.query.getall("agent", ()), *request.headers.getall("X-Agent", ())]
    if len(set(given)) > 1:
        named = " and ".join(map(shown, dict.fromkeys(given)))
        raise InvalidInput(
            f"cannot tell the agent: the call names {named}",
            field="agent",
            hint="give one ?agent= or one X-Agent",
        )
    # An empty name is a caller's mistake, not the default.
    return check_agent(given[0] if given else default), bool(given)


def query_of(request: BaseRequest, kind: type[Any]) -> Any:
    """The parameters of the URL as a `kind`; lists come from repetition or commas.

    Raises:
        InvalidInput: a parameter is unknown, or its value does not fit.
    """
    lists = {
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if "tuple" in str(field.type).lower()
    }
    found: dict[str, Any] = {}
    for name in dict.fromkeys(request.query.keys()):
        if name == "agent":
            continue
        values = request.query.getall(name)
        if name in lists:
            # A single tag may contain a comma; the other lists are of plain words.
            parts = values if name == "tag" else [part for v in values for part in v.split(",")]
            found[name] = [part for part in parts if part]
        elif len(values) > 1:
            raise InvalidInput(f"'{name}' is given {len(values)} times", field=name)
        else:
            found[name] = values[0]
    return convert(found, kind, strict=False)


async def body_of(call: Call, kind: Any) -> Any:
    """The JSON of the body as a `kind`.

    Raises:
        InvalidInput: it is missing, is not JSON, or does not fit.
        TooLarge: it is beyond the limit.
    """
    raw = await _read(call)
    if not raw:
        raise InvalidInput("cannot read the body: it is empty", hint="send JSON")
    return convert(json_body.decode(raw), kind)


async def _read(call: Call) -> bytes:
    limit = call.settings.socket.max_body_bytes
    if (call.request.content_length or 0) > limit:
        raise _too_large(limit)
    if call.request.headers.get("Expect", "").lower() == "100-continue":
        transport = call.request.transport
        assert transport is not None
        transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    seconds = call.settings.socket.body_timeout_seconds
    try:
        async with asyncio.timeout(seconds):
            return await _read_unless_ended(call, limit)
    except TimeoutError as error:
        raise ArrivedLate(f"the request's body did not arrive in {seconds:g} seconds") from error
    except (HttpProcessingError, RequestPayloadError) as error:
        raise InvalidInput("cannot read the body: it is not encoded as its headers say") from error


async def _read_unless_ended(call: Call, limit: int) -> bytes:
    """The body; reading stops when the caller or the daemon leaves."""
    if call.request.content.is_eof():
        return await _read_within(call, limit)
    async with ending(call) as left:
        return await unless_left(
            call, left, _read_within(call, limit), "take the rest of the request"
        )


async def _read_within(call: Call, limit: int) -> bytes:
    raw = bytearray()
    async with AsyncExitStack() as room:
        while chunk := await call.request.content.read(_CHUNK):
            if len(raw) <= _SMALL < len(raw) + len(chunk):
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
        for one in either:
            one.cancel()


async def unless_left(call: Call, left: asyncio.Future[None], work: Awaitable[T], what: str) -> T:
    """The result of `work`, which is cancelled when the caller or the daemon leaves.

    Raises:
        ShuttingDown, ConnectionResetError: the daemon, or the caller, leaves; `what` is undone.
    """
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
