"""Rows that were sent: those that have changed since stay pending."""

import pytest
from store_parts import Bench

from thermocline.daemon.store import outbox
from thermocline.daemon.store.database import rows
from thermocline.daemon.store.database.meta import clock_state
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records.key_values import PAIRS
from thermocline.sync import Cursor, Pending

NOW = 1_790_000_000.0


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path, NOW)
    for key in ("one", "two"):
        made.commit(lambda tx, key=key: put(tx, key, "old"))
    return made


def put(tx: Transaction, key: str, value: str) -> None:
    rows.write(tx, PAIRS.kind, key, {"value": value, "created_at": NOW, "updated_at": NOW})


def pending(bench: Bench) -> list[Pending]:
    return outbox.pending(bench.db, None, 100, 10**9)


def taken(tx: Transaction, sent: list[Pending]) -> None:
    outbox.taken(tx, sent, Cursor("e", len(sent)))


def test_rows_that_were_taken_are_no_longer_pending_and_change_nothing_else(bench):
    sent, before = pending(bench), clock_state(bench.db).changes
    assert [row.row.id for row in sent] == ["one", "two"]
    bench.commit(lambda tx: taken(tx, sent[:1]))
    bench.commit(lambda tx: taken(tx, sent[1:]))
    assert pending(bench) == []
    assert outbox.cursor(bench.db) == Cursor("e", 1)
    assert clock_state(bench.db).changes == before


@pytest.mark.parametrize("together", [False, True], ids=["before", "in the same commit"])
def test_a_row_that_has_changed_since_it_was_read_stays_pending(bench, together):
    sent = pending(bench)
    steps = [lambda tx: put(tx, "two", "new"), lambda tx: taken(tx, sent)]
    if together:
        bench.commit(*steps)
    else:
        for step in steps:
            bench.commit(step)
    [left] = pending(bench)
    assert (left.row.id, left.row.data["value"], left.seen) == ("two", "new", sent[1].version)
