"""Calls of models: counts them, charges the budget, retries, and fails over to the next model."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from ..errors import ThermoclineError
from ..runtime.problems import Problems
from .budget import Budget, UsageCounts
from .failures import CallFailed
from .supervisor import Supervisor
from .wire import Answered, Ask, ChatMessage, Setup

# An estimate for the budget: four characters per token, and a frame per message.
_TOKEN_CHARS: Final = 4
_FRAME_TOKENS: Final = 8
_MOST_TRIES: Final = 4
_FIRST_WAIT_SECONDS: Final = 0.5
# If the wait for a model would be longer, the next model is asked.
_LONGEST_WAIT_SECONDS: Final = 2.0
# The process times out slightly before the daemon does.
_SHARE: Final = 0.97
# After a second failure in a row the model is paused; each further failure doubles the pause.
_FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 300.0
_NO_PROCESS: Final = frozenset({"unloaded", "starting", "died", "resting"})

Call = Callable[[Ask], Awaitable[Answered]]


class Cost:
    """The cost of the calls for one question; `dollars` is None once a price is unknown."""

    def __init__(self) -> None:
        self.tokens_in = self.tokens_out = 0
        self.dollars: float | None = 0.0

    def add(self, tokens_in: int, tokens_out: int, dollars: float | None) -> None:
        """Add a call."""
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        known = dollars is not None and self.dollars is not None
        self.dollars = self.dollars + dollars if known else None  # type: ignore[operator]


class MeteredCalls:
    """Makes calls and counts them. A caller's own endpoint is not charged to the budget.

    Args:
        supervisor: runs the models' process.
        budget: the daily budget.
        usage: the counts since the start.
        problems: receives the report of a spent budget.
    """

    def __init__(
        self, supervisor: Supervisor, budget: Budget, usage: UsageCounts, problems: Problems
    ) -> None:
        self.supervisor = supervisor
        self.budget = budget
        self.usage = usage
        self._problems = problems
        self._saving = asyncio.Lock()

    def check_budget(self) -> None:
        """Raise if the budget is spent.

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

    async def call(self, purpose: str, setup: Setup | None, cost: Cost, ask: Ask) -> Answered:
        """Make one call.

        Args:
            purpose: the purpose of the question.
            setup: keys and addresses; None for a caller's own endpoint.
            cost: the sum to add to.
            ask: the request.

        Raises:
            CallFailed: the model did not reply, or the budget is spent.
        """
        guess = tokens_of(ask.messages)
        free = setup is None
        reserved = 0 if free else guess + ask.max_tokens
        if not free:
            self.check_budget()
        # A cancelled or failed call may still be charged.
        took: tuple[int, int, float | None] = (guess, 0, None)
        self.budget.reserve(reserved)
        try:
            answered = await self.supervisor.ask(setup, ask)
            made = answered.tokens_out or len(answered.text) // _TOKEN_CHARS + 1
            took = (answered.tokens_in or guess, made, answered.cost)
        except CallFailed as error:
            took = took if error.charged else (0, 0, 0.0)
            raise
        finally:
            cost.add(*took)
            self.usage.took(purpose, *took)
            tokens_in, tokens_out, dollars = (0, 0, 0.0) if free else took
            self.budget.settle(reserved, tokens_in + tokens_out, dollars)
        return answered

    async def save(self) -> None:
        """Save the counts. A failure is reported; counting continues in memory."""
        async with self._saving:
            try:
                await asyncio.to_thread(self.budget.save)
            except (OSError, ThermoclineError) as error:
                text = f"cannot record the cost of models: {error}"
                self._problems.report("model_budget_unsaved", "/llm", text, lasting=False)
            else:
                self._problems.clear("model_budget_unsaved", "/llm")


def tokens_of(messages: tuple[ChatMessage, ...]) -> int:
    """An estimate of the tokens of messages, by their characters."""
    return sum(len(message.content) // _TOKEN_CHARS + _FRAME_TOKENS for message in messages)


class _Pause(msgspec.Struct, frozen=True):
    failures: int
    until: float
    code: str


class Failover:
    """Asks models in order: retries temporary failures, and skips a model that keeps failing.

    Args:
        clock: returns monotonic seconds, also those of `until`.
        sleep: waits a number of seconds.
        chance: randomises the waits of several requests.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        chance: random.Random,
    ) -> None:
        self.clock = clock
        self._sleep = sleep
        self._chance = chance
        self._pauses: dict[str, _Pause] = {}

    async def reply(
        self, call: Call, ask: Ask, models: Sequence[str], until: float, *, patient: bool
    ) -> tuple[str, Answered]:
        """The first reply of any model, with the name of the model.

        Args:
            call: makes one request.
            ask: the request; model and time are filled in.
            models: the models in order.
            until: the deadline.
            patient: whether a timeout counts as a failure of the model.

        Raises:
            CallFailed: no model replied; the failure of the last model that was asked, or why the
                first is paused.
        """
        failed: CallFailed | None = None
        for place, model in enumerate(models):
            if (paused := self.paused(model)) is not None:
                failed = failed or paused
                continue
            try:
                answered = await self._tries(call, ask, model, until, len(models) - place)
            except CallFailed as error:
                if patient or error.code != "timeout":
                    self._failed(model, error)
                failed = error
                if error.code in _NO_PROCESS:
                    break
            else:
                self._pauses.pop(model, None)
                return model, answered
        assert failed is not None
        raise failed

    def paused(self, model: str) -> CallFailed | None:
        """Why a model is paused; None if it may be asked."""
        pause = self._pauses.get(model)
        left = pause.until - self.clock() if pause else 0.0
        if pause is None or left <= 0:
            return None
        text = f"{model} is not asked for {math.ceil(left)} s after it failed ({pause.code})"
        return CallFailed("resting", text, left, because=pause.code)

    def forget(self) -> None:
        """End all pauses, since keys or configuration have changed."""
        self._pauses.clear()

    async def _tries(
        self, call: Call, ask: Ask, model: str, until: float, models_left: int
    ) -> Answered:
        for number in range(_MOST_TRIES):
            seconds = (until - self.clock()) * _SHARE / models_left
            if seconds <= 0:
                raise CallFailed("timeout", f"no time is left to ask {model}")
            try:
                return await call(msgspec.structs.replace(ask, model=model, seconds=seconds))
            except CallFailed as error:
                wait = self._wait(error, number)
                left = until - self.clock()
                longest = _LONGEST_WAIT_SECONDS if models_left > 1 else left
                if not error.passing or number == _MOST_TRIES - 1 or wait >= min(longest, left):
                    raise
                await self._sleep(wait)
        raise AssertionError("unreachable")

    def _wait(self, error: CallFailed, number: int) -> float:
        """The time that the server asked for, else an exponential backoff with jitter."""
        if error.retry_after is not None:
            return error.retry_after
        span: float = _FIRST_WAIT_SECONDS * 2**number
        return span * self._chance.uniform(0.5, 1.0)

    def _failed(self, model: str, error: CallFailed) -> None:
        """Pause a model that has failed, unless the question caused the failure."""
        if not error.of_the_model:
            return
        before = self._pauses.get(model)
        failures = before.failures + 1 if before else 1
        pause = 0.0
        if error.lasting or failures > 1:
            doubled = _FIRST_PAUSE_SECONDS * 2 ** min(failures - 1 - (not error.lasting), 10)
            pause = min(doubled, _LONGEST_PAUSE_SECONDS)
        pause = max(pause, min(error.retry_after or 0.0, _LONGEST_PAUSE_SECONDS))
        self._pauses[model] = _Pause(failures, self.clock() + pause, error.code)
