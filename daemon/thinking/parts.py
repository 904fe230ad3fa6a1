"""All that thinks, put together."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import msgspec

from ..config.settings import Observe
from ..llm.instructions import read_prompts
from ..llm.model import Model
from ..runtime.problems import Problems
from ..store.agents import Agents
from .asking import Mind
from .listening import Listener
from .reasoning import Reasoner


class Thinking(msgspec.Struct, frozen=True):
    """The parts that use a model.

    Attributes:
        mind: asks it.
        reasoner: searches the tree with it.
        listener: reads conversations, with it or without.
    """

    mind: Mind
    reasoner: Reasoner
    listener: Listener

    async def close(self) -> None:
        """Give up what is under way."""
        await self.listener.close()
        await self.reasoner.close()


def build_thinking(
    model: Model,
    agents: Agents,
    observe: Callable[[], Observe],
    problems: Problems,
    zone: dt.tzinfo,
) -> Thinking:
    """Put the parts together around a model; see `Listener`. Reads the prompts; blocking."""
    mind = Mind(model, read_prompts())
    return Thinking(mind, Reasoner(mind), Listener(agents, mind, observe, problems, zone))
