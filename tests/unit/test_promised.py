"""The judge of histories: whatever is taken away of what was acknowledged, it says so."""

import copy
from typing import Any

import pytest
from device import Contents
from promised import FIELDS, Last, Promised


def memory(text: str, **fields: Any) -> dict[str, Any]:
    given = dict.fromkeys(FIELDS, "") | {"merged_into": None, "tags": [], "access_count": 0}
    return given | {"text": text} | fields


@pytest.fixture
def promised() -> Promised:
    """Four memories, of which one is merged and one forgotten, and something of all the rest."""
    made = Promised(["plans.md"])
    first = {key: memory(key) for key in ("a", "b", "c", "d")}
    made.note({}, first, 1)
    second = copy.deepcopy(first)
    second["a"]["outcome"] = "arrived"
    second["b"]["merged_into"] = "a"
    made.note(first, second, 2)
    made.note(second, {key: second[key] for key in ("a", "b", "c")}, 3)
    made.tags["a"] = {"new"}
    made.pairs |= {"key": Last("value", 4), "gone": Last(None, 5)}
    made.identity["name"] = Last("Otis", 6)
    made.projects["boat"] = Last("afloat", 7)
    made.lessons.add("tie the boats")
    made.categories.add("harbour")
    made.lines["plans.md"].add("one")
    return made


@pytest.fixture
def contents() -> Contents:
    return Contents(
        memories={
            "a": memory("a", outcome="arrived", tags=["new"]),
            "b": memory("b", merged_into="a"),
            "c": memory("c"),
        },
        pairs={"key": "value"},
        hot={
            "identity": {"name": "Otis"},
            "active_context": {"projects": [{"name": "boat", "status": "afloat"}]},
            "critical_lessons": [{"text": "tie the boats"}],
        },
        categories={"harbour": ""},
        notes={"plans.md": "one\n"},
    )


def test_what_is_there_is_not_missed(promised, contents):
    assert promised.lost(contents) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.memories["a"].update(text="other"),
        lambda c: c.memories["a"].update(outcome=""), lambda c: c.memories["a"].update(tags=[]),
        lambda c: c.memories["b"].update(merged_into=None),
        lambda c: c.memories["b"].update(merged_into="c"),
        lambda c: c.memories["c"].update(merged_into="gone"), lambda c: c.memories.pop("c"),
        lambda c: c.memories.update(d=memory("d")), lambda c: c.pairs.update(key="older"),
        lambda c: c.pairs.update(gone="back"), lambda c: c.hot["identity"].clear(),
        lambda c: c.hot["active_context"]["projects"].clear(),
        lambda c: c.hot["critical_lessons"].clear(), lambda c: c.categories.clear(),
        lambda c: c.notes.clear(),
    ],
)  # fmt: skip
def test_whatever_is_lost_is_one_line(promised, contents, damage):
    damage(contents)
    assert len(promised.lost(contents)) == 1


def test_uses_of_what_was_merged_count_for_what_stays():
    made = Promised([])
    made.note({}, {"a": memory("a"), "b": memory("b")}, 1)
    made.uses.update({"a": 1, "b": 2})
    found = {"a": memory("a", access_count=3), "b": memory("b", merged_into="a")}
    hot = {"identity": {}, "active_context": {"projects": []}, "critical_lessons": []}
    made.note({}, found, 2)
    assert made.lost(Contents(found, {}, hot, {}, {})) == []
    found["a"]["access_count"] = 2
    assert made.lost(Contents(found, {}, hot, {}, {})) == ["uses of a: 3, has 2"]


def test_a_text_that_was_changed_after_a_memory_was_forgotten_brings_it_back(promised, contents):
    before = {"d": memory("d")}
    promised.note(before, {"d": memory("changed")}, 9)
    assert promised.lost(contents) == ["all of d"]
    contents.memories["d"] = memory("changed")
    assert promised.lost(contents) == []
