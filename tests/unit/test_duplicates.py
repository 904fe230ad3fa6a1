"""Statements that say the same are one; those of other numbers, names, roles or events are not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from thermocline.daemon.language.comparison import find_duplicates, repeats
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.similar import said_already

FILE = Path(__file__).parents[1] / "benchmarks" / "data" / "duplicates.json"
PAIRS = json.loads(FILE.read_text(encoding="utf-8"))
LEAST = 0.8
Remembered = Callable[[Iterable[Memory]], sqlite3.Connection]


def stored(key: str, text: str, at: float, event: str = "fact_stored") -> Memory:
    return Memory(id=key, text=text, event=event, created_at=at, updated_at=at)


def is_found(pair: list[str]) -> bool:
    return bool(find_duplicates([stored("a", pair[0], 1.0), stored("b", pair[1], 2.0)]))


def test_most_paraphrases_are_merged_and_nothing_else_is():
    assert sum(map(is_found, PAIRS["same"])) >= LEAST * len(PAIRS["same"])
    assert [pair for pair in PAIRS["different"] if is_found(pair) or is_found(pair[::-1])] == []


def test_what_tidying_would_merge_is_not_stored_a_second_time(remembered: Remembered):
    for older, newer in filter(is_found, PAIRS["same"]):
        assert said_already(remembered([stored("a", older, 1.0)]), stored("b", newer, 2.0))


@pytest.mark.parametrize(
    "pair",
    [
        "Tom does not smoke | Tom did not smoke",
        "Rooms 5 and 6 cost 50 and 60 | Rooms 6 and 5 cost 50 and 60",
        "Ben and Zoe got red and blue | Zoe and Ben got red and blue",
        "In May Ada thanked Ben | In May Ben thanked Ada",
        "Ada thanked Ben in May | In May Ben thanked Ada",
        "The shop shuts at nine | The shop opens at nine",
        "Every cat is an animal | Every animal is a cat",
        "Tom is taller than Anna | Anna is taller than Tom",
        "Am Montag besucht Anna Paul | Am Montag besucht Paul Anna",
        "Anna besucht Paul am Montag | Am Montag besucht Paul Anna",
        "Paul besucht Anna am Montag | Am Montag besucht Anna Paul",
        "From Oslo we fly to Bergen | From Bergen we fly to Oslo",
        "We fly from Oslo to Bergen | From Bergen we fly to Oslo",
        "With sugar I drink tea without milk | With milk I drink tea without sugar",
        "Before lunch Tom swims after work | After lunch Tom swims before work",
        "I drink tea with sugar and coffee without | I drink coffee with sugar and tea without",
        "Without Tom Anna won't go | Without Anna Tom won't go",
        "Anna won't go without Tom | Without Anna Tom won't go",
        "On Monday Tom pays for Anna | On Monday Anna pays for Tom",
        "If Tom calls, tell Anna | If Anna calls, tell Tom",
        "Tell Anna if Tom calls | If Anna calls, tell Tom",
        "Because Tom left Anna cried | Because Anna cried Tom left",
        "Anna cried because Tom left | Tom left because Anna cried",
        "Tom left because Anna cried | Because Tom left, Anna cried",
        "The host in Oslo talks to one in Bergen | The host in Bergen talks to one in Oslo",
        "Meet Anna at nine and Tom at ten | Meet Anna at ten and Tom at nine",
        "Always ask Tom before Anna | Ask Anna always before Tom",
        "Restart wren after heron | After wren restart heron",
        "Call mum when dad arrives | When mum arrives call dad",
        "Vor dem Essen Tabletten nehmen | Tabletten vor dem Essen nehmen nicht",
        "A is better than B | B is better than A",
        "Zoe's dog is Rex | Rex's dog is Zoe",
        "Bob is the father of Tom | Tom is the father of Bob",
        "Instead of npm we use pnpm | Instead of pnpm we use npm",
        "We use pnpm instead of npm | Instead of pnpm we use npm",
        "Buy bread every Monday | Buy bread on Monday",
        "by Tom Anna was seen | by Anna Tom was seen",
        "Anna was seen by Tom | By Anna Tom was seen",
        "Before noon call Anna and later call Tom | Before noon call Tom and later call Anna",
        "Under 5 kg it is free | 5 kg under it is free",
        "for Anna Tom cooks | for Tom Anna cooks",
        "Tom cooks for Anna | For Tom Anna cooks",
    ],
)
def test_words_that_change_places_change_what_is_said(pair):
    one, other = pair.split(" | ")
    assert repeats(one, other).relation == repeats(other, one).relation == "unrelated"


def test_equal_words_of_two_events_are_two_memories():
    text = "Call the dentist before the holidays"
    preference = stored("a", text, 1.0, "preference_learned")
    assert find_duplicates([preference, stored("b", text, 2.0, "task")]) == []
    assert find_duplicates([preference, stored("b", text, 2.0, "preference_learned")]) != []
