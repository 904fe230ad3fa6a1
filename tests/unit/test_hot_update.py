"""Changing the hot state by its keys."""

import msgspec
import pytest

from thermocline.daemon.errors import InvalidInput
from thermocline.daemon.memory.hot import HotState, remove, update

NOW = 1_770_000_000.0
LESSON = {"text": "measure twice", "category": "craft/wood", "importance": 0.9, "timestamp": 5.0}
TASK = {"text": "water plants", "status": "pending", "timestamp": 5.0, "room": "kitchen"}


def test_a_lesson_gets_the_defaults_of_the_format():
    state = update(HotState(), "lesson", {"text": "  rest on Sundays "}, NOW)
    assert state.lessons == (
        {"text": "rest on Sundays", "category": "general", "importance": 0.7, "timestamp": NOW},
    )


def test_an_event_gets_the_time_and_a_task_its_status():
    state = update(HotState(), "event", {"text": "moved house"}, NOW)
    state = update(state, "task", {"text": "unpack"}, NOW)
    assert state.events == ({"text": "moved house", "timestamp": NOW},)
    assert state.tasks == ({"text": "unpack", "status": "pending", "timestamp": NOW},)


def test_a_lesson_repeated_replaces_the_older_and_becomes_the_newest():
    before = HotState(lessons=(LESSON, {"text": "other"}))
    state = update(before, "lesson", {"text": "measure twice", "importance": 0.2}, NOW)
    assert [lesson["text"] for lesson in state.lessons] == ["other", "measure twice"]
    assert state.lessons[1] == {**LESSON, "importance": 0.2, "timestamp": NOW}


def test_a_task_repeated_with_a_new_status_is_that_tasks_new_status():
    state = update(HotState(tasks=(TASK,)), "task", {**TASK, "status": "done"}, NOW)
    assert state.tasks == ({**TASK, "status": "done"},)


def test_a_task_keeps_what_a_repetition_does_not_mention_but_is_open_again():
    done = {**TASK, "status": "done"}
    state = update(HotState(tasks=(done,)), "task", {"text": "water plants"}, NOW)
    assert state.tasks == ({**TASK, "timestamp": NOW},)


def test_a_time_may_be_iso_text():
    given = {"text": "x", "timestamp": "2026-02-11T08:00:00Z"}
    assert update(HotState(), "event", given, NOW).events[0]["timestamp"] == 1_770_796_800.0


def test_nothing_given_is_changed():
    state = HotState(lessons=(LESSON,), owner_profile={"a": 1}, projects=({"name": "boat"},))
    before = msgspec.json.encode(state)
    given = {"text": " measure twice "}
    update(state, "lesson", given, NOW)
    update(state, "owner_profile", {"a": 2}, NOW)
    update(state, "project", {"name": "boat", "x": 1}, NOW)
    remove(state, "owner_profile", "a")
    assert given == {"text": " measure twice "}
    assert msgspec.json.encode(state) == before


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_what_json_in_utf8_cannot_carry_is_refused():
    for value in ["a\0b", "\ud800", float("nan"), float("inf"), 10**30, nested(40), nested(100)]:
        with pytest.raises(InvalidInput, match="cannot store"):
            update(HotState(), "owner_profile", {"a": {"b": [value]}}, NOW)
