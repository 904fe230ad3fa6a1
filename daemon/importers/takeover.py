"""Finds and imports files of other tools and earlier runs, and what a damaged database holds."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from thermocline.sync import TOO_HIGH, Clocks, Row, decode_row

from ..errors import InvalidInput, StoreDamaged
from ..memory.checks import check_agent
from ..memory.records import Memory
from ..store.agent_paths import AgentPaths
from ..store.apply import INVALID_ROW_ERRORS
from ..store.database.connection import uri
from ..store.database.meta import read_clock
from ..store.database.transaction import Transaction
from ..store.engine import LARGEST, TOO_LARGE
from ..store.kinds import KINDS
from ..store.limits import archive_faded
from ..store.records import conversations, memory_rows
from ..store.records.memory_rows import FIELDS, KIND, from_row, to_row
from . import state_files
from .intake import Intake

T = TypeVar("T")
_log = logging.getLogger(__name__)
_MEMORY: Final = "memory"
_FOLDERS_AT_MOST: Final = 1000


class TakeOver:
    """Fills the database of an agent from existing files; see `place.Importer`."""

    def is_there(self, place: AgentPaths) -> bool:
        return any(_has_files(folder) for folder, _ in _roots(place))

    def take_over(self, tx: Transaction, place: AgentPaths, damaged: Path | None) -> dict[str, Any]:
        """Apply all that can be read: the database before the files, which may be older."""
        intake = Intake(tx)
        if damaged is not None:
            salvage(damaged, intake)
        for folder, below in _roots(place):
            for name in state_files.FILES:
                state_files.read_file(folder / name, intake, below=below)
        for path in sorted(place.folder.glob(f"*.{TOO_LARGE}-*")):
            intake.report.note(str(path), f"set aside: it has more than {LARGEST:,} bytes")
        _free_hidden(tx)
        archive_faded(tx)
        for top in (place.folder, place.workspace):
            for name, folder in others(top, place.agent) if top is not None else ():
                intake.report.note(
                    str(folder),
                    f"it belongs to the agent '{name}';"
                    f" take it over with `thermocline import {folder} --agent-id {name}`",
                )
        for line in intake.report.left_out:
            _log.warning(
                "left out while taking over: %s",
                line,
                extra={"action": "left_out", "agent": place.agent},
            )
        report: dict[str, Any] = msgspec.to_builtins(intake.report)
        return report


def others(top: Path, agent: str) -> Iterator[tuple[str, Path]]:
    """The other agents with a folder in a workspace, and those folders."""
    memory = top / _MEMORY
    try:
        folders = sorted(memory.iterdir())[:_FOLDERS_AT_MOST]
    except OSError:
        return
    for folder in folders:
        try:
            name = check_agent(folder.name)
        except InvalidInput:
            continue
        if name != agent and _has_files(folder):
            yield name, folder


def _roots(place: AgentPaths) -> list[tuple[Path, Path]]:
    """Each folder that may have state files, the authoritative one first.

    With each the folder below which other users may write, and links are not followed. A workspace
    given as the folder is the agent's alone; another keeps the files of `default` in `memory/`
    itself, and those of other agents in subfolders.
    """
    folder = place.folder.resolve()
    own = (folder, folder / _MEMORY, folder / _MEMORY / place.agent)
    roots = [(path, folder) for path in own]
    if place.workspace is not None:
        top = place.workspace.resolve()
        roots += [(top / _MEMORY, top)] if place.agent == "default" else []
        roots.append((top / _MEMORY / place.agent, top))
    return [(root, below) for root, below in roots if root.is_dir()]


def _free_hidden(tx: Transaction) -> None:
    """Restore memories whose merge target was lost: they would stay hidden forever."""
    hidden = "merged_into IS NOT NULL AND merged_into NOT IN (SELECT id FROM memories)"
    for memory in memory_rows.select(tx.db, hidden):
        memory_rows.restore_merged(tx, memory)


def _has_files(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in state_files.FILES)


# What a damaged database still holds


# If the damage hides the highest row: the minimum size of a row on a page.
_SMALLEST_ROW: Final = 40
# More failures in a row than damaged pages of single rows can cause.
_FAILURES_AT_MOST: Final = 20_000
# Number of bytes of an id by which ids are ordered.
_PREFIX: Final = 24
_LAST: Final = (1 << 8 * _PREFIX) - 1
_DAMAGE: Final = (sqlite3.Error, UnicodeDecodeError)
_LOST_CLOCKS: Final = Clocks(at=(0, "import"))


def salvage(path: Path, intake: Intake) -> None:
    """Import all that can be read of the database at `path`. Raises nothing about damage."""
    with contextlib.suppress(*_DAMAGE):
        db = sqlite3.connect(f"{uri(path)}?mode=rw", uri=True, isolation_level=None)
        with contextlib.closing(db):
            # Continue after the device's last stamp; else its own rows look like another device's.
            with contextlib.suppress(sqlite3.Error, StoreDamaged):
                highest, issued = read_clock(db)
                if 0 <= issued <= highest < TOO_HIGH:
                    intake.tx.observe(highest)
                    intake.tx.clock.issued = max(intake.tx.clock.issued, issued)
            number = intake.rows(_rows(db))
            archived: list[tuple[float, str]] = []
            number += intake.rows(_memories(db, path, archived))
            intake.tx.db.executemany(
                "UPDATE memories SET archived_at = ? WHERE id = ? AND archived_at IS NULL",
                archived,
            )
            _take_derived(db, intake)
            intake.report.read.append({"file": str(path), "format": "database", "entries": number})


def _rows(db: sqlite3.Connection) -> Iterator[Row]:
    if not _is_known(db, "rows"):
        return
    kinds = {kind for (kind,) in _table(db, "SELECT DISTINCT kind FROM rows", str)} | KINDS.keys()
    for kind in sorted(kinds):
        at = 0
        while at <= _LAST:
            try:
                rows = db.execute(
                    "SELECT id, data, clocks FROM rows"
                    " WHERE kind = ? AND id >= CAST(? AS TEXT) ORDER BY id",
                    (kind, _bytes(at)),
                )
                for key, data, clocks in rows:
                    at = _place(key) + 1
                    with contextlib.suppress(*INVALID_ROW_ERRORS):
                        yield decode_row(kind, msgspec.convert(key, str), data, clocks)
                break
            except _DAMAGE:
                at = _behind(db, kind, at)


def _behind(db: sqlite3.Connection, kind: str, at: int) -> int:
    """The ids from which rows can be read again, after a bad page or a bad row."""

    def first(place: int) -> int | None:
        query = "SELECT id FROM rows WHERE kind = ? AND id >= CAST(? AS TEXT) ORDER BY id LIMIT 1"
        try:
            row = db.execute(query, (kind, _bytes(place))).fetchone()
        except _DAMAGE:
            return None
        return _LAST if row is None else _place(row[0])

    if (bad := first(at)) is not None:
        return bad + 1
    step = 1
    while first(at + step) is None:
        step *= 2
        if at + step > _LAST:
            return _LAST + 1
    low, high = at + step // 2, at + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if first(middle) is not None else (middle, high)
    return high


def _place(key: Any) -> int:
    raw = key.encode() if isinstance(key, str) else b"\xff" * _PREFIX
    return int.from_bytes(raw[:_PREFIX].ljust(_PREFIX, b"\0"), "big")


def _bytes(place: int) -> bytes:
    """The id at a place; not always valid text."""
    return place.to_bytes(_PREFIX, "big").rstrip(b"\0")


def _memories(
    db: sqlite3.Connection, path: Path, archived: list[tuple[float, str]]
) -> Iterator[Row]:
    """The readable memories; those that were archived are added to a list, with the time."""
    if not _is_known(db, "memories"):
        return
    # Databases of earlier releases lack some columns.
    there = {name for (_, name, *_) in db.execute("PRAGMA table_info(memories)")}
    columns = ", ".join(name if name in there else "NULL" for name in FIELDS)

    def fetch(low: int, high: int) -> list[tuple[Any, ...]]:
        sql = f"SELECT clocks, extra, {columns} FROM memories WHERE row BETWEEN ? AND ?"
        return db.execute(sql, (low, high)).fetchall()

    for clocks, extra, *values in _halved(fetch, 0, _highest(db, path)):
        try:
            memory = msgspec.convert(msgspec.to_builtins(from_row(values)), Memory)
        except INVALID_ROW_ERRORS:
            # A value of it has another type.
            continue
        if memory.archived_at is not None:
            archived.append((memory.archived_at, memory.id))
        data = to_row(memory) | _decoded(extra, dict[str, Any], {})
        stamps = _decoded(clocks, Clocks, _LOST_CLOCKS)
        stamps = stamps if stamps.latest[0] < TOO_HIGH else _LOST_CLOCKS
        yield Row(kind=KIND.name, id=memory.id, data=data, clocks=stamps)


def _halved(
    fetch: Callable[[int, int], list[tuple[Any, ...]]], low: int, high: int
) -> Iterator[tuple[Any, ...]]:
    """All rows of a range: a failing range is halved until only the bad rows are left out."""
    ranges = [(low, high)]
    failures = 0
    # If no row can be reached, the root of the table is gone, and so is all below it.
    while ranges and failures < _FAILURES_AT_MOST:
        low, high = ranges.pop()
        try:
            rows = fetch(low, high)
        except _DAMAGE:
            failures += 1
            if low < high:
                middle = (low + high) // 2
                ranges += [(low, middle), (middle + 1, high)]
            continue
        failures = 0
        yield from rows


def _decoded(text: Any, kind: type[T], otherwise: T) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except INVALID_ROW_ERRORS:
        return otherwise


def _is_known(db: sqlite3.Connection, table: str) -> bool:
    """Whether the schema can be read and has the table; if not, every read would fail."""
    try:
        db.execute(f"SELECT 1 FROM {table} LIMIT 0")
    except sqlite3.Error:
        return False
    return True


def _highest(db: sqlite3.Connection, path: Path) -> int:
    try:
        return int(db.execute("SELECT max(row) FROM memories").fetchone()[0] or 0)
    except sqlite3.Error:
        return path.stat().st_size // _SMALLEST_ROW


def _take_derived(db: sqlite3.Connection, intake: Intake) -> None:
    """Read the local data of this device: uses of categories, and turns of conversations."""
    intake.tx.db.executemany(
        "UPDATE tree SET last_access = ? WHERE path = ?",
        _table(db, "SELECT last_access, path FROM tree", float, str),
    )
    conversations.import_rows(
        intake.tx,
        _table(db, conversations.SELECT, *conversations.COLUMN_TYPES),
        _table(
            db,
            "SELECT conversation, position, role, actor, text, at, tools FROM turns",
            *(str, int, str, str, str, float, str),
        ),
    )


def _table(db: sqlite3.Connection, query: str, *types: Any) -> tuple[tuple[Any, ...], ...]:
    """The rows up to the first unreadable one, without those with values of other types."""
    rows: list[tuple[Any, ...]] = []
    with contextlib.suppress(*_DAMAGE):
        # Not collected at once: rows read before the damage are kept.
        rows.extend(row for row in db.execute(query) if all(map(isinstance, row, types)))
    return tuple(rows)
