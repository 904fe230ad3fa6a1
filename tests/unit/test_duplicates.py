"""Statements that say the same are one; those of other numbers, names, roles or events are not."""

from __future__ import annotations

import json
from pathlib import Path

from thermocline.daemon.language.comparison import find_duplicates
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.records.similar import said_already

FILE = Path(__file__).parents[1] / "benchmarks" / "data" / "duplicates.json"
PAIRS = json.loads(FILE.read_text(encoding="utf-8"))
LEAST = 0.8


def stored(key: str, text: str, at: float, event: str = "fact_stored") -> Memory:
    return Memory(id=key, text=text, event=event, created_at=at, updated_at=at)


def is_found(pair: list[str]) -> bool:
    return bool(find_duplicates([stored("a", pair[0], 1.0), stored("b", pair[1], 2.0)]))


def test_most_paraphrases_are_merged_and_nothing_else_is():
    assert sum(map(is_found, PAIRS["same"])) >= LEAST * len(PAIRS["same"])
    assert [pair for pair in PAIRS["different"] if is_found(pair) or is_found(pair[::-1])] == []


def test_what_tidying_would_merge_is_not_stored_a_second_time(holding):
    for older, newer in filter(is_found, PAIRS["same"]):
        with holding(stored("a", older, 1.0)) as db:
            assert said_already(db, stored("b", newer, 2.0))


def test_a_number_that_is_joined_with_its_unit_is_compared_like_any_word():
    walk, ride = "It is a forty-minute walk to Ilona", "It is a forty-minute ride to Ilona"
    assert not is_found([walk, ride])
    assert is_found([walk, f"{walk}."])


def test_a_word_with_sharp_s_means_the_same_as_its_synonym():
    assert is_found(["Oma wohnt in Plön", "Großmutter wohnt in Plön"])


def test_equal_words_of_two_events_are_two_memories():
    text = "Call the dentist before the holidays"
    preference = stored("a", text, 1.0, "preference_learned")
    assert find_duplicates([preference, stored("b", text, 2.0, "task")]) == []
    assert find_duplicates([preference, stored("b", text, 2.0, "preference_learned")]) != []
