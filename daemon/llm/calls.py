"""Calls of models: counts them, charges the budget, retries, and fails over to the next model."""

from __future__ import annotations

import asyncio
import math
import random
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from ..config.settings import EMBED
from ..errors import ThermoclineError
from ..runtime.problems import Problems
from ..schemas.status import WorkerState
from .budget import Budget, UsageCounts
from .failures import OF_THE_QUESTION, CallFailed
from .process import ChildProcess, Timeouts
from .wire import LONGEST_LINE, Answered, Ask, ChatMessage, Embed, Embedded, Load, Setup

COMMAND: Final = (sys.executable, "-P", "-m", "thermocline.daemon.llm.worker")
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

R = TypeVar("R", Ask, Embed)
A = TypeVar("A")
Call = Callable[[R], Awaitable[A]]
# Tokens in and out, and dollars; None if the price is unknown.
_Charge = tuple[int, int, float | None]


class ModelProcess(ChildProcess):
    """The models' process; see `ChildProcess`."""

    def __init__(
        self,
        env: Mapping[str, str],
        idle_seconds: Callable[[], float],
        *,
        timeouts: Timeouts | None = None,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        timeouts = timeouts or Timeouts()
        super().__init__("the models' process", command, env, idle_seconds, timeouts, LONGEST_LINE)
        self._loading: asyncio.Task[str] | None = None
        # The process that has loaded litellm, and its version.
        self._loaded: tuple[int | None, str | None] = (None, None)

    @property
    def state(self) -> WorkerState:
        pid = self.pid
        version = self._loaded[1] if pid == self._loaded[0] else None
        return WorkerState(pid, version, self.busy, self.starts, self.deaths)

    async def reply(self, request: Ask | Embed, kind: type[A]) -> A:
        """The answer of a model, which imports litellm, or of an endpoint; else `CallFailed`."""
        if isinstance(request, Embed) or request.endpoint is None:
            await self.load()
        return await self.ask(request, kind)

    async def load(self) -> None:
        """Import litellm in the process, once, else `CallFailed`. Cancelling does not stop it."""
        pid = self.pid
        if pid is not None and pid == self._loaded[0]:
            return
        await self.ready()
        if self._loading is None:
            loading = self.ask(Load(), str, proves_life=False)
            self._loading = asyncio.create_task(loading, name="litellm")
            self._loading.add_done_callback(self._note_loaded)
        seconds = self.timeouts.load
        try:
            await asyncio.wait_for(asyncio.shield(self._loading), seconds)
        except TimeoutError:
            raise CallFailed("starting", f"litellm was not loaded in {seconds:.0f} s") from None

    def _note_loaded(self, task: asyncio.Task[str]) -> None:
        self._loading = None
        if not task.cancelled() and task.exception() is None:
            self._loaded = (self.pid, task.result())


class Cost:
    """The cost of the calls for one question; `dollars` is None once a price is unknown."""

    def __init__(self) -> None:
        self.tokens_in = self.tokens_out = 0
        self.dollars: float | None = 0.0

    def add(self, tokens_in: int, tokens_out: int, dollars: float | None) -> None:
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        known = dollars is not None and self.dollars is not None
        self.dollars = self.dollars + dollars if known else None  # type: ignore[operator]


class MeteredCalls:
    """Makes calls and counts them."""

    def __init__(
        self, process: ModelProcess, budget: Budget, usage: UsageCounts, problems: Problems
    ) -> None:
        self.process = process
        self.budget = budget
        self.usage = usage
        self._problems = problems
        self._saving = asyncio.Lock()

    def check_budget(self) -> None:
        """Raise `CallFailed` if the budget is spent."""
        why = self.budget.why_spent()
        if why is None:
            self._problems.clear("model_budget_spent", "/llm")
            return
        spent = CallFailed("spent", f"the models' budget for {self.budget.day} is spent: {why}")
        hint = spent.hint or ""
        self._problems.report("model_budget_spent", "/llm", spent.message, hint, lasting=False)
        raise spent

    async def call(self, purpose: str, setup: Setup | None, cost: Cost, ask: Ask) -> Answered:
        """Make one call; `CallFailed` if the model did not reply, or the budget is spent.

        `setup` is None for a caller's own endpoint; the costs are added to `cost`.
        """
        guess = tokens_of(ask.messages)

        def charge(answered: Answered) -> _Charge:
            made = answered.tokens_out or len(answered.text) // _TOKEN_CHARS + 1
            return answered.tokens_in or guess, made, answered.cost

        request, most = msgspec.structs.replace(ask, setup=setup), guess + ask.max_tokens
        self.check_budget()
        return await self._charged(purpose, cost, request, Answered, charge, (guess, most))

    async def embed(self, setup: Setup, cost: Cost, embed: Embed) -> Embedded:
        guess = sum(len(text) // _TOKEN_CHARS + 1 for text in embed.texts)

        def charge(embedded: Embedded) -> _Charge:
            return embedded.tokens or guess, 0, embedded.cost

        request = msgspec.structs.replace(embed, setup=setup)
        self.check_budget()
        return await self._charged(EMBED, cost, request, Embedded, charge, (guess, guess))

    async def _charged(
        self,
        purpose: str,
        cost: Cost,
        request: Ask | Embed,
        kind: type[A],
        charge: Callable[[A], _Charge],
        tokens: tuple[int, int],
    ) -> A:
        """Send a request while the budget reserves its tokens: those going in, and at most."""
        guess, reserved = tokens
        # A cancelled or failed call may still be charged.
        charged: _Charge = (guess, 0, None)
        self.budget.reserve(reserved)
        try:
            answer = await self.process.reply(request, kind)
            charged = charge(answer)
        except CallFailed as error:
            charged = charged if error.charged else (0, 0, 0.0)
            raise
        finally:
            cost.add(*charged)
            self.usage.charged(purpose, *charged)
            tokens_in, tokens_out, dollars = charged
            # A caller's own endpoint has no price.
            self.budget.charge(reserved, tokens_in + tokens_out, dollars if request.setup else 0.0)
        return answer

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

    `clock` returns monotonic seconds, also those of `until`; `chance` randomises the waits of
    several requests.
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
        self,
        call: Call[R, A],
        ask: R,
        models: Sequence[str],
        until: float,
        *,
        patient: bool,
    ) -> tuple[str, A]:
        """The first reply of any model, with the name of the model.

        `ask` is the request, in which model and time are filled in. Unless `patient`, a timeout is
        no failure of the model. `CallFailed`: no model replied; the failure of the last that was
        asked, or why the first is paused.
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
                if error.code in {"unloaded", "uninstalled", "starting", "died", "resting"}:
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
        self, call: Call[R, A], ask: R, model: str, until: float, models_left: int
    ) -> A:
        for number in range(_MOST_TRIES):
            seconds = (until - self.clock()) * _SHARE / models_left
            if seconds <= 0:
                raise CallFailed("timeout", f"no time is left to ask {model}")
            try:
                return await call(msgspec.structs.replace(ask, model=model, seconds=seconds))
            except CallFailed as error:
                wait = error.retry_after
                if wait is None:
                    # Exponential, with jitter.
                    wait = _FIRST_WAIT_SECONDS * 2.0**number * self._chance.uniform(0.5, 1.0)
                left = until - self.clock()
                longest = _LONGEST_WAIT_SECONDS if models_left > 1 else left
                if not error.passing or number == _MOST_TRIES - 1 or wait >= min(longest, left):
                    raise
                await self._sleep(wait)
        raise AssertionError("unreachable")

    def _failed(self, model: str, error: CallFailed) -> None:
        if error.code in OF_THE_QUESTION:
            return
        before = self._pauses.get(model)
        failures = before.failures + 1 if before else 1
        pause = 0.0
        if error.lasting or failures > 1:
            doubled = _FIRST_PAUSE_SECONDS * 2 ** min(failures - 1 - (not error.lasting), 10)
            pause = min(doubled, _LONGEST_PAUSE_SECONDS)
        pause = max(pause, min(error.retry_after or 0.0, _LONGEST_PAUSE_SECONDS))
        self._pauses[model] = _Pause(failures, self.clock() + pause, error.code)
