"""Who is told how a restore goes, and how it waits for a network that is away."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeAlias, TypeVar

from thermocline.sync import SyncError, TryLater, Waiting
from thermocline.sync.waiting import retrying

T = TypeVar("T")
# In this order, for each agent: what has been done by then, and is on the disk.
Stage: TypeAlias = Literal["begun", "received", "checked", "noted", "sealed", "aside", "done"]


class Watch(Protocol):
    """Is told how a restore goes."""

    def stage(self, stage: Stage, agent: str) -> None:
        """A stage is over."""

    def expect(self, agent: str, rows: int, known: int) -> None:
        """So many rows are to come, of which an earlier run has brought `known`."""

    def came(self, rows: int) -> None:
        """So many more rows have come, and are on the disk."""

    def failed(self, error: TryLater, seconds: float) -> None:
        """The replica was not reached; it is tried again after so many seconds."""

    async def pause(self, seconds: float) -> None:
        """Let these seconds pass."""


class Patience:
    """Asks again what failed in a way that passes by itself.

    Args:
        waiting: how long to wait between tries.
        watch: told of each wait, which is left to it.
        give_up_seconds: raise the error that stands for so long; None: never.
    """

    def __init__(
        self, waiting: Waiting, watch: Watch, give_up_seconds: float | None = None
    ) -> None:
        self._waiting = waiting
        self._watch = watch
        self._give_up = give_up_seconds
        self._random = random.Random()  # noqa: S311 - spreads waits, hides nothing

    async def __call__(
        self,
        ask: Callable[[], Awaitable[T]],
        failed: Callable[[TryLater], None] = lambda _error: None,
    ) -> T:
        """What `ask` gives, once it does.

        Args:
            ask: called for each try.
            failed: told of each failure that is waited for.

        Raises:
            SyncError: one that stays, or has stood for too long.
        """
        began = time.monotonic()

        def wait(error: TryLater, seconds: float) -> None:
            late = time.monotonic() + seconds - began
            if self._give_up is not None and late > self._give_up:
                raise error
            failed(error)
            self._watch.failed(error, seconds)

        tries = retrying(
            self._waiting, sleep=self._watch.pause, before_wait=wait, random=self._random
        )
        async for attempt in tries:
            with attempt:
                return await ask()
        raise SyncError("offline")
