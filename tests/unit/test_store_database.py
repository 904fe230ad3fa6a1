"""What the daemon notes for itself, what devices have counted, and pages of a table."""

import sqlite3
import time
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_parts import transaction

from thermocline.daemon.store.database import meta, rows
from thermocline.daemon.store.database.connection import connect, lost_words
from thermocline.daemon.store.database.connection import transaction as database_transaction
from thermocline.daemon.store.database.memory_database import in_pages
from thermocline.daemon.store.records.documents import metrics_document
from thermocline.daemon.store.records.merging import stranded


class Count(msgspec.Struct):
    number: int


@pytest.fixture
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    return remembered([])


def note(db: sqlite3.Connection, **values: object) -> None:
    tx = transaction(db, 1.0)
    for key, value in values.items():
        meta.write(tx, key, value)


@pytest.mark.parametrize(
    "content", [b"", b"{not json", b"[]", b"5", b'{"number": "x"}', b"\xff", b"[" * 100_000]
)
def test_damage_is_as_if_nothing_had_been_noted(db, content):
    note(db, day1=Count(1), day3=Count(3))
    db.execute("INSERT OR REPLACE INTO meta VALUES ('day2', CAST(? AS TEXT))", (content,))
    assert meta.read(db, "day2", Count) is None
    assert meta.latest(db, "day", 9, Count) == {"1": Count(1), "3": Count(3)}
    note(db, day2=Count(2))
    assert meta.read(db, "day2", Count) == Count(2)


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


def test_every_row_comes_once_and_a_table_that_never_ends_is_left():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(1, 1102)))
    sql = "SELECT n FROM numbers WHERE n > ? ORDER BY n LIMIT ?"
    assert [n for (n,) in in_pages(db, sql, after=0)] == list(range(1, 1102))
    # As a page of zeros does it: what is found stands before what was found.
    assert list(in_pages(db, "SELECT 0 WHERE ? IS NOT NULL LIMIT ?", after=0)) == [(0,)]


def test_what_leads_to_no_memory_that_stays_is_freed_at_its_end():
    for merged, living, free in [
        ({}, "", []), ({"a": "b", "b": "c"}, "c", []), ({"a": "b", "b": "c"}, "", ["b"]),
        ({"a": "b", "x": "b"}, "", ["a", "x"]), ({"a": "a"}, "", ["a"]),
        ({"a": "b", "b": "c", "c": "a", "x": "b"}, "", ["a"]),
        ({"x": "b", "b": "c", "c": "b"}, "", ["b"]),
    ]:  # fmt: skip
        assert stranded(merged, living) == free


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
