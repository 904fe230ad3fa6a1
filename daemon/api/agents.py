"""`/api/agents`: whose memories there are, and forgetting one of them whole."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Literal

import msgspec

from ..errors import NotFound, ThermoclineError
from ..memory.checks import check_agent
from ..store import key_values
from ..store.agent_store import AgentStore
from ..store.agents import Summary
from ..store.tree_rows import totals
from .calls import Call, Reply, Route
from .forgetting import everything, forget_everything


class AgentsAnswer(msgspec.Struct):
    """Every agent that the caller may read; `memories` is null while one is closed."""

    results: list[Summary]


class ForgetAgentQuery(msgspec.Struct, forbid_unknown_fields=True):
    """`dry_run` only tells what would be forgotten."""

    dry_run: bool = False


class AgentForgotten(msgspec.Struct):
    """What the agent had.

    `replica` tells whether the replica was told that it is forgotten: `synced`, or `behind` and
    why; `none` where there is none. `workspace` is a folder elsewhere, which is left as it is.
    """

    id: str
    memories: int
    key_values: int
    size_bytes: int
    forgotten: bool
    replica: Literal["none", "synced", "behind"] = "none"
    why: str = ""
    workspace: str | None = None


async def index(call: Call) -> Reply:
    """List the agents, without opening any."""
    agents = call.services.agents
    names = await asyncio.to_thread(agents.names)
    allowed = [name for name in names if call.may_read(name)]
    stores = agents.open_stores()
    results = []
    for name in allowed:
        count = await _memories(stores[name]) if name in stores else None
        results.append(await asyncio.to_thread(agents.summary, name, count))
    return Reply(AgentsAnswer(results))


async def forget(call: Call) -> Reply:
    """Forget all rows of the agent, tell its replica, and remove its folder."""
    agent = check_agent(call.params["id"])
    call.services.gate.require(call.peer, agent, "admin")
    dry_run = call.query(ForgetAgentQuery).dry_run
    agents = call.services.agents
    _, workspace = agents.place(agent)
    told = AgentForgotten(agent, 0, 0, 0, not dry_run)
    told.workspace = None if workspace is None else str(workspace)
    told.size_bytes = (await asyncio.to_thread(agents.summary, agent, None)).size_bytes
    async with agents.use(agent, create=False, quietly=True) as store:
        if dry_run:
            told.memories = len(await store.read(everything))
            told.key_values = await store.read(lambda db: key_values.page(db, "", 1, 0)[1])
            return Reply(told)
        told.memories, told.key_values = await forget_everything(store)
        try:
            await call.services.replicas.sync(agent)
        except NotFound:
            told.replica = "none"
        except ThermoclineError as error:
            told.replica, told.why = "behind", error.message
        else:
            told.replica = "synced"
    await agents.forget(agent)
    call.services.problems.forget(agent)
    return Reply(told)


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
    Route(
        method="DELETE",
        path="/api/agents/{id}",
        handler=forget,
        summary="Forget an agent: all its memories, and its folder",
        role="admin",
        query=ForgetAgentQuery,
        answer=AgentForgotten,
        agent=False,
    ),
)
