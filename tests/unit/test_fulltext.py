"""The best matches under filters, however deep in the list of hits they stand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.fulltext import candidates
from thermocline.daemon.recall.query import Query
from thermocline.daemon.store import memories
from thermocline.daemon.store.database import connect_writer, migrate
from thermocline.daemon.store.schema import MIGRATIONS
from thermocline.daemon.store.selecting import Filters, where
from thermocline.daemon.store.transaction import Rules, Transaction
from thermocline.sync import HybridClock

NOW = 1_760_000_000.0
NUMBER = 400


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Memories that all hold the word `river`, among ever more other words."""
    path = tmp_path / "memory.db"
    db = connect_writer(path, 256)
    migrate(db, path, MIGRATIONS)
    tick = HybridClock(lambda: NOW, 0).tick
    db.execute("BEGIN IMMEDIATE")
    tx = Transaction(db, now=NOW, device="d", rules=Rules(), tick=tick)
    for number in range(NUMBER):
        memories.insert(tx, _memory(number))
    db.execute("COMMIT")
    yield db
    db.close()


def _memory(number: int) -> Memory:
    return Memory(
        id=f"{number:016x}",
        text="river " + "stone " * (number % 97),
        # Long texts match worst: these few stand at the end of the hits.
        tags=("deep",) if number % 97 > 94 else (),
        merged_into="0" * 16 if number % 5 == 1 else None,
        created_at=NOW - number,
        updated_at=NOW,
    )


FILTERS = (Filters(), Filters(tags=("deep",)), Filters(since=NOW - 30), Filters(merged=True))


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("limit", [1, 7, NUMBER])
def test_the_candidates_are_the_best_of_those_that_pass(
    db: sqlite3.Connection, filters: Filters, limit: int
) -> None:
    found = candidates(
        db, Query(("river",)), filters, now=NOW, limit=limit, common_share=1.0
    ).candidates
    condition, arguments = where(filters, NOW)
    passing = {
        row for (row,) in db.execute(f"SELECT row FROM memories WHERE {condition}", arguments)
    }
    hits = db.execute(
        "SELECT -bm25(memory_fts, 1.0, 1.5, 1.2), rowid FROM memory_fts"
        " WHERE memory_fts MATCH 'river'"
    ).fetchall()
    best = sorted((hit for hit in hits if hit[1] in passing), reverse=True)[:limit]
    assert [(one.match, one.row) for one in found] == best
    assert best


def test_no_candidates_pass_a_filter_that_fits_no_memory(db: sqlite3.Connection) -> None:
    found = candidates(
        db, Query(("river",)), Filters(actor="nobody"), now=NOW, limit=5, common_share=1.0
    )
    assert found.candidates == ()
