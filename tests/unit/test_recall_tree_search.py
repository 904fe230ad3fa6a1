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


def test_the_share_of_the_words_that_stand_in_the_path_or_the_description_counts():
    assert relevance(Node(desc="")) == 1.0
    assert relevance(Node(desc=""), "garden fence") == 0.5
    assert relevance(Node(desc="The fence"), "garden fence") == 1.0
    assert relevance(Node(desc=""), "one two garden") == 0.333


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


def test_a_word_is_found_in_any_form_and_beside_any_punctuation():
    nodes = {"ops/active-context": Node(desc="Releases and notes.")}
    for query in ("release?", "note", "active_context"):
        assert [hit.path for hit in search(nodes, query, NOW)] == ["ops/active-context"]
    assert [hit.words for hit in search(nodes, "Context? CONTEXT notes.", NOW)] == [
        ("context?", "context", "notes.")
    ]


def test_words_that_no_text_is_about_name_no_category_beside_others():
    nodes = {"ops": Node(desc="What is done for the servers"), "tea": Node(desc="Leaves")}
    (hit,) = search(nodes, "what is the tea", NOW)
    assert (hit.path, hit.share) == ("tea", 1 / 4)
    assert [one.path for one in search(nodes, "what is done", NOW)] == ["ops"]


def test_the_best_come_first_and_equals_in_the_order_of_the_tree():
    nodes = {
        "b/tea": Node(desc=""),
        "a/tea": Node(desc=""),
        "c/tea": Node(desc="", warm_count=1),
        "d/tea": Node(desc=""),
    }
    assert [hit.path for hit in search(nodes, "tea", NOW)] == ["c/tea", "b/tea", "a/tea"]
    assert len(search(nodes, "tea", NOW, top=9)) == 4


def test_the_root_is_never_found():
    assert search({"root": Node(desc="Memory root")}, "memory root", NOW) == []


@given(query=st.text(max_size=60), descs=st.lists(st.text(max_size=30), max_size=6))
def test_any_query_gets_at_most_three_hits_between_0_and_3(query, descs):
    nodes = {f"n{i}/x": Node(desc=desc, warm_count=i) for i, desc in enumerate(descs)}
    hits = search(nodes, query, NOW)
    assert len(hits) <= 3
    assert all(0.0 <= hit.relevance <= 3.0 and hit.words for hit in hits)
    assert hits == sorted(hits, key=lambda hit: -hit.relevance)
