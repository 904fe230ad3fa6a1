from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.memory.tree_nodes import Node
from thermocline.daemon.recall.tree_search import search

NOW = 1_800_000_000.0


def relevance(node: Node, query: str = "garden") -> float:
    (hit,) = search({"home/garden": node}, query, NOW)
    return hit.relevance


def test_memories_add_weight_up_to_double():
    for warm, cold, weight in [
        (0, 0, 1.0), (3, 0, 1.3), (0, 7, 1.07), (2, 5, 1.25), (10, 0, 2.0), (40, 900, 2.0),
    ]:  # fmt: skip
        assert relevance(Node(desc="", warm_count=warm, cold_count=cold)) == weight


def test_a_category_that_was_used_of_late_leads():
    for days, factor in [
        (-3, 1.5), (0, 1.5), (6.99, 1.5), (7, 1.2), (29.99, 1.2), (30, 1.0), (900, 1.0),
    ]:  # fmt: skip
        assert relevance(Node(desc="", last_access=NOW - days * DAY)) == factor


@given(query=st.text(max_size=60), descs=st.lists(st.text(max_size=30), max_size=6))
def test_any_query_gets_at_most_three_hits_between_0_and_3(query, descs):
    nodes = {f"n{i}/x": Node(desc=desc, warm_count=i) for i, desc in enumerate(descs)}
    hits = search(nodes, query, NOW)
    assert len(hits) <= 3
    assert all(0.0 <= hit.relevance <= 3.0 and hit.words for hit in hits)
    assert hits == sorted(hits, key=lambda hit: -hit.relevance)
