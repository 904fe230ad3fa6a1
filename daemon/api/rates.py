"""The rate limit of each agent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from ..errors import TooManyRequests

# An agent that was silent this long may send that many seconds' worth of requests at once.
_SAVED_SECONDS: Final = 10.0
_REMEMBERED: Final = 1_000


class Rates:
    """Counts requests by agent.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # By agent, the time until which its requests so far count.
        self._paid: dict[str, float] = {}

    def take(self, agent: str, per_second: float) -> None:
        """Count a request of `agent`; 0: no limit.

        Raises:
            TooManyRequests: the rate is exceeded; this request does not count.
        """
        if not per_second:
            return
        now = self._clock()
        paid = max(self._paid.get(agent, 0.0), now)
        wait = paid + 1 / per_second - now - max(_SAVED_SECONDS, 1 / per_second)
        if wait > 0:
            raise TooManyRequests(
                f"'{agent}' asks more than {per_second:g} times a second",
                seconds=(seconds := math.ceil(wait)),
                hint=f"try again in {seconds} s, or raise quotas.requests_per_second",
            )
        if len(self._paid) >= _REMEMBERED and agent not in self._paid:
            self._paid = {one: until for one, until in self._paid.items() if until > now}
        self._paid[agent] = paid + 1 / per_second
