"""Turns: a process or agent with many requests does not delay those of other callers."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_AT_ONCE: Final = 8


class Turns:
    """Starts a few requests in each pass of the event loop, in rotation.

    Processes take turns, and among the requests of one process the agents that they concern.

    A request takes several passes, and each pass lasts as long as all that runs in it: a hundred
    requests started together would all be answered only when the last is nearly done.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[int, dict[str, deque[asyncio.Future[None]]]] = {}
        self._left = _AT_ONCE
        self._passing = False

    async def take(self, process: int, agent: str) -> None:
        """Wait until a request of `process` about `agent` may begin."""
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
        self._left = _AT_ONCE
        while self._left and self._waiting:
            process, agents = _first(self._waiting)
            agent, queue = _first(agents)
            turn = queue.popleft()
            # Re-inserted at the end: the rest comes first.
            if queue:
                agents[agent] = queue
            if agents:
                self._waiting[process] = agents
            if not turn.done():  # Else its caller has left.
                turn.set_result(None)
                self._left -= 1
        self._passing = self._left < _AT_ONCE or bool(self._waiting)
        if self._passing:
            self._loop.call_soon(self._next_pass)


def _first(of: dict[K, V]) -> tuple[K, V]:
    key = next(iter(of))
    return key, of.pop(key)
