"""What a filter compares exactly; what each leaves is in `integration/test_api_memory.py`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.memory.records import Memory, Metadata
from thermocline.daemon.memory.scoring import Scoring
from thermocline.daemon.store import memories
from thermocline.daemon.store.database import connect_writer, migrate
from thermocline.daemon.store.schema import MIGRATIONS
from thermocline.daemon.store.selecting import Filters, Order, page
from thermocline.daemon.store.transaction import Transaction
from thermocline.sync import HybridClock

NOW = 1_790_000_000.0
DAY = 86_400.0
STORED: dict[str, dict[str, Any]] = {
    "plain": {},
    "boat": {"category": "work/boat", "tags": ("sea", "wood"), "importance": 0.9},
    "boathouse": {"category": "work/boathouse", "tags": ("sea",)},
    "below": {"category": "work/boat/mast", "original_category": "old/mast"},
    "episode": {"type": "episodic", "event": "task_completed", "actor": "Bo", "group": "g"},
    "link": {"metadata": Metadata(urls=("https://Example.org/x%_y",)), "source": "chat"},
    "aged": {"created_at": NOW - 100 * DAY, "importance": 0.1},
    "cold": {"archived_at": NOW - DAY, "created_at": NOW - 10 * DAY},
    "merged": {"merged_into": "plain"},
    "expired": {"expires_at": NOW - 1.0},
    "quoted": {"category": "it's", "tags": ('a"b',), "actor": "x' OR 1=1 --"},
}
SEEN = STORED.keys() - {"merged", "expired"}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "memory.db"
    connection = connect_writer(path, 512)
    migrate(connection, path, MIGRATIONS)
    clock = HybridClock(lambda: NOW)
    tx = Transaction(connection, now=NOW, device="d", rules=Rules(), clock=clock)
    for number, (key, fields) in enumerate(STORED.items()):
        given = {"created_at": NOW - 100.0 + number, "updated_at": NOW} | fields
        memories.insert(tx, Memory(id=key, text=key, **given))
    yield connection
    connection.close()


def ids(
    db: sqlite3.Connection, *, order: Order = "newest", limit: int = 100, offset: int = 0, **f: Any
) -> list[str]:
    found, total = page(
        db, Filters(**f), order=order, limit=limit, offset=offset, now=NOW, scoring=Scoring()
    )
    assert total >= len(found)
    return [memory.id for memory in found]


def test_a_filter_leaves_exactly_those_that_it_means(db):
    for filters, expected in [
        ({"category": "root"}, SEEN),
        ({"category": "old"}, {"below"}),
        ({"category": "it's"}, {"quoted"}),
        ({"tags": ('a"b',)}, {"quoted"}),
        ({"url": "%_"}, {"link"}),
        ({"url": "a%b"}, set()),
        ({"actor": "x' OR 1=1 --"}, {"quoted"}),
        ({"archived": True}, {"cold"}),
        ({"archived": False}, SEEN - {"cold"}),
        ({"merged": True}, SEEN | {"merged"}),
        ({"expired": True}, SEEN | {"expired"}),
    ]:
        assert set(ids(db, **filters)) == expected
