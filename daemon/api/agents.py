"""`/api/agents`: whose memories there are."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ..store.agents import Summary
from ..store.tree_rows import totals
from .calls import Call, Reply, Route


class AgentsAnswer(msgspec.Struct):
    """Every agent that the caller may read; `memories` is null while one is closed."""

    results: list[Summary]


async def index(call: Call) -> Reply:
    """List the agents, without opening any."""
    agents = call.services.agents
    names = await asyncio.to_thread(agents.names)
    allowed = [name for name in names if call.services.gate.role(call.peer, name) is not None]
    stores = agents.open_stores()
    results = []
    for name in allowed:
        count = sum(await stores[name].read(totals)) if name in stores else None
        results.append(await asyncio.to_thread(agents.summary, name, count))
    return Reply(AgentsAnswer(results))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/agents",
        handler=index,
        summary="List the agents",
        answer=AgentsAnswer,
        agent=False,
    ),
)
