"""People: the names of a question, looked up instead of read out of a list of all."""

import sqlite3
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_parts import transaction

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.query import parse
from thermocline.daemon.store.records import memories, names

NOW = 1_790_000_000.0
NAMES = (
    "Ann", "ann", "Ann Lee", "Anna", "Zoë", "Zoë Lee", "Zoë-Marie Lee", "O'Brien", "May", "Will",
    "user 1", "user 12", "bot-7", "bot_7", "東京太郎", "東京花子", "山", "Bo 東京", "Ωmega", "1",
    "İlke",
)  # fmt: skip
WORDS = st.sampled_from(
    (
        *NAMES, *(name.upper() for name in NAMES), "Ann's", "zoe", "lee", "user", "東京", "は",
        "what", "did", "say", "in", "may", "?", ",", "“", "-Ann", '"Ann Lee"', "\ud800", "\0",
    )
)  # fmt: skip


def turn_of(number: int, actor: str) -> Memory:
    return Memory(id=f"m{number}", text="hello", actor=actor, created_at=NOW, updated_at=NOW)


@pytest.fixture
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    return remembered(turn_of(number, name) for number, name in enumerate(NAMES))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, max_size=7), st.sampled_from((" ", "")))
def test_names_that_are_looked_up_say_the_same_as_all_names(db, words, blank):
    text = blank.join(words)
    found = names.named_in(db, text)
    assert parse(text, NOW, people=found) == parse(text, NOW, people=NAMES)


def test_a_person_among_thousands_is_known(remembered):
    db = remembered(turn_of(number, f"Guest{number:04}") for number in range(2000))
    assert names.named_in(db, "what did guest1999 say?") == ["Guest1999"]


def test_of_many_with_one_first_name_few_are_looked_at(remembered):
    db = remembered(turn_of(number, f"user {number}") for number in range(2000))
    assert set(names.named_in(db, "did user 77 call?")) == {"user 0", "user 999", "user 77"}
    assert parse("did user 77 call?", NOW, people=names.named_in(db, "user 77")).people == (
        "user 77",
    )


def test_a_name_goes_with_the_last_that_its_person_said(remembered):
    db = remembered([turn_of(1, "Ann"), turn_of(2, "Ann"), turn_of(3, "Bo")])
    tx = transaction(db, NOW)
    memories.forget(tx, "m1")
    assert names.named_in(db, "Ann and Bo") == ["Ann", "Bo"]
    memories.forget(tx, "m2")
    assert names.named_in(db, "Ann and Bo") == ["Bo"]
    memories.forget(tx, "m3")
    assert db.execute("SELECT count(*) FROM people").fetchone() == (0,)
