"""An in-memory model with prepared answers, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from ..errors import ModelUnavailable
from .model import ModelReply, Question

T = TypeVar("T")


class ScriptedModel:
    """Gives prepared answers, and records the questions.

    Args:
        answers: for each purpose what it says, in order: something that fits the kind that is
            asked for, or an exception to raise. A purpose that is not there has no model.

    Attributes:
        asked: every question so far.
    """

    def __init__(self, answers: Mapping[str, list[object]]) -> None:
        self._answers = {purpose: list(several) for purpose, several in answers.items()}
        self.asked: list[Question] = []

    def available(self, purpose: str) -> bool:
        """Whether it has anything to say."""
        return purpose in self._answers

    async def ask(
        self,
        question: Question,
        kind: type[T],
        *,
        deadline: float | None = None,  # noqa: ARG002 - it answers at once
        endpoint: str | None = None,
    ) -> ModelReply[T]:
        """The next answer for the purpose.

        Raises:
            ModelUnavailable: there is none, or none left.
        """
        self.asked.append(question)
        left = self._answers.get(question.purpose)
        if not left:
            raise ModelUnavailable(f"no model is configured for {question.purpose}")
        said = left.pop(0)
        if isinstance(said, Exception):
            raise said
        return ModelReply(
            value=msgspec.convert(said, kind, from_attributes=True),
            model=endpoint or "scripted",
            tokens_in=0,
            tokens_out=0,
            cost=None,
            cached=False,
            repaired=False,
            seconds=0.0,
            cleared={},
        )
