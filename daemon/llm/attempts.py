"""Getting one reply: which model is asked, how often, and when the next one gets its turn."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from .failures import CallFailed
from .resting import Resting
from .wire import Answered, Ask

_MOST_TRIES: Final = 4
_FIRST_WAIT_SECONDS: Final = 0.5
# Rather than wait longer than this for one model, the next is asked.
_LONGEST_WAIT_SECONDS: Final = 2.0
# The process over there gives up a little before the daemon does.
_SHARE: Final = 0.97

Call = Callable[[Ask], Awaitable[Answered]]


class Attempts:
    """Asks models in order, each again when it failed in passing.

    Args:
        resting: the models that are left alone.
        clock: seconds that never run backwards; also for whoever sets the time.
        sleep: waits for so many seconds.
        chance: spreads the tries of several requests.
    """

    def __init__(
        self,
        resting: Resting,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        chance: random.Random,
    ) -> None:
        self.resting = resting
        self.clock = clock
        self._sleep = sleep
        self._chance = chance

    async def reply(
        self, call: Call, ask: Ask, models: Sequence[str], until: float, *, patient: bool
    ) -> tuple[str, Answered]:
        """The first reply of any of the models, and whose it is.

        Args:
            call: makes one request.
            ask: the request; model and time are filled in.
            models: in order.
            until: when all of it has to be over.
            patient: whether the time is long enough to blame a model that did not answer in it.

        Raises:
            CallFailed: none has replied; why the last of them, or the first that is not
                merely being left alone, has not.
        """
        failed: CallFailed | None = None
        for place, model in enumerate(models):
            left = len(models) - place
            if (rests := self.resting.why(model)) is not None:
                failed = failed or rests
                continue
            try:
                answered = await self._tries(call, ask, model, until, left)
            except CallFailed as error:
                if patient or error.code != "timeout":
                    self.resting.failed(model, error)
                failed = error
                if error.code in {"unloaded", "starting", "died", "resting"}:
                    break
            else:
                self.resting.worked(model)
                return model, answered
        assert failed is not None
        raise failed

    async def _tries(
        self, call: Call, ask: Ask, model: str, until: float, models_left: int
    ) -> Answered:
        for number in range(_MOST_TRIES):
            seconds = (until - self.clock()) * _SHARE / models_left
            if seconds <= 0:
                raise CallFailed("timeout", f"there is no time left to ask {model}")
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
        """As long as the server asked for; else a span that doubles, and a part of it by chance."""
        if error.retry_after is not None:
            return error.retry_after
        span: float = _FIRST_WAIT_SECONDS * 2**number
        return span * self._chance.uniform(0.5, 1.0)
