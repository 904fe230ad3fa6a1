"""One request on its way through the daemon, and the table of what can be asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import MultiMapping

from ..config.kinds import Role
from ..config.settings import Settings
from ..errors import InvalidInput, ShuttingDown, TooLarge
from ..files.workspaces import Workspaces
from ..llm.client import ModelClient
from ..memory.checks import check_agent, shown
from ..replication.other import OtherDatabases
from ..replication.replicas import Replicas
from ..restore.verify import Verifier
from ..runtime.problems import Problems
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.transaction import acting
from ..thinking.parts import Thinking
from ..upkeep.upkeep import Upkeep
from . import json_body
from .access import Gate, Peer
from .bus import Bus
from .connections import ArrivedLate, Connection

T = TypeVar("T")
_CHUNK: Final = 16_384
# Beyond this a body needs one of the few places for large ones.
_SMALL: Final = 16_384


class Identity(msgspec.Struct, frozen=True):
    """What the daemon says of itself."""

    version: str
    device: str
    state_dir: str
    socket: str
    started: float


class Services(msgspec.Struct, frozen=True):
    """The parts of the daemon that calls are answered from."""

    agents: Agents
    model: ModelClient
    thinking: Thinking
    replicas: Replicas
    verifier: Verifier
    workspaces: Workspaces
    databases: OtherDatabases
    upkeep: Upkeep
    settings: Callable[[], Settings]
    problems: Problems
    bus: Bus
    gate: Gate
    identity: Identity
    connections: Callable[[], int]
    ready: asyncio.Event
    stopping: asyncio.Event


class Reply(msgspec.Struct, frozen=True):
    """An answer: a value that becomes JSON, or a text of another type."""

    value: Any
    status: int = 200
    content_type: str = "application/json"


Answer: TypeAlias = Reply | web.StreamResponse
Handler: TypeAlias = Callable[["Call"], Awaitable[Answer]]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be asked: it drives the dispatch and describes itself in OpenAPI.

    Attributes:
        path: with `{name}` for a part that varies.
        role: what the caller must be allowed.
        query, body, answer: the structs of what goes in and comes out.
        types: the media types of the answer.
        agent: whether it concerns one agent's memory.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    role: Role = "read"
    query: Any = None
    body: Any = None
    answer: Any = None
    types: tuple[str, ...] = ("application/json",)
    status: int = 200
    agent: bool = True


class _NoParameters(msgspec.Struct, forbid_unknown_fields=True):
    """What a route without parameters takes."""


class Call:
    """One request, its caller and the agent that it concerns.

    Attributes:
        services: the daemon.
        peer: who asks.
        params: the varying parts of the path.
        agent: whose memory it concerns; `agent_named` tells whether the call said so.
    """

    def __init__(
        self,
        services: Services,
        request: web.BaseRequest,
        peer: Peer,
        route: Route,
        params: Mapping[str, str],
    ) -> None:
        acting.set(peer.name)
        self.services = services
        self.request = request
        self.peer = peer
        self.params = params
        self._route = route
        self.settings = services.settings()
        self.agent = self._agent()
        self.now = time.time()

    def _agent(self) -> str:
        request = self.request
        given = [*request.query.getall("agent", ()), *request.headers.getall("X-Agent", ())]
        if len(set(given)) > 1:
            named = " and ".join(map(shown, dict.fromkeys(given)))
            raise InvalidInput(
                f"cannot tell the agent: the call names {named}",
                field="agent",
                hint="give one ?agent= or one X-Agent",
            )
        self.agent_named = bool(given)
        # An empty one is a caller's mistake, not the default.
        return check_agent(given[0] if given else self.settings.agent_id)

    def may_read(self, agent: str) -> bool:
        """Whether the caller has any role with `agent`."""
        return self.services.gate.role(self.peer, agent) is not None

    @property
    def leaves_traces(self) -> bool:
        """Whether what the caller reads counts as used. A reader changes nothing."""
        return self.services.gate.role(self.peer, self.agent) != "read"

    @property
    def connection(self) -> Connection:
        """The connection that it came over."""
        protocol = self.request.protocol
        assert isinstance(protocol, Connection)
        return protocol

    def store(self, *, create: bool = False) -> AbstractAsyncContextManager[AgentStore]:
        """The memory of the agent, open while the block runs."""
        return self.services.agents.use(self.agent, create=create)

    def check_parameters(self) -> None:
        """Refuse the parameters of a URL that takes none but `agent`."""
        if self._route.query is None:
            self.query(_NoParameters)

    def query(self, kind: type[T]) -> T:
        """The parameters of the URL as a `kind`.

        Raises:
            InvalidInput: one is unknown or no value of its field.
        """
        return json_body.convert(_gathered(self.request.query, kind), kind, strict=False)

    async def body(self, kind: type[T]) -> T:
        """The JSON of the body as a `kind`.

        Raises:
            InvalidInput: it is missing, is no JSON, or does not fit.
            TooLarge: it is beyond the limit.
        """
        return json_body.convert(await self.json(), kind)

    async def json(self) -> Any:
        """The JSON of the body, whatever it is."""
        raw = await self._read()
        if not raw:
            raise InvalidInput("cannot read the body: it is empty", hint="send JSON")
        return json_body.decode(raw)

    async def _read(self) -> bytes:
        limit = self.settings.socket.max_body_bytes
        if (self.request.content_length or 0) > limit:
            raise _too_large(limit)
        if self.request.headers.get("Expect", "").lower() == "100-continue":
            transport = self.request.transport
            assert transport is not None
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        seconds = self.settings.socket.body_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._read_unless_ended(limit)
        except TimeoutError as error:
            raise ArrivedLate(
                f"the request's body did not arrive in {seconds:g} seconds"
            ) from error
        except (HttpProcessingError, web.RequestPayloadError) as error:
            raise InvalidInput("cannot read the body: it is not sent as its head says") from error

    async def _read_unless_ended(self, limit: int) -> bytes:
        """The body; its rest is not waited for once the caller or the daemon leaves."""
        if self.request.content.is_eof():
            return await self._read_within(limit)
        reading = asyncio.ensure_future(self._read_within(limit))
        either = asyncio.ensure_future(either_leaves(self.connection, self.services.stopping))
        try:
            await asyncio.wait({reading, either}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
            if self.connection.gone.is_set():
                raise ConnectionResetError
            raise ShuttingDown("cannot take the rest of the request: the daemon is stopping")
        finally:
            reading.cancel()
            either.cancel()

    async def _read_within(self, limit: int) -> bytes:
        raw = bytearray()
        async with AsyncExitStack() as room:
            while chunk := await self.request.content.read(_CHUNK):
                if len(raw) <= _SMALL < len(raw) + len(chunk):
                    await room.enter_async_context(self.connection.large_bodies)
                raw += chunk
                if len(raw) > limit:
                    raise _too_large(limit)
        return bytes(raw)


async def either_leaves(connection: Connection, stopping: asyncio.Event) -> None:
    """Wait until the caller or the daemon leaves."""
    either = [asyncio.ensure_future(event.wait()) for event in (connection.gone, stopping)]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in either:
            one.cancel()


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"cannot take the body: the limit is {limit} bytes", hint="send several smaller requests"
    )


def _gathered(query: MultiMapping[str], kind: type[Any]) -> dict[str, Any]:
    """The parameters by name; those that may be lists from repetition or commas."""
    lists = {
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if "tuple" in str(field.type).lower()
    }
    found: dict[str, Any] = {}
    for name in dict.fromkeys(query.keys()):
        if name == "agent":
            continue
        values = query.getall(name)
        if name in lists:
            # A single tag may hold a comma; the other lists are of plain words.
            parts = values if name == "tag" else [part for v in values for part in v.split(",")]
            found[name] = [part for part in parts if part]
        elif len(values) > 1:
            raise InvalidInput(f"'{name}' is given {len(values)} times", field=name)
        else:
            found[name] = values[0]
    return found
