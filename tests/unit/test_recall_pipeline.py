"""The whole of recall on a database, without a daemon."""

import datetime as dt
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.tree_nodes import NamedCategory
from thermocline.daemon.recall.answer import Answer
from thermocline.daemon.recall.recall import Request, recall
from thermocline.daemon.store.records.selecting import Filters

NOW = dt.datetime(2023, 8, 16, 12, tzinfo=dt.UTC).timestamp()
WORDS = st.sampled_from(
    (
        "otter", "Ann", "Ann's", "-otter", '"the otter"', "“the", "last May", "7 May 2023", "東京",
        "-", '"', "*", "NEAR(", "AND", "OR", "NOT", "text:", "home/otters", "\0", "é", "^",
        "🦦", "'; DROP TABLE memories; --", "the", "may", "1e999", "99/99/9999", "%", "_",
    )
)  # fmt: skip
ANY_TEXT = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=8).map(" ".join))


def memory(number: int, text: str, **fields: Any) -> Memory:
    given: dict[str, Any] = {"created_at": NOW - number, "updated_at": NOW - number} | fields
    return Memory(id=f"{number:016x}", text=text, **given)


@pytest.fixture
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """A conversation about an otter, and a few facts."""
    said = ["Hello Bo", "Did you see the otter?", "Yes, last May in 東京", "Lovely", "It swam"]
    talk = [
        memory(number, text, group="g", position=number, actor=("Ann", "Bo")[number % 2])
        for number, text in enumerate(said, 1)
    ]
    facts = [
        memory(10, "otters eat fish", category="home/otters", tags=("otter",)),
        memory(11, "the otter sleeps", merged_into=f"{10:016x}"),
        memory(12, "the garden has a hedge", category="home/garden", importance=0.9),
        memory(13, "the garden fence is red", category="home/garden", importance=0.2),
    ]
    return remembered([*talk, *facts], NOW)


def ask(db: sqlite3.Connection, text: str, tuning: Tuning | None = None, **given: Any) -> Answer:
    return recall(db, Request(text=text, now=NOW, **given), tuning or Tuning())


def texts(answer: Answer) -> list[str]:
    return [hit.memory.text for hit in answer.hits]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANY_TEXT, st.sampled_from(("keyword", "tree")))
@example('"', "keyword")
@example('-"', "keyword")
@example("\ud800", "keyword")
@example('"otter" -"otter"', "keyword")
def test_any_text_is_a_query_and_none_is_an_error(db, text, mode):
    answer = ask(db, text, mode=mode)
    assert bool(answer.why) == (not answer.hits) == (answer.confidence == "none")
    assert all(hit.memory.merged_into is None for hit in answer.of("memory"))
    assert answer.searched["memory"] == 8


def steps(db: sqlite3.Connection, text: str) -> int:
    """How many instructions SQLite takes for a recall, in tens: so many for each row it visits."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    db.set_progress_handler(tick, 10)
    ask(db, text, Tuning(candidates=20))
    db.set_progress_handler(None, 0)
    return count


def test_a_common_word_visits_no_more_rows_in_a_larger_memory(remembered):
    small, large = (
        remembered(memory(n, f"river {'otter' if n % 9 == 0 else 'x'}") for n in range(1, size))
        for size in (700, 2800)
    )
    assert steps(large, "river") <= 1.2 * steps(small, "river")
    rare = steps(large, "otter")
    assert steps(large, "river") <= 2 * rare
    assert steps(large, "river otter") <= 2 * rare


def test_the_number_of_look_ups_does_not_depend_on_the_number_of_hits(remembered):
    db = remembered(
        memory(n, f"otter {n}", group="g", position=n, actor="Ann") for n in range(1, 90)
    )

    def look_ups(limit: int, *, explain: bool = False) -> int:
        asked: list[str] = []
        db.set_trace_callback(asked.append)
        answer = ask(db, "otter", limit=limit, explain=explain)
        db.set_trace_callback(None)
        assert len(answer.hits) == limit
        # What begins otherwise is what the full-text index asks itself.
        return sum(sql.startswith(("SELECT ", "WITH ")) and "_fts_" not in sql for sql in asked)

    assert look_ups(1) == look_ups(50)
    assert look_ups(50, explain=True) == look_ups(50) + 1


def test_the_reason_of_an_empty_answer_is_told_with_the_tuning_given(remembered):
    db = remembered(memory(n, f"river {n}") for n in range(1, 600))
    filters = Filters(actor="nobody")
    # So narrow a search finds nothing without the filters either.
    asked: list[str] = []
    db.set_trace_callback(asked.append)
    answer = ask(db, "river", Tuning(candidates=7), filters=filters)
    db.set_trace_callback(None)
    assert "the filters leave none" in answer.why
    assert [sql for sql in asked if sql.rstrip(")").endswith("LIMIT 7")]
    assert not [sql for sql in asked if sql.rstrip(")").endswith("LIMIT 120")]


def test_what_is_excluded_does_not_come_back_as_a_newer_version(remembered):
    newer = memory(1, "the garden has a fence")
    older = memory(2, "the garden has a hedge", superseded_by=newer.id)
    db = remembered([newer, older])
    assert texts(ask(db, "garden hedge"))[0] == newer.text
    assert texts(ask(db, "garden hedge -fence")) == [older.text]


def test_a_category_that_is_gone_since_a_model_named_it_does_no_harm(db):
    answer = ask(db, "garden fence", mode="llm", reasoned=(NamedCategory("home/shed", 1.0, ""),))
    assert [hit.method for hit in answer.hits] == ["keyword"] * len(answer.hits) != []
