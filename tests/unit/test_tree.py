"""The tree of categories: its limits and its text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import InvalidInput
from thermocline.daemon.memory import tree as trees
from thermocline.daemon.memory import tree_nodes
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.memory.tree_nodes import (
    Node,
    TreeLimits,
    name_bytes,
    one_line,
    prompt,
    show,
    size,
)

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
EVOCLAW = json.loads((VECTORS / "evoclaw_tree_ops.json").read_text())
NOW = 1_800_000_000.0
LIMITS = TreeLimits()


def node(warm=0, cold=0, idle_days=0.0, desc="d"):
    return Node(desc=desc, warm_count=warm, cold_count=cold, last_access=NOW - idle_days * DAY)


def filed(tree):
    return sum(one.warm_count + one.cold_count for one in tree.values())


def test_adding_gives_the_same_nodes_as_evoclaw():
    tree = {}
    for step in EVOCLAW["ops"]:
        if step["ok"]:
            tree = trees.add(tree, step["add"], "", NOW, LIMITS)
        else:
            with pytest.raises(InvalidInput):
                trees.add(tree, step["add"], "", NOW, LIMITS)
        assert sorted([*tree, "root"]) == step["nodes"]


def test_idle_begins_after_60_days():
    for days, gone in [(59, False), (60, False), (60.01, True)]:
        kept, _ = trees.prune({"a": node(idle_days=days)}, NOW, LIMITS.prune_idle_days)
        assert ("a" not in kept) is gone
    assert trees.prune({"a": node(idle_days=2)}, NOW, idle_days=1)[1] == ("a",)


NAMES = st.sampled_from(["a", "b", "c", "root", "ü", "漢字", "x" * 20, 'q"\t'])
PATHS = st.lists(NAMES, min_size=1, max_size=7).map("/".join).filter(lambda path: path != "root")
NODES = st.builds(
    Node,
    desc=st.text(max_size=100, alphabet=st.characters(exclude_categories=("Cs",))),
    warm_count=st.integers(0, 10**6),
    cold_count=st.integers(0, 10**9),
    last_access=st.one_of(st.just(0.0), st.floats(0, 2 * NOW)),
)
TREES = st.dictionaries(PATHS, NODES, max_size=40)
LIMIT_SETS = st.builds(
    TreeLimits,
    max_nodes=st.integers(1, 30),
    max_depth=st.integers(1, 6),
    max_children=st.integers(1, 5),
    max_size_bytes=st.integers(16, 400),
)


@given(TREES, LIMIT_SETS, st.none() | PATHS)
def test_every_tree_ends_within_every_limit_and_loses_no_memory(tree, limits, keep):
    before = dict(tree)
    fitted = trees.fit(tree, limits, NOW, keep)
    assert tree == before

    assert len(fitted.tree) + 1 <= limits.max_nodes
    assert tree_nodes.depth(fitted.tree) <= limits.max_depth
    widths = map(len, tree_nodes.children(fitted.tree).values())
    assert max(widths, default=0) <= limits.max_children
    assert tree_nodes.size(fitted.tree, limits) <= limits.max_size_bytes

    sources = [source for source, _ in fitted.merges]
    assert len(sources) == len(set(sources))
    assert not set(sources) & set(fitted.tree)
    assert set(sources) | set(fitted.tree) >= set(tree)
    where = {path: path for path in tree} | dict(fitted.merges)
    counts = dict.fromkeys([*fitted.tree, "root"], 0)
    for path, one in tree.items():
        counts[where[path]] += one.warm_count + one.cold_count
    del counts["root"]
    assert counts == {p: one.warm_count + one.cold_count for p, one in fitted.tree.items()}
    assert trees.fit(fitted.tree, limits, NOW, keep).merges == ()


@given(TREES, LIMIT_SETS)
def test_no_more_is_merged_than_the_limits_ask(tree, limits):
    fitted = trees.fit(tree, limits, NOW)
    if fitted.merges and tree_nodes.depth(tree) <= limits.max_depth:
        complete = tree_nodes.with_parents(tree)
        widths = map(len, tree_nodes.children(complete).values())
        assert (
            len(complete) + 1 > limits.max_nodes
            or max(widths) > limits.max_children
            or sum(map(name_bytes, complete)) > limits.max_size_bytes
        )


@given(TREES, st.floats(0, 2 * NOW), st.floats(0, 400))
def test_pruning_never_takes_a_memory_or_leaves_an_orphan(tree, now, idle_days):
    tree = tree_nodes.with_parents(tree)
    kept, removed = trees.prune(tree, now, idle_days)
    assert filed(kept) == filed(tree)
    assert set(kept) | set(removed) == set(tree)
    assert tree_nodes.with_parents(kept) == kept
    assert trees.prune(kept, now, idle_days) == (kept, ())


def test_usage_fades_within_days_and_cold_memories_count_a_tenth():
    assert trees.usage(node(2, 10), NOW) == pytest.approx(3)
    assert trees.usage(node(1, 0, 7), NOW) == pytest.approx(0.36787944)
    assert trees.usage(node(1, 0, -7), NOW) == 1


def test_the_text_is_that_of_evoclaw():
    tree = {
        "projects/boat": Node("Boat", 3, 10),
        "projects": Node("What we build"),
        "people": Node("People", 1, 0),
        "projects-old": Node("Attic", 0, 2),
    }
    assert show(tree, 5, 12, TreeLimits()) == "\n".join(
        [
            "Memory Tree Index", "==================================================",
            "📂 Root (warm:5, cold:12)", "  📁 people — People", "     Memories: warm=1, cold=0",
            "  📁 projects — What we build", "     Memories: warm=0, cold=0",
            "    📁 projects/boat — Boat", "       Memories: warm=3, cold=10",
            "  📁 projects-old — Attic", "     Memories: warm=0, cold=2", "", "Nodes: 5/50",
            f"Size: {size(tree, TreeLimits())} / 2048 bytes",
        ]
    )  # fmt: skip


def test_the_longest_descriptions_are_cut_first_and_no_name_ever():
    tree = {f"c{n}": Node("long " * 20 if n % 2 else "short") for n in range(10)}
    text = prompt(tree, 256)
    assert len(text.encode()) <= 256
    lines = text.splitlines()
    assert lines[0] == "c0: short"
    assert lines[1].startswith("c1: long long")
    assert lines[1].endswith("…")
    assert prompt(tree, 30) == "\n".join(sorted(tree))


@given(
    st.dictionaries(
        st.text("abcäß漢", min_size=1, max_size=4),
        st.builds(Node, desc=st.text(max_size=100).map(one_line)),
        max_size=30,
    ),
    st.integers(400, 4000),
)
def test_every_category_has_its_line_within_the_limit(tree, most):
    text = prompt(tree, most)
    assert len(text.encode()) <= most
    assert len(text.split("\n")) == len(tree) or not tree
