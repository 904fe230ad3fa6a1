"""The daemon's endless tasks: a failed task is reported and restarted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from .problems import Problems, unforeseen

_log = logging.getLogger(__name__)
_FAILED: Final = "task_failed"

Endless: TypeAlias = Callable[[], Awaitable[None]]


class Background:
    """Runs background tasks, and restarts them after unexpected errors.

    Tasks handle expected errors themselves.

    Args:
        problems: where failures are reported.
        pause_seconds: the wait before a failed task is restarted.
        again_seconds: after which a task that does not end is cancelled once more.
    """

    def __init__(
        self, problems: Problems, pause_seconds: float, again_seconds: float = 2.0
    ) -> None:
        self._problems = problems
        self._pause_seconds = pause_seconds
        self._again_seconds = again_seconds
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, name: str, run: Endless) -> None:
        """Run a task until `end`; it must be safe to restart."""
        task = asyncio.get_running_loop().create_task(self._keep_up(name, run), name=name)
        self._tasks.append(task)

    def ended(self) -> list[str]:
        """The names of the tasks that are over, though nobody has ended them."""
        return [task.get_name() for task in self._tasks if task.done()]

    async def end(self) -> None:
        """Cancel all tasks, and wait until they are over."""
        left = set(self._tasks)
        while left:
            for task in left:
                task.cancel()
            # A task that fails while it is cancelled continues, and is cancelled again.
            _, left = await asyncio.wait(left, timeout=self._again_seconds)

    async def _keep_up(self, name: str, run: Endless) -> None:
        while True:
            try:
                await run()
            except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                self._tell(name, error)
            await asyncio.sleep(self._pause_seconds)

    def _tell(self, name: str, error: Exception) -> None:
        kind, where = unforeseen(error)
        _log.error("'%s' failed with %s:\n%s", name, kind, where, extra={"action": _FAILED})
        self._problems.report(
            _FAILED,
            f"/{name}",
            f"the daemon's task '{name}' failed with {kind}, and is restarted",
            "this is a bug: the log has the details",
            lasting=False,
        )
