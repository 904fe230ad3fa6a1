"""Counters: what each device has counted, added up."""

from __future__ import annotations

import sqlite3
import time

from store_parts import transaction

from thermocline.daemon.store.database import meta, rows
from thermocline.daemon.store.records.documents import metrics_document

NOW = 1_790_000_000.0
DAY = 86_400.0


def commit(db: sqlite3.Connection, *counted: str, now: float = NOW) -> None:
    """Count, as the commit of a device does."""
    tx = transaction(db, now)
    for name in counted:
        tx.count(name)
    meta.note_clock_state(tx)
    meta.move_counts(tx)


def test_counting_one_thing_leaves_what_else_was_counted_today(remembered):
    db = remembered([])
    commit(db, "evictions_today")
    commit(db, "reinforcements_today", "total_stored")
    commit(db, "reinforcements_today")
    shown = metrics_document(db, NOW)
    assert (shown["evictions_today"], shown["reinforcements_today"]) == (1, 2)
    assert shown["total_stored"] == 1


def test_counters_of_a_day_begin_anew_the_next_and_are_not_kept(remembered):
    db = remembered([])
    commit(db, "evictions_today", "total_evicted")
    commit(db, "reinforcements_today", now=NOW + DAY)
    shown = metrics_document(db, NOW + DAY)
    assert (shown["evictions_today"], shown["total_evicted"]) == (0, 1)
    row = rows.load(db, meta.COUNTERS, "d")
    assert row is not None
    tomorrow = time.strftime("%Y-%m-%d", time.localtime(NOW + DAY))
    assert row.data == {"total_evicted": 1, f"reinforcements_today@{tomorrow}": 1}
