"""Reading what can still be read of a damaged database."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from thermocline.sync import TOO_HIGH

from ..memory.records import Memory
from . import conversations
from .rows import FIELDS, from_row

# Where the damage hides the highest row: rows cannot be smaller than this on a page.
_SMALLEST_ROW: Final = 40
# More failures in a row than damaged pages of single rows can cause.
_FAILURES_AT_MOST: Final = 20_000


class Salvaged(msgspec.Struct, frozen=True):
    """What was read, table by table; an empty table may have been unreadable."""

    memories: tuple[Memory, ...]
    hot: tuple[tuple[Any, ...], ...]
    kv: tuple[tuple[Any, ...], ...]
    tree: tuple[tuple[Any, ...], ...]
    metrics: tuple[tuple[Any, ...], ...]
    tombstones: tuple[tuple[Any, ...], ...]
    merges: tuple[tuple[Any, ...], ...]
    kept_apart: tuple[tuple[Any, ...], ...]
    uses: tuple[tuple[Any, ...], ...]
    remote_only: tuple[tuple[Any, ...], ...]
    conversations: tuple[tuple[Any, ...], ...] = ()
    turns: tuple[tuple[Any, ...], ...] = ()

    def versions(self) -> Iterator[int]:
        """The versions of what is not a memory: no later one may fall behind them."""
        yield from (clock for _, _, _, _, clock in self.hot)
        yield from (clock for _, _, _, clock, _ in self.tombstones)
        yield from (clock for _, clock in self.merges)
        yield from (max(row[9], row[11]) for row in self.remote_only)


def salvage(path: Path) -> Salvaged:
    """All that can be read of the database at `path`. Raises nothing about damage."""
    try:
        db = sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None)
    except sqlite3.Error:
        return Salvaged((), (), (), (), (), (), (), (), (), ())
    try:
        return Salvaged(
            memories=tuple(_memories(db, path)),
            hot=_table(
                db,
                f"SELECT section, key, value, position, min(clock, {TOO_HIGH}) FROM hot",
                *(str, str, str, int, int),
            ),
            kv=_table(db, "SELECT key, value, created_at FROM kv", str, str, float),
            tree=_table(db, "SELECT path, desc, last_access FROM tree", str, str, float),
            metrics=_metrics(db),
            tombstones=_table(
                db,
                "SELECT kind, id, deleted_at, clock, device FROM tombstones"
                f" WHERE clock < {TOO_HIGH}",
                *(str, str, float, int, str),
            ),
            merges=_table(
                db,
                f"SELECT record, clock FROM merges WHERE clock < {TOO_HIGH} ORDER BY row",
                *(str, int),
            ),
            kept_apart=_table(db, "SELECT id FROM kept_apart", str),
            uses=_table(
                db,
                f"SELECT id, device, count, last_at, clock FROM uses WHERE clock < {TOO_HIGH}",
                *(str, str, int, float, int),
            ),
            remote_only=_table(
                db,
                f"SELECT * FROM remote_only WHERE max(clock, filed_clock) < {TOO_HIGH}",
                *(str, str, str, float, float, float, float, int, int, int, str, int, str, int),
            ),
            conversations=_table(db, conversations.SALVAGE, *conversations.SALVAGED),
            turns=_table(
                db,
                "SELECT conversation, position, role, actor, text, at, tools FROM turns",
                *(str, int, str, str, str, float, str),
            ),
        )
    finally:
        db.close()


def _table(db: sqlite3.Connection, query: str, *types: type) -> tuple[tuple[Any, ...], ...]:
    """The rows up to the first that cannot be read, without those that are of other types."""
    rows: list[tuple[Any, ...]] = []
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
        # Not a list made at once: what was read before the damage stays.
        rows.extend(row for row in db.execute(query) if tuple(map(type, row)) == types)
    return tuple(rows)


def _metrics(db: sqlite3.Connection) -> tuple[tuple[Any, ...], ...]:
    """Counters by name and device; the first schema knew no devices."""
    found = _table(db, "SELECT name, device, value FROM metrics", str, str, float)
    return found or _table(db, "SELECT name, '', value FROM metrics", str, str, float)


def _select(db: sqlite3.Connection) -> str:
    """How to read a whole memory; the first schema lacks the version of its place."""
    columns = FIELDS
    try:
        db.execute("SELECT filed_clock, filed_device FROM memories LIMIT 0")
    except sqlite3.Error as error:
        if "no such column" in str(error):
            since = {"filed_clock": "0", "filed_device": "''"}
            columns = tuple(since.get(name, name) for name in FIELDS)
    return f"SELECT {', '.join(columns)} FROM memories"


def _memories(db: sqlite3.Connection, path: Path) -> Iterator[Memory]:
    """The readable rows: a range that fails is halved until only the bad rows are left out."""
    ranges = [(0, _highest(db, path))]
    select = _select(db)
    failures = 0
    # Where not one row can be reached, the root of the table is gone, and so are all.
    while ranges and failures < _FAILURES_AT_MOST:
        low, high = ranges.pop()
        try:
            rows = db.execute(f"{select} WHERE row >= ? AND row <= ?", (low, high)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):
            failures += 1
            if low < high:
                middle = (low + high) // 2
                ranges += [(low, middle), (middle + 1, high)]
            continue
        failures = 0
        for row in rows:
            memory = _decoded(row)
            if memory is not None:
                yield memory


def _decoded(row: tuple[Any, ...]) -> Memory | None:
    try:
        memory = from_row(row)
        # The types of a damaged row are anyone's guess: only a whole record comes through.
        whole = msgspec.convert(msgspec.to_builtins(memory), Memory)
    except (msgspec.MsgspecError, TypeError, ValueError):
        return None
    return whole if whole.clock < TOO_HIGH else msgspec.structs.replace(whole, clock=0)


def _highest(db: sqlite3.Connection, path: Path) -> int:
    try:
        return int(db.execute("SELECT max(row) FROM memories").fetchone()[0] or 0)
    except sqlite3.Error:
        return path.stat().st_size // _SMALLEST_ROW
