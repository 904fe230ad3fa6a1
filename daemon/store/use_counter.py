"""Counting the uses and the saved context of answers: soon, in one commit, after the answer.

The saved context is the size of everything there is, the texts of all memories and the hot state on
this device, less the size of the texts in the answer, in tokens; an empty answer saves nothing. A
token is four characters, and the total is measured at most every ten minutes.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from ..errors import ThermoclineError
from . import memories
from .transaction import Transaction

_log = logging.getLogger(__name__)
_COUNT_SECONDS: Final = 1.0
_MEASURED_SECONDS: Final = 600.0
_CHARS_IN_TOKEN: Final = 4


class GivenAnswer(msgspec.Struct, frozen=True):
    """An answer that was given.

    Attributes:
        used: the memories that count as used; None: the hot state, which is no answer.
        chars: of the texts in it.
    """

    used: tuple[str, ...] | None
    chars: int


class UseCounter:
    """Collects the answers of a second, then counts them together.

    Args:
        agent: whose answers, for the task's name.
        write: runs an operation in a commit.
        read: runs a query on the database.
    """

    def __init__(
        self,
        agent: str,
        write: Callable[[Callable[[Transaction], None]], Awaitable[Any]],
        read: Callable[[Callable[[sqlite3.Connection], int]], Awaitable[int]],
    ) -> None:
        self._agent = agent
        self._write = write
        self._read = read
        self._answers: list[GivenAnswer] = []
        self._counting: asyncio.Task[None] | None = None
        self._at_once = asyncio.Event()
        self._there = 0
        self._measured = float("-inf")

    def note(self, used: Sequence[str] | None, chars: int) -> None:
        """Count an answer, uses of the memories in it, and the saved context, within a second."""
        self._answers.append(GivenAnswer(None if used is None else tuple(used), chars))
        if self._counting is None or self._counting.done():
            self._counting = asyncio.get_running_loop().create_task(
                self._count_soon(), name=f"uses of {self._agent}"
            )

    async def finish(self) -> None:
        """Count what is not counted yet, now."""
        if self._counting is not None:
            # Not cancelled: it may have taken the answers, and not counted them yet.
            self._at_once.set()
            await asyncio.gather(self._counting, return_exceptions=True)
            self._at_once.clear()
        await self._count()

    async def _count_soon(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._at_once.wait(), _COUNT_SECONDS)
        await self._count()

    async def _count(self) -> None:
        answers, self._answers = self._answers, []
        if not answers:
            return
        try:
            there = await self._all_tokens()
            saved = sum(max(0, there - _tokens(one.chars)) for one in answers if one.chars)
            await self._write(partial(_count, answers=answers, saved=saved))
        except ThermoclineError as error:
            # Uses are a hint for ranking: on a full disk some may be lost.
            _log.info("did not count uses: %s", error, extra={"action": "uses_lost"})

    async def _all_tokens(self) -> int:
        if time.monotonic() - self._measured > _MEASURED_SECONDS:
            self._there = _tokens(await self._read(_chars_there))
            self._measured = time.monotonic()
        return self._there


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_IN_TOKEN)


def _chars_there(db: sqlite3.Connection) -> int:
    """The characters of all texts."""
    found = db.execute(
        "SELECT (SELECT total(length(text)) FROM memories WHERE merged_into IS NULL)"
        " + (SELECT total(length(data ->> 'value')) FROM rows WHERE kind = 'hot' AND live)"
    )
    return int(found.fetchone()[0])


def _count(tx: Transaction, answers: Sequence[GivenAnswer], saved: int) -> None:
    recalled = [answer.used for answer in answers if answer.used is not None]
    if recalled:
        memories.count_answers(tx, recalled)
    if saved:
        tx.count("context_tokens_saved", saved)
