"""The hot state gives way in its order, always ends within its limits, and loses nothing."""

import re

import msgspec
import pytest
from hot_states import hot_states
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import TooLarge
from thermocline.daemon.memory.hot import (
    HotLimits,
    HotState,
    Trimmed,
    document,
    document_size,
    fit,
    trim,
)

LIMITS = HotLimits()
ROOMY = HotLimits(max_bytes=10**9)
UNCOUNTED = HotLimits(max_lessons=10**6, max_events=10**6, max_tasks=10**6)


def size(state):
    return document_size(document(state, (), ROOMY))


def limited(max_bytes):
    return msgspec.structs.replace(UNCOUNTED, max_bytes=max_bytes)


def lesson(text, importance=0.5):
    return {"text": text, "importance": importance, "category": "general", "timestamp": 1.0}


def texts(items):
    return [item["text"] for item in items]


def test_a_state_within_its_limits_stays_as_it_is():
    state = HotState(lessons=(lesson("a"),), owner_profile={"b": 1})
    fitted = fit(state, limited(size(state)))
    assert fitted.state is state
    assert fitted.displaced == ()


def test_one_byte_less_displaces_one_entry():
    state = HotState(lessons=(lesson("a", 0.1), lesson("b", 0.9)), events=({"text": "c"},))
    fitted = fit(state, limited(size(state) - 1))
    assert texts(fitted.state.lessons) == ["b"]
    assert [left.text for left in fitted.displaced] == ["a"]


def test_the_most_important_lessons_stay_and_of_equals_the_newest():
    lessons = (lesson("a", 0.5), lesson("b", 0.9), {"text": "c"}, lesson("d", 0.1))
    fitted = fit(HotState(lessons=lessons), HotLimits(max_lessons=2))
    assert texts(fitted.state.lessons) == ["b", "c"]
    assert [left.text for left in fitted.displaced] == ["d", "a"]


def test_the_last_events_stay():
    events = tuple({"text": str(i), "timestamp": float(i)} for i in range(12))
    fitted = fit(HotState(events=events), HotLimits())
    assert texts(fitted.state.events) == [str(i) for i in range(2, 12)]
    assert [(left.text, left.created_at) for left in fitted.displaced] == [("0", 0.0), ("1", 1.0)]


def test_finished_tasks_leave_before_open_ones_and_older_before_newer():
    statuses = ["pending", "Done", "pending", "completed", "cancelled", "in_progress"]
    tasks = tuple({"text": str(i), "status": status} for i, status in enumerate(statuses))
    for most, left in ((5, "1"), (4, "13"), (3, "134"), (2, "0134"), (1, "01234")):
        fitted = fit(HotState(tasks=tasks), HotLimits(max_tasks=most))
        assert [task["text"] for task in tasks if task not in fitted.state.tasks] == list(left)


def test_no_room_at_all_for_lists_empties_them():
    state = HotState(lessons=(lesson("a"),), events=({"text": "b"},), tasks=({"text": "c"},))
    fitted = fit(state, HotLimits(max_lessons=0, max_events=0, max_tasks=0))
    assert fitted.state == HotState()


def test_sections_give_way_in_the_promised_order():
    state = HotState(
        owner_profile={"bio": "long " * 100},
        projects=({"name": "open"}, {"name": "shut", "status": "Completed"}),
        events=({"text": "old"}, {"text": "new"}),
        tasks=({"text": "open task"}, {"text": "shut task", "status": "done"}),
        lessons=(lesson("vital", 0.9), lesson("minor", 0.2)),
    )
    left = [displaced.text for displaced in fit(state, limited(300)).displaced]
    assert left == [
        "minor",
        "vital",
        "old",
        "new",
        "Task: shut task (status: done)",
        "Task: open task",
        "Project shut (status: Completed)",
        f"Owner profile, bio: {'long ' * 100}",
    ]
    for target in range(300, size(state)):
        fitted = fit(state, limited(target))
        assert size(fitted.state) <= target
        *gone, cut = [displaced.text for displaced in fitted.displaced]
        assert (gone, cut) == (left[: len(gone)], left[-1])


def test_texts_above_256_bytes_give_way_before_a_lesson_does():
    lessons = tuple(lesson(f"{n} " + "sand before painting " * 9) for n in range(15))
    profile = {"bio": "b" * 3_000, "notes": "n" * 200}
    projects = ({"name": "boat", "description": "d" * 3_000},)
    state = HotState(lessons=lessons, owner_profile=profile, projects=projects)
    fitted = fit(state, HotLimits())
    assert fitted.state.lessons == lessons
    assert fitted.state.owner_profile["notes"] == profile["notes"]
    assert fitted.state.owner_profile["bio"].endswith("b…")
    assert fitted.state.projects[0]["description"].endswith("d…")
    assert [left.text for left in fitted.displaced] == [
        f"Owner profile, bio: {'b' * 3_000}",
        f"Project boat, description: {'d' * 3_000}",
    ]


def test_the_longest_texts_are_cut_to_one_length_with_a_mark():
    profile = {"bio": "ä" * 900, "notes": {"deep": ["é" * 700, "short"]}, "tz": "Europe/Berlin"}
    state = HotState(owner_profile=profile, identity={"name": "Ada"}, projects=({"name": "x"},))
    fitted = fit(state, limited(1_000))
    cut = fitted.state.owner_profile
    assert 996 <= size(fitted.state) <= 1_000
    assert cut["bio"].endswith("ä…")
    assert cut["notes"]["deep"][0].endswith("é…")
    assert len(cut["bio"]) == len(cut["notes"]["deep"][0])
    assert (cut["tz"], cut["notes"]["deep"][1]) == ("Europe/Berlin", "short")
    assert (fitted.state.identity, fitted.state.projects) == (state.identity, state.projects)
    assert [displaced.text for displaced in fitted.displaced] == [
        f"Owner profile, bio: {'ä' * 900}",
        f"Owner profile, notes.deep[0]: {'é' * 700}",
    ]


def test_projects_are_cut_only_after_the_profile_and_keep_their_names():
    name = "n" * 100
    project = {"name": name, "description": "d" * 3_000}
    fitted = fit(HotState(projects=(project,), owner_profile={"bio": "b" * 900}), limited(500))
    assert len(fitted.state.owner_profile["bio"]) < 50
    assert fitted.state.projects[0]["name"] == name
    assert fitted.state.projects[0]["description"].endswith("d…")
    assert fitted.displaced[-1].text == f"Project {name}, description: {'d' * 3_000}"


def test_a_value_that_cannot_stay_takes_nothing_else_with_it():
    numbers = list(range(5_000))
    state = HotState(extra={"cache": numbers}, lessons=(lesson("a"),), owner_profile={"b": "c"})
    fitted = fit(state, HotLimits())
    assert fitted.state == msgspec.structs.replace(state, extra={})
    assert "".join(part(displaced.text) for displaced in fitted.displaced) == (
        f"Hot state, cache: {msgspec.json.encode(numbers).decode()}"
    )


@pytest.mark.parametrize("key", ["identity", "owner_profile"])
def test_a_long_value_is_trimmed_to_a_quarter_and_told_in_full(key):
    trimmed = trim(key, {"bio": {"towns": ["x" * 3_000, "y" * 2_000], "n": 1}, "tz": "UTC"}, LIMITS)
    assert 1_270 <= document_size(trimmed.value["bio"]) + len('"bio":') <= 1_280
    assert (trimmed.value["tz"], trimmed.value["bio"]["n"]) == ("UTC", 1)
    told = "".join(displaced.text for displaced in trimmed.displaced)
    assert "x" * 3_000 in told
    assert "y" * 2_000 in told
    (warning,) = trimmed.warnings
    assert warning.startswith("shortened 'bio' from 5,0")
    assert trim(key, trimmed.value, LIMITS) == Trimmed(trimmed.value)


@pytest.mark.parametrize("key", ["lesson", "event", "task"])
def test_a_long_entry_is_trimmed_to_a_tenth_and_told_in_full(key):
    trimmed = trim(key, {"text": "x" * 3_000, "mood": "calm"}, LIMITS)
    assert 505 <= document_size(trimmed.value) <= 512
    assert "x" * 3_000 in trimmed.displaced[0].text
    assert trimmed.warnings[0].startswith(f"shortened the {key} from 3,0")


def test_a_project_keeps_its_name_when_trimmed():
    project = {"name": "n" * 150, "description": "d" * 9_000}
    trimmed = trim("project", project, LIMITS)
    assert trimmed.value["name"] == project["name"]
    assert document_size(trimmed.value) <= 1_280


def test_a_value_that_cannot_be_cut_is_refused():
    with pytest.raises(TooLarge, match=r"shorten 'n': it takes 4,\d\d\d bytes, and may take 1,280"):
        trim("identity", {"n": [123] * 1_000}, LIMITS)


def part(text):
    return re.sub(r"^\(part \d+ of \d+\) ", "", text)


@pytest.mark.parametrize("section", ["owner_profile", "identity", "extra", "context"])
def test_thousands_of_tiny_values_fit_and_all_are_told(section):
    values = {f"key{i}": i for i in range(30_000)}
    fitted = fit(HotState(**{section: values}), HotLimits())
    kept = getattr(fitted.state, section)
    told = {
        pair.split(": ")[0]
        for displaced in fitted.displaced
        for pair in displaced.text.split(", ", 1)[1].split("; ")
    }
    assert size(fitted.state) <= 5120
    assert len(kept) > 100
    assert told | set(kept) == set(values)
    assert len(fitted.displaced) < 2_000


def test_thousands_of_entries_are_weighed_once_each_not_once_per_step():
    lessons = tuple(lesson(f"lesson {i} " * 5, (i % 100) / 100) for i in range(10_000))
    projects = tuple({"name": f"p{i}", "description": "d" * 90} for i in range(10_000))
    fitted = fit(HotState(lessons=lessons, projects=projects), UNCOUNTED)
    assert size(fitted.state) <= 5120
    assert len(fitted.displaced) + len(fitted.state.projects) >= 20_000


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "🙂" * 50_000, "\n\x01\x1f" * 30_000, '"' * 99_999]
)
def test_a_huge_text_comes_back_in_parts_that_each_fit_a_memory(text):
    for state in (HotState(lessons=(lesson(text),)), HotState(owner_profile={"bio": text})):
        fitted = fit(state, HotLimits())
        assert size(fitted.state) <= 5120
        assert all(len(displaced.text.encode()) <= 65_536 for displaced in fitted.displaced)
        assert "".join(part(displaced.text) for displaced in fitted.displaced).endswith(text)


def test_a_displaced_entry_tells_everything_it_held():
    state = HotState(
        lessons=({**lesson("never push on Friday", 0.8), "category": "work/rules", "by": "Ada"},),
        tasks=({"text": "call Bo", "status": "open", "timestamp": 7, "due_date": "2026-03-01"},),
        projects=({"name": "boat", "description": "paint it", "status": "done", "crew": ["Bo"]},),
    )
    told = fit(state, limited(200)).displaced
    assert [(left.section, left.text) for left in told] == [
        ("lesson", "never push on Friday (by: Ada)"),
        ("task", "Task: call Bo (status: open, due_date: 2026-03-01)"),
        ("project", 'Project boat: paint it (status: done, crew: ["Bo"])'),
    ]
    assert [(left.category, left.importance) for left in told] == [
        ("work/rules", 0.8),
        ("tasks", 0.5),
        ("projects", 0.6),
    ]
    assert [left.created_at for left in told] == [1.0, 7.0, None]


def test_a_displaced_lesson_never_carries_an_invalid_category():
    for category in ("../..", "", 5, None, "a/b/c/d/e", "x" * 300):
        state = HotState(lessons=({"text": "a", "category": category},))
        assert fit(state, HotLimits(max_lessons=0)).displaced[0].category == "lessons"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(0, 1)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
objects = st.dictionaries(st.text(max_size=20), json_values, max_size=4)
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
