"""Which memories each word stands in, and which words decide nothing."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.recall.postings import Postings, admitted, demands_phrases, look_up
from thermocline.daemon.recall.query import parse
from thermocline.daemon.recall.sources import MEMORIES

NOW = 1_790_000_000.0
TEXTS = (
    "the red boat lies in the harbour",
    "a boat goes to the island",
    "he went home by the red bus",
    "she walked to the harbours",
    "the gardener is at work",
    "in May the garden is green",
)
MANY = 600


def stored(texts: Any) -> list[Memory]:
    return [
        Memory(id=f"{number:016x}", text=text, created_at=NOW, updated_at=NOW)
        for number, text in enumerate(texts, 1)
    ]


@pytest.fixture
def few(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    return remembered(stored(TEXTS))


@pytest.fixture
def many(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    """Memories that all hold `river`; one of them holds `otter`."""
    texts = [f"river {'otter' if number == 7 else 'stone'} {number}" for number in range(MANY)]
    return remembered(stored(texts))


def found(db: sqlite3.Connection, text: str, share: float = 0.02, newest: int = 5) -> Postings:
    return look_up(db, parse(text, NOW), common_share=share, newest=newest)


def rows(postings: Postings) -> dict[str, set[int]]:
    return {
        posting.word: set(MEMORIES.rows(posting.keys)) for posting in postings.words if posting.keys
    }


def test_each_word_has_the_rows_that_it_stands_in_in_any_of_its_forms(
    few: sqlite3.Connection,
) -> None:
    assert rows(found(few, "red harbour")) == {"red": {1, 3}, "harbour": {1, 4}}
    assert rows(found(few, "walking going")) == {"walking": {4}, "going": {2, 3}}


def test_a_word_weighs_more_the_fewer_memories_have_it(few: sqlite3.Connection) -> None:
    weights = {one.word: one.weight for one in found(few, "red bus").words}
    size = len(TEXTS)
    assert weights["red"] == pytest.approx(math.log1p((size - 2 + 0.5) / 2.5))
    assert weights["bus"] == pytest.approx(math.log1p((size - 1 + 0.5) / 1.5))


def test_kin_are_the_rows_with_a_word_that_begins_alike(few: sqlite3.Connection) -> None:
    postings = found(few, "greenhouse")
    [greenhouse] = postings.words
    assert (greenhouse.keys, greenhouse.weight) == (frozenset(), 0.0)
    assert MEMORIES.rows(greenhouse.kin) == [6]
    assert greenhouse.kin_weight > 0
    assert postings.unknown == ("greenhouse",)


def test_words_of_a_date_are_looked_up_too(few: sqlite3.Connection) -> None:
    assert rows(found(few, "what is green in May?")) == {"green": {6}, "may": {6}}


def test_a_date_that_no_text_names_is_no_unknown_word(few: sqlite3.Connection) -> None:
    assert found(few, "the red boat on 7 June 2023").unknown == ()


def test_a_word_that_stands_nowhere_is_told(few: sqlite3.Connection) -> None:
    postings = found(few, "red zebra")
    assert (postings.unknown, list(rows(postings))) == (("zebra",), ["red"])
    assert found(few, "red boat").unmet == 0.0
    assert postings.unmet > max(posting.weight for posting in postings.words)


def test_a_common_word_is_left_out_where_a_rare_one_is_asked(many: sqlite3.Connection) -> None:
    postings = found(many, "river otter")
    assert (postings.common, rows(postings), postings.newest) == (("river",), {"otter": {8}}, ())


def test_of_nothing_but_common_words_the_newest_rows_are_given(many: sqlite3.Connection) -> None:
    postings = found(many, "river stone")
    assert postings.common == ("river", "stone")
    assert MEMORIES.rows(postings.newest) == list(range(MANY, MANY - 5, -1))


def test_a_common_word_still_weighs_what_its_number_says(many: sqlite3.Connection) -> None:
    river, otter = sorted(found(many, "river otter").words, key=lambda one: one.weight)
    assert (river.word, otter.word, river.keys) == ("river", "otter", frozenset())
    assert 0 < river.weight < 0.1 < otter.weight


def test_small_talk_and_what_is_told_beside_the_question_weigh_less(
    few: sqlite3.Connection,
) -> None:
    long = "I was thinking of the bus all day again. Where did the red boat go and come from then?"
    asked = {one.word: one.weight for one in found(few, long).words}
    plain = {one.word: one.weight for one in found(few, "red bus boat").words}
    assert asked["red"] == plain["red"]
    assert asked["bus"] < plain["bus"]


def test_how_many_texts_there_are_and_how_long_they_are_is_known(few: sqlite3.Connection) -> None:
    postings = found(few, "boat")
    assert postings.size == len(TEXTS)
    assert postings.mean_length == sum(len(text.split()) for text in TEXTS) / len(TEXTS)


def test_a_word_is_common_from_a_share_of_all_memories(many: sqlite3.Connection) -> None:
    assert found(many, "river", share=1.0).common == ()
    assert len(rows(found(many, "river", share=1.0))["river"]) == MANY


@pytest.mark.parametrize("query", ["river", "river otter", '"river" otter', '"river"', "river -x"])
def test_no_look_up_fetches_more_rows_than_make_a_word_common(
    many: sqlite3.Connection, query: str
) -> None:
    asked: list[str] = []
    many.set_trace_callback(asked.append)
    found(many, query)
    many.set_trace_callback(None)
    limits = [int(sql.rsplit("LIMIT ", 1)[1].rstrip(")")) for sql in asked if "MATCH" in sql]
    assert limits
    assert max(limits) <= 501


def test_a_phrase_alone_is_demanded(few: sqlite3.Connection) -> None:
    assert demands_phrases(parse('"red boat"'))
    postings = found(few, '"red boat"')
    assert rows(postings) == {"red": {1}, "boat": {1}}
    assert postings.phrased == frozenset()


def test_a_phrase_beside_other_words_is_preferred(few: sqlite3.Connection) -> None:
    assert not demands_phrases(parse('"red boat" island'))
    postings = found(few, '"red boat" island')
    assert rows(postings) == {"red": {1, 3}, "boat": {1, 2}, "island": {2}}
    assert MEMORIES.rows(postings.phrased) == [1]


def test_what_is_excluded_stands_in_no_posting(few: sqlite3.Connection) -> None:
    assert rows(found(few, "boat -island")) == {"boat": {1}}
    assert rows(found(few, 'red -"red bus"')) == {"red": {1}}
    assert rows(found(few, '"boat" -island')) == {"boat": {1}}
    assert found(few, '"red boat" bus -harbour').phrased == frozenset()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("boat", [3, 2, 1]),
        ("boat -island", [3, 1]),
        ('boat -"red bus" -island', [1]),
        ('"red boat"', [1]),
        ('"red boat" island', [3, 2, 1]),
        ('"boat" "harbour"', [1]),
    ],
)
def test_rows_that_something_else_named_are_admitted_if_the_query_does_not_refuse_them(
    few: sqlite3.Connection, query: str, expected: list[int]
) -> None:
    assert MEMORIES.rows(admitted(few, parse(query, NOW), [3, 2, 1])) == expected


def test_an_empty_memory_and_an_empty_query_are_no_trouble(
    remembered: Callable[..., sqlite3.Connection], few: sqlite3.Connection
) -> None:
    assert found(remembered([]), "boat").unknown == ("boat",)
    assert found(few, "?!").words == ()
