"""Starts the models' process on demand, restarts it after a crash, and ends it when idle."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ..shapes.status import WorkerState
from .child import Child
from .failures import CallFailed
from .wire import Answered, Ask, Setup, Window

COMMAND: Final = (sys.executable, "-P", "-m", "thermocline.daemon.llm.worker")
# The pause after a second crash in a row; each further crash doubles it.
_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0


class Patience(msgspec.Struct, frozen=True):
    """The timeouts of the process, in seconds.

    Attributes:
        start: for its start.
        load: for importing litellm, which takes long on a small device.
        grace: for confirming the cancellation of a request; otherwise it counts as hanging.
    """

    start: float = 20.0
    load: float = 90.0
    grace: float = 5.0


class Supervisor:
    """Starts the process with the first request, and ends it when it is idle.

    When the process crashes, its requests fail. The next request restarts it; if it keeps crashing
    without an answer, after pauses that double up to a minute.

    Args:
        env: the daemon's environment; the process inherits a part of it.
        idle_seconds: returns the time without a request after which it ends.
        patience: how long to wait for the process.
        command: the command of the process.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        idle_seconds: Callable[[], float],
        *,
        patience: Patience | None = None,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._env = env
        self._idle_seconds = idle_seconds
        self._patience = patience or Patience()
        self._command = command
        self._child: Child | None = None
        self._starting: asyncio.Task[Child] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._users = 0
        self._numbers = 0
        self._starts = 0
        self._deaths = 0
        self._in_a_row = 0
        self._not_before = 0.0
        self._closed = False

    @property
    def state(self) -> WorkerState:
        """The state of the process."""
        self._note_death()
        child = self._child
        if child is None:
            return WorkerState(None, None, False, self._starts, self._deaths)
        return WorkerState(child.pid, child.version, child.busy, self._starts, self._deaths)

    async def ready(self, setup: Setup | None, *, load: bool) -> None:
        """Start the process if needed, and import litellm in it if `load`.

        Cancelling does not stop the start. `setup` is None for an endpoint.

        Raises:
            CallFailed: it does not start, or litellm is missing.
        """
        self._hold()
        try:
            await self._ready(setup, load=load)
        finally:
            self._let_go()

    async def ask(self, setup: Setup | None, ask: Ask | Window) -> Answered:
        """Send a request with its own number. Cancelling cancels it in the process.

        Raises:
            CallFailed: the model did not reply, or the process died.
        """
        self._hold()
        try:
            child = await self._ready(setup, load=isinstance(ask, Window) or ask.endpoint is None)
            self._numbers += 1
            numbered = msgspec.structs.replace(ask, number=self._numbers)
            answered = await child.ask(numbered, self._patience.grace)
            self._in_a_row = 0
            return answered
        finally:
            self._let_go()

    async def close(self) -> None:
        """End the process and fail its requests; it is not restarted."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._child is not None:
            await self._child.leave()
        await asyncio.gather(*self._leaving, return_exceptions=True)

    async def _ready(self, setup: Setup | None, *, load: bool) -> Child:
        child = await self._running(setup)
        if setup is not None and child.setup != setup:
            await child.tell(setup)
        if load:
            await child.load(self._patience.load)
        return child

    async def _running(self, setup: Setup | None) -> Child:
        if self._closed:
            raise CallFailed("died", "the daemon is stopping")
        self._note_death()
        if self._child is not None and not self._child.ended:
            return self._child
        if self._starting is None:
            pause = self._not_before - time.monotonic()
            if pause > 0:
                raise CallFailed(
                    "resting", f"the models' process keeps ending; again in {pause:.0f} s", pause
                )
            self._starting = asyncio.create_task(self._start(setup or Setup()), name="model")
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)

    async def _start(self, setup: Setup) -> Child:
        self._starts += 1
        return await Child.start(self._command, self._env, setup, self._patience.start)

    def _started(self, task: asyncio.Task[Child]) -> None:
        self._starting = None
        if task.cancelled():
            return
        if task.exception() is None:
            self._child = task.result()
        else:
            self._count_death()

    def _note_death(self) -> None:
        if self._child is not None and self._child.died:
            self._in_a_row = 0 if self._child.answered else self._in_a_row
            self._child = None
            self._count_death()

    def _count_death(self) -> None:
        self._deaths += 1
        self._in_a_row += 1
        if self._in_a_row > 1:
            pause = min(_FIRST_SECONDS * 2 ** min(self._in_a_row - 2, 10), _LONGEST_SECONDS)
            self._not_before = time.monotonic() + pause

    def _hold(self) -> None:
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _let_go(self) -> None:
        self._users -= 1
        if not self._users and not self._closed:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._idle_seconds(), self._dismiss)

    def _dismiss(self) -> None:
        self._idle = None
        child, self._child = self._child, None
        if child is not None and not child.ended:
            task = asyncio.create_task(child.leave(), name="model leaves")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
