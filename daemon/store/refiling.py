"""Filing single memories elsewhere, wherever they are: here, archived, or on the replica alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..memory.warm import record_size
from . import memory_rows, remote_rows
from .rows import SELECT, from_row
from .transaction import Transaction

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
        group = wanted[start : start + _AT_ONCE]
        moved += _refile(tx, {filed.id: filed for filed in group}, clock)
    tx.settle_warm = True
    tx.faces.update({"warm", "tree", "hot"})
    return moved


def _refile(tx: Transaction, wanted: dict[str, Filed], clock: int) -> int:
    ids = msgspec.json.encode(list(wanted)).decode()
    known = tx.db.execute(
        "SELECT row, id, archived_at IS NOT NULL FROM memories"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (ids,),
    ).fetchall()
    values = [
        (filed.category, filed.original_category, clock, tx.device, filed.id)
        for filed in wanted.values()
    ]
    for table in ("memories", "remote_only"):
        tx.db.executemany(
            f"UPDATE {table} SET category = ?, original_category = ?, filed_clock = ?,"
            " filed_device = ? WHERE id = ?",
            values,
        )
    for row, _, archived in known:
        if archived:
            tx.archived(row)
    _measure(tx, [key for _, key, archived in known if not archived])
    present = [key for _, key, _ in known] + remote_rows.among(tx.db, list(wanted))
    for key in present:
        tx.changed(memory_rows.KIND, key, clock, filed_only=True)
    return len(present)


def _measure(tx: Transaction, ids: Sequence[str]) -> None:
    """A warm memory's size is that of its record, which names the category."""
    rows = tx.db.execute(
        f"{SELECT} WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(ids).decode(),),
    ).fetchall()
    tx.db.executemany(
        "UPDATE memories SET size = ? WHERE id = ?",
        [(record_size(memory), memory.id) for memory in map(from_row, rows)],
    )


def _groups(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))
