"""Reading a query: its telling words, and an expression that nothing can break out of."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.recall.query import MOST_WORDS, match_expression, parse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the name of the boat?", ("name", "boat")),
        ("boat Boat BOAT", ("boat",)),
        ("who are you", ("who", "are", "you")),
        ("the", ("the",)),
        ("", ()),
        ("?! -- ()", ()),
        ("東京都", ("東京", "京都")),
        ("山", ("山",)),
        ("Straße", ("straße",)),
        ("a AND b OR NOT c*", ("b", "c")),
        ('"quoted" text:x', ("quoted", "text", "x")),
    ],
)
def test_the_words_of_a_query_are_those_that_tell(text: str, words: tuple[str, ...]) -> None:
    assert parse(text).words == words
    assert parse(text).empty == (not words)


def test_a_query_has_at_most_so_many_words() -> None:
    text = " ".join(f"word{number}" for number in range(500))
    assert len(parse(text).words) == MOST_WORDS


def test_a_lone_character_of_a_script_in_pairs_stands_for_the_pairs_that_begin_with_it() -> None:
    assert match_expression(("山", "x", "ab")) == '"山"* OR "x" OR "ab"'


@given(st.text(max_size=80))
def test_no_query_can_be_read_as_anything_but_words(text: str) -> None:
    words = parse(text).words
    if not words:
        return
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(body, content='')")
    db.execute("SELECT rowid FROM t WHERE t MATCH ?", (match_expression(words),)).fetchall()
    db.close()
