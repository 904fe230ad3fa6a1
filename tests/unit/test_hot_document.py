"""The hot document, and the memories promoted into it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.hot import HotLimits, HotState, document, document_size
from thermocline.daemon.memory.records import Memory

STATE = HotState(identity={"agent_name": "Ada"}, tasks=({"text": "x", "status": "pending"},))


def memory(text, number=0):
    return Memory(id=f"id{number}", text=text, created_at=1.0, updated_at=1.0, importance=0.9)


def test_the_document_has_the_shape_that_evoclaw_reads():
    state = HotState(
        identity={"agent_name": "Ada"},
        owner_profile={"timezone": "UTC"},
        projects=({"name": "boat"},),
        events=({"text": "rain", "timestamp": 1.0},),
        tasks=({"text": "x", "status": "pending", "timestamp": 2.0},),
        lessons=({"text": "y", "category": "z", "importance": 0.7, "timestamp": 3.0},),
        extra={"theme": "dark"},
        context={"recent_topics": ["sea"]},
    )
    assert document(state, (), HotLimits()) == {
        "identity": {"agent_name": "Ada"},
        "owner_profile": {"timezone": "UTC"},
        "active_context": {
            "projects": [{"name": "boat"}],
            "events": [{"text": "rain", "timestamp": 1.0}],
            "tasks": [{"text": "x", "status": "pending", "timestamp": 2.0}],
            "recent_topics": ["sea"],
        },
        "critical_lessons": [{"text": "y", "category": "z", "importance": 0.7, "timestamp": 3.0}],
        "theme": "dark",
        "_schema_version": "2.0",
    }


def test_an_unknown_key_can_never_take_the_place_of_a_known_one():
    state = msgspec.structs.replace(
        STATE, extra={"identity": 1, "hot_memories": 2}, context={"tasks": 3}
    )
    assert document(state, (), HotLimits()) == document(STATE, (), HotLimits())


def test_promoted_memories_come_last_in_their_order():
    whole = document(STATE, [memory("a", 1), memory("b", 2)], HotLimits())
    assert list(whole)[-1] == "hot_memories"
    assert whole["hot_memories"] == [
        {"id": "id1", "text": "a", "category": "general", "importance": 0.9},
        {"id": "id2", "text": "b", "category": "general", "importance": 0.9},
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=8),
       st.integers(150, 900))  # fmt: skip
def test_promotion_stays_within_the_limit_and_stops_only_at_it(texts, max_bytes):
    promoted = [memory(text, i) for i, text in enumerate(texts)]
    limits = HotLimits(max_bytes=max_bytes)
    whole = document(STATE, promoted, limits)
    chosen = len(whole.get("hot_memories", []))
    bare = document_size(document(STATE, (), limits))
    assert document_size(whole) <= max(max_bytes, bare)
    if chosen < len(promoted):
        roomy = HotLimits(max_bytes=10**6)
        assert document_size(document(STATE, promoted[: chosen + 1], roomy)) > max_bytes


def test_promotion_uses_the_last_byte():
    promoted = [memory("a", 1), memory("b", 2), memory("c", 3)]
    exact = document_size(document(STATE, promoted, HotLimits()))
    assert len(document(STATE, promoted, HotLimits(max_bytes=exact))["hot_memories"]) == 3
    assert len(document(STATE, promoted, HotLimits(max_bytes=exact - 1))["hot_memories"]) == 2


def test_the_size_counts_bytes_of_utf8_not_characters():
    assert document_size({"ä": "🙂"}) == len('{"ä":"🙂"}'.encode())
