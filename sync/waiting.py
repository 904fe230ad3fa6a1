"""The waits between tries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

import msgspec

from .failures import QuotaSpent, TryLater

if TYPE_CHECKING:
    import tenacity

# The longest wait is reached long before; further doubling would exceed the range of a float.
_MOST_DOUBLINGS = 32


class Waiting(msgspec.Struct, frozen=True):
    """The limits of the waits, in seconds.

    Attributes:
        first: the longest wait after the first failure; it doubles with each further one.
        longest: where the doubling ends.
        quota: the shortest wait once the quota is spent.
        instant: no wait at all, whatever the remote asks for: for tests.
    """

    first: float = 5.0
    longest: float = 300.0
    quota: float = 3600.0
    instant: bool = False

    def seconds(self, error: TryLater, failures: int, random: Random) -> float:
        """The wait after this number of failures in a row, at least what the remote asked for.

        It is random, so that devices that failed together do not retry together.
        """
        if self.instant:
            return 0.0
        limit = min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
        least = self.quota if isinstance(error, QuotaSpent) else 0.0
        return max(random.uniform(0.0, limit), error.retry_after or 0.0, least)


def retrying(
    waiting: Waiting,
    *,
    sleep: Callable[[float], Awaitable[None]],
    before_wait: Callable[[TryLater, float], None],
    random: Random,
) -> tenacity.AsyncRetrying:
    """Runs a call until it succeeds. `TryLater` is retried forever; all else is raised.

    Use it as `await retrying(…)(call)`, or as `async for attempt in retrying(…): with attempt:`.
    The waits grow over the life of the returned object: make a new one after each success. `sleep`
    may return early, to try at once; `before_wait` is called with the failure and the seconds.
    """
    import tenacity  # noqa: PLC0415 - half a megabyte, for those alone who have a remote

    return tenacity.AsyncRetrying(
        sleep=sleep,
        wait=lambda state: waiting.seconds(_failure(state), state.attempt_number, random),
        before_sleep=lambda state: before_wait(_failure(state), state.upcoming_sleep),
        retry=tenacity.retry_if_exception_type(TryLater),
        stop=tenacity.stop_never,
        reraise=True,
    )


def _failure(state: tenacity.RetryCallState) -> TryLater:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, TryLater)
    return error
