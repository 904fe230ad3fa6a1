"""`/api/agents`: whose memories there are."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec

from ..errors import ThermoclineError
from ..store.agent_store import AgentStore
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
        count = await _memories(stores[name]) if name in stores else None
        results.append(await asyncio.to_thread(agents.summary, name, count))
    return Reply(AgentsAnswer(results))


async def _memories(store: AgentStore) -> int | None:
    # One that was closed meanwhile, or cannot be read, must not hide the others.
    with contextlib.suppress(ThermoclineError):
        return sum(await store.read(totals))
    return None


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
