"""Listing memories by what is known about them."""

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


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, SEEN),
        ({"category": "root"}, SEEN),
        ({"category": "work"}, {"boat", "boathouse", "below"}),
        ({"category": "work/boat"}, {"boat", "below"}),
        ({"category": "old"}, {"below"}),
        ({"category": "it's"}, {"quoted"}),
        ({"category": "nowhere"}, set()),
        ({"types": ("episodic",)}, {"episode"}),
        ({"types": ("episodic", "semantic")}, SEEN),
        ({"events": ("task_completed",)}, {"episode"}),
        ({"tags": ("sea",)}, {"boat", "boathouse"}),
        ({"tags": ("sea", "wood")}, {"boat"}),
        ({"tags": ('a"b',)}, {"quoted"}),
        ({"tags": ("se",)}, set()),
        ({"url": "EXAMPLE.org"}, {"link"}),
        ({"url": "%_"}, {"link"}),
        ({"url": "a%b"}, set()),
        ({"actor": "Bo"}, {"episode"}),
        ({"actor": "x' OR 1=1 --"}, {"quoted"}),
        ({"group": "g"}, {"episode"}),
        ({"source": "chat"}, {"link"}),
        ({"archived": True}, {"cold"}),
        ({"archived": False}, SEEN - {"cold"}),
        ({"since": NOW - DAY}, SEEN - {"aged", "cold"}),
        ({"until": NOW - DAY}, {"aged", "cold"}),
        ({"min_importance": 0.9}, {"boat"}),
        ({"tier": "hot"}, {"boat"}),
        ({"tier": "frozen"}, {"aged"}),
        ({"merged": True}, SEEN | {"merged"}),
        ({"expired": True}, SEEN | {"expired"}),
    ],
)
def test_a_filter_leaves_exactly_those_that_it_means(
    db: sqlite3.Connection, filters: dict[str, Any], expected: set[str]
) -> None:
    assert set(ids(db, **filters)) == expected


def test_the_tiers_divide_all_memories(db: sqlite3.Connection) -> None:
    parts = [ids(db, tier=tier) for tier in ("hot", "warm", "cold", "frozen")]
    assert sorted(key for part in parts for key in part) == sorted(SEEN)


def test_each_order_begins_with_its_best(db: sqlite3.Connection) -> None:
    assert ids(db, order="newest")[0] == "quoted"
    assert ids(db, order="oldest")[:2] == ["aged", "cold"]
    assert ids(db, order="importance")[0] == "boat"
    assert ids(db, order="score")[0] == "boat"
    assert ids(db, order="score")[-1] == "aged"


def test_pages_follow_one_another_without_gap_or_repeat(db: sqlite3.Connection) -> None:
    for order in ("newest", "oldest", "importance", "score"):
        pages = [ids(db, order=order, limit=2, offset=start) for start in range(0, 12, 2)]
        assert [key for found in pages for key in found] == ids(db, order=order)
