"""Hot state files of every generation load, and no JSON at all can stop the reader."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from thermocline.daemon.importers.tier_files import parse_hot as parse
from thermocline.daemon.memory.hot import HotLimits, HotState, document, fit, update

NOW = 1_770_000_000.0
MORNING = 1_770_796_800.0  # 2026-02-11 08:00 UTC
UNSAID = {"category": "general", "importance": 0.5, "timestamp": NOW}


def read(document):
    parsed = parse(document, NOW)
    assert parsed.faults == ()
    return parsed.content


def test_the_skills_own_shape():
    lesson = {"text": "a", "category": "b/c", "importance": 0.9, "timestamp": 5.0}
    state = read(
        {
            "identity": {"agent_name": "Ada", "trust_level": 0.5},
            "owner_profile": {"family": ["Bo"], "timezone": "UTC"},
            "active_context": {
                "projects": [{"name": "boat", "status": "active", "port": "Kiel"}],
                "events": [{"text": "rain", "timestamp": 6.5}],
                "tasks": [{"text": "paint", "status": "done", "timestamp": 7}],
            },
            "critical_lessons": [lesson],
            "_schema_version": "2.0",
        }
    )
    assert state == HotState(
        identity={"agent_name": "Ada", "trust_level": 0.5},
        owner_profile={"family": ["Bo"], "timezone": "UTC"},
        projects=({"name": "boat", "status": "active", "port": "Kiel"},),
        events=({"text": "rain", "timestamp": 6.5},),
        tasks=({"text": "paint", "status": "done", "timestamp": 7.0},),
        lessons=(lesson,),
    )


def test_version_one():
    state = read(
        {
            "owner": {"name": "Bo"},
            "agent": {"name": "Ada"},
            "lessons": ["first", "second"],
            "projects": [{"name": "boat", "status": "active", "description": "paint"}],
        }
    )
    assert state == HotState(
        identity={"name": "Ada"},
        owner_profile={"name": "Bo"},
        projects=({"name": "boat", "status": "active", "description": "paint"},),
        lessons=({"text": "first", **UNSAID}, {"text": "second", **UNSAID}),
    )


def test_the_third_party_readers_shape():
    state = read(
        {
            "agent_id": "ada",
            "identity": {"name": "Ada", "emoji": "🌊", "description": "helps"},
            "owner": {"name": "Bo", "preferences": ["tea"], "timezone": "UTC"},
            "active_context": {
                "current_project": "boat",
                "recent_topics": ["sea", "wood"],
                "pending_tasks": ["paint"],
            },
            "lessons": ["rest"],
            "events": ["rain"],
            "tasks": [{"text": "sand"}],
        }
    )
    assert state.projects == ({"name": "boat"},)
    assert state.context == {"recent_topics": ["sea", "wood"]}
    assert [task["text"] for task in state.tasks] == ["sand", "paint"]
    assert {task["status"] for task in state.tasks} == {"pending"}
    assert state.events == ({"text": "rain", "timestamp": NOW},)
    assert state.extra == {"agent_id": "ada"}
    assert state.owner_profile["preferences"] == ["tea"]


def test_the_design_documents_plain_texts():
    state = read(
        {
            "active_context": {
                "current_projects": ["boat", "house"],
                "recent_events": ["rain"],
                "pending_tasks": ["paint"],
            },
            "critical_lessons": ["rest"],
        }
    )
    assert state.projects == ({"name": "boat"}, {"name": "house"})
    assert state.events == ({"text": "rain", "timestamp": NOW},)
    assert state.tasks == ({"text": "paint", "status": "pending", "timestamp": NOW},)
    assert state.lessons == ({"text": "rest", **UNSAID},)


def test_the_go_services_shape():
    state = read(
        {
            "identity": {"agent_name": "Ada", "relationship_start": "2026-01-01T00:00:00Z"},
            "owner_profile": {"preferences": {"tea": True}, "schedule": {}},
            "active_context": {
                "current_projects": [
                    {"name": "boat", "description": "paint", "start_date": "2026-01-05T00:00:00Z"}
                ],
                "recent_events": [{"description": "rain", "date": "2026-02-11T09:00:00+01:00"}],
                "pending_tasks": [
                    {"description": "sand", "due_date": "2026-03-01T00:00:00Z", "priority": "high"}
                ],
            },
            "critical_lessons": [
                {"text": "rest", "importance": 1, "learned_at": "2026-02-11T08:00:00.000000001Z"}
            ],
            "version": 3,
            "last_updated": "2026-02-11T08:00:00Z",
        }
    )
    assert state.events == ({"text": "rain", "timestamp": MORNING},)
    assert state.tasks == (
        {
            "text": "sand",
            "due_date": "2026-03-01T00:00:00Z",
            "priority": "high",
            "status": "pending",
            "timestamp": NOW,
        },
    )
    assert state.lessons == (
        {"text": "rest", "importance": 1.0, "category": "general", "timestamp": MORNING},
    )
    assert state.extra == {"version": 3, "last_updated": "2026-02-11T08:00:00Z"}


def test_gos_null_lists_are_empty_ones():
    empty = {"current_projects": None, "recent_events": None, "pending_tasks": None}
    assert read({"active_context": empty, "critical_lessons": None, "identity": None}) == HotState()


def test_pending_tasks_at_the_top_are_tasks():
    tasks = ["a", {"text": "b", "status": "blocked"}]
    state = read({"pending_tasks": tasks, "active_context": {"tasks": [{"text": "c"}]}})
    assert [(task["text"], task["status"]) for task in state.tasks] == [
        ("a", "pending"),
        ("b", "blocked"),
        ("c", "pending"),
    ]


def test_of_mixed_generations_the_newer_wins():
    state = read(
        {
            "owner": {"name": "old", "email": "kept"},
            "owner_profile": {"name": "new"},
            "lessons": ["rest", "only old"],
            "critical_lessons": [{"text": "rest", "importance": 0.9}],
            "projects": [{"name": "boat", "status": "old", "port": "Kiel"}],
            "events": [{"text": "rain", "timestamp": 5}],
            "active_context": {
                "projects": [{"name": "boat", "status": "new"}],
                "events": [{"text": "rain", "timestamp": 5.0}, {"text": "sun", "timestamp": 6}],
            },
        }
    )
    assert state.owner_profile == {"name": "new", "email": "kept"}
    assert [(item["text"], item["importance"]) for item in state.lessons] == [
        ("only old", 0.5),
        ("rest", 0.9),
    ]
    assert state.projects == ({"name": "boat", "status": "new", "port": "Kiel"},)
    assert [event["text"] for event in state.events] == ["rain", "sun"]


def test_a_time_is_read_in_every_spelling():
    for time in [1770796800, 1770796800.0, 1770796800000, "1770796800", "2026-02-11T08:00:00Z",
                 "2026-02-11T09:00:00+01:00", "2026-02-11 08:00"]:  # fmt: skip
        assert (
            read({"events": [{"text": "x", "timestamp": time}]}).events[0]["timestamp"] == MORNING
        )


def test_a_time_that_says_nothing_is_no_fault():
    for time in [None, "", 0, "0001-01-01T00:00:00Z"]:
        assert read({"events": [{"text": "x", "timestamp": time}]}).events[0]["timestamp"] == NOW


def test_what_is_derived_is_passed_over_and_what_is_unknown_is_kept():
    state = read({"hot_memories": 5, "_schema_version": [], "mood": {"a": [1]}})
    assert state == HotState(extra={"mood": {"a": [1]}})


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (17, "document: expected an object, got 17"),
        ([], "document: expected an object, got a list"),
        ({"critical_lessons": ["a", "b", "c", 17]},
         "critical_lessons[3]: expected text or an object, got 17"),
        ({"lessons": [" "]}, "lessons[0]: expected a text that is not blank, got text"),
        ({"tasks": [{"status": "x"}]},
         "tasks[0]: expected a text that is not blank, got an object"),
        ({"tasks": "paint"}, "tasks: expected a list, got text"),
        ({"identity": ["x"]}, "identity: expected an object, got a list"),
        ({"active_context": 5}, "active_context: expected an object, got 5"),
        ({"active_context": {"projects": [{}]}},
         "active_context.projects[0]: expected a name or an object with one, got an object"),
        ({"lessons": [{"text": "x", "importance": 7}]},
         "lessons[0].importance: expected a number from 0 to 1, got 7"),
        ({"lessons": [{"text": "x", "importance": "high"}]},
         "lessons[0].importance: expected a number from 0 to 1, got text"),
        ({"lessons": [{"text": "x", "category": 5}]}, "lessons[0].category: expected text, got 5"),
        ({"tasks": [{"text": "x", "status": 5}]}, "tasks[0].status: expected text, got 5"),
        ({"events": [{"text": "x", "timestamp": "soon"}]},
         "events[0].timestamp: expected a time, got text"),
        ({"identity": {"a": "x\0"}}, "identity.a: a NUL character"),
        ({"identity": {"a": ["\ud800"]}}, "identity.a[0]: lone surrogate"),
        ({"identity": {"a": float("nan")}}, "identity.a: nan is not a JSON number"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(document, fault):
    assert parse(document, NOW).faults == (fault,)


def test_a_fault_costs_only_the_part_that_has_it():
    lessons = [{"text": "a", "importance": 7, "category": 5, "timestamp": "x", "by": "Bo"}, 5, "b"]
    parsed = parse({"critical_lessons": lessons, "tasks": 5, "identity": {"name": "Ada"}}, NOW)
    assert parsed.content == HotState(
        identity={"name": "Ada"},
        lessons=(
            {"text": "a", "by": "Bo", **UNSAID, "importance": 1.0},
            {"text": "b", **UNSAID},
        ),
    )
    assert len(parsed.faults) == 5


def test_a_fault_never_quotes_a_text():
    parsed = parse({"tasks": "my secret", "events": [{"text": "a", "timestamp": "my secret"}]}, NOW)
    assert len(parsed.faults) == 2
    assert "secret" not in "".join(parsed.faults)


def test_bottomless_json_is_cut_not_followed():
    value = []
    for _ in range(900):
        value = [value]
    parsed = parse({"identity": {"a": value, "b": 1}, "tasks": value}, NOW)
    assert parsed.content.identity["b"] == 1
    assert any("nested deeper" in fault for fault in parsed.faults)


anything = json_values()
keys = ["text", "description", "timestamp", "date", "learned_at", "importance", "category",
        "status", "name"]  # fmt: skip
entry = st.dictionaries(st.sampled_from(keys), anything, max_size=5)
part = anything | st.lists(entry | anything, max_size=4)
context = st.dictionaries(
    st.sampled_from(["projects", "events", "tasks", "current_project", "current_projects",
                     "recent_events", "pending_tasks", "recent_topics"]),
    part,
)  # fmt: skip
documents = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["lessons", "critical_lessons", "events", "tasks", "projects",
                         "pending_tasks", "hot_memories", "_schema_version", "mood"], part),
        **dict.fromkeys(["identity", "agent", "owner", "owner_profile"], anything),
        "active_context": context | anything,
    },
)  # fmt: skip


@given(anything | documents)
def test_no_json_at_all_stops_the_reader_and_its_result_is_normalised(value):
    state = parse(value, NOW).content
    whole = document(state, (), HotLimits())
    again = parse(json.loads(json.dumps(whole, ensure_ascii=False).encode()), NOW + 1)
    assert again.faults == ()
    assert again.content == state
    fitted = fit(state, HotLimits(max_bytes=400)).state
    assert parse(document(fitted, (), HotLimits()), NOW).faults == ()


words = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=8).filter(str.strip)
updates = st.lists(
    st.tuples(st.sampled_from(["lesson", "event", "task"]), st.fixed_dictionaries({"text": words}))
    | st.tuples(
        st.just("project"), st.fixed_dictionaries({"name": words, "note": st.booleans() | words})
    )
    | st.tuples(st.just("identity"), st.dictionaries(words, st.booleans() | words)),
    max_size=12,
)


@given(updates)
def test_what_updates_build_is_read_back_exactly(steps):
    state = HotState()
    for number, (key, value) in enumerate(steps):
        state = update(state, key, value, NOW + number)
    parsed = parse(document(state, (), HotLimits()), NOW + 99)
    assert parsed.faults == ()
    assert parsed.content == state
