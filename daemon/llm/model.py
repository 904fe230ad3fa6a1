"""The port to a language model: questions, replies, and the protocol of a model.

Callers fall back to rules on `ModelUnavailable`.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar, get_args

import msgspec

from ..config.kinds import Purpose

PURPOSES: Final[tuple[str, ...]] = get_args(Purpose)

T = TypeVar("T")


class Part(msgspec.Struct, frozen=True):
    """A part of a question besides the instructions.

    Attributes:
        name: a plain word, such as `tree` or `question`.
        text: the text; secrets in it are removed before it is sent.
        quoted: whether it is data, such as anything stored or said, which is set apart by a
            marker that it cannot forge. Only our own texts may be unquoted.
        stable: whether it is usually the same in the next request. Stable parts come first, so
            that a provider or a local server can cache them.
    """

    name: str
    text: str
    quoted: bool = True
    stable: bool = False


class ModelQuestion(msgspec.Struct, frozen=True):
    """A question to a model.

    Attributes:
        purpose: one of `PURPOSES`; determines the model and the timeout.
        system: the instructions; constant, without any data.
        parts: the data.
        max_tokens: the maximum length of the reply.
        temperature: 0 for the likeliest reply.
    """

    purpose: str
    system: str
    parts: tuple[Part, ...]
    max_tokens: int
    temperature: float


class ModelReply(msgspec.Struct, Generic[T], frozen=True):
    """The reply of a model.

    Attributes:
        value: the value of the requested type.
        model: the name of the model, or the endpoint's URL.
        tokens_in, tokens_out: the tokens, including a repair; estimated if the server does not
            say; 0 from the cache.
        cost: in US dollars by litellm's price list; None if the model is not in it.
        cached: whether it is from the cache.
        repaired: whether the first reply was not usable.
        seconds: the time to the reply.
        cleared: the number of secrets removed from the question, by kind.
    """

    value: T
    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    cached: bool = False
    repaired: bool = False
    seconds: float = 0.0
    cleared: dict[str, int] = {}


class Model(Protocol):
    """A language model."""

    def available(self, purpose: str) -> bool:
        """Whether to ask: a model is configured, and the budget is not spent. No I/O."""
        ...

    async def ask(
        self,
        question: ModelQuestion,
        kind: type[T],
        *,
        deadline: float | None = None,
        endpoint: str | None = None,
    ) -> ModelReply[T]:
        """Ask, and read the reply as a `kind`.

        Args:
            question: the question.
            kind: a msgspec struct, or a list or tuple of them; not recursive.
            deadline: the timeout in seconds; None: the timeout of the purpose, in addition to the
                start of the process.
            endpoint: a server to ask instead of the configured models; it gets no key.

        Raises:
            ModelUnavailable: no model can answer now; the message says why.
            InvalidInput: the endpoint is not an address.
        """
        ...
