"""How recall ranks categories, and the formulas of other systems."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.memory.tree_nodes import Node
from thermocline.daemon.recall.presets import (
    scalyclaw,
    scalyclaw_importance,
    tinyclaw,
    tinyclaw_recency,
)
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


VECTORS = Path(__file__).parents[1] / "data" / "vectors"
TINYCLAW = json.loads((VECTORS / "tinyclaw_scoring.json").read_text())
SCALYCLAW = json.loads((VECTORS / "scalyclaw_scoring.json").read_text())["cases"]
SHARES = st.floats(0, 1)
DAYS = st.floats(0, 10_000)


def test_recency_is_that_of_tiny_claw():
    for case in TINYCLAW["temporal"]:
        recency = tinyclaw_recency(case["days"], case["access_count"])
        assert recency == pytest.approx(case["temporal"], abs=1e-11)


def test_relevance_is_that_of_tiny_claw():
    for case in TINYCLAW["combined"]:
        # The published cases give the recency itself: so many days make it.
        days = math.inf if case["temporal"] == 0 else -math.log(case["temporal"]) / 0.05
        parts = tinyclaw(case["fts"], days, 0, case["importance"])
        assert parts.relevance == pytest.approx(case["relevance"], abs=1e-9)


def test_relevance_is_that_of_scalyclaw():
    for case in SCALYCLAW:
        parts = scalyclaw(case["semantic"], case["days"], case["importance"] / 10)
        assert parts.relevance == pytest.approx(case["score"], abs=1e-9)


def test_importance_is_clamped_to_the_scale_of_1_to_10():
    for ours, theirs in [(-1, 1), (0, 1), (0.05, 1), (0.5, 5), (1, 10), (7, 10)]:
        assert scalyclaw_importance(ours) == theirs


def test_a_clock_that_was_set_back_makes_nothing_younger_than_now():
    assert tinyclaw(0.5, -400, 0, 0.5) == tinyclaw(0.5, 0, 0, 0.5)
    assert scalyclaw(0.5, -400, 0.5) == scalyclaw(0.5, 0, 0.5)


@given(worse=SHARES, better=SHARES, days=DAYS, uses=st.integers(0, 10**6), importance=SHARES)
def test_a_better_match_never_ranks_lower(worse, better, days, uses, importance):
    worse, better = sorted((worse, better))
    assert (
        tinyclaw(worse, days, uses, importance).relevance
        <= tinyclaw(better, days, uses, importance).relevance
    )
    low = scalyclaw(worse, days, importance)
    high = scalyclaw(better, days, importance)
    assert low.relevance <= high.relevance


@given(fts=SHARES, days=DAYS, uses=st.integers(0, 10**6), importance=SHARES)
def test_relevance_and_its_parts_lie_between_0_and_1(fts, days, uses, importance):
    parts = tinyclaw(fts, days, uses, importance)
    assert 0.0 <= parts.recency <= 1.0
    assert 0.0 <= parts.relevance <= 1.0 + 1e-9
