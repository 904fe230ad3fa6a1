"""Asking a model, or going by rules where none is of use; which way it was is always told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from ..errors import ModelUnavailable
from ..llm.instructions import Prompts
from ..llm.model import Asked, Model, Part, Reply
from ..shapes.common import Way
from ..shapes.recall import Expense

V = TypeVar("V")
R = TypeVar("R")
_USELESS: Final = "the model's reply says nothing of use"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a model is to be asked, and how.

    Attributes:
        model: False for the rules alone; None for a model if it is worth asking one; True to
            ask in any case, and be told why there was no answer.
        endpoint: a server to ask instead of the configured models.
        seconds: how long it may take; None for what the configuration gives the purpose.
    """

    model: bool | None = None
    endpoint: str | None = None
    seconds: float | None = None


class Thought(msgspec.Struct, Generic[V], frozen=True):
    """A result, and which way it was made.

    Attributes:
        why: why it was made by rules although a model was asked, or "".
        spent: None where no model answered.
    """

    value: V
    way: Way
    why: str = ""
    spent: Expense | None = None


class Mind:
    """A model together with the instructions for each purpose.

    Args:
        model: to ask.
        prompts: what it is told.
    """

    def __init__(self, model: Model, prompts: Prompts) -> None:
        self.model = model
        self._prompts = prompts

    def question(self, purpose: str, *parts: Part, max_tokens: int | None = None) -> Asked:
        """A question for a purpose; see `llm.instructions`."""
        return self._prompts.asked(purpose, *parts, max_tokens=max_tokens)

    def is_asked(self, purpose: str, wish: Wish) -> bool:
        """Whether a model is to be asked at all."""
        if wish.model is not None:
            return wish.model
        return wish.endpoint is not None or self.model.available(purpose)

    async def ask(self, asked: Asked, kind: type[R], wish: Wish) -> Reply[R]:
        """Ask.

        Raises:
            ModelUnavailable: no use is to be expected of a model now.
            InvalidInput: the endpoint that is wished for is no address.
        """
        return await self.model.ask(asked, kind, deadline=wish.seconds, endpoint=wish.endpoint)

    async def think(
        self,
        wish: Wish,
        asked: Asked,
        kind: type[R],
        made: Callable[[R], V | None],
        by_rules: Callable[[], V],
    ) -> Thought[V]:
        """Ask, or go by rules.

        Args:
            wish: what the caller wants.
            asked: the question.
            kind: of the reply.
            made: makes the result of a reply; None where that is of no use.
            by_rules: makes it without a model; called on a thread.

        Raises:
            InvalidInput: the endpoint that is wished for is no address.
        """
        why, spent = "", None
        if self.is_asked(asked.purpose, wish):
            try:
                reply = await self.ask(asked, kind, wish)
            except ModelUnavailable as error:
                why = error.in_full
            else:
                value, spent = made(reply.value), spent_on(reply)
                if value is not None:
                    return Thought(value, "llm", "", spent)
                why = _USELESS
        return Thought(await asyncio.to_thread(by_rules), "rule", why, spent)


def spent_on(reply: Reply[R]) -> Expense:
    """What a reply took."""
    return Expense(
        model=reply.model,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost=reply.cost,
        cached=reply.cached,
        seconds=round(reply.seconds, 3),
        cleared=reply.cleared,
    )
