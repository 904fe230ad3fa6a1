"""The hot document, and the memories promoted into it."""

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.hot import HotLimits, HotState, document, document_size
from thermocline.daemon.memory.records import Memory

STATE = HotState(identity={"agent_name": "Ada"}, tasks=({"text": "x", "status": "pending"},))


def memory(text, number=0):
    return Memory(id=f"id{number}", text=text, created_at=1.0, updated_at=1.0, importance=0.9)


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
