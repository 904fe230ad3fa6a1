"""Every request to a model, counted: what it took and cost, and whether there is room for it."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ..errors import ThermoclineError
from ..runtime.problems import Problems
from .budget import Budget
from .failures import CallFailed
from .supervisor import Supervisor
from .usage import Usage
from .wire import Answered, Ask, Message, Setup

# Four characters are a token, near enough for a budget; and a message has a frame.
_CHARACTERS: Final = 4
_FRAME: Final = 8


class Bill:
    """What the requests for one question have cost; `cost` None once a price is not known."""

    def __init__(self) -> None:
        self.tokens_in = self.tokens_out = 0
        self.cost: float | None = 0.0

    def add(self, tokens_in: int, tokens_out: int, cost: float | None) -> None:
        """One request more."""
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        self.cost = None if cost is None or self.cost is None else self.cost + cost


class Errand(msgspec.Struct, frozen=True):
    """What a request is for, and where it goes.

    Attributes:
        setup: what the process has to know for it; None for a caller's own endpoint.
        bill: where its cost is added.
    """

    purpose: str
    setup: Setup | None
    bill: Bill


class Meter:
    """Makes requests and counts them. A caller's own endpoint is not charged to the budget.

    Args:
        supervisor: has the models' process.
        budget: what a day may cost.
        usage: counts since the start.
        problems: is told when the budget is spent.
    """

    def __init__(
        self, supervisor: Supervisor, budget: Budget, usage: Usage, problems: Problems
    ) -> None:
        self.supervisor = supervisor
        self.budget = budget
        self.usage = usage
        self._problems = problems
        self._saving = asyncio.Lock()

    def check(self) -> None:
        """Go on only while there is room in the budget.

        Raises:
            CallFailed: it is spent.
        """
        why = self.budget.why_spent()
        if why is None:
            self._problems.clear("model_budget_spent", "/llm")
            return
        spent = CallFailed("spent", f"the models' budget for {self.budget.day} is spent: {why}")
        self._problems.report(
            "model_budget_spent", "/llm", spent.message, spent.hint or "", lasting=False
        )
        raise spent

    async def call(self, errand: Errand, ask: Ask) -> Answered:
        """One request.

        Raises:
            CallFailed: there is no reply, or no room for it in the budget.
        """
        guess = tokens_of(ask.messages)
        free = errand.setup is None
        reserved = 0 if free else guess + ask.max_tokens
        if not free:
            self.check()
        # What is given up or breaks down may have been worked on all the same.
        took: tuple[int, int, float | None] = (guess, 0, None)
        self.budget.reserve(reserved)
        try:
            answered = await self.supervisor.ask(errand.setup, ask)
            made = answered.tokens_out or len(answered.text) // _CHARACTERS + 1
            took = (answered.tokens_in or guess, made, answered.cost)
        except CallFailed as error:
            took = took if error.charged else (0, 0, 0.0)
            raise
        finally:
            errand.bill.add(*took)
            self.usage.took(errand.purpose, *took)
            tokens_in, tokens_out, cost = (0, 0, 0.0) if free else took
            self.budget.settle(reserved, tokens_in + tokens_out, cost)
        return answered

    async def save(self) -> None:
        """Write down what was spent. A disk that refuses is reported; the count goes on."""
        async with self._saving:
            try:
                await asyncio.to_thread(self.budget.save)
            except (OSError, ThermoclineError) as error:
                text = f"cannot write down what models cost: {error}"
                self._problems.report("model_budget_unsaved", "/llm", text, lasting=False)
            else:
                self._problems.clear("model_budget_unsaved", "/llm")


def tokens_of(messages: tuple[Message, ...]) -> int:
    """About how many tokens a model reads, by the number of characters."""
    return sum(len(message.content) // _CHARACTERS + _FRAME for message in messages)
