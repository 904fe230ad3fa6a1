"""Which memories answer a query at all: words, phrases, exclusions, filters, neighbours."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.answer import Answer
from thermocline.daemon.recall.pool import REACH
from thermocline.daemon.recall.recall import Request, recall
from thermocline.daemon.store.selecting import Filters

NOW = 1_790_000_000.0
NUMBER = 400
TEXTS = (
    "the red boat lies in the harbour", "a boat goes to the island", "he went home by the red bus",
    "she walked to the harbours", "the gardener is at work",
)  # fmt: skip


def memory(number: int, text: str, **fields: Any) -> Memory:
    given: dict[str, Any] = {"created_at": NOW - NUMBER + number, "updated_at": NOW} | fields
    return Memory(id=f"{number:016x}", text=text, **given)


def ask(
    db: sqlite3.Connection,
    text: str,
    filters: Filters | None = None,
    *,
    limit: int = 50,
    tuning: Tuning | None = None,
) -> Answer:
    request = Request(text=text, filters=filters or Filters(), limit=limit, now=NOW)
    return recall(db, request, tuning or Tuning())


def rows(answer: Answer) -> list[int]:
    return [int(hit.id, 16) for hit in answer.hits]


def statements(db: sqlite3.Connection, text: str, filters: Filters | None = None) -> list[str]:
    """The statements of a recall with five candidates."""
    traced: list[str] = []
    db.set_trace_callback(traced.append)
    ask(db, text, filters, limit=5, tuning=Tuning(candidates=5))
    db.set_trace_callback(None)
    return traced


@pytest.fixture
def few(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    return remembered(memory(number, text) for number, text in enumerate(TEXTS, 1))


@pytest.fixture
def rivers(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """Memories that all hold `river`; every fourth holds `stone`; a few oldest are `deep`."""
    return remembered(
        memory(
            number,
            "river stone" if number % 4 == 0 else "river",
            tags=("deep",) if number <= 3 else (),
            merged_into="0" * 16 if number == 4 else None,
        )
        for number in range(1, NUMBER + 1)
    )


def test_a_word_in_any_form_a_phrase_and_an_exclusion_decide_what_comes_first(few):
    for query, first in [
        ("harbour", {1, 4}), ("walking", {4}), ("going to an island", {2}), ("garden", {5}),
        ('"red boat"', {1}), ('"red boat" island', {1}), ("boat -island", {1}),
        ('red -"red bus"', {1}), ('"boat" -island', {1}),
    ]:  # fmt: skip
        assert set(rows(ask(few, query))[: len(first)]) == first


def test_phrases_alone_and_exclusions_are_demanded(few):
    for query, all_of_them in [
        ('"red boat"', {1}), ('"the red" -bus', {1}), ("boat -red", {2}),
        ('"lies in" "harbour"', {1}), ('"boat lies" -harbour', set()),
    ]:  # fmt: skip
        assert set(rows(ask(few, query))) == all_of_them


def test_of_many_matches_the_heaviest_come_first_and_of_those_the_newest(rivers):
    stony = [row for row in range(NUMBER, 4, -1) if row % 4 == 0]
    assert rows(ask(rivers, "river stone", limit=30)) == stony[:30]


def test_a_narrow_filter_takes_few_steps(rivers):
    wide = len(statements(rivers, "river stone"))
    # A multiple of rows is read at each step, and why nothing is left is asked once.
    assert len(statements(rivers, "river stone", Filters(actor="nobody"))) <= 2 * wide + 12


@pytest.fixture
def talk(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """Two conversations of 60 turns; the thirtieth turn of the first has the word."""
    turns = [
        memory(
            60 * group + turn,
            "the otter swims" if (group, turn) == (0, 30) else f"small talk {group} {turn}",
            group=f"talk{group}",
            position=turn,
            actor=("Ann", "Bo")[turn % 2],
        )
        for group in (0, 1)
        for turn in range(1, 61)
    ]
    return remembered([*turns, memory(121, "alone")])


def test_the_neighbours_of_a_match_are_results_after_it(talk):
    answer = rows(ask(talk, "otter"))
    assert answer[0] == 30
    assert sorted(answer) == list(range(30 - REACH, 30 + REACH + 1))
    assert rows(ask(talk, "alone")) == [121]


def test_neighbours_pass_the_filters_too(talk):
    assert sorted(rows(ask(talk, "otter", Filters(actor="Ann")))) == [26, 28, 30, 32, 34]


def test_of_what_only_a_common_word_names_the_newest_come_first(remembered):
    db = remembered(memory(NUMBER - number, f"river {number}") for number in range(600, 0, -1))
    newest = [NUMBER - number for number in range(1, 6)]
    answer = ask(db, "river", limit=5)
    assert [hit.text for hit in answer.hits] == [f"river {NUMBER - row}" for row in newest]
    assert answer.common_words == ("river",)
