"""Paging through a table, also one that damage has left without an order."""

import sqlite3

from thermocline.daemon.store.database.memory_database import in_pages


def test_every_row_comes_once():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(1, 1102)))
    sql = "SELECT n FROM numbers WHERE n > ? ORDER BY n LIMIT ?"
    assert [n for (n,) in in_pages(db, sql, after=0)] == list(range(1, 1102))


def test_a_table_whose_rows_never_come_to_an_end_is_left():
    db = sqlite3.connect(":memory:")
    # As a page of zeros does it: what is found stands before what was found.
    assert list(in_pages(db, "SELECT 0 WHERE ? IS NOT NULL LIMIT ?", after=0)) == [(0,)]
