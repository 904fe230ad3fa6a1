"""Records follow their rows: reading, pages, the projection and its full text."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_parts import transaction

from thermocline.daemon.errors import InvalidInput, NotFound
from thermocline.daemon.memory.experiences import Experience
from thermocline.daemon.store import full_text
from thermocline.daemon.store.experiences import EXPERIENCES
from thermocline.daemon.store.key_values import PAIRS
from thermocline.sync import changed

NOW = 1_790_000_000.0
KEYS = ("a", "b", "c")
# A write of a record: whether it is in the projection, or None to delete it.
WRITES = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(("tea", "green tea", "")), st.booleans())
    | st.tuples(st.sampled_from(KEYS), st.none(), st.booleans()),
    max_size=12,
)


def experience(key: str, intent: str, *, pruned: bool = False) -> Experience:
    return Experience(
        id=key,
        type="task_solution",
        intent=intent,
        created_at=NOW,
        last_used_at=NOW,
        pruned_at=NOW if pruned else None,
    )


def projected(db: sqlite3.Connection) -> tuple[Any, ...]:
    rows = db.execute("SELECT id, intent FROM experiences ORDER BY id").fetchall()
    found = db.execute(
        "SELECT id FROM experiences WHERE row IN (SELECT rowid FROM experience_fts('tea'))"
    ).fetchall()
    return rows, sorted(found), full_text.counts(db, ("experience_fts",))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(WRITES)
def test_the_projection_is_what_a_rebuild_makes_of_the_rows(remembered, writes):
    db = remembered([])
    db.execute("BEGIN")
    tx, expected = transaction(db, NOW), dict[str, Experience]()
    for key, intent, pruned in writes:
        if intent is not None:
            expected[key] = EXPERIENCES.put(tx, experience(key, intent, pruned=pruned))
        elif expected.pop(key, None) is not None:
            EXPERIENCES.delete(tx, key)
    for key in KEYS:
        assert EXPERIENCES.find(db, key) == expected.get(key)
    shown = [one for key, one in sorted(expected.items()) if one.pruned_at is None]
    assert EXPERIENCES.page(db, "true", "t.id", 10, 0) == (shown, len(shown))
    before = projected(db)
    EXPERIENCES.reindex(tx)
    assert projected(db) == before
    db.execute("ROLLBACK")


def test_a_record_that_is_missing_is_named(remembered):
    tx = transaction(remembered([]), NOW)
    for missing in (lambda: PAIRS.get(tx.db, "k"), lambda: PAIRS.delete(tx, "k")):
        with pytest.raises(NotFound, match="no value is stored under 'k'") as refused:
            missing()
        assert refused.value.field == "key"


def test_a_row_from_elsewhere_is_checked_by_its_fields():
    for fields, field in [
        ({"intent": " "}, "intent"),
        ({"last_used_at": -1}, "last_used_at"),
        ({"user": "\0"}, "user"),
    ]:
        data = {"type": "task_solution", "intent": "x", "created_at": NOW, "last_used_at": NOW}
        row = changed(None, ("experience", "k"), data | fields, (1, "d"), frozenset())
        assert EXPERIENCES.kind.check is not None
        with pytest.raises(InvalidInput) as refused:
            EXPERIENCES.kind.check(row)
        assert refused.value.field == field
