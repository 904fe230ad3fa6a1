"""The running parts of one open agent: started together, stopped together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeAlias

import msgspec

from thermocline.sync import HybridClock

from ..errors import StoreDamaged
from ..problems import Problems
from . import faces
from .database import connect_reader, translate, translate_os
from .face_files import FaceFiles
from .face_writer import FaceWriter, announced
from .opening import Place, open_database
from .readers import Readers
from .settling import settle
from .transaction import Event, Rules, Transaction
from .writer import Committed, Writer

# What the database notes of the state files: digests, the version, what was about to be written.
_Noted: TypeAlias = tuple[dict[str, str], int, dict[str, list[str]]]


class Surroundings(msgspec.Struct, frozen=True):
    """What every agent's store shares with the daemon around it."""

    threads: Executor
    problems: Problems
    now: Callable[[], float]
    publish: Callable[[str, Event], None]
    outgoing: Callable[[str, frozenset[str]], None]
    rules: Callable[[], Rules]
    readers: int
    face_delay_seconds: Callable[[], float]


class Engine(msgspec.Struct, frozen=True):
    """The parts that are replaced together when a database is rebuilt."""

    writer: Writer
    readers: Readers
    faces: FaceWriter
    writing: asyncio.Task[None]

    async def end_tasks(self) -> None:
        """Write no state file any more, but for one that is on its way."""
        self.writing.cancel()
        await asyncio.gather(self.writing, return_exceptions=True)

    async def stop(self, last: Callable[[sqlite3.Connection], None] | None = None) -> None:
        """Commit what is queued and close the database.

        Args:
            last: called with the writer's connection after all commits.
        """
        await self.end_tasks()
        await self.faces.finish()
        await self.writer.close(last)
        await asyncio.to_thread(self.readers.close)


async def start_engine(
    place: Place,
    around: Surroundings,
    *,
    committed: Callable[[Committed], None],
    damaged: Callable[[StoreDamaged], None],
    damage: StoreDamaged | None = None,
) -> Engine:
    """Open the database, mend it if it is damaged, and start its writer and readers.

    Args:
        place: where.
        around: what all agents share.
        committed: told what each commit changed.
        damaged: told when damage shows while the state files are written.
        damage: a fault that was found since it was opened last.

    Raises:
        ThermoclineError: it cannot be opened.
    """
    db, (digests, clock, writing) = await asyncio.to_thread(_opened, place, around, damage)
    ticking = HybridClock(around.now, clock)
    loop = asyncio.get_running_loop()
    writer = Writer(
        place.database,
        db,
        begin=lambda db: Transaction(
            db,
            now=around.now(),
            device=place.device,
            rules=around.rules(),
            tick=ticking.tick,
            observe=ticking.observe,
        ),
        settle=settle,
        committed=committed,
        loop=loop,
    )
    readers = readers_of(place, around, connect_reader)
    files = FaceFiles(place.folder, {faces.MARKDOWN_FILE: place.markdown}, digests, writing)
    keeper = FaceWriter(
        place.agent,
        files,
        writer=writer,
        readers=readers,
        rules=around.rules,
        now=around.now,
        problems=around.problems,
        damaged=damaged,
    )
    keeper.want(faces.FILES)
    around.problems.clear("rebuild_failed", place.agent)
    task = loop.create_task(
        keeper.run(around.face_delay_seconds), name=f"state files of {place.agent}"
    )
    return Engine(writer, readers, keeper, task)


def readers_of(
    place: Place, around: Surroundings, connect: Callable[[Path, int], sqlite3.Connection]
) -> Readers:
    """Readers of the agent's database, on connections that `connect` makes."""
    return Readers(
        place.database,
        limit=around.readers,
        cache_kb=place.cache_kb,
        threads=around.threads,
        connect=connect,
    )


def copy_database(db: sqlite3.Connection, path: Path) -> None:
    """Write all that `db` holds into a new database. Blocking."""
    path.unlink(missing_ok=True)
    target = sqlite3.connect(path)
    try:
        db.backup(target)
    finally:
        target.close()


def _opened(
    place: Place, around: Surroundings, damage: StoreDamaged | None
) -> tuple[sqlite3.Connection, _Noted]:
    """Open; damage that shows as early as here is mended at once. Blocking."""
    try:
        return _opened_once(place, around, damage)
    except StoreDamaged as error:
        if damage is not None:
            raise
        return _opened_once(place, around, error)


def _opened_once(
    place: Place, around: Surroundings, damage: StoreDamaged | None
) -> tuple[sqlite3.Connection, _Noted]:
    try:
        db = open_database(place, around.rules(), around.now, around.problems, damage)
    except OSError as error:
        raise translate_os(error, place.folder) from error
    try:
        digests = dict(db.execute("SELECT name, digest FROM faces").fetchall())
        return db, (digests, faces.version(db), announced(db))
    except sqlite3.Error as error:
        db.close()
        raise translate(error, place.database) from error
