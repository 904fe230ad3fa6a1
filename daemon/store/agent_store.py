"""One open agent: its writer, its readers and its state files, and their repair."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from ..config.settings import Rules
from ..errors import DiskFull, ReadOnly, ShuttingDown, StoreDamaged, ThermoclineError
from ..runtime import atomic
from .agent_paths import AgentPaths, StoreContext
from .database import chunk_database, full_text, meta
from .database.memory_database import (
    FILE_NAME,
    Examination,
    connect_standby,
    remove_old_copies,
)
from .database.transaction import StateFile, Transaction
from .engine import CHECKED, REBUILT, Engine, files_of, start_engine
from .erasure import Eraser
from .kinds import rebuild_indexes
from .limits import enforce_all_limits, is_due
from .readers import Readers, WriteHealth, probe, take_room
from .records import history
from .records.uses import UseCounter
from .writer import Operation

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FADING_SECONDS: Final = 3600.0
# Raised for a value of the wrong type in code that trusts the schema.
_PROGRAM_FAULTS: Final = (TypeError, ValueError, LookupError, AttributeError, AssertionError)
_PRUNING_SECONDS: Final = 86_400.0
# A fault of the program may raise with every call: the whole database is not read each time.
_SEARCH_SECONDS: Final = 60.0
# An error that recurs within this time is a fault of the file, even if a check finds none.
_TRUSTED_SECONDS: Final = 60.0


class _Rehearsed(Exception):
    """Undoes a transaction, and carries the result of its operation."""


class AgentStore:
    """The memory of one agent, open. Made by `Agents`.

    A damaged database is rebuilt in use: the operation that found the damage is repeated on the
    rebuilt one. While the disk refuses writes, reads continue; writes resume automatically.

    Attributes:
        eraser: erases what was deleted from the agent's files, too.
        exists: whether the agent exists; see `EmptyStore`.
        leave_chunks: asks the writer of the chunk database to close it.
        opened: how often the database was opened; each time its rows may have other numbers.
        leave_vectors: asks the user of the file of vectors to close it.
    """

    exists = True

    def __init__(self, place: AgentPaths, context: StoreContext) -> None:
        self.place = place
        self._context = context
        self._engine: Engine | None = None
        self._repairing = asyncio.Lock()
        self._damage: StoreDamaged | None = None
        self._closed = False
        self._renewing = asyncio.Lock()
        self._searching = asyncio.Lock()
        self._reopened = -math.inf
        standby = partial(
            Readers,
            place.database,
            limit=context.readers,
            threads=context.threads,
            connect=connect_standby,
        )
        self._write_health = WriteHealth(place.agent, context.problems, standby)
        self._enforced: Rules | None = None
        self._repair_task: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._examination = Examination(place.database)
        self._uses = UseCounter(place.agent, self.write, self.read)
        self.eraser = Eraser(place, self.write, self.read, self._truncate_log)
        self.leave_chunks: Callable[[], Awaitable[None]] = _nothing_to_leave
        self.leave_vectors: Callable[[], Awaitable[None]] = _nothing_to_leave
        self.last_used = self._shown = time.monotonic()
        self._pruned = self._searched = float("-inf")
        self.in_use = self.opened = 0

    @property
    def rules(self) -> Rules:
        """The limits in force."""
        return self._context.rules()

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self._context.now()

    @property
    def state_files_pending(self) -> bool:
        """Whether a state file is older than the database."""
        return self._engine is not None and self._engine.state_files.pending

    @property
    def refused(self) -> bool:
        """Whether the disk refuses writes; it is probed until it accepts them."""
        return self._write_health.degraded

    async def open(self) -> None:
        """Open, take over or rebuild the database, and start writing the state files.

        If the disk refuses writes, it is only opened for reading.
        """
        try:
            self._engine = await self._start()
        except (DiskFull, ReadOnly) as error:
            await self._write_health.enter_standby(error)
        else:
            self._write_health.recovered()

    async def write(self, operation: Operation[T]) -> T:
        """Run `operation` in the next commit; return once it is on the disk, or change nothing."""
        with self._write_health.reporting():
            return await self._with_repair(lambda engine: engine.writer.submit(operation))

    async def rehearse(self, operation: Operation[T]) -> T:
        """The result of `operation`, whose changes are undone with its whole transaction."""

        def undone(tx: Transaction) -> None:
            raise _Rehearsed(operation(tx))

        try:
            await self.write(undone)
        except _Rehearsed as rehearsed:
            result: T = rehearsed.args[0]
            return result
        raise AssertionError

    async def read(
        self,
        read: Callable[[sqlite3.Connection], T],
        *,
        seconds: float | None = None,
        is_long: bool = False,
    ) -> T:
        """Run `read` on a snapshot, beside the writer; after `seconds` raise `TooSlow`.

        With `is_long` it reads the whole database, which leaves room for others.
        """
        while (standby := self._write_health.standby) is not None:
            try:
                return await standby.run(read, seconds, is_long=is_long)
            except ShuttingDown:
                # Closed to open the database for writing: wait for the outcome.
                async with self._repairing:
                    pass
        return await self._with_repair(
            lambda engine: engine.readers.run(read, seconds, is_long=is_long)
        )

    async def renew_chunks(self, engine: Engine | None = None) -> None:
        """Replace the chunk database with an empty one."""
        async with self._renewing:
            await self.leave_chunks()
            renew = partial(chunk_database.renew, self.place.folder)
            await asyncio.to_thread((engine or self._running()).readers.renew, renew)

    async def chunks_renewed(self) -> None:
        """Wait while the chunk database is replaced: what opens it then would get the old file."""
        async with self._renewing:
            pass

    def note_answer(self, used: Sequence[str] | None, chars: int) -> None:
        """Count an answer, and uses, within a second and in one commit.

        `used` are the ids of the memories used; each counts at most once an hour; None: the hot
        state was read. `chars` is the length of the answer's texts, from which the saved context
        is estimated.
        """
        self._uses.note(used, chars)

    def request_state_files(self, wanted: Iterable[StateFile]) -> None:
        """Schedule the rewriting of state files; all are written once a database is opened."""
        if self._engine is not None:
            self._engine.state_files.want(wanted)

    async def flush_state_files(self) -> bool:
        """Write the state files now. False: the disk refused."""
        return await self._running().state_files.flush()

    async def check_files(self) -> None:
        """Detect edited state files, a lost database, and a disk that accepts writes again."""
        if self._write_health.degraded and not await self._accepted():
            return
        if files_of(self.place.database) != self._running().files:
            await self._recover_files()
        await self._running().state_files.check_files()

    async def run_maintenance(self) -> None:
        """Apply the passing of time: archive faded memories, delete expired ones.

        Also merges the full-text index, which removes the words of deleted texts, and applies
        changed limits. Nothing is written unless something is due. The state files are rewritten
        hourly, because scores fade.
        """
        rules, now = self.rules, self.now
        if rules is not self._enforced or await self.read(lambda db: is_due(db, now, rules)):
            await self.write(enforce_all_limits)
            self._enforced = rules
        if await self.read(full_text.needs_rebuild):
            await self.write(rebuild_indexes)
        if await self.read(full_text.to_merge):
            await self.eraser.merge_words()
            self.eraser.request()
        if time.monotonic() - self._pruned > _PRUNING_SECONDS:
            self._pruned = time.monotonic()
            await self.write(lambda tx: history.prune(tx, rules.store.history_max_bytes))
            await asyncio.to_thread(remove_old_copies, self.place.database, now)
        if time.monotonic() - self._shown > _FADING_SECONDS:
            self._shown = time.monotonic()
            self.request_state_files(("hot", "warm", "tree"))

    async def close(self) -> None:
        """Commit queued writes, write the state files, and close the database."""
        await self.leave_chunks()
        await self.leave_vectors()
        if self._engine is not None:
            await self._uses.finish()
            await self.eraser.finish()
        async with self._repairing:
            self._closed = True
            engine, self._engine = self._engine, None
            await self._write_health.leave_standby()
            self._write_health.standby = None
            self._write_health.recovered()
        if engine is None:
            return
        if self._checking is not None:
            # Its connection must not outlast ours: the one closed last moves the log.
            self._examination.end()
            await asyncio.gather(self._checking, return_exceptions=True)
        await engine.end_tasks()
        if self.place.database.exists():
            await engine.state_files.flush()
        await engine.stop()

    async def _start(self, damage: StoreDamaged | None = None) -> Engine:
        engine = await start_engine(
            self.place,
            self._context,
            committed=self._committed,
            damaged=self._repair_soon,
            damage=damage,
        )
        self.opened += 1
        if engine.doubtful:
            self._checking = asyncio.get_running_loop().create_task(
                self._check(engine), name=f"check of {self.place.agent}"
            )
        return engine

    async def _truncate_log(self) -> bool:
        return await self._running().writer.truncate_log()

    def _committed(self, committed: Transaction) -> None:
        engine = self._engine
        if engine is not None and committed.state_files:
            engine.state_files.want(committed.state_files)
        self.eraser.note(committed)
        if committed.outgoing:
            self._context.outgoing(self.place.agent, frozenset(committed.outgoing))
        for event in committed.events:
            self._context.publish(self.place.agent, event)

    async def _check(self, engine: Engine) -> None:
        """Read the whole database once, so that damage is found before it is needed."""
        try:
            has_words = await asyncio.to_thread(self._examination.run)
            if not has_words or not await engine.readers.run(full_text.is_counted):
                await self._rebuild_indexes(engine, "a full-text index has lost some of its words")
            if not await asyncio.to_thread(chunk_database.is_sound, self.place.folder):
                await self.renew_chunks(engine)
            await engine.writer.submit(lambda tx: meta.write(tx, CHECKED, tx.now), durable=False)
        except StoreDamaged as error:
            # For this engine only: another call may have found and repaired the damage.
            await self._repair_in_background(engine, error)
        except ThermoclineError as error:
            _log.info("did not check the database: %s", error, extra={"action": "check_skipped"})

    def _repair_soon(self, error: StoreDamaged) -> None:
        """Repair in a separate task: a repair waits for the caller, which writes state files."""
        self._repair_task = asyncio.get_running_loop().create_task(
            self._repair_in_background(self._engine, error), name=f"repair of {self.place.agent}"
        )

    async def _repair_in_background(self, engine: Engine | None, error: StoreDamaged) -> None:
        try:
            await self._repair(engine, error)
        except ThermoclineError as failure:
            self._context.problems.report(
                "rebuild_failed",
                self.place.agent,
                f"cannot rebuild the damaged database of '{self.place.agent}': {failure.message}",
                "fix what keeps it from being written; the next call tries it again",
            )

    async def _with_repair(self, use: Callable[[Engine], Awaitable[T]]) -> T:
        engine = await self._ready()
        try:
            return await use(engine)
        except full_text.IndexDamaged as error:
            await self._rebuild_indexes(engine, error.message)
        except StoreDamaged as error:
            if await self._repair(engine, error):
                return await self._with_repair(use)
        except _PROGRAM_FAULTS:
            # A value that the schema excludes: a bug, unless SQLite finds damage on the disk.
            if not await self._repair_damage(engine):
                raise
        except ShuttingDown:
            # Closed meanwhile because another call found damage and repairs it.
            async with self._repairing:
                if self._engine is engine:
                    raise
        return await use(await self._ready())

    async def _rebuild_indexes(self, engine: Engine, fault: str) -> None:
        _log.warning("rebuilding the indexes: %s", fault, extra={"action": "index_rebuilt"})
        await engine.writer.submit(rebuild_indexes)

    async def _repair_damage(self, engine: Engine) -> bool:
        """Repair the damage that SQLite finds, at most once a minute; False: it finds none."""
        async with self._searching:
            if self._engine is not engine:
                return True
            if time.monotonic() - self._searched < _SEARCH_SECONDS:
                return False
            self._searched = time.monotonic()
            try:
                await asyncio.to_thread(Examination(self.place.database).run)
            except StoreDamaged as damage:
                await self._repair(engine, damage)
                return True
            return False

    async def _ready(self) -> Engine:
        """The engine; restarted if a repair failed, awaited if one is running."""
        async with self._repairing:
            if self._engine is None and not self._closed:
                self._engine = await self._start(self._damage)
                self._damage = None
            return self._running()

    async def _accepted(self) -> bool:
        """Whether the disk accepts writes again; if so, opens the database for writing."""
        try:
            await asyncio.to_thread(take_room, self.place.folder)
            if self._write_health.standby is not None:
                await self._leave_standby()
            await self.write(probe)
        except (DiskFull, ReadOnly, OSError):
            return False
        self._write_health.recovered()
        return True

    async def _leave_standby(self) -> None:
        async with self._repairing:
            await self._write_health.leave_standby()
            # Opened beside the standby readers, it may share their lock file, which they may only
            # read: SQLite refuses its writes as long as it stays open.
            await self.leave_chunks()
            try:
                self._engine = await self._start()
            except (DiskFull, ReadOnly) as error:
                await self._write_health.enter_standby(error)
                raise
            self._write_health.standby = None

    async def _repair(self, broken: Engine | None, error: StoreDamaged) -> bool:
        """Close, set aside, rebuild, reopen; once, however many calls found the damage.

        A database that SQLite reports as malformed but whose pages and rows are whole is reopened,
        its full-text indexes made again if they lack words. If the error recurs within a minute, it
        is rebuilt.

        Returns:
            Whether it was only reopened, so that the damage may show again.
        """
        async with self._repairing:
            if self._engine is not broken or broken is None:
                return False
            if not await asyncio.to_thread(chunk_database.is_sound, self.place.folder):
                # Only the chunks are damaged; they are rebuilt from the files.
                await self.renew_chunks(broken)
                return False
            self._engine, self._damage = None, error
            await broken.stop()
            is_trusted = time.monotonic() - self._reopened > _TRUSTED_SECONDS
            has_words = None
            if is_trusted and isinstance(error.__cause__, sqlite3.Error):
                has_words = await asyncio.to_thread(_has_words, self.place.database)
            if has_words is not None:
                _log.error("reopening a sound database: %s", error, extra={"action": "reopen"})
                self._reopened, self._damage = time.monotonic(), None
                self._engine = await self._start()
                if not has_words:
                    await self._rebuild_indexes(self._engine, error.message)
                return True
            _log.error("rebuilding a damaged database: %s", error, extra={"action": "rebuild"})
            self._engine = await self._start(error)
            self._damage = None
            return False

    async def _recover_files(self) -> None:
        """Write the database again from the open handles, if it or its log is no longer there."""
        folder, database = self.place.folder, self.place.database
        if not folder.exists():
            return
        copy = database.with_name(f"{FILE_NAME}.building")
        async with self._repairing:
            engine = self._running()
            # If it fails, the open handles are the only ones, and stay open.
            await engine.writer.copy_into(copy)
            self._engine = None
            await engine.stop()
            await asyncio.to_thread(copy.replace, folder / REBUILT)
            asides = ""
            for path, inode in files_of(database).items():
                if inode == engine.files[path]:
                    path.unlink(missing_ok=True)
                elif inode is not None:
                    aside = atomic.set_aside(path, "changed")
                    asides += f"; {path.name} was set aside as {aside.name}"
            self._engine = await self._start()
        self._context.problems.report(
            "database_removed",
            self.place.agent,
            f"{database} or its log was removed or replaced while in use; it was restored from the"
            f" open handle{asides}",
            "to forget an agent, remove its whole folder; to replace a database, stop the daemon",
            lasting=False,
        )

    def _running(self) -> Engine:
        if self._engine is None:
            raise ShuttingDown(f"the memory of '{self.place.agent}' is closed")
        return self._engine


def _has_words(path: Path) -> bool | None:
    """Whether the full-text indexes have all their words; None if the database is damaged."""
    try:
        return Examination(path).run()
    except ThermoclineError:
        return None


async def _nothing_to_leave() -> None:
    """The default of `leave_chunks` and `leave_vectors`: no such file is open."""
