"""Opening an agent's database: new, existing, taken over from files, or rebuilt."""

from __future__ import annotations

import json
import logging
import sqlite3
from pathlib import Path
from typing import Any, Final

from thermocline.sync import HybridClock

from ..errors import StoreDamaged
from ..runtime.problems import Problems
from . import atomic, documents, state_files
from .database import FILE_NAME, connect_writer, migrate, translate
from .place import Place, Surroundings
from .schema import MIGRATIONS
from .settling import read_clock, settle
from .transaction import Transaction

_log = logging.getLogger(__name__)

# A new database under this name is complete; it only has to take the place of the old one.
_REBUILT: Final = f"{FILE_NAME}.rebuilt"
# Hundreds of times the caps of any tool, and still parsed by a small device.
LARGEST: Final = 16_777_216
# The word in the name of a larger state file that was set aside.
TOO_LARGE: Final = "too-large"


def open_database(
    place: Place, around: Surroundings, damage: StoreDamaged | None = None
) -> sqlite3.Connection:
    """The writer's connection to a sound database with the present schema. Blocking.

    A damaged database is rebuilt and set aside; a missing one is taken over from the files, if
    there are any. The old one stays in place until the new one is complete: after an interruption,
    the next opening starts again or finishes.

    Args:
        place: where.
        around: what all memories share.
        damage: a fault found in the database since it was last opened.

    Raises:
        ThermoclineError: the disk refuses, or a later release wrote the database.
    """
    atomic.make_folder(place.folder)
    _tidy(place)
    if _rebuilt(place).exists():
        _move_in(place)
    damaged: Path | None = None
    if place.database.exists():
        try:
            if damage is not None:
                raise damage
            _refuse_blank(place, around)
            db = _connect(place, place.database)
        except StoreDamaged as error:
            damage, damaged = error, place.database
        else:
            _take_over_workspace(place, around, db)
            return db
    if damaged is not None or around.importer.is_there(place):
        _build(place, around, damaged)
        aside = _move_in(place)
        if damage is not None:
            _tell_rebuilt(place, damage, aside, around.problems)
    db = _connect(place, place.database)
    _mark_taken_over(place, db)
    return db


def _refuse_blank(place: Place, around: Surroundings) -> None:
    """Refuse a database without tables beside state files: it has lost their content."""
    db = connect_writer(place.database, place.cache_kb)
    try:
        blank = not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.Error as error:
        raise translate(error, place.database) from error
    finally:
        db.close()
    if blank and around.importer.is_there(place):
        raise StoreDamaged(f"cannot trust {place.database}: it is empty")


def _build(place: Place, around: Surroundings, damaged: Path | None) -> None:
    """Build a complete database beside the old one, and give it the name for moving in."""
    stamp = atomic.stamp()
    kept = _keep_originals(place, "takeover" if damaged is None else "rebuild", stamp)
    building = place.folder / f"{FILE_NAME}.building"
    for leftover in place.folder.glob(f"{FILE_NAME}.building*"):
        leftover.unlink()
    db = _connect(place, building)
    try:
        report = _fill(place, around, db, damaged)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise translate(error, building) from error
    finally:
        db.close()
    _report(place, report, kept, stamp)
    building.replace(_rebuilt(place))
    atomic.sync_folder(place.folder)


def _fill(
    place: Place, around: Surroundings, db: sqlite3.Connection, damaged: Path | None
) -> dict[str, Any]:
    """Take over all there is, in one transaction, within all limits."""
    now = around.now()
    db.execute("BEGIN IMMEDIATE")
    try:
        tx = Transaction(
            db,
            now=now,
            device=around.device.id,
            rules=around.rules(),
            clock=HybridClock(around.now, *read_clock(db)),
        )
        report = around.importer.take_over(tx, place, damaged)
        settle(tx)
        state_files.note_present(db, place)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return report


def _take_over_workspace(place: Place, around: Surroundings, db: sqlite3.Connection) -> None:
    """Take over, once, a workspace that was configured after the memory existed."""
    if place.workspace is None or _taken_over(place, db):
        return
    if around.importer.is_there(place):
        stamp = atomic.stamp()
        kept = _keep_originals(place, "takeover", stamp)
        _report(place, _fill(place, around, db, None), kept, stamp)
    _mark_taken_over(place, db)


def _tidy(place: Place) -> None:
    """Remove the incomplete state files of a killed process."""
    atomic.remove_unfinished(place.folder)
    atomic.remove_unfinished(place.markdown.parent, place.markdown.name)


def _connect(place: Place, path: Path) -> sqlite3.Connection:
    db = connect_writer(path, place.cache_kb)
    try:
        migrate(db, path, MIGRATIONS)
    except BaseException:
        db.close()
        raise
    return db


def has_database(folder: Path) -> bool:
    """Whether the folder has a database, or a rebuilt one that is to be moved in."""
    return (folder / FILE_NAME).exists() or (folder / _REBUILT).exists()


def _rebuilt(place: Place) -> Path:
    return place.folder / _REBUILT


def _move_in(place: Place) -> Path | None:
    """Set the old database aside, if there is one, and put the complete new one in its place."""
    aside: Path | None = None
    if place.database.exists():
        aside = atomic.set_aside(place.database, "corrupt")
    for suffix in ("-wal", "-shm"):
        log = place.database.with_name(f"{FILE_NAME}{suffix}")
        if log.exists() and aside is not None:
            log.rename(aside.with_name(f"{aside.name}{suffix}"))
        elif log.exists():
            # After an interruption: its database was set aside before.
            atomic.set_aside(log, "corrupt")
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
        f"the database of '{place.agent}' was rebuilt from what could be read of it and the state"
        f" files, and the old one set aside as {name}: {error.message}",
        hint="check the disk; remove the old file once nothing is missed",
        lasting=False,
    )


def _keep_originals(place: Place, word: str, stamp: str) -> str:
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


def _report(place: Place, report: dict[str, Any], kept: str, stamp: str) -> None:
    whole = {"time": stamp, **report, "originals_kept_in": kept}
    text = json.dumps(whole, ensure_ascii=False, indent=2)
    atomic.write(place.folder / "takeover-report.json", f"{text}\n".encode())
    _log.info(
        "took over files; the report says what was left out",
        extra={"action": "taken_over", "agent": place.agent},
    )


def _taken_over(place: Place, db: sqlite3.Connection) -> bool:
    key = f"taken_over:{place.workspace}"
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (key,)).fetchone() is not None


def _mark_taken_over(place: Place, db: sqlite3.Connection) -> None:
    if place.workspace is not None:
        key = f"taken_over:{place.workspace}"
        try:
            db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, atomic.stamp()))
        except sqlite3.Error as error:
            raise translate(error, place.database) from error
