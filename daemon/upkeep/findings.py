"""What a report on a memory tells, gathered from the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..memory.hot import document_size
from ..memory.records import Memory
from ..memory.scoring import DAY
from ..memory.tree_nodes import Node
from ..memory.warm import expired_from_warm
from ..store import hot_rows, memory_rows, tree_rows
from ..store.rows import SELECT, from_row
from ..store.settling import warm_bytes, warm_entries
from ..store.transaction import Rules
from . import history
from .history import Trend

_LIVING: Final = "merged_into IS NULL"
_NAMED: Final = 15
_SOON_SECONDS: Final = 7 * DAY
_IMPORTANT: Final = 0.8
_UNUSED_SECONDS: Final = 14 * DAY


class Twice(msgspec.Struct, frozen=True):
    """Two memories of which the newer stands for the older, or contradicts it."""

    older: Memory
    newer: Memory


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as a person may want to look through it.

    Attributes:
        since: when the last report was written, or a month ago.
        stored: how many memories are new since then.
        new: the most important of them.
        merged, contradicted: what was found out since then, the latest first.
        fading: warm memories that will be archived within a week.
        used: those that were used most.
        unused: important ones that nobody has ever used.
    """

    agent: str
    now: float
    since: float
    warm: int
    cold: int
    stored: int
    warm_bytes: int
    hot_bytes: int
    rules: Rules
    tree: dict[str, Node]
    new: Sequence[Memory]
    merged: Sequence[Twice]
    contradicted: Sequence[Twice]
    fading: Sequence[Memory]
    used: Sequence[Memory]
    unused: Sequence[Memory]
    trend: Trend | None


def gather(db: sqlite3.Connection, agent: str, now: float, since: float, rules: Rules) -> Findings:
    """Look through the memory of an agent."""
    warm, cold = tree_rows.totals(db)
    return Findings(
        agent=agent,
        now=now,
        since=since,
        warm=warm,
        cold=cold,
        stored=_count(db, f"{_LIVING} AND created_at > ?", since),
        warm_bytes=warm_bytes(db),
        hot_bytes=document_size(hot_rows.document(db, now, rules)),
        rules=rules,
        tree=tree_rows.load(db),
        new=_some(db, f"{_LIVING} AND created_at > ?", "importance DESC, created_at DESC", since),
        merged=_twice(db, "merged_into", "merged_into IS NOT NULL", since),
        contradicted=_twice(db, "superseded_by", f"superseded_by IS NOT NULL AND {_LIVING}", since),
        fading=_fading(db, now, rules),
        used=_some(db, f"{_LIVING} AND access_count > ?", "access_count DESC, row", 2),
        unused=_some(
            db,
            f"{_LIVING} AND access_count = 0 AND importance >= {_IMPORTANT} AND created_at < ?",
            "importance DESC, created_at",
            now - _UNUSED_SECONDS,
        ),
        trend=history.trend(history.load(db, 21)),
    )


def _count(db: sqlite3.Connection, condition: str, value: Any) -> int:
    sql = f"SELECT count(*) FROM memories WHERE {condition}"  # noqa: S608 - conditions of our own
    found = db.execute(sql, (value,))
    return int(found.fetchone()[0])


def _some(db: sqlite3.Connection, condition: str, order: str, value: Any) -> list[Memory]:
    rows = db.execute(f"{SELECT} WHERE {condition} ORDER BY {order} LIMIT ?", (value, _NAMED))
    return list(map(from_row, rows))


def _twice(db: sqlite3.Connection, column: str, condition: str, since: float) -> list[Twice]:
    older = _some(db, f"{condition} AND updated_at > ?", "updated_at DESC, row", since)
    pairs = ((memory, memory_rows.fetch(db, getattr(memory, column))) for memory in older)
    return [Twice(memory, newer) for memory, newer in pairs if newer is not None]


def _fading(db: sqlite3.Connection, now: float, rules: Rules) -> list[Memory]:
    soon = expired_from_warm(
        warm_entries(db),
        now + _SOON_SECONDS,
        rules.scoring,
        retention_days=rules.warm_retention_days,
        eviction_threshold=rules.warm_eviction_threshold,
    )
    found = (memory_rows.fetch(db, key) for key in soon)
    fading = [memory for memory in found if memory is not None]
    return sorted(fading, key=lambda memory: -memory.importance)[:_NAMED]
