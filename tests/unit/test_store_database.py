"""What the daemon notes for itself, what devices have counted, and pages of a table."""

import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_parts import transaction

from thermocline.daemon.store.database import meta, rows
from thermocline.daemon.store.database.connection import connect, lost_words
from thermocline.daemon.store.database.connection import transaction as database_transaction
from thermocline.daemon.store.records.documents import metrics_document
from thermocline.daemon.store.records.merging import stranded

NOW = 1_790_000_000.0
DAY = 86_400.0


def commit(db: sqlite3.Connection, *counted: str, now: float = NOW) -> None:
    """Count, as the commit of a device does."""
    tx = transaction(db, now)
    for name in counted:
        tx.count(name)
    meta.note_clock_state(tx)
    meta.move_counts(tx)


def test_counters_of_a_day_are_counted_apart_begin_anew_the_next_and_are_not_kept(remembered):
    db = remembered([])
    commit(db, "evictions_today", "total_evicted")
    commit(db, "reinforcements_today", "total_stored")
    commit(db, "reinforcements_today")
    shown = metrics_document(db, NOW)
    assert (shown["evictions_today"], shown["reinforcements_today"]) == (1, 2)
    assert (shown["total_evicted"], shown["total_stored"]) == (1, 1)
    commit(db, "reinforcements_today", now=NOW + DAY)
    shown = metrics_document(db, NOW + DAY)
    assert (shown["evictions_today"], shown["reinforcements_today"]) == (0, 1)
    row = rows.load(db, meta.COUNTERS, "d")
    assert row is not None
    tomorrow = time.strftime("%Y-%m-%d", time.localtime(NOW + DAY))
    kept = {"total_evicted": 1, "total_stored": 1}
    assert row.data == kept | {f"reinforcements_today@{tomorrow}": 1}


names = st.sampled_from("abcdef")


@given(st.dictionaries(names, names), st.sets(names))
def test_once_freed_every_merge_ends_at_a_memory_that_stays(merged, present):
    living = present - merged.keys()
    freed = stranded(merged, living)
    left = {key: into for key, into in merged.items() if key not in freed}
    for start in left:
        passed, key = [], start
        while key in left:
            assert key not in passed
            passed.append(key)
            key = left[key]
        assert key in living | set(freed)


def test_a_write_that_fails_at_any_byte_leaves_the_full_text_index_with_its_totals(tmp_path):
    resource = pytest.importorskip("resource")
    path, limits = tmp_path / "f.db", resource.getrlimit(resource.RLIMIT_FSIZE)
    db = connect(path, "mode=rwc")
    for pragma in ("journal_mode = WAL", "wal_autocheckpoint = 0", "cache_size = 7"):
        db.execute(f"PRAGMA {pragma}").fetchone()
    db.execute("CREATE VIRTUAL TABLE f USING fts5(text, content='')")
    db.execute("CREATE TABLE t (content)")
    with database_transaction(db):
        for row in range(300):
            db.execute("INSERT INTO f(rowid, text) VALUES (?, ?)", (row, f"heron {row} " * 20))
    log, failures = tmp_path / "f.db-wal", 0
    for frames in range(60):
        # A full cache writes pages of an unfinished transaction, also while the index is read.
        most = log.stat().st_size + frames * 1_030
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            with database_transaction(db):
                for size in (3_000, 9_000, 1_000 + 400 * (frames % 7), 9_000):
                    db.execute("INSERT INTO t VALUES (zeroblob(?))", (size,))
                db.execute("INSERT INTO f(rowid, text) VALUES (?, 'a bittern')", (1_000 + frames,))
        except sqlite3.OperationalError:
            failures += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        with database_transaction(db):
            db.execute("INSERT INTO f(rowid, text) VALUES (?, 'a grebe')", (2_000 + frames,))
        assert lost_words(db) == ""
        db.execute("DROP TABLE temp.words_of_f")
    assert failures > 20
    db.close()
