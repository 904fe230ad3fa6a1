"""Builds the parts that use a model."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import msgspec

from ..config.settings import Settings
from ..llm.model import Model
from ..llm.questions import read_prompts
from ..runtime.problems import Problems
from ..store.agents import Agents
from .listening import Listener
from .model_or_rules import ModelOrRules
from .tree_search import Reasoner


class Thinking(msgspec.Struct, frozen=True):
    """The parts that use a model.

    Attributes:
        model: asks a model, or uses the rules.
        reasoner: searches the tree with the model.
        listener: reads conversations, with the model or the rules.
    """

    model: ModelOrRules
    reasoner: Reasoner
    listener: Listener

    async def close(self) -> None:
        """Cancel running work."""
        await self.listener.close()
        await self.reasoner.close()
        await self.model.rules.close()


def build_thinking(
    model: Model,
    agents: Agents,
    settings: Callable[[], Settings],
    problems: Problems,
    zone: dt.tzinfo,
) -> Thinking:
    """Build the parts around a model; see `Listener`. Reads the prompts; blocking."""
    asked = ModelOrRules(model, read_prompts(), lambda: settings().llm.min_chars)
    listener = Listener(agents, asked, lambda: settings().observe, problems, zone)
    return Thinking(asked, Reasoner(asked), listener)
