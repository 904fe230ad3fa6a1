"""Finding the memory that says a thing already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_parts import transaction

from thermocline.daemon.memory.checks import check_text
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.records import memories
from thermocline.daemon.store.records.memory_rows import index_new
from thermocline.daemon.store.records.similar import find_same

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
