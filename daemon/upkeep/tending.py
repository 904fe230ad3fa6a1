"""Looking after the open memories now and then, beside what their stores do themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from ..errors import NotFound, ThermoclineError
from ..problems import Problems
from ..store.agent_store import AgentStore
from ..store.agents import Agents

Duty: TypeAlias = Callable[[AgentStore], Awaitable[None]]


class Tending:
    """Does its duties for every open memory, one after the other, so that none hurries another.

    A memory that is closed is left alone, and one that is being looked after stays open.

    Args:
        agents: the memories.
        duties: what is done; each knows itself when it has nothing to do.
        seconds: how long to wait between two rounds.
        problems: where a duty that failed is told.
        trouble: the code of that problem, of these duties alone.
    """

    def __init__(
        self,
        agents: Agents,
        duties: Sequence[Duty],
        seconds: float,
        problems: Problems,
        *,
        trouble: str,
    ) -> None:
        self._agents = agents
        self._duties = duties
        self._seconds = seconds
        self._problems = problems
        self._trouble = trouble

    async def run(self) -> None:
        """Go round until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            for agent in self._agents.open_stores():
                await self._tend(agent)

    async def _tend(self, agent: str) -> None:
        try:
            for duty in self._duties:
                if agent not in self._agents.open_stores():
                    return
                async with self._agents.use(agent, create=False, quietly=True) as store:
                    await duty(store)
        except NotFound:
            # Somebody has removed the agent's folder.
            return
        except (ThermoclineError, OSError) as error:
            self._problems.report(self._trouble, agent, f"cannot look after '{agent}': {error}")
        else:
            self._problems.clear(self._trouble, agent)
