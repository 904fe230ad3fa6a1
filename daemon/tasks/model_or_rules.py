"""Asks a model, or uses the rules if no model helps; the result says which.

Python runs one thread at a time, so reading a long text on a thread would delay all other callers.
A separate process reads long texts by the rules instead, one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import typing
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, ParamSpec, TypeVar

import msgspec

from ..errors import ModelUnavailable, ShuttingDown
from ..llm.failures import CallFailed
from ..llm.model import Model, ModelQuestion, ModelReply, Part, Prompts
from ..llm.process import ChildProcess, Timeouts
from ..schemas.common import Method
from ..schemas.recall import Expense
from .rule_worker import RuleCall

P = ParamSpec("P")
T = TypeVar("T")

COMMAND: Final = (sys.executable, "-P", "-m", "thermocline.daemon.tasks.rule_worker")
# Shorter texts take less time than the process needs to start.
_SHORT_CHARS: Final = 4_000
_IDLE_SECONDS: Final = 60.0
_LONGEST_LINE: Final = 64 << 20
# The process computes one call at a time: a cancelled call ends with it.
_TIMEOUTS: Final = Timeouts(grace=0.0)


class RuleProcess:
    """Starts the process with the first long text, and ends it a minute after the last.

    Short texts are read on a thread, one at a time, unless the process is running and free. The
    process ends after `idle_seconds` without a call.
    """

    def __init__(
        self, idle_seconds: float = _IDLE_SECONDS, command: tuple[str, ...] = COMMAND
    ) -> None:
        self._process = ChildProcess(
            "the rules' process", command, os.environ, lambda: idle_seconds, _TIMEOUTS,
            _LONGEST_LINE,
        )  # fmt: skip
        self._closed = False
        self._process_lock = asyncio.Lock()
        self._thread_lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self._process.pid

    async def run(
        self, chars: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `function`; cancelling ends the computation.

        If the process cannot be started or dies, the function runs on a thread. `chars` is the
        length of the texts in the arguments. Arguments and value of `function` can be decoded from
        JSON by their annotations.

        Raises:
            ShuttingDown: `close` was called meanwhile.
        """
        free = self._process.pid is not None and not self._process_lock.locked()
        if chars > _SHORT_CHARS or free or self._thread_lock.locked():
            async with self._process_lock:
                call = RuleCall(function.__module__, function.__qualname__, args, kwargs)
                kind: Any = typing.get_type_hints(function)["return"]
                # A text with lone surrogates cannot be sent.
                with contextlib.suppress(CallFailed, UnicodeEncodeError):
                    value: T = await self._process.ask(call, kind)
                    return value
                if self._closed:
                    raise ShuttingDown("the daemon is stopping")
        async with self._thread_lock:
            return await asyncio.to_thread(function, *args, **kwargs)

    async def close(self) -> None:
        """End the process; its callers get an error."""
        self._closed = True
        await self._process.close()


V = TypeVar("V")
R = TypeVar("R")


class AskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to ask a model, and how."""

    # False: only the rules; None: a model if it is available; True: always a model, with the reason
    # if it does not answer.
    model: bool | None = None
    endpoint: str | None = None  # a server to ask instead of the configured models
    why: str = ""  # why no model is asked, for the answer


class Derived(msgspec.Struct, Generic[V], frozen=True):
    """A result, and whether a model or the rules made it."""

    value: V
    method: Method
    why: str = ""  # why the rules were used although a model was asked, or ""
    spent: Expense | None = None  # the expense of the model; None if no model answered


class ModelOrRules:
    """Asks a model with the instructions for a purpose, or falls back to the rules.

    `least_chars` returns the minimum number of characters for which a model is asked.
    """

    def __init__(
        self, model: Model, prompts: Prompts, least_chars: Callable[[], int] = lambda: 0
    ) -> None:
        self.model = model
        self._least_chars = least_chars
        self.rules = RuleProcess()  # runs the rules
        self._prompts = prompts

    def question(self, purpose: str, *parts: Part, max_tokens: int | None = None) -> ModelQuestion:
        return self._prompts.question(purpose, *parts, max_tokens=max_tokens)

    def written(self, question: ModelQuestion, kind: Any) -> str:
        return self._prompts.written(question, kind)

    def for_text(self, options: AskOptions, chars: int) -> AskOptions:
        """The options for a text of `chars`: of a short one only a `model` of true asks one."""
        least = self._least_chars()
        if options.model is not None or chars >= least:
            return options
        why = f"fewer than {least} characters (llm.min_chars) go to one only with 'llm' (--llm)"
        return AskOptions(model=False, why=why if options.endpoint else "")

    def is_asked(self, purpose: str, options: AskOptions) -> bool:
        if options.model is not None:
            return options.model
        return options.endpoint is not None or self.model.available(purpose)

    async def ask(
        self, question: ModelQuestion, kind: type[R], options: AskOptions
    ) -> ModelReply[R]:
        return await self.model.ask(question, kind, endpoint=options.endpoint)

    async def think(
        self,
        options: AskOptions,
        question: ModelQuestion,
        kind: type[R],
        made: Callable[[R], V | None],
        by_rules: Callable[[], Awaitable[V]],
        *,
        patient: bool = False,
    ) -> Derived[V]:
        """Ask a model, or use the rules.

        `made` converts the reply, of type `kind`, to the result, on a thread; None if it is not
        usable. `by_rules` returns the result without a model. With `patient` a failure of the model
        is raised, as `ModelUnavailable`.
        """
        why, spent = options.why, None
        if self.is_asked(question.purpose, options):
            try:
                reply = await self.ask(question, kind, options)
            except ModelUnavailable as error:
                if patient:
                    raise
                why = error.in_full
            else:
                value, spent = await asyncio.to_thread(made, reply.value), spent_on(reply)
                if value is not None:
                    return Derived(value, "llm", "", spent)
                why = "the model's reply is not usable"
        return Derived(await by_rules(), "rule", why, spent)


def spent_on(reply: ModelReply[R]) -> Expense:
    """The expense of a reply."""
    expense = msgspec.convert(reply, Expense, from_attributes=True)
    return msgspec.structs.replace(expense, seconds=round(reply.seconds, 3))
