"""The hot state gives way in its order, always ends within its limits, and loses nothing.

Of the memories promoted into its document as many are there as fit.
"""

import msgspec
import pytest
from hot_states import hot_states
from hypothesis import given
from hypothesis import strategies as st
from json_values import CONSTANTS, json_values

from thermocline.daemon.errors import InvalidInput, TooLarge
from thermocline.daemon.memory.hot import (
    HotLimits,
    HotState,
    check_share,
    document,
    document_size,
    fit,
    update,
)
from thermocline.daemon.memory.records import Memory

LIMITS = HotLimits()
ROOMY = HotLimits(max_bytes=10**9)
UNCOUNTED = HotLimits(max_lessons=10**6, max_events=10**6, max_tasks=10**6)


def size(state):
    return document_size(document(state, (), ROOMY))


def limited(max_bytes):
    return msgspec.structs.replace(UNCOUNTED, max_bytes=max_bytes)


def lesson(text, importance=0.5):
    return {"text": text, "importance": importance, "category": "general", "timestamp": 1.0}


def test_finished_tasks_leave_before_open_ones_and_older_before_newer():
    statuses = ["pending", "Done", "pending", "completed", "cancelled", "in_progress"]
    tasks = tuple({"text": str(i), "status": status} for i, status in enumerate(statuses))
    for most, left in ((5, "1"), (4, "13"), (3, "134"), (2, "0134"), (1, "01234")):
        fitted = fit(HotState(tasks=tasks), HotLimits(max_tasks=most))
        assert [task["text"] for task in tasks if task not in fitted.state.tasks] == list(left)


def test_the_section_that_takes_the_most_gives_its_least_important_entry():
    long = "long " * 40
    state = HotState(
        projects=({"name": "open"}, {"name": "shut", "status": "done"}),
        events=({"text": "old"}, {"text": "new"}),
        tasks=({"text": "open task"}, {"text": f"shut {long}", "status": "done"}),
        lessons=(lesson("vital", 0.9), lesson("minor", 0.2)),
        owner_profile={"bio": "b" * 90, "tz": "UTC"},
    )
    more = {
        "Task: shut": {},
        "minor": {"lessons": (*state.lessons, lesson(long * 2, 0.8))},
        "old": {"events": (*state.events, {"text": long * 2})},
        "Project shut": {"projects": (*state.projects, {"name": "new", "description": long * 2})},
        "Owner profile, bio": {"owner_profile": {"bio": "b" * 900, "tz": "UTC"}},
    }
    for first, fields in more.items():
        larger = msgspec.structs.replace(state, **fields)
        fitted = fit(larger, limited(size(larger) - 1))
        assert fitted.displaced[0].text.startswith(first)


def test_what_leaves_is_told_with_what_it_was():
    state = HotState(
        identity={"name": "Ada"},
        owner_profile={"tz": "UTC"},
        projects=({"name": "boat", "description": "paint it", "port": "Kiel"},),
        events=({"text": "rain", "timestamp": 5.0, "town": "Kiel"},),
        tasks=({"text": "sand", "timestamp": 6.0, "status": "done"},),
        lessons=(lesson("rest", 0.9) | {"category": "work/rest", "by": "Bo"},
                 lesson("x" * 16_001, 0.8) | {"category": "a//b"}),
        context={"topic": "sea"},
        extra={"mood": "calm", "weather": "fine"},
    )  # fmt: skip
    told = {
        (one.text, one.category, one.importance, one.created_at, one.name)
        for one in fit(state, limited(0)).displaced
    }
    assert told == {
        ("Agent identity, name: Ada", "identity", 0.7, None, "name"),
        ("Owner profile, tz: UTC", "owner", 0.7, None, "tz"),
        ("Project boat: paint it (port: Kiel)", "projects", 0.6, None, "boat"),
        ("rain (town: Kiel)", "events", 0.5, 5.0, ""),
        ("Task: sand (status: done)", "tasks", 0.5, 6.0, "sand"),
        ("rest (by: Bo)", "work/rest", 0.9, 1.0, "rest"),
        (f"(part 1 of 2) {'x' * 16_000}", "lessons", 0.8, 1.0, ""),
        ("(part 2 of 2) x", "lessons", 0.8, 1.0, ""),
        ("Active context, topic: sea", "context", 0.5, None, "topic"),
        ("Hot state, weather: fine; mood: calm", "context", 0.5, None, ""),
    }


def test_a_value_beyond_its_share_is_refused():
    check_share("identity", {"n": "x" * 1_274}, LIMITS)
    for key, value, whose, most in [
        ("identity", {"n": "x" * 1_275, "tz": "UTC"}, "'n'", "1,280"),
        ("owner_profile", {"bio": {"towns": ["x" * 700, "y" * 700]}}, "'bio'", "1,280"),
        ("project", {"name": "boat", "description": "d" * 1_300}, "the project", "1,280"),
        ("lesson", {"text": "x" * 600}, "the lesson", "512"),
        ("event", {"text": "x" * 600}, "the event", "512"),
        ("task", {"text": "x" * 600}, "the task", "512"),
    ]:
        message = rf"shorten {whose}: it takes [\d,]+ bytes, and may take {most}"
        with pytest.raises(TooLarge, match=message):
            check_share(key, value, LIMITS)
        check_share(key, value, limited(100_000))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(0, 1)
values = json_values(CONSTANTS | NUMBERS | TEXT, st.text(max_size=20), longest=4, leaves=8)
objects = st.dictionaries(st.text(max_size=20), values, max_size=4)
statuses = st.sampled_from(["pending", "done", "Completed", "active", 7])
items = st.builds(
    lambda text, status, importance, rest: {
        **rest, "text": text, "name": text, "status": status, "importance": importance
    },
    st.text(max_size=200), statuses, st.floats(0, 1), objects,
)  # fmt: skip
lists = st.lists(items, max_size=4).map(tuple)
states = hot_states(objects, lists)


@given(states, st.integers(140, 3_000), st.integers(0, 5))
def test_any_state_fits_any_limit_and_fitting_again_changes_nothing(state, max_bytes, count):
    limits = HotLimits(max_bytes, count, count, count)
    before = msgspec.json.encode(state)
    fitted = fit(state, limits)
    assert size(fitted.state) <= max_bytes
    assert len(fitted.state.lessons) <= count
    assert len(fitted.state.events) <= count
    assert len(fitted.state.tasks) <= count
    again = fit(fitted.state, limits)
    assert again.state == fitted.state
    assert again.displaced == ()
    assert msgspec.json.encode(state) == before


@given(states, st.integers(140, 1_500))
def test_every_entry_is_still_in_the_state_or_told(state, max_bytes):
    fitted = fit(state, limited(max_bytes))
    told = "\n".join(displaced.text for displaced in fitted.displaced)
    for field in ("lessons", "events", "tasks"):
        for item in getattr(state, field):
            assert item in getattr(fitted.state, field) or item["text"] in told
    for field in ("identity", "owner_profile", "extra", "context"):
        for key, value in getattr(state, field).items():
            kept = getattr(fitted.state, field).get(key)
            assert kept == value or key in told
            assert kept == value or not isinstance(value, str) or value in told


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=8),
       st.integers(150, 900))  # fmt: skip
def test_promotion_stays_within_the_limit_and_stops_only_at_it(texts, max_bytes):
    state = HotState(identity={"agent_name": "Ada"}, tasks=({"text": "x", "status": "pending"},))
    promoted = [
        Memory(id=f"id{number}", text=text, created_at=1.0, updated_at=1.0, importance=0.9)
        for number, text in enumerate(texts)
    ]
    whole = document(state, promoted, limited(max_bytes))
    chosen = len(whole.get("hot_memories", []))
    assert document_size(whole) <= max(max_bytes, size(state))
    if chosen < len(promoted):
        assert document_size(document(state, promoted[: chosen + 1], ROOMY)) > max_bytes


def test_what_json_in_utf8_cannot_carry_is_refused():
    value = 1
    for _ in range(40):
        value = [value]
    for bad in ["a\0b", "\ud800", float("nan"), float("inf"), 10**30, value]:
        with pytest.raises(InvalidInput, match="cannot store"):
            update(HotState(), "owner_profile", {"a": {"b": [bad]}}, 1.0)
