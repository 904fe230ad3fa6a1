"""The memory of an agent that does not exist yet, for readers and dry runs."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from thermocline.sync import HybridClock

from . import chunk_database
from .agent_store import AgentStore
from .database import migrate
from .schema import MIGRATIONS
from .transaction import Transaction

T = TypeVar("T")


class EmptyStore(AgentStore):
    """An empty memory that stores nothing and leaves no trace on the disk."""

    exists = False

    async def read(
        self,
        read: Callable[[sqlite3.Connection], T],
        *,
        seconds: float | None = None,  # noqa: ARG002 - there is nothing that takes long
    ) -> T:
        """Run `read` on an empty database."""
        return await asyncio.get_running_loop().run_in_executor(self._around.threads, _read, read)

    async def write(self, operation: Callable[[Transaction], T]) -> T:
        """Run `operation` on an empty database, which is then discarded."""

        def written(db: sqlite3.Connection) -> T:
            around = self._around
            with_clock = HybridClock(around.now)
            tx = Transaction(
                db, now=self.now, device=around.device.id, rules=self.rules, clock=with_clock
            )
            return operation(tx)

        return await asyncio.get_running_loop().run_in_executor(
            self._around.threads, _read, written
        )

    def note_answer(self, used: Sequence[str], chars: int) -> None:
        """Nothing is counted."""

    def note_hot(self, chars: int) -> None:
        """Nothing is counted."""


def _read(read: Callable[[sqlite3.Connection], T]) -> T:
    db = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(db, Path(":memory:"), MIGRATIONS)
        chunk_database.attach_none(db)
        return read(db)
    finally:
        db.close()
