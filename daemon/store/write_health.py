"""A disk that refuses an agent's writes: reporting it, and reading meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from ..errors import DiskFull, ReadOnly, ThermoclineError
from ..runtime.problems import Problems
from . import meta
from .meta import read_clock
from .readers import Readers
from .transaction import Transaction

Refused: TypeAlias = DiskFull | ReadOnly
# A disk with less counts as full.
_ROOM: Final = 1_048_576


class WriteHealth:
    """Whether the disk currently refuses an agent's writes.

    `readers` makes readers of a database that is not open for writing.
    """

    def __init__(self, agent: str, problems: Problems, readers: Callable[[], Readers]) -> None:
        self._agent = agent
        self._problems = problems
        self._readers = readers
        self._error: Refused | None = None
        self.standby: Readers | None = None  # reads while the database cannot be opened for writing

    @property
    def degraded(self) -> bool:
        """Whether a write was refused and none has succeeded since."""
        return self._error is not None

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        """Run a write, and report a refusal. In standby it is refused without being tried."""
        if self.standby is not None and self._error is not None:
            raise type(self._error)(self._error.message, hint=self._error.hint)
        try:
            yield
        except (DiskFull, ReadOnly) as error:
            self.record(error)
            raise

    def record(self, error: Refused) -> None:
        """The disk refused a write."""
        self._error = error
        self._problems.report(error.code, self._agent, error.message, error.hint or "")

    def recovered(self) -> None:
        """The disk accepts writes."""
        self._error = None
        for kind in (DiskFull, ReadOnly):
            self._problems.clear(kind.code, self._agent)

    async def enter_standby(self, error: Refused) -> None:
        """Read from now on without opening the database for writing; else raise `error`."""
        self.record(error)
        standby = self._readers()
        try:
            await standby.run(read_clock)
        except ThermoclineError:
            await asyncio.to_thread(standby.close)
            # The caller gets the error; nothing will check later whether it is over.
            self.recovered()
            raise error from None
        self.standby = standby

    async def leave_standby(self) -> None:
        """Close the standby readers, so that the database can be opened."""
        if self.standby is not None:
            await asyncio.to_thread(self.standby.close)


def take_room(folder: Path) -> None:
    """Raise OSError unless the disk has room for more than the database's log has in reserve."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_ROOM))


def probe(tx: Transaction) -> None:
    """The smallest write, to learn whether the disk accepts one."""
    meta.write(tx, "probe", tx.now)
