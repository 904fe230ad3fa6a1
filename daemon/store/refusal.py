"""A disk that refuses an agent's writes: telling it, and reading on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ..errors import DiskFull, ReadOnly, ThermoclineError
from ..runtime.problems import Problems
from .readers import Readers
from .settling import read_clock

Refused: TypeAlias = DiskFull | ReadOnly


class Refusal:
    """Whether the disk takes an agent's writes at the moment.

    Args:
        agent: whose writes.
        problems: where a refusal is told.
        readers: makes readers of a database that nobody has open for writing.

    Attributes:
        standby: what reads instead, while the disk keeps the database from being opened.
    """

    def __init__(self, agent: str, problems: Problems, readers: Callable[[], Readers]) -> None:
        self._agent = agent
        self._problems = problems
        self._readers = readers
        self._error: Refused | None = None
        self.standby: Readers | None = None

    @property
    def stands(self) -> bool:
        """Whether a write was refused, and the disk has had no room since."""
        return self._error is not None

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Run a write. One that the disk refuses is told, and raised; at once while it stands by.

        Raises:
            DiskFull, ReadOnly: the disk refused.
        """
        if self.standby is not None and self._error is not None:
            raise type(self._error)(self._error.message, hint=self._error.hint)
        try:
            yield
        except (DiskFull, ReadOnly) as error:
            self.note(error)
            raise

    def note(self, error: Refused) -> None:
        """The disk refused a write."""
        self._error = error
        self._problems.report(error.code, self._agent, error.message, error.hint or "")

    def over(self) -> None:
        """The disk has room and takes writes."""
        self._error = None
        for kind in (DiskFull, ReadOnly):
            self._problems.clear(kind.code, self._agent)

    async def stand_by(self, error: Refused) -> None:
        """Read from now on without the database being open for writing.

        Raises:
            DiskFull, ReadOnly: `error`, when there is nothing that can be read.
        """
        self.note(error)
        standby = self._readers()
        try:
            await standby.run(read_clock)
        except ThermoclineError:
            await asyncio.to_thread(standby.close)
            # Its caller hears of it, and nobody looks whether it is over.
            self.over()
            raise error from None
        self.standby = standby

    async def leave(self) -> None:
        """Close what stands by, so that the database can be opened."""
        if self.standby is not None:
            await asyncio.to_thread(self.standby.close)
