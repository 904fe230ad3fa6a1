"""One open agent: its writer, its readers and its state files, and their repair."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from thermocline.sync import HybridClock

from ..errors import ShuttingDown, StoreDamaged, ThermoclineError
from ..problems import Problems
from . import faces, memories
from .database import FILE_NAME, quick_check, translate
from .face_files import FaceFiles
from .face_writer import FaceWriter
from .opening import Place, open_database
from .readers import Readers
from .settling import archive_faded, settle
from .transaction import Event, Face, Rules, Transaction
from .writer import Committed, Operation, Writer

T = TypeVar("T")
_log = logging.getLogger(__name__)
_COUNT_SECONDS: Final = 1.0


class Surroundings(msgspec.Struct, frozen=True):
    """What every agent's store shares with the daemon around it."""

    threads: Executor
    problems: Problems
    now: Callable[[], float]
    publish: Callable[[str, Event], None]
    rules: Callable[[], Rules]
    readers: int
    face_delay_seconds: Callable[[], float]


class _Engine(msgspec.Struct, frozen=True):
    """The parts that are replaced together when a database is rebuilt."""

    writer: Writer
    readers: Readers
    faces: FaceWriter
    tasks: tuple[asyncio.Task[None], ...]


class AgentStore:
    """The memory of one agent, open. Made by `open_store`.

    A damaged database is repaired under way: the operation that met the damage is run once more
    on the rebuilt one.
    """

    def __init__(self, place: Place, around: Surroundings) -> None:
        self.place = place
        self._around = around
        self._engine: _Engine | None = None
        self._repairing = asyncio.Lock()
        self._repair_task: asyncio.Task[None] | None = None
        self._answers: list[tuple[str, ...]] = []
        self._counting: asyncio.Task[None] | None = None
        self.last_used = time.monotonic()
        self.in_use = 0

    @property
    def rules(self) -> Rules:
        """The limits in force."""
        return self._around.rules()

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self._around.now()

    @property
    def faces_pending(self) -> bool:
        """Whether a state file is behind the database."""
        return self._engine is not None and self._engine.faces.pending

    async def open(self) -> None:
        """Open, take over or rebuild the database, and begin to keep the state files."""
        self._engine = await self._start()

    async def write(self, operation: Operation[T]) -> T:
        """Run `operation` in the next commit; return once it is on the disk.

        Raises:
            ThermoclineError: and then nothing was changed.
        """
        return await self._mended(lambda engine: engine.writer.submit(operation))

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run `read` on a snapshot of the database, beside the writer."""
        return await self._mended(lambda engine: engine.readers.run(read))

    def note_answer(self, used: Sequence[str]) -> None:
        """Count an answer, and a use of each memory in it, within a second and in one commit."""
        self._answers.append(tuple(used))
        if self._counting is None or self._counting.done():
            self._counting = asyncio.get_running_loop().create_task(
                self._count_soon(), name=f"uses of {self.place.agent}"
            )

    async def _count_soon(self) -> None:
        await asyncio.sleep(_COUNT_SECONDS)
        await self._count()

    async def _count(self) -> None:
        answers, self._answers = self._answers, []
        if not answers:
            return
        try:
            await self.write(lambda tx: memories.count_answers(tx, answers))
        except ThermoclineError as error:
            # Uses are a hint for ranking: a full disk may cost a few.
            _log.info("did not count uses: %s", error, extra={"action": "uses_lost"})

    def want_faces(self, wanted: Iterable[Face]) -> None:
        """Have state files written anew soon."""
        self._running().faces.want(wanted)

    async def flush_faces(self) -> bool:
        """Write the state files now. False: the disk refused."""
        return await self._running().faces.flush()

    async def look(self) -> None:
        """Notice hand edits, and a folder or a database that was taken away."""
        if not self.place.database.exists():
            await self._recover_removed()
        await self._running().faces.look()

    async def tend(self) -> None:
        """What the passing of time asks for: faded memories leave warm, expired ones go."""

        def pass_time(tx: Transaction) -> None:
            archive_faded(tx)
            tx.settle_warm = True
            tx.faces.update({"hot", "warm", "tree"})

        await self.write(pass_time)

    async def close(self) -> None:
        """Commit what is queued, write the files, and leave the folder complete."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)
        if self._engine is not None:
            await self._count()
        engine, self._engine = self._engine, None
        if engine is None:
            return
        for task in engine.tasks:
            task.cancel()
        await asyncio.gather(*engine.tasks, return_exceptions=True)
        if self.place.database.exists():
            await engine.faces.flush()
        await self._stop(engine)

    async def _start(self, damage: StoreDamaged | None = None) -> _Engine:
        around = self._around
        db = await asyncio.to_thread(
            open_database, self.place, self.rules, around.now, around.problems, damage
        )
        try:
            digests, clock = _noted(db)
        except sqlite3.Error as error:
            db.close()
            raise translate(error, self.place.database) from error
        ticking = HybridClock(self._around.now, clock)
        loop = asyncio.get_running_loop()
        writer = Writer(
            self.place.database,
            db,
            begin=lambda db: Transaction(
                db,
                now=self._around.now(),
                device=self.place.device,
                rules=self._around.rules(),
                tick=ticking.tick,
            ),
            settle=settle,
            committed=self._committed,
            loop=loop,
        )
        readers = Readers(
            self.place.database,
            limit=self._around.readers,
            cache_kb=self.place.cache_kb,
            threads=self._around.threads,
        )
        keeper = FaceWriter(
            self.place.agent,
            FaceFiles(self.place.folder, {faces.MARKDOWN_FILE: self.place.markdown}, digests),
            writer=writer,
            readers=readers,
            rules=self._around.rules,
            now=self._around.now,
            problems=self._around.problems,
            delay_seconds=self._around.face_delay_seconds,
        )
        keeper.want(faces.FILES)
        name = self.place.agent
        return _Engine(
            writer,
            readers,
            keeper,
            (
                loop.create_task(keeper.run(), name=f"state files of {name}"),
                loop.create_task(self._check(), name=f"check of {name}"),
            ),
        )

    def _committed(self, committed: Committed) -> None:
        engine = self._engine
        if engine is not None and committed.faces:
            engine.faces.want(committed.faces)
        for event in committed.events:
            self._around.publish(self.place.agent, event)

    async def _check(self) -> None:
        """Read the whole database once, so that damage is found before it is needed."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._around.threads, quick_check, self.place.database)
        except StoreDamaged as error:
            # On a task of its own: a repair ends this one.
            self._repair_task = loop.create_task(self._repair(self._engine, error))
        except ThermoclineError as error:
            _log.info("did not check the database: %s", error, extra={"action": "check_skipped"})

    async def _mended(self, use: Callable[[_Engine], Awaitable[T]]) -> T:
        engine = self._running()
        try:
            return await use(engine)
        except StoreDamaged as error:
            await self._repair(engine, error)
        except ShuttingDown:
            # Closed under way because another call met damage; that one mends it.
            async with self._repairing:
                if self._engine is engine:
                    raise
        return await use(self._running())

    async def _repair(self, broken: _Engine | None, error: StoreDamaged) -> None:
        """Close, set aside, rebuild, reopen; once, however many met the damage."""
        async with self._repairing:
            if self._engine is not broken or broken is None:
                return
            _log.error("rebuilding a damaged database", extra={"action": "rebuild"})
            for task in broken.tasks:
                task.cancel()
            await self._stop(broken)
            self._engine = await self._start(error)

    async def _recover_removed(self) -> None:
        """Write the database anew from the open handle, when only its name was removed."""
        if not self.place.folder.exists():
            return
        engine = self._running()
        copy = self.place.database.with_name(f"{FILE_NAME}.building")
        await engine.readers.run(lambda db: _copy(db, copy))
        async with self._repairing:
            for task in engine.tasks:
                task.cancel()
            await self._stop(engine)
            await asyncio.to_thread(copy.replace, self.place.database)
            self._engine = await self._start()
        self._around.problems.report(
            "database_removed",
            self.place.agent,
            f"{self.place.database} was removed while it was in use; it was written anew",
            "to forget an agent, remove its whole folder",
            lasting=False,
        )

    async def _stop(self, engine: _Engine) -> None:
        await engine.writer.close()
        await asyncio.to_thread(engine.readers.close)

    def _running(self) -> _Engine:
        if self._engine is None:
            raise ThermoclineError(f"the memory of '{self.place.agent}' is closed")
        return self._engine


def _noted(db: sqlite3.Connection) -> tuple[dict[str, str], int]:
    digests = dict(db.execute("SELECT name, digest FROM faces").fetchall())
    return digests, faces.version(db)


def _copy(db: sqlite3.Connection, path: Path) -> None:
    target = sqlite3.connect(path)
    try:
        db.backup(target)
    finally:
        target.close()
