"""When what was deleted is erased: soon after the commit, while the agent is in use."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ..errors import ShuttingDown, ThermoclineError, translate_os
from .agent_paths import AgentPaths
from .database import full_text
from .database.transaction import DeletedMemory, Transaction
from .erasure import Traces, erase_entries, erase_from_files, in_entries
from .writer import Committed

_log = logging.getLogger(__name__)
# Several deletions share a pass, which may rewrite the index.
_DELAY_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 40.0
# A reader that began before needs the log; it is tried again after this, at most.
_LONGEST_WAIT: Final = 1.0
_CLOSING_SECONDS: Final = 2.0


class Eraser:
    """Erases traces of forgotten memories, words of deleted texts, and the database's log.

    Deleted content is overwritten in the database by its commit. Its words stay in the full text
    until that is merged, and the log has copies of all pages until it is emptied. `truncate_log`
    returns False if a reader needs the log.
    """

    def __init__(
        self,
        place: AgentPaths,
        write: Callable[[Callable[[Transaction], None]], Awaitable[Any]],
        read: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]],
        truncate_log: Callable[[], Awaitable[bool]],
    ) -> None:
        self._place = place
        self._write = write
        self._read = read
        self._truncate_log = truncate_log
        self._forgotten: list[DeletedMemory] = []
        self._is_due = False
        self._last = -_PAUSE_SECONDS
        self._task: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()

    def note(self, committed: Committed) -> None:
        """Erase what a commit has deleted, soon."""
        self._forgotten += committed.forgotten
        if committed.erased:
            self.request()

    def request(self) -> None:
        """Start a pass soon."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._run(), name=f"erasure of {self._place.agent}"
            )

    async def finish(self) -> None:
        """Erase what is due, before the database is closed, which removes the log."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._is_due:
            with suppress(ThermoclineError, TimeoutError):
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await self.erase_traces()
                    await self.merge_words()

    async def erase_traces(self) -> None:
        """Erase the texts of forgotten memories from the agent's files now; the rest follows soon.

        A file that cannot be written is tried again.
        """
        async with self._busy:
            number = len(self._forgotten)
            traces = Traces(self._forgotten)
            if traces:
                try:
                    await asyncio.to_thread(erase_from_files, self._place, traces)
                except OSError as error:
                    raise translate_os(error, self._place.folder) from error
                if await self._read(partial(in_entries, traces=traces)):
                    await self._write(partial(erase_entries, traces=traces))
            del self._forgotten[:number]

    async def merge_words(self) -> None:
        """Merge the full text, which removes the words of deleted texts."""
        # Bounded: under load every step finds new segments and deleted texts.
        for _ in range(await self._read(full_text.steps)):
            if not await self._read(full_text.to_merge):
                break
            await self._write(full_text.merge)

    async def _run(self) -> None:
        while self._is_due:
            wait = self._last + _PAUSE_SECONDS - time.monotonic()
            await asyncio.sleep(max(_DELAY_SECONDS, wait))
            self._last = time.monotonic()
            self._is_due = False
            try:
                await self.erase_traces()
                await self.merge_words()
                await self._empty_log()
            except ShuttingDown:
                self._is_due = True
                return
            except ThermoclineError as error:
                self._is_due = True
                _log.info("erasing again later: %s", error, extra={"action": "erasure_delayed"})
            except asyncio.CancelledError:
                self._is_due = True
                raise

    async def _empty_log(self) -> None:
        wait = 0.01
        while not await self._truncate_log():
            await asyncio.sleep(wait)
            wait = min(_LONGEST_WAIT, 2 * wait)
