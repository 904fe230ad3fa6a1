"""What one caller may cost the others: whose request begins next, rates, and lines of the log."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from ..errors import TooManyRequests

K = TypeVar("K")
V = TypeVar("V")

_log = logging.getLogger(__name__)
_BEGUN_IN_A_PASS: Final = 8
# A process with this many mistakes behind it waits with each further request, as long as for each.
_FREE_MISTAKES: Final = 50
_MISTAKE_SECONDS: Final = 0.004
_REMEMBERED_PROCESSES: Final = 1_000
_LOG_SECONDS: Final = 60.0
# An agent that was silent this long may send that many seconds' worth of requests at once.
_SAVED_SECONDS: Final = 10.0
_REMEMBERED_AGENTS: Final = 1_000


class FairQueue:
    """Starts a few requests in each pass of the event loop, in rotation.

    Processes take turns, and among the requests of one process the agents that they concern.

    A request takes several passes, and each pass lasts as long as all that runs in it: a hundred
    requests started together would all be answered only when the last is nearly done.

    A process that goes on making mistakes waits before its turn, so that it makes at most 250 a
    second, however fast they are refused.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[int, dict[str, deque[asyncio.Future[None]]]] = {}
        self._left = _BEGUN_IN_A_PASS
        self._passing = False
        # By process, the time until which its mistakes so far count.
        self._mistakes: dict[int, float] = {}

    def note_mistake(self, process: int) -> None:
        """A request of `process` was refused for what it says."""
        now = self._loop.time()
        if len(self._mistakes) >= _REMEMBERED_PROCESSES and process not in self._mistakes:
            self._mistakes = {pid: until for pid, until in self._mistakes.items() if until > now}
        self._mistakes[process] = max(self._mistakes.get(process, 0.0), now) + _MISTAKE_SECONDS

    async def acquire(self, process: int, agent: str) -> None:
        """Wait until a request of `process` about `agent` may begin."""
        if process in self._mistakes:
            free = _FREE_MISTAKES * _MISTAKE_SECONDS
            wait = self._mistakes[process] - free - self._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
        if not self._passing:
            self._passing = True
            self._loop.call_soon(self._next_pass)
        if self._left and not self._waiting:
            self._left -= 1
            return
        turn = self._loop.create_future()
        self._waiting.setdefault(process, {}).setdefault(agent, deque()).append(turn)
        await turn

    def _next_pass(self) -> None:
        self._left = _BEGUN_IN_A_PASS
        while self._left and self._waiting:
            process, agents = _pop_first(self._waiting)
            agent, queue = _pop_first(agents)
            turn = queue.popleft()
            # Re-inserted at the end: the rest comes first.
            if queue:
                agents[agent] = queue
            if agents:
                self._waiting[process] = agents
            if not turn.done():  # Else its caller has left.
                turn.set_result(None)
                self._left -= 1
        self._passing = self._left < _BEGUN_IN_A_PASS or bool(self._waiting)
        if self._passing:
            self._loop.call_soon(self._next_pass)


def _pop_first(mapping: dict[K, V]) -> tuple[K, V]:
    key = next(iter(mapping))
    return key, mapping.pop(key)


class RateLimit:
    """Counts requests by agent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # By agent, the time until which its requests so far count.
        self._paid: dict[str, float] = {}

    def acquire(self, agent: str, per_second: float) -> None:
        """Count a request of `agent`, or raise `TooManyRequests` and do not; 0: no limit."""
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
        if len(self._paid) >= _REMEMBERED_AGENTS and agent not in self._paid:
            self._paid = {name: until for name, until in self._paid.items() if until > now}
        self._paid[agent] = paid + 1 / per_second


class RateLimitedLog:
    """Logs callers' mistakes: at most one line per minute and kind, without received data."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._since: dict[str, int] = {}

    def log(self, action: str, text: str) -> None:
        """Log `text`, or count it for the next line."""
        self._since[action] = self._since.get(action, 0) + 1
        now = time.monotonic()
        if now - self._last.get(action, -_LOG_SECONDS) < _LOG_SECONDS:
            return
        self._last[action] = now
        _log.warning("%s (%d times)", text, self._since.pop(action), extra={"action": action})
