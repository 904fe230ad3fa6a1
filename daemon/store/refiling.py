"""Filing single memories elsewhere, wherever they are: here, archived, or on the replica alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..memory.warm import record_size
from . import memory_rows
from .rows import SELECT, from_row
from .transaction import SEGMENT_ROWS, Transaction

_AT_ONCE: Final = 500


class Filed(msgspec.Struct, frozen=True, array_like=True):
    """Where a memory is filed, and where it was filed first, or ""."""

    id: str
    category: str
    original_category: str


def filed_in(db: sqlite3.Connection, categories: Iterable[str]) -> list[Filed]:
    """Where each memory of these categories is filed, those on the replica alone included."""
    wanted = msgspec.json.encode(sorted(set(categories))).decode()
    rows = db.execute(
        "SELECT id, category, original_category FROM memories"
        " WHERE category IN (SELECT value FROM json_each(?1)) UNION ALL"
        " SELECT id, category, original_category FROM remote_only"
        " WHERE category IN (SELECT value FROM json_each(?1))",
        (wanted,),
    )
    return [Filed(*row) for row in rows]


def filed_now(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Filed]:
    """The same of single memories, by id; unknown ones are not there."""
    found: dict[str, Filed] = {}
    for group in _groups(ids):
        rows = db.execute(
            "SELECT id, category, original_category FROM memories"
            " WHERE id IN (SELECT value FROM json_each(?1)) UNION ALL"
            " SELECT id, category, original_category FROM remote_only"
            " WHERE id IN (SELECT value FROM json_each(?1))",
            (msgspec.json.encode(group).decode(),),
        )
        found |= {row[0]: Filed(*row) for row in rows}
    return found


def refile(tx: Transaction, wanted: Sequence[Filed]) -> int:
    """File memories where `wanted` says, and return how many there were.

    It is a move by the daemon: what the memories say keeps its version. The categories must
    exist.
    """
    if not wanted:
        return 0
    clock = tx.version()
    moved = 0
    for start in range(0, len(wanted), _AT_ONCE):
        moved += _refile(tx, wanted[start : start + _AT_ONCE], clock)
    tx.settle_warm = True
    tx.faces.update({"warm", "tree", "hot"})
    return moved


def _refile(tx: Transaction, wanted: Sequence[Filed], clock: int) -> int:
    # A statement for each row would keep the writer busy for minutes where the rows are thousands
    # and others write as well: within a savepoint each costs what all before it have written.
    given = msgspec.json.encode(wanted).decode()
    moved = 0
    for table in ("memories", "remote_only"):
        moved += tx.db.execute(
            f"UPDATE {table} SET category = json_extract(wanted.value, '$[1]'),"
            " original_category = json_extract(wanted.value, '$[2]'),"
            " filed_clock = ?, filed_device = ?"
            f" FROM json_each(?) AS wanted WHERE {table}.id = json_extract(wanted.value, '$[0]')",
            (clock, tx.device, given),
        ).rowcount
    ids = msgspec.json.encode([filed.id for filed in wanted]).decode()
    tx.db.execute(
        "INSERT OR REPLACE INTO stale_segments SELECT DISTINCT row / ?, ? FROM memories"
        " WHERE id IN (SELECT value FROM json_each(?)) AND archived_at IS NOT NULL",
        (SEGMENT_ROWS, clock, ids),
    )
    _measure(tx, ids)
    tx.db.execute(
        "INSERT INTO outbox"
        " SELECT ?1, id, ?2, 1 FROM memories WHERE id IN (SELECT value FROM json_each(?3))"
        " UNION ALL"
        " SELECT ?1, id, ?2, 1 FROM remote_only WHERE id IN (SELECT value FROM json_each(?3))"
        " ON CONFLICT DO UPDATE SET clock = max(clock, excluded.clock)",
        (memory_rows.KIND, clock, ids),
    )
    tx.outgoing.add(memory_rows.KIND)
    return moved


def _measure(tx: Transaction, ids: str) -> None:
    """A warm memory's size is that of its record, which names the category."""
    rows = tx.db.execute(
        f"{SELECT} WHERE id IN (SELECT value FROM json_each(?)) AND archived_at IS NULL", (ids,)
    ).fetchall()
    sizes = [(memory.id, record_size(memory)) for memory in map(from_row, rows)]
    tx.db.execute(
        "UPDATE memories SET size = json_extract(measured.value, '$[1]')"
        " FROM json_each(?) AS measured WHERE memories.id = json_extract(measured.value, '$[0]')",
        (msgspec.json.encode(sizes).decode(),),
    )


def _groups(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))
