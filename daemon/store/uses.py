"""Counting what answers used: soon, in one commit, and never on the way of an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from ..errors import ThermoclineError
from . import memories
from .transaction import Transaction

_log = logging.getLogger(__name__)
_COUNT_SECONDS: Final = 1.0


class UseCounter:
    """Gathers the answers of a second, then counts them together.

    Args:
        agent: whose they are, for the task's name.
        write: runs an operation in a commit.
    """

    def __init__(
        self, agent: str, write: Callable[[Callable[[Transaction], None]], Awaitable[Any]]
    ) -> None:
        self._agent = agent
        self._write = write
        self._answers: list[tuple[str, ...]] = []
        self._counting: asyncio.Task[None] | None = None

    def note(self, used: Sequence[str]) -> None:
        """Count an answer, and a use of each memory in it, within a second."""
        self._answers.append(tuple(used))
        if self._counting is None or self._counting.done():
            self._counting = asyncio.get_running_loop().create_task(
                self._count_soon(), name=f"uses of {self._agent}"
            )

    async def finish(self) -> None:
        """Count what is still to be counted, now."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)
        await self._count()

    async def _count_soon(self) -> None:
        await asyncio.sleep(_COUNT_SECONDS)
        await self._count()

    async def _count(self) -> None:
        answers, self._answers = self._answers, []
        if not answers:
            return
        try:
            await self._write(lambda tx: memories.count_answers(tx, answers))
        except ThermoclineError as error:
            # Uses are a hint for ranking: a full disk may cost a few.
            _log.info("did not count uses: %s", error, extra={"action": "uses_lost"})
