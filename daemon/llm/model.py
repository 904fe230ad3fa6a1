"""The port to a language model: questions, replies, and the protocol of a model.

Callers fall back to rules on `ModelUnavailable`.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

import msgspec

PURPOSES: Final = (
    *("distil", "observe", "episode", "tree", "merge", "rebuild", "ingest"),
    "compact",
)

T = TypeVar("T")


class Part(msgspec.Struct, frozen=True):
    """A part of a question besides the instructions.

    Attributes:
        name: a plain word for it, such as `tree` or `question`.
        text: it; secrets in it are cleared before it is sent.
        quoted: whether it is data, such as everything that was ever stored or said. It is then
            set apart by a marker that it cannot forge. Only words of our own may go without.
        stable: whether it stays the same from one request to the next. Such parts go first, in
            the same words, so that a provider or a local server can reuse what it has read.
    """

    name: str
    text: str
    quoted: bool = True
    stable: bool = False


class ModelQuestion(msgspec.Struct, frozen=True):
    """A question to a model.

    Attributes:
        purpose: one of `PURPOSES`; chooses the model and how long it may take.
        system: the instructions; the same each time, and without a word of anybody else's.
        parts: what they are about.
        max_tokens: how long the reply may be.
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
        value: the reply, of the kind that was asked for.
        model: which of the configured models it was, or the endpoint's URL.
        tokens_in, tokens_out: what it took, the attempt at repair included; estimated where the
            server does not say; 0 from the cache.
        cost: in US dollars by litellm's price list; None for a model that is not in it.
        cached: whether the same question had been answered before.
        repaired: whether the first reply was of no use.
        seconds: from the question to the reply.
        cleared: how many secrets of which kind were taken out of the question.
    """

    value: T
    model: str
    tokens_in: int
    tokens_out: int
    cost: float | None
    cached: bool
    repaired: bool
    seconds: float
    cleared: dict[str, int]


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
            question: what is asked.
            kind: a msgspec struct, or a list or tuple of them; not recursive.
            deadline: seconds that all of it may take. Without one, the time that the
                configuration gives the purpose, and besides as long as the process needs to
                start.
            endpoint: a server to ask instead of the configured models, which gets no key.

        Raises:
            ModelUnavailable: no model can answer now; the message says why.
            InvalidInput: the endpoint is not an address.
        """
        ...
