"""The running parts of one open agent: started together, stopped together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from thermocline.sync import HybridClock

from ..errors import StoreDamaged
from . import chunk_database, noted
from .database import connect_reader, translate, translate_os
from .documents import FILES
from .full_text import is_current
from .kinds import rebuild_indexes
from .opening import open_database
from .place import Place, Surroundings
from .readers import Readers
from .settling import read_clock, settle
from .state_files import StateFiles
from .transaction import Transaction
from .writer import Committed, Writer

# The key in `meta` of the time when the whole database was last read and found sound.
CHECKED: Final = "checked_at"
_WEEK: Final = 604_800.0


class Engine(msgspec.Struct, frozen=True):
    """The parts that are replaced together when a database is rebuilt.

    Attributes:
        doubtful: whether the whole database should be checked: it is not new, and was not closed
            properly, or not checked since the daemon started, or for a week.
    """

    writer: Writer
    readers: Readers
    faces: StateFiles
    writing: asyncio.Task[None]
    doubtful: bool
    indexing: asyncio.Task[None] | None

    async def end_tasks(self) -> None:
        """Stop writing state files, after a write in progress."""
        self.writing.cancel()
        await asyncio.gather(self.writing, return_exceptions=True)

    async def stop(self) -> None:
        """Commit what is queued and close the database."""
        await self.end_tasks()
        await self.faces.finish()
        # The connection closed last moves the log into the database, so it must allow writing.
        await asyncio.to_thread(self.readers.close)
        await self.writer.close()
        if self.indexing is not None:
            # A failure shows again when the memory is next opened.
            await asyncio.gather(self.indexing, return_exceptions=True)


async def start_engine(
    place: Place,
    around: Surroundings,
    *,
    committed: Callable[[Committed], None],
    damaged: Callable[[StoreDamaged], None],
    damage: StoreDamaged | None = None,
) -> Engine:
    """Open the database, rebuild it if it is damaged, and start its writer and readers.

    Args:
        place: where.
        around: what all agents share.
        committed: called with what each commit changed.
        damaged: called when damage is found while the state files are written.
        damage: a fault found since it was last opened.

    Raises:
        ThermoclineError: it cannot be opened.
    """
    opened = await asyncio.to_thread(_opened, place, around, damage)
    clock = HybridClock(around.now, opened.highest, opened.issued)
    loop = asyncio.get_running_loop()
    writer = Writer(
        place.database,
        opened.db,
        begin=lambda db: Transaction(
            db, now=around.now(), device=around.device.id, rules=around.rules(), clock=clock
        ),
        settle=settle,
        committed=committed,
        loop=loop,
        failed_syncs=around.failed_syncs,
    )
    indexing: asyncio.Task[None] | None = None
    if not opened.indexed:
        indexing = loop.create_task(writer.submit(rebuild_indexes))
        # Queued before any other write, which would remove words that are not in the index yet.
        await asyncio.sleep(0)
    readers = readers_of(place, around, connect_reader)
    files = StateFiles(place, around, writer, readers, damaged)
    files.want(FILES)
    around.problems.clear("rebuild_failed", place.agent)
    task = loop.create_task(
        files.run(around.face_delay_seconds), name=f"state files of {place.agent}"
    )
    return Engine(writer, readers, files, task, opened.doubtful, indexing)


def readers_of(
    place: Place, around: Surroundings, connect: Callable[[Path, int], sqlite3.Connection]
) -> Readers:
    """Readers of the agent's database, on connections made by `connect`."""
    return Readers(
        place.database,
        limit=around.readers,
        cache_kb=place.cache_kb,
        threads=around.threads,
        connect=connect,
    )


def copy_database(db: sqlite3.Connection, path: Path) -> None:
    """Copy the database `db` into a new file. Blocking."""
    path.unlink(missing_ok=True)
    target = sqlite3.connect(path)
    try:
        db.backup(target)
    finally:
        target.close()


class _Opened(msgspec.Struct, frozen=True):
    """An open database, its clock, whether to check it, whether its index is current."""

    db: sqlite3.Connection
    highest: int
    issued: int
    doubtful: bool
    indexed: bool


def _opened(place: Place, around: Surroundings, damage: StoreDamaged | None) -> _Opened:
    """Open the database; damage found on opening is repaired at once. Blocking."""
    try:
        return _opened_once(place, around, damage)
    except StoreDamaged as error:
        if damage is not None:
            raise
        return _opened_once(place, around, error)


def _opened_once(place: Place, around: Surroundings, damage: StoreDamaged | None) -> _Opened:
    # SQLite removes the log of a database that was closed properly.
    log = place.database.with_name(f"{place.database.name}-wal")
    unclean = log.exists() and log.stat().st_size > 0
    is_new = not place.database.exists()
    try:
        db = open_database(place, around, damage)
    except OSError as error:
        raise translate_os(error, place.folder) from error
    try:
        # If the disk refuses, readers find no chunks.
        with suppress(sqlite3.Error, OSError):
            chunk_database.open_index(place.folder, place.cache_kb).close()
        checked = noted.read(db, CHECKED, float)
        now = around.now()
        sound = checked is not None and max(around.since, now - _WEEK) <= checked <= now
        doubtful = unclean or not sound
        return _Opened(db, *read_clock(db), doubtful and not is_new, is_current(db))
    except sqlite3.Error as error:
        db.close()
        raise translate(error, place.database) from error
