"""Opening an agent's database: fresh, as it was, taken over from files, or rebuilt."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from thermocline.sync import HybridClock

from ..errors import StoreDamaged
from ..problems import Problems
from . import atomic, faces, sources
from .adopting import adopt
from .database import FILE_NAME, connect_writer, migrate, translate
from .salvage import Salvaged, salvage
from .schema import Migration
from .settling import settle
from .transaction import Rules, Transaction

# A new database under this name is complete, and only waits for the old one to leave its place.
_REBUILT: Final = f"{FILE_NAME}.rebuilt"


class Place(msgspec.Struct, frozen=True):
    """Where one agent's memory is, and all that opening it needs to know."""

    agent: str
    folder: Path
    workspace: Path | None
    device: str
    cache_kb: int
    migrations: tuple[Migration, ...]

    @property
    def database(self) -> Path:
        """The file that is the truth."""
        return self.folder / FILE_NAME

    @property
    def markdown(self) -> Path:
        """MEMORY.md: in the workspace, where an OpenClaw agent looks for it, if there is one."""
        if self.workspace is None:
            return self.folder / faces.MARKDOWN_FILE
        name = "MEMORY.md" if self.agent == "default" else f"MEMORY-{self.agent}.md"
        return self.workspace / name


def open_database(
    place: Place,
    rules: Rules,
    now: Callable[[], float],
    problems: Problems,
    damage: StoreDamaged | None = None,
) -> sqlite3.Connection:
    """The writer's connection to a sound database with the present schema. Blocking.

    A damaged database is rebuilt and set aside; one that is missing is taken over from the
    state files, if there are any. The old one stays in its place until the new one is complete:
    an interruption leaves the next opening to begin again, or to finish.

    Args:
        place: where.
        rules: the limits that what is taken over is brought within.
        now: the clock.
        problems: where a rebuild is told.
        damage: a fault that was found in the database since it was opened last.

    Raises:
        ThermoclineError: the disk refuses, or a later release wrote the database.
    """
    place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _tidy(place)
    if _rebuilt(place).exists():
        _move_in(place)
    salvaged: Salvaged | None = None
    roots = sources.roots(place.folder, place.agent, place.workspace)
    if place.database.exists():
        try:
            if damage is not None:
                raise damage
            _refuse_blank(place, roots)
            db = _connect(place, place.database)
        except StoreDamaged as error:
            damage = error
            salvaged = salvage(place.database)
        else:
            _take_over_workspace(place, db, rules, now)
            return db
    if salvaged is not None or sources.present(roots):
        _build(place, roots, salvaged, rules, now)
        aside = _move_in(place)
        if damage is not None:
            _tell_rebuilt(place, damage, aside, problems)
    db = _connect(place, place.database)
    _mark_taken_over(place, db)
    return db


def _tidy(place: Place) -> None:
    """Remove the half-written state files that a kill left."""
    atomic.remove_unfinished(place.folder)
    atomic.remove_unfinished(place.folder / faces.COLD_FOLDER)
    atomic.remove_unfinished(place.markdown.parent, place.markdown.name)


def _connect(place: Place, path: Path) -> sqlite3.Connection:
    db = connect_writer(path, place.cache_kb)
    try:
        migrate(db, path, place.migrations)
        _name_counters(db, path, place.device)
    except BaseException:
        db.close()
        raise
    return db


def _name_counters(db: sqlite3.Connection, path: Path, device: str) -> None:
    """Counters from before there were devices are this device's."""
    try:
        if db.execute("SELECT 1 FROM metrics WHERE device = ''").fetchone():
            db.execute("UPDATE metrics SET device = ? WHERE device = ''", (device,))
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _refuse_blank(place: Place, roots: list[Path]) -> None:
    """A database without a table beside state files has lost what they show."""
    db = connect_writer(place.database, place.cache_kb)
    try:
        blank = not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.Error as error:
        raise translate(error, place.database) from error
    finally:
        db.close()
    if blank and sources.present(roots):
        raise StoreDamaged(f"cannot trust {place.database}: it is empty")


def has_database(folder: Path) -> bool:
    """Whether there is a database in the folder, or a rebuilt one that is to be moved in."""
    return (folder / FILE_NAME).exists() or (folder / _REBUILT).exists()


def _rebuilt(place: Place) -> Path:
    return place.folder / _REBUILT


def _move_in(place: Place) -> Path | None:
    """Set the old database aside, if there is one, and put the complete new one in its place."""
    aside: Path | None = None
    if place.database.exists():
        aside = atomic.set_aside(place.database, "corrupt", _stamp())
    for suffix in ("-wal", "-shm"):
        log = place.database.with_name(f"{FILE_NAME}{suffix}")
        if log.exists() and aside is not None:
            log.rename(aside.with_name(f"{aside.name}{suffix}"))
        elif log.exists():
            # An interruption separated it from its database, which went before it.
            atomic.set_aside(log, "corrupt", _stamp())
    _rebuilt(place).replace(place.database)
    atomic.sync_folder(place.folder)
    return aside


def _tell_rebuilt(
    place: Place, error: StoreDamaged, aside: Path | None, problems: Problems
) -> None:
    name = aside.name if aside else "nothing"
    problems.report(
        "database_rebuilt",
        place.agent,
        f"the database of '{place.agent}' was damaged; it was set aside as {name} and rebuilt"
        f" from what it still held and the state files ({error.message})",
        hint="check the disk; remove the old file once nothing is missed",
        lasting=False,
    )


def _build(
    place: Place,
    roots: Sequence[Path],
    salvaged: Salvaged | None,
    rules: Rules,
    now: Callable[[], float],
) -> None:
    """Make a whole database beside the old one; it counts once it has its final name."""
    found = sources.gather(list(roots), now())
    stamp = _stamp()
    kept = _keep_originals(place, found, "takeover" if salvaged is None else "rebuild", stamp)
    building = place.folder / f"{FILE_NAME}.building"
    for leftover in place.folder.glob(f"{FILE_NAME}.building*"):
        leftover.unlink()
    db = _connect(place, building)
    try:
        counts = fill(place, db, found, salvaged, rules, now)
        _note_files(place, db)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise translate(error, building) from error
    finally:
        db.close()
    _report(place, found, counts, kept, stamp)
    building.replace(_rebuilt(place))
    atomic.sync_folder(place.folder)


def fill(
    place: Place,
    db: sqlite3.Connection,
    found: sources.Found,
    salvaged: Salvaged | None,
    rules: Rules,
    now: Callable[[], float],
) -> dict[str, int]:
    """Store what was found, in one transaction, within all limits."""
    clock = HybridClock(now, faces.version(db))
    for memory in (*found.memories.values(), *(salvaged.memories if salvaged else ())):
        clock.observe(memory.clock)
    for version in salvaged.versions() if salvaged else ():
        clock.observe(version)
    db.execute("BEGIN IMMEDIATE")
    try:
        tx = Transaction(
            db,
            now=now(),
            device=place.device,
            rules=rules,
            tick=clock.tick,
            observe=clock.observe,
        )
        counts = adopt(tx, found, salvaged)
        settle(tx)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return counts


def _note_files(place: Place, db: sqlite3.Connection) -> None:
    """Take the files as they stand for ones that this memory wrote: all in them is taken over.

    Otherwise they would look like somebody's edits; their originals are kept. Those of the
    archive are written anew or removed, as their rows have other numbers now.
    """
    for path in (place.folder / faces.COLD_FOLDER).glob("*.jsonl"):
        if path.stem.isascii() and path.stem.isdigit():
            db.execute("INSERT OR IGNORE INTO stale_segments VALUES (?, 0)", (int(path.stem),))
    files = {name: place.folder / name for name in sources.STATE_FILES}
    files[faces.MARKDOWN_FILE] = place.markdown
    clock = faces.version(db)
    for name, path in files.items():
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            db.execute("INSERT OR REPLACE INTO faces VALUES (?, ?, ?)", (name, digest, clock))


def _keep_originals(place: Place, found: sources.Found, word: str, stamp: str) -> str:
    """Copy the files that this daemon is going to overwrite."""
    overwritten = [*(place.folder / name for name in sources.STATE_FILES), place.markdown]
    originals = [path for path in overwritten if path.is_file()]
    originals += [path for path in found.damaged if path.parent == place.folder / faces.COLD_FOLDER]
    if not originals:
        return ""
    folder = place.folder / f"before-{word}-{stamp}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in originals:
        atomic.keep_copy(path, folder / path.name)
    atomic.sync_folder(place.folder)
    return folder.name


def _report(
    place: Place, found: sources.Found, counts: dict[str, int], kept: str, stamp: str
) -> None:
    report: dict[str, Any] = {
        "time": stamp,
        "stored": counts,
        "read": found.read,
        "could_not_be_read": found.faults,
        "originals_kept_in": kept,
    }
    text = json.dumps(report, ensure_ascii=False, indent=2)
    atomic.write(place.folder / "takeover-report.json", f"{text}\n".encode())


def _take_over_workspace(
    place: Place, db: sqlite3.Connection, rules: Rules, now: Callable[[], float]
) -> None:
    """Read a workspace that was named only after the memory had begun, once."""
    if place.workspace is None or _taken_over(place, db):
        return
    found = sources.gather(sources.workspace_roots(place.workspace, place.agent), now())
    if found.read or found.faults:
        stamp = _stamp()
        kept = _keep_originals(place, found, "takeover", stamp)
        counts = fill(place, db, found, None, rules, now)
        _note_files(place, db)
        _report(place, found, counts, kept, stamp)
    _mark_taken_over(place, db)


def _taken_over(place: Place, db: sqlite3.Connection) -> bool:
    key = f"taken_over:{place.workspace}"
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (key,)).fetchone() is not None


def _mark_taken_over(place: Place, db: sqlite3.Connection) -> None:
    if place.workspace is not None:
        key = f"taken_over:{place.workspace}"
        try:
            db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, _stamp()))
        except sqlite3.Error as error:
            raise translate(error, place.database) from error


def _stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime())
