"""The events of all agents, and those who listen to them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from ..store.transaction import Event

_HISTORY: Final = 1000
_BEHIND: Final = 1000


class Published(msgspec.Struct, frozen=True):
    """One event, with its number and time, of one agent (or of the daemon: "")."""

    id: int
    agent: str
    type: str
    time: float
    data: dict[str, Any]


class Bus:
    """Passes each event to all listeners. For the event loop's thread only.

    A listener that falls a thousand events behind loses the oldest, and can tell by the numbers.
    """

    def __init__(self) -> None:
        self._next = 1
        self._history: deque[Published] = deque(maxlen=_HISTORY)
        self._listeners: set[asyncio.Queue[Published]] = set()

    def publish(self, agent: str, event: Event) -> None:
        """Queue the event for all listeners, without waiting."""
        published = Published(self._next, agent, event.type, time.time(), event.data)
        self._next += 1
        self._history.append(published)
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(published)

    @contextmanager
    def listen(self, after: int | None) -> Iterator[asyncio.Queue[Published]]:
        """A queue of the events from now on, and of the history after number `after`.

        A number not issued yet is from before a restart: then all known events are newer.
        """
        if after is not None and after >= self._next:
            after = 0
        queue: asyncio.Queue[Published] = asyncio.Queue(_BEHIND)
        for published in self._history if after is not None else ():
            if published.id > (after or 0):
                queue.put_nowait(published)
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
