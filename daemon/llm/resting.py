"""Leaving a model alone for a while that has just failed, instead of waiting for it again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec

from .failures import CallFailed

# The first failure may be chance; from then on each pause is twice the last.
_FIRST_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 300.0


class _Rest(msgspec.Struct, frozen=True):
    failures: int
    until: float
    code: str


class Resting:
    """The models that are left alone, and until when.

    Args:
        clock: seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rests: dict[str, _Rest] = {}

    def why(self, model: str) -> CallFailed | None:
        """Why a model is not to be asked now; None if it may be."""
        rest = self._rests.get(model)
        left = rest.until - self._clock() if rest else 0.0
        if rest is None or left <= 0:
            return None
        text = f"{model} is left alone for {math.ceil(left)} s after it failed ({rest.code})"
        return CallFailed("resting", text, left, because=rest.code)

    def failed(self, model: str, error: CallFailed) -> None:
        """A model has failed; what only says something of the question does not count."""
        if not error.of_the_model:
            return
        before = self._rests.get(model)
        failures = before.failures + 1 if before else 1
        pause = 0.0
        if error.lasting or failures > 1:
            doubled = _FIRST_SECONDS * 2 ** min(failures - 1 - (not error.lasting), 10)
            pause = min(doubled, _LONGEST_SECONDS)
        pause = max(pause, min(error.retry_after or 0.0, _LONGEST_SECONDS))
        self._rests[model] = _Rest(failures, self._clock() + pause, error.code)

    def worked(self, model: str) -> None:
        """A model has answered."""
        self._rests.pop(model, None)

    def forget(self) -> None:
        """Everything may be asked again: the keys or the configuration are others now."""
        self._rests.clear()
