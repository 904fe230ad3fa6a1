"""How many memories pass the filters of a list."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import Scoring
from thermocline.daemon.store import memories
from thermocline.daemon.store.database import connect_writer, migrate
from thermocline.daemon.store.schema import MIGRATIONS
from thermocline.daemon.store.selecting import Filters, page
from thermocline.daemon.store.transaction import Rules, Transaction
from thermocline.sync import HybridClock

NOW = 1_760_000_000.0
CATEGORIES = ("root", "work", "work/plans", "home")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Every mixture of warm or archived, merged or not, and still to expire or expired."""
    path = tmp_path / "memory.db"
    db = connect_writer(path, 256)
    migrate(db, path, MIGRATIONS)
    db.execute("BEGIN IMMEDIATE")
    tick = HybridClock(lambda: NOW, 0).tick
    tx = Transaction(db, now=NOW, device="d", rules=Rules(), tick=tick)
    for number in range(90):
        memories.insert(tx, _memory(number))
    db.execute("COMMIT")
    yield db
    db.close()


def _memory(number: int) -> Memory:
    return Memory(
        id=f"{number:016x}",
        text="x",
        category=CATEGORIES[number % len(CATEGORIES)],
        group="g" if number % 9 == 0 else "",
        archived_at=NOW if number % 3 else None,
        merged_into="0" * 16 if number % 5 == 0 else None,
        expires_at=(None, NOW - 1, NOW, NOW + 1)[number % 7 % 4],
        created_at=NOW - number,
        updated_at=NOW,
    )


@pytest.mark.parametrize(
    "filters",
    [
        Filters(),
        Filters(archived=True),
        Filters(archived=False),
        Filters(merged=True),
        Filters(expired=True),
        Filters(merged=True, expired=True, archived=True),
        Filters(category="work"),
        Filters(group="g"),
        Filters(group=""),
    ],
)
def test_the_total_is_the_number_of_memories_on_all_pages(
    db: sqlite3.Connection, filters: Filters
) -> None:
    found, total = page(
        db, filters, order="newest", limit=500, offset=0, now=NOW, scoring=Scoring()
    )
    assert total == len(found) > 0
