"""The agents, and forgetting all of one agent."""

from __future__ import annotations

import asyncio
import contextlib

from ..errors import NotFound, ThermoclineError
from ..memory.checks import check_agent
from ..shapes.agents import AgentForgotten, AgentId, AgentList, AgentView, ForgetAgentQuery
from ..store import key_values
from ..store.agent_store import AgentStore
from ..store.tree_rows import totals
from .forgetting import everything, forget_everything
from .operation import Operation
from .scope import Scope


@Operation("GET", "/api/agents", agent=False)
async def index(scope: Scope) -> AgentList:
    """List the agents, without opening any."""
    agents = scope.daemon.agents
    names = await asyncio.to_thread(agents.names)
    stores = agents.open_stores()
    results = []
    for name in filter(scope.may_read, names):
        count = await _memories(stores[name]) if name in stores else None
        size = await asyncio.to_thread(agents.size_bytes, name)
        results.append(AgentView(name, name in stores, count, size))
    return AgentList(results)


@Operation("DELETE", "/api/agents/{id}", role="admin", agent=False)
async def forget(scope: Scope, id: AgentId, query: ForgetAgentQuery) -> AgentForgotten:  # noqa: A002
    """Forget an agent: all its memories and its folder, on the replica too."""
    agent = check_agent(id)
    scope.daemon.gate.require(scope.peer, agent, "admin")
    agents = scope.daemon.agents
    _, workspace = agents.place(agent)
    told = AgentForgotten(agent, 0, 0, 0, not query.dry_run)
    told.workspace = None if workspace is None else str(workspace)
    told.size_bytes = await asyncio.to_thread(agents.size_bytes, agent)
    async with agents.use(agent, create=False, quietly=True) as store:
        if query.dry_run:
            told.memories = len(await store.read(everything))
            told.key_values = await store.read(lambda db: key_values.page(db, "", 1, 0)[1])
            return told
        told.memories, told.key_values = await forget_everything(store)
        try:
            await scope.daemon.replicas.sync(agent)
        except NotFound:
            told.replica = "none"
        except ThermoclineError as error:
            told.replica, told.why = "behind", error.message
        else:
            told.replica = "synced"
    await agents.forget(agent)
    scope.daemon.problems.forget(agent)
    return told


async def _memories(store: AgentStore) -> int | None:
    # An agent that was closed meanwhile, or cannot be read, must not hide the rest.
    with contextlib.suppress(ThermoclineError):
        return sum(await store.read(totals))
    return None
