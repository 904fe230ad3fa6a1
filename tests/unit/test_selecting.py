"""What a filter compares exactly; what each leaves is in `integration/test_api_memory.py`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from thermocline.daemon.memory.records import Memory, Metadata
from thermocline.daemon.memory.scoring import Scoring
from thermocline.daemon.store.selecting import Filters, Order, page

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
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    given = {"created_at": NOW - 100.0, "updated_at": NOW}
    return remembered(
        (Memory(id=key, text=key, **given | fields) for key, fields in STORED.items()), NOW
    )


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
        ({"category": "root"}, SEEN), ({"category": "old"}, {"below"}),
        ({"category": "it's"}, {"quoted"}), ({"tags": ('a"b',)}, {"quoted"}),
        ({"url": "%_"}, {"link"}), ({"url": "a%b"}, set()), ({"actor": "x' OR 1=1 --"}, {"quoted"}),
        ({"archived": True}, {"cold"}), ({"archived": False}, SEEN - {"cold"}),
        ({"merged": True}, SEEN | {"merged"}), ({"expired": True}, SEEN | {"expired"}),
    ]:  # fmt: skip
        assert set(ids(db, **filters)) == expected
