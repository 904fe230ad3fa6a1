"""Whom and what memories name, kept by the database itself."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from json_values import CONSTANTS, SHORT_TEXTS, json_values
from store_parts import transaction

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.records import entity_rows, memories, merging
from thermocline.daemon.store.records.entities import (
    known,
    most_mentioned,
    named_like,
    neighbourhood,
)

NOW = 10.0

ADA = {
    "name": "Ada",
    "type": "person",
    "relations": [{"relation": "Works at", "target": "Acme"}],
}


def memory(number: int, data: Any) -> Memory:
    return Memory(
        id=f"m{number}", text=f"text {number}", created_at=number, updated_at=1, data=data
    )


def named(number: int, *entities: Any) -> Memory:
    return memory(number, {"entities": list(entities)})


KEYS = ["entities", "name", "type", "relations", "relation", "target"]
any_data = json_values(
    CONSTANTS | st.integers(-9, 9) | SHORT_TEXTS, st.sampled_from(KEYS), longest=4, leaves=12
)


def test_no_data_keeps_a_memory_from_being_stored(remembered):
    db = remembered([])
    tx = transaction(db, 1.0)

    @given(data=any_data)
    def check(data: Any) -> None:
        one = memories.insert(tx, memory(1, {"entities": data}))
        for (name,) in db.execute("SELECT name FROM mentions").fetchall():
            assert neighbourhood(db, name, 1, NOW)
        memories.delete(tx, one)
        assert db.execute("SELECT count(*) FROM mentions").fetchone() == (0,)

    check()


def test_after_a_merge_a_mention_counts_for_the_memory_that_stays_and_after_an_undo_for_both(
    remembered,
):
    db = remembered([named(1, ADA), named(2, ADA), memory(3, None)])
    tx = transaction(db, NOW)
    first, second, third = (memories.fetch(db, f"m{number}") for number in (1, 2, 3))
    assert first is not None
    assert second is not None
    assert third is not None
    merging.merge(tx, first, second)
    (ada,) = neighbourhood(db, "ada", 0, NOW)
    assert (ada.mention_count, ada.relations[0].strength) == (1, 1.0)
    assert ada.memories == ("m2",)
    merging.merge(tx, merging.require(tx, "m2"), third)
    (ada,) = neighbourhood(db, "ada", 0, NOW)
    assert ada.mention_count == 1
    assert most_mentioned(db, 5, NOW)[0].mention_count == 1
    merging.unmerge(tx, merging.require(tx, "m2"))
    merging.unmerge(tx, merging.require(tx, "m1"))
    (ada,) = neighbourhood(db, "ada", 0, NOW)
    assert (ada.mention_count, ada.relations[0].strength) == (2, 2.0)


def test_what_was_mentioned_once_and_not_for_90_days_is_no_longer_shown(remembered):
    db = remembered([named(1, {"name": "Bo"}), named(2, ADA), named(3, ADA)])
    later = 3 + 91 * 86_400.0
    assert neighbourhood(db, "bo", 0, later) == []
    assert neighbourhood(db, "ada", 0, later)
    assert {one.name for one in most_mentioned(db, 5, later)} == {"Ada", "Acme"}
    assert named_like(db, "b", later) == []


def test_a_name_and_its_aliases_are_one_entity(remembered):
    lovelace = {"name": "Ada Lovelace", "relations": [{"relation": "knows", "target": "Bo"}]}
    bo = {"name": "Bo", "relations": [{"relation": "knows", "target": "Countess"}]}
    db = remembered([named(1, ADA), named(2, lovelace), named(3, {"name": "Countess"}, bo)])
    tx = transaction(db, NOW)
    entity_rows.state(tx, "ADA", {"aliases": ["Countess"]})
    entity_rows.state(tx, "Ada Lovelace", {"aliases": ["Ada"], "type": "person"})
    ada, *others = neighbourhood(db, "countess", 1, NOW)
    assert (ada.name, ada.type, ada.mention_count) == ("Ada Lovelace", "person", 3)
    assert ada.aliases == ("Ada", "Countess")
    assert {one.target for one in ada.relations} == {"Acme", "Bo"}
    assert {one.name for one in others} == {"Acme", "Bo"}
    bo_found = next(one for one in others if one.name == "Bo")
    assert [one.target for one in bo_found.relations] == ["Ada Lovelace"]
    assert [one.name for one in known(db, "what about Ada?", (), 5, NOW)] == ["Ada Lovelace"]
    entity_rows.state(tx, "ada lovelace", {"aliases": []})
    assert neighbourhood(db, "ada", 0, NOW)[0].mention_count == 1
