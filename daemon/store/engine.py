"""Opening an agent's database, and its running parts, started together and stopped together.

A database is new, there already, taken over from files, or rebuilt because it is damaged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from thermocline.sync import HybridClock

from ..errors import StoreDamaged, Unavailable, translate_os
from ..runtime import atomic
from ..runtime.problems import Problems
from . import kinds, state_files
from .agent_paths import AgentPaths, StoreContext
from .database import chunk_database, meta
from .database.connection import scalar, transaction
from .database.full_text import is_current
from .database.memory_database import (
    FILE_NAME,
    connect_reader,
    connect_writer,
    migrate,
    translate,
    translated,
)
from .database.meta import read_clock
from .database.schema import MIGRATIONS
from .database.transaction import Transaction, WriterCache
from .kinds import rebuild_indexes
from .limits import enforce_limits
from .readers import Readers
from .records import documents
from .records.documents import FILES
from .state_files import StateFiles
from .writer import Writer

_log = logging.getLogger(__name__)

# A new database under this name is complete; it only has to take the place of the old one.
REBUILT: Final = f"{FILE_NAME}.rebuilt"
# Hundreds of times the caps of any tool, and still parsed by a small device.
LARGEST: Final = 16_777_216
# The word in the name of a larger state file that was set aside.
TOO_LARGE: Final = "too-large"


def open_database(
    place: AgentPaths, context: StoreContext, damage: StoreDamaged | None = None
) -> sqlite3.Connection:
    """The writer's connection to a sound database with the present schema. Blocking.

    A damaged database is rebuilt and set aside; a missing one is taken over from the files, if
    there are any. The old one stays in place until the new one is complete: after an interruption,
    the next opening starts again or finishes. `damage` was detected since the database was last
    opened.

    Raises:
        ThermoclineError: the disk refuses, or a later release wrote the database.
    """
    atomic.make_folder(place.folder)
    # Left incomplete by a killed process.
    atomic.remove_unfinished(place.folder)
    atomic.remove_unfinished(place.markdown.parent, place.markdown.name)
    if (place.folder / REBUILT).exists():
        _move_in(place)
    damaged: Path | None = None
    if place.database.exists():
        try:
            if damage is not None:
                raise damage
            _refuse_blank(place, context)
            db = _connect(place.database)
        except StoreDamaged as error:
            damage, damaged = error, place.database
        else:
            _take_over_workspace(place, context, db)
            return db
    if damaged is not None or context.importer.is_there(place):
        _build(place, context, damaged)
        aside = _move_in(place)
        if damage is not None:
            _report_rebuilt(place, damage, aside, context.problems)
    db = _connect(place.database)
    _mark_taken_over(place, db)
    return db


def _refuse_blank(place: AgentPaths, context: StoreContext) -> None:
    """Refuse a database without tables beside state files: it has lost their content."""
    with translated(place.database), closing(connect_writer(place.database)) as db:
        blank = not scalar(db, "SELECT 1 FROM sqlite_schema LIMIT 1")
    if blank and context.importer.is_there(place):
        raise StoreDamaged(f"cannot trust {place.database}: it is empty")


def _build(place: AgentPaths, context: StoreContext, damaged: Path | None) -> None:
    """Build a complete database beside the old one, and give it the name for moving in."""
    stamp = atomic.stamp()
    keep_originals = _keep_originals(place, "takeover" if damaged is None else "rebuild", stamp)
    building = place.folder / f"{FILE_NAME}.building"
    for leftover in place.folder.glob(f"{FILE_NAME}.building*"):
        leftover.unlink()
    with translated(building), closing(_connect(building)) as db:
        report = _fill(place, context, db, damaged)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    _report(place, report, keep_originals, stamp)
    building.replace(place.folder / REBUILT)
    atomic.sync_folder(place.folder)


def _fill(
    place: AgentPaths, context: StoreContext, db: sqlite3.Connection, damaged: Path | None
) -> dict[str, Any]:
    """Take over all there is, in one transaction, within all limits."""
    with transaction(db):
        clock = HybridClock(context.now, *read_clock(db))
        tx = _begin(context, db, clock, WriterCache())
        report = context.importer.take_over(tx, place, damaged)
        enforce_limits(tx)
        state_files.note_present(db, place)
    return report


def _begin(
    context: StoreContext, db: sqlite3.Connection, clock: HybridClock, cache: WriterCache
) -> Transaction:
    now, device, rules = context.now(), context.device.id, context.rules()
    return Transaction(db, now=now, device=device, rules=rules, clock=clock, cache=cache)


def _take_over_workspace(place: AgentPaths, context: StoreContext, db: sqlite3.Connection) -> None:
    """Take over, once, a workspace that was configured after the memory existed."""
    key = f"taken_over:{place.workspace}"
    if place.workspace is None or scalar(db, "SELECT 1 FROM meta WHERE key = ?", key):
        return
    if context.importer.is_there(place):
        stamp = atomic.stamp()
        keep_originals = _keep_originals(place, "takeover", stamp)
        _report(place, _fill(place, context, db, None), keep_originals, stamp)
    _mark_taken_over(place, db)


def _connect(path: Path) -> sqlite3.Connection:
    db = connect_writer(path)
    try:
        migrate(db, path, MIGRATIONS)
    except BaseException:
        db.close()
        raise
    return db


def has_database(folder: Path) -> bool:
    """Whether the folder has a database, or a rebuilt one to be moved in."""
    return (folder / FILE_NAME).exists() or (folder / REBUILT).exists()


def _move_in(place: AgentPaths) -> Path | None:
    """Set the old database aside, if it exists, and move the complete new database in."""
    aside: Path | None = None
    if place.database.exists():
        aside = atomic.set_aside(place.database, "corrupt")
    for suffix in ("-wal", "-shm"):
        log = place.database.with_name(f"{FILE_NAME}{suffix}")
        # Another connection that closes meanwhile removes it.
        with suppress(FileNotFoundError):
            if aside is not None:
                log.rename(aside.with_name(f"{aside.name}{suffix}"))
            else:
                # After an interruption: its database was set aside before.
                atomic.set_aside(log, "corrupt")
    (place.folder / REBUILT).replace(place.database)
    atomic.sync_folder(place.folder)
    return aside


def _report_rebuilt(
    place: AgentPaths, error: StoreDamaged, aside: Path | None, problems: Problems
) -> None:
    name = aside.name if aside else "nothing"
    problems.report(
        "database_rebuilt",
        place.agent,
        f"the database of '{place.agent}' was rebuilt from what could be read of it and the state"
        f" files, and the old one set aside as {name}: {error.message}",
        hint="check the disk; remove the old file once nothing is missed",
        lasting=False,
        file=aside,
    )


def _keep_originals(place: AgentPaths, word: str, stamp: str) -> str:
    """Copy the files that the daemon will overwrite; set aside those too large to be read."""
    overwritten = [*(place.folder / name for name in documents.FILES.values()), place.markdown]
    originals = [path for path in overwritten if path.is_file() and not path.is_symlink()]
    for path in originals[:]:
        if path != place.markdown and path.stat().st_size > LARGEST:
            originals.remove(path)
            atomic.set_aside(path, TOO_LARGE)
    if not originals:
        return ""
    folder = place.folder / f"before-{word}-{stamp}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in originals:
        atomic.keep_copy(path, folder / path.name)
    atomic.sync_folder(place.folder)
    return folder.name


def _report(place: AgentPaths, report: dict[str, Any], folder: str, stamp: str) -> None:
    whole = {"time": stamp, **report, "originals_kept_in": folder}
    text = json.dumps(whole, ensure_ascii=False, indent=2)
    atomic.write(place.folder / "takeover-report.json", f"{text}\n".encode())
    _log.info(
        "took over files; the report says what was left out",
        extra={"action": "taken_over", "agent": place.agent},
    )


def _mark_taken_over(place: AgentPaths, db: sqlite3.Connection) -> None:
    if place.workspace is not None:
        key = f"taken_over:{place.workspace}"
        with translated(place.database):
            db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, atomic.stamp()))


# The key in `meta` of the time when the whole database was last read and found sound.
CHECKED: Final = "checked_at"
_WEEK: Final = 604_800.0


class Engine(msgspec.Struct, frozen=True):
    """The parts that are replaced together when a database is rebuilt."""

    writer: Writer
    readers: Readers
    state_files: StateFiles
    # As the database was opened.
    files: dict[Path, int | None]
    writing: asyncio.Task[None]
    # Whether the whole database should be checked: it is not new, and was not closed properly, or
    # not checked since the daemon started, or for a week.
    doubtful: bool
    indexing: asyncio.Task[None] | None

    async def end_tasks(self) -> None:
        """Stop writing state files, after a write in progress."""
        self.writing.cancel()
        await asyncio.gather(self.writing, return_exceptions=True)

    async def stop(self) -> None:
        """Commit what is queued and close the database."""
        await self.end_tasks()
        await self.state_files.finish()
        # The connection closed last moves the log into the database, so it must allow writing.
        await asyncio.to_thread(self.readers.close)
        await self.writer.close()
        if self.indexing is not None:
            # A failure shows again when the memory is next opened.
            await asyncio.gather(self.indexing, return_exceptions=True)


async def start_engine(
    place: AgentPaths,
    context: StoreContext,
    *,
    committed: Callable[[Transaction], None],
    damaged: Callable[[StoreDamaged], None],
    damage: StoreDamaged | None = None,
) -> Engine:
    """Open the database, rebuild it if it is damaged, and start its writer and readers.

    `committed` is called with each committed transaction, `damaged` when damage is found while the
    state files are written; `damage` was found since it was last opened.
    """
    try:
        opened = await asyncio.to_thread(_opened, place, context, damage)
    except StoreDamaged as error:
        if damage is not None:
            raise
        opened = await asyncio.to_thread(_opened, place, context, error)
    loop = asyncio.get_running_loop()
    writer = Writer(
        place.database,
        opened.db,
        begin=lambda db, cache: _begin(context, db, opened.clock, cache),
        enforce_limits=enforce_limits,
        committed=committed,
        loop=loop,
        failed_syncs=context.failed_syncs,
    )
    indexing: asyncio.Task[None] | None = None
    if not opened.indexed:
        indexing = loop.create_task(writer.submit(rebuild_indexes))
        # Queued before any other write, which would remove words that are not in the index yet.
        await asyncio.sleep(0)
    elif opened.behind:
        indexing = loop.create_task(_index_backlog(writer))
    readers = Readers(
        place.database,
        limit=context.readers,
        threads=context.threads,
        connect=partial(_connect_reader, inode=opened.files[place.database]),
    )
    files = StateFiles(place, context, writer, readers, damaged)
    files.want(FILES)
    context.problems.clear("rebuild_failed", place.agent)
    task = loop.create_task(
        files.run(context.state_file_delay_seconds), name=f"state files of {place.agent}"
    )
    return Engine(writer, readers, files, opened.files, task, opened.doubtful, indexing)


def _connect_reader(path: Path, inode: int | None) -> sqlite3.Connection:
    """A reading connection to the file that the writer has open, and to no other of its name.

    To SQLite another file is another database, whose first connection empties the index of the
    log. The open connections have that mapped, and the process would end (SIGBUS).

    Raises:
        Unavailable: the file was removed or replaced; `AgentStore.check_files` restores it.
    """
    if atomic.inode(path) != inode:
        raise Unavailable(
            f"cannot read {path}: it was removed or replaced while in use",
            hint="try again in a few seconds: the daemon restores it from its open handle",
        )
    return connect_reader(path)


def files_of(database: Path) -> dict[Path, int | None]:
    """Which files have the names of the database, its log, and the index of that."""
    paths = (database.with_name(f"{database.name}{end}") for end in ("", "-wal", "-shm"))
    return {path: atomic.inode(path) for path in paths}


async def _index_backlog(writer: Writer) -> None:
    while await writer.submit(kinds.reduce_backlog, durable=False):
        pass


class _Opened(msgspec.Struct, frozen=True):
    """An open database, its clock, whether to check it, whether its index is current.

    `behind`: whether some memories are not in the index yet.
    """

    db: sqlite3.Connection
    files: dict[Path, int | None]
    clock: HybridClock
    doubtful: bool
    indexed: bool
    behind: bool


def _has_log(database: Path) -> bool:
    """Whether a database was not closed properly: else SQLite has removed its log."""
    # Another connection may close meanwhile.
    with suppress(FileNotFoundError):
        return database.with_name(f"{database.name}-wal").stat().st_size > 0
    return False


def _opened(place: AgentPaths, context: StoreContext, damage: StoreDamaged | None) -> _Opened:
    """Open the database. Blocking."""
    try:
        unclean = _has_log(place.database)
        is_new = not place.database.exists()
        db = open_database(place, context, damage)
    except OSError as error:
        raise translate_os(error, place.folder) from error
    try:
        # If the disk refuses, readers find no chunks.
        with suppress(sqlite3.Error, OSError):
            chunk_database.open_index(place.folder).close()
        checked = meta.read(db, CHECKED, float)
        now = context.now()
        sound = checked is not None and max(context.since, now - _WEEK) <= checked <= now
        return _Opened(
            db,
            files_of(place.database),
            HybridClock(context.now, *read_clock(db)),
            doubtful=not is_new and (unclean or not sound),
            indexed=is_current(db),
            behind=kinds.backlog_count(db) > 0,
        )
    except sqlite3.Error as error:
        db.close()
        raise translate(error, place.database) from error
