"""Statements that say the same are one; those of other numbers, names, roles or events are not."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from store_parts import transaction

from thermocline.daemon.language.comparison import find_duplicates
from thermocline.daemon.memory.checks import check_text
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.records import memories
from thermocline.daemon.store.records.memory_rows import index_new
from thermocline.daemon.store.records.similar import find_equivalent, find_same

DATA = Path(__file__).parents[1] / "benchmarks" / "data"
TABLES = [
    json.loads((DATA / name).read_text(encoding="utf-8"))
    for name in ("duplicates.json", "reworded.json")
]
PAIRS = {key: [pair for table in TABLES for pair in table[key]] for key in ("same", "different")}
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
            assert find_equivalent(db, stored("b", newer, 2.0))


def test_what_tidying_would_leave_apart_is_not_known(holding):
    for at, (older, newer) in enumerate(PAIRS["different"]):
        with holding(stored("a", older, 1.0)) as db:
            assert find_equivalent(db, stored("b", newer, 2.0)) is None, at


@pytest.mark.parametrize("newer", ["Tea is served at four", "At four tea is served"])
def test_what_has_expired_is_not_known(holding, newer):
    expired = replace(stored("a", "Tea is served at four", 1.0), expires_at=1.5)
    with holding(expired) as db:
        assert find_equivalent(db, stored("b", newer, 2.0)) is None
    with holding(replace(expired, expires_at=3.0)) as db:
        assert find_equivalent(db, stored("b", newer, 2.0))


def test_a_code_in_another_case_is_not_known(holding):
    with holding(stored("a", "The door code is Ab12", 1.0)) as db:
        assert find_equivalent(db, stored("b", "The door code is aB12", 2.0)) is None


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


NOW = 1_800_000_000.0


def memory(text: str, number: int = 1, **fields: object) -> Memory:
    return Memory(id=f"m{number}", text=text, created_at=1.0, updated_at=1.0, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Ana prefers tea", "Ana prefers tea in the morning"),
        ("Ana prefers tea in the morning", "Ana prefers tea"),
        ("word " * 300 + "end", "word " * 300 + "close"),
        ("Is it open?", "It is open"),
        ("The key is Ab12", "The key is aB12"),
    ],
)
def test_another_text_is_not(remembered, stored, asked):
    assert find_same(remembered([memory(stored)]), asked, NOW) is None


def test_one_of_thousands_that_begin_alike_is_found(remembered):
    many = [memory(f"ok then {n}", n) for n in range(500)]
    db = remembered([*many, memory("Ok then", 999)])
    found = find_same(db, "ok then", NOW)
    assert found is not None
    assert found.id == "m999"


def test_any_text_is_found_again(remembered):
    db = remembered([memory("something else", 2)])
    tx = transaction(db, NOW)

    @given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
    def check(text: str) -> None:
        try:
            check_text(text)
        except Exception:  # noqa: BLE001 - what cannot be stored need not be found
            return
        one = memory(text)
        memories.insert(tx, one)
        index_new(tx)
        assert find_same(db, text, NOW) is not None
        memories.delete(tx, one)
        assert find_same(db, text, NOW) is None

    check()
