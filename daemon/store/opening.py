"""Opening an agent's database: fresh, as it was, taken over from files, or rebuilt."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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

    A damaged database is set aside and rebuilt; one that is missing is taken over from the
    state files, if there are any. Everything stands complete under `memory.db`, or nothing does:
    an interruption leaves the next opening to begin again.

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
    salvaged: Salvaged | None = None
    if place.database.exists():
        try:
            if damage is not None:
                raise damage
            db = _connect(place, place.database)
        except StoreDamaged as error:
            salvaged = _set_aside(place, error, problems)
        else:
            _take_over_workspace(place, db, rules, now)
            return db
    roots = sources.roots(place.folder, place.agent, place.workspace)
    if salvaged is not None or sources.present(roots):
        _build(place, roots, salvaged, rules, now)
    db = _connect(place, place.database)
    _mark_taken_over(place, db)
    return db


def _connect(place: Place, path: Path) -> sqlite3.Connection:
    db = connect_writer(path, place.cache_kb)
    try:
        migrate(db, path, place.migrations)
    except BaseException:
        db.close()
        raise
    return db


def _set_aside(place: Place, error: StoreDamaged, problems: Problems) -> Salvaged:
    stamp = _stamp()
    aside = atomic.set_aside(place.database, "corrupt", stamp)
    for suffix in ("-wal", "-shm"):
        log = place.database.with_name(f"{FILE_NAME}{suffix}")
        if log.exists():
            log.rename(aside.with_name(f"{aside.name}{suffix}"))
    problems.report(
        "database_rebuilt",
        place.agent,
        f"the database of '{place.agent}' was damaged ({error.message}); it was set aside as "
        f"{aside.name} and rebuilt from what it still held and the state files",
        hint="check the disk; remove the old file once nothing is missed",
        lasting=False,
    )
    return salvage(aside)


def _build(
    place: Place,
    roots: Sequence[Path],
    salvaged: Salvaged | None,
    rules: Rules,
    now: Callable[[], float],
) -> None:
    """Make a whole database beside the place, then move it in."""
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
    building.replace(place.database)
    atomic.sync_folder(place.folder)
    _report(place, found, counts, kept, stamp)


def fill(
    place: Place,
    db: sqlite3.Connection,
    found: sources.Found,
    salvaged: Salvaged | None,
    rules: Rules,
    now: Callable[[], float],
) -> dict[str, int]:
    """Store what was found, in one transaction, within all limits."""
    highest = max((memory.clock for memory in found.memories.values()), default=0)
    clock = HybridClock(now, max(highest, faces.version(db)))
    for memory in salvaged.memories if salvaged else ():
        clock.observe(memory.clock)
    db.execute("BEGIN IMMEDIATE")
    try:
        tx = Transaction(db, now=now(), device=place.device, rules=rules, tick=clock.tick)
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

    Otherwise they would look like somebody's edits; their originals are kept.
    """
    files = {name: place.folder / name for name in sources.STATE_FILES}
    files[faces.MARKDOWN_FILE] = place.markdown
    clock = faces.version(db)
    for name, path in files.items():
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            db.execute("INSERT OR REPLACE INTO faces VALUES (?, ?, ?)", (name, digest, clock))


def _keep_originals(place: Place, found: sources.Found, word: str, stamp: str) -> str:
    """Copy the files that this daemon is going to overwrite."""
    names = (*sources.STATE_FILES, faces.MARKDOWN_FILE)
    originals = [place.folder / name for name in names if (place.folder / name).is_file()]
    if place.workspace is not None and place.markdown.is_file():
        originals.append(place.markdown)
    originals += [path for path in found.damaged if path.parent.name == faces.COLD_FOLDER]
    if not originals:
        return ""
    folder = place.folder / f"before-{word}-{stamp}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in originals:
        shutil.copy2(path, folder / path.name)
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
