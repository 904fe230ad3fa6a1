"""Asks a model, or uses the rules if no model helps; the result says which."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import msgspec

from ..errors import ModelUnavailable
from ..llm.model import Model, ModelQuestion, ModelReply, Part
from ..llm.questions import Prompts
from ..shapes.common import Way
from ..shapes.recall import Expense
from .rule_process import RuleProcess

V = TypeVar("V")
R = TypeVar("R")
_USELESS: Final = "the model's reply is not usable"


class AskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to ask a model, and how.

    Attributes:
        model: False: only the rules; None: a model if it is available; True: always a model, with
            the reason if it does not answer.
        endpoint: a server to ask instead of the configured models.
        seconds: the timeout; None: that of the configuration for the purpose.
    """

    model: bool | None = None
    endpoint: str | None = None
    seconds: float | None = None


class Derived(msgspec.Struct, Generic[V], frozen=True):
    """A result, and whether a model or the rules made it.

    Attributes:
        why: why the rules were used although a model was asked, or "".
        spent: the expense of the model; None if no model answered.
    """

    value: V
    way: Way
    why: str = ""
    spent: Expense | None = None


class ModelOrRules:
    """Asks a model with the instructions for a purpose, or falls back to the rules.

    Args:
        model: the model.
        prompts: its instructions.
        least_chars: returns the minimum number of characters for which a model is asked.

    Attributes:
        rules: runs the rules.
    """

    def __init__(
        self, model: Model, prompts: Prompts, least_chars: Callable[[], int] = lambda: 0
    ) -> None:
        self.model = model
        self._least_chars = least_chars
        self.rules = RuleProcess()
        self._prompts = prompts

    def question(self, purpose: str, *parts: Part, max_tokens: int | None = None) -> ModelQuestion:
        """A question for a purpose; see `Prompts.question`."""
        return self._prompts.question(purpose, *parts, max_tokens=max_tokens)

    def is_asked(self, purpose: str, options: AskOptions, chars: int | None = None) -> bool:
        """Whether to ask a model; `chars`: the size of the text to read."""
        if options.model is not None:
            return options.model
        if options.endpoint is not None:
            return True
        if chars is not None and chars < self._least_chars():
            return False
        return self.model.available(purpose)

    async def ask(self, asked: ModelQuestion, kind: type[R], options: AskOptions) -> ModelReply[R]:
        """Ask a model.

        Raises:
            ModelUnavailable: no model can answer now.
            InvalidInput: the endpoint is not an address.
        """
        return await self.model.ask(
            asked, kind, deadline=options.seconds, endpoint=options.endpoint
        )

    async def think(
        self,
        options: AskOptions,
        asked: ModelQuestion,
        kind: type[R],
        made: Callable[[R], V | None],
        by_rules: Callable[[], Awaitable[V]],
    ) -> Derived[V]:
        """Ask a model, or use the rules.

        Args:
            options: what the caller wants.
            asked: the question.
            kind: the type of the reply.
            made: converts the reply to the result; None if it is not usable. Called on a thread.
            by_rules: returns the result without a model.

        Raises:
            InvalidInput: the endpoint is not an address.
        """
        why, spent = "", None
        if self.is_asked(asked.purpose, options):
            try:
                reply = await self.ask(asked, kind, options)
            except ModelUnavailable as error:
                why = error.in_full
            else:
                value, spent = await asyncio.to_thread(made, reply.value), spent_on(reply)
                if value is not None:
                    return Derived(value, "llm", "", spent)
                why = _USELESS
        return Derived(await by_rules(), "rule", why, spent)


def spent_on(reply: ModelReply[R]) -> Expense:
    """The expense of a reply."""
    expense = msgspec.convert(reply, Expense, from_attributes=True)
    return msgspec.structs.replace(expense, seconds=round(reply.seconds, 3))
