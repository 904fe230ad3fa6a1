"""`/api/events`: the daemon's events, as server-sent events."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from aiohttp.web_response import StreamResponse

from ..errors import InvalidInput
from ..memory.checks import shown
from ..operations.operation import Operation
from ..shapes.status import EventsQuery
from .bus import Published
from .calls import Call, ending

_KEEP_ALIVE_SECONDS: Final = 15.0


async def stream(call: Call, query: EventsQuery) -> StreamResponse:
    """Send server-sent events until one side leaves.

    A call without an agent receives the events of every agent that the caller may read.

    With the header `Last-Event-ID`, missed events come first, as far as they are still known.
    """
    response = StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    )
    with call.services.bus.listen(_last_id(call)) as queue:
        await response.prepare(call.request)
        if call.request.method == "HEAD":
            return response
        await response.write(b": connected\n\n")
        async with ending(call) as left:
            while not left.done():
                told = await _next(queue, left)
                if told is None:
                    await response.write(b": keep-alive\n\n")
                elif _wanted(told, query.types) and _allowed(call, told):
                    await response.write(_frame(told))
    response.force_close()
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


def _wanted(told: Published, types: tuple[str, ...]) -> bool:
    return not types or any(told.type == kind or told.type.startswith(f"{kind}.") for kind in types)


def _allowed(call: Call, told: Published) -> bool:
    if call.agent_named and told.agent not in {"", call.agent}:
        return False
    return not told.agent or call.services.gate.role(call.peer, told.agent) is not None


def _frame(told: Published) -> bytes:
    data = msgspec.json.encode({"agent": told.agent, "time": told.time, **told.data})
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (told.id, told.type.encode(), data)


def _last_id(call: Call) -> int | None:
    given = call.request.headers.get("Last-Event-ID")
    if given is None:
        return None
    if not (given.isascii() and given.isdigit()) or len(given) > 18:
        raise InvalidInput(f"cannot go on from event {shown(given)}: it is not a number")
    return int(given)


OPERATION: Final = Operation(
    "GET", "/api/events", type="text/event-stream", agent=False, by_hand=True
).done_by(stream)
