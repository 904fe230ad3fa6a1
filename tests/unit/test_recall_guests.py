"""Memories from elsewhere, searched and ranked with those in the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from thermocline.daemon.memory.indexing import indexed_columns
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.recall import Answer, Request, Tuning, recall
from thermocline.daemon.store.rows import INSERT, to_row
from thermocline.daemon.store.schema import MIGRATIONS
from thermocline.daemon.store.selecting import Filters

NOW = 1_700_000_000.0
DAY = 86_400.0
Ask = Callable[..., Answer]


def memory(key: str, text: str, **fields: Any) -> Memory:
    given = {"created_at": NOW - DAY, "updated_at": NOW - DAY, "archived_at": NOW}
    return Memory(id=key, text=text, **given | fields)


def database(memories: list[Memory]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    for migration in MIGRATIONS:
        for statement in migration.statements:
            db.execute(statement)
    for path in ("general", "habits", "boats"):
        db.execute("INSERT INTO tree VALUES (?, ?, 0, 0, 0, 1, '')", (path, path))
    for one in memories:
        row = db.execute(INSERT, to_row(one)).lastrowid
        db.execute(
            "INSERT INTO memory_fts(rowid, text, subject, tags) VALUES (?, ?, ?, ?)",
            (row, *indexed_columns(one)),
        )
    return db


def ask(here: list[Memory], guests: list[Memory], text: str, **request: Any) -> Answer:
    db = database(here)
    try:
        return recall(db, Request(text=text, now=NOW, **request), Tuning(), guests)
    finally:
        db.close()


HERE = [
    memory("tea", "ana drinks green tea in the morning"),
    memory("dentist", "the dentist is open on monday"),
    *(memory(f"noise{n}", f"note {n} about the weather") for n in range(30)),
]
AWAY = [
    memory("coffee", "ana used to drink coffee in the morning", category="habits"),
    memory("boat", "the boat is called sturgeon", importance=0.9, category="boats"),
]


def test_a_guest_that_matches_best_comes_first_and_says_where_it_was() -> None:
    answer = ask(HERE, AWAY, "what is the boat called?")
    assert [(hit.memory.id, hit.method) for hit in answer.hits][:1] == [("boat", "cold-remote")]


def test_guests_stand_among_the_rest_by_how_well_they_match() -> None:
    answer = ask(HERE, AWAY, "ana drinks tea")
    assert [hit.memory.id for hit in answer.hits] == ["tea", "coffee"]
    assert [hit.method for hit in answer.hits] == ["keyword", "cold-remote"]


def test_without_guests_that_match_the_answer_is_as_without_any() -> None:
    assert ask(HERE, AWAY, "dentist").hits == ask(HERE, [], "dentist").hits


def test_a_guest_ranks_as_it_would_if_it_were_here() -> None:
    apart = ask(HERE, AWAY, "who drinks coffee or tea in the morning?")
    alike = ask(HERE + AWAY, [], "who drinks coffee or tea in the morning?")
    assert [hit.memory.id for hit in apart.hits] == [hit.memory.id for hit in alike.hits]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(category="boats"), ["boat"]),
        (Filters(category="habits"), []),
        (Filters(min_importance=0.95), []),
        (Filters(archived=False), []),
        (Filters(archived=True, tier="hot"), ["boat"]),
        (Filters(tier="frozen"), []),
        (Filters(until=NOW - 2 * DAY), []),
    ],
)
def test_guests_pass_the_filters_or_stay_out(filters: Filters, found: list[str]) -> None:
    answer = ask(HERE, AWAY, "boat sturgeon", filters=filters)
    assert [hit.memory.id for hit in answer.hits] == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"boat is called"', ["boat"]),
        ('"is boat called"', []),
        ("boat -sturgeon", []),
        ("sturgeons", ["boat"]),
        ("STURGEON", ["boat"]),
    ],
)
def test_a_query_means_the_same_for_guests(query: str, found: list[str]) -> None:
    assert [hit.memory.id for hit in ask(HERE, AWAY, query).hits] == found


def test_a_guest_that_is_merged_into_another_or_has_expired_stays_out() -> None:
    guests = [
        memory("merged", "the boat has sails", merged_into="boat"),
        memory("expired", "the boat has oars", expires_at=NOW - 1),
    ]
    assert ask(HERE, guests, "boat").hits == ()


def test_only_guests_are_an_answer_too() -> None:
    assert [hit.memory.id for hit in ask([], AWAY, "sturgeon").hits] == ["boat"]


def test_a_word_that_is_common_here_finds_the_newest_of_all() -> None:
    many = [memory(f"w{n}", f"weather {n}", created_at=NOW - n) for n in range(250)]
    guests = [memory("guest", "weather report", created_at=NOW)]
    hits = ask(many, guests, "weather", limit=100).hits
    assert "guest" in [hit.memory.id for hit in hits]
