"""Building the tree anew: what is proposed, what is refused, and that nothing is ever lost."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.tree import fit
from thermocline.daemon.memory.tree_nodes import ROOT, Node, TreeLimits, level, with_parents
from thermocline.daemon.memory.tree_rebuild import (
    Placed,
    Rebuilt,
    Relabel,
    TreeChange,
    apply,
    fits,
)

NOW = 1_790_000_000.0
LIMITS = TreeLimits()
NAMES = ("a", "b", "c")


def tree_of(*paths: str, **counts: int) -> dict[str, Node]:
    nodes = {path: Node(desc=path, last_access=NOW) for path in paths}
    return with_parents(nodes) | {
        path: msgspec.structs.replace(nodes[path], warm_count=number)
        for path, number in counts.items()
    }


def op(kind: Any, path: str, new_path: str = "", **more: Any) -> TreeChange:
    return TreeChange(type=kind, path=path, new_path=new_path, **more)


def why(rebuilt: Rebuilt) -> list[str]:
    return [refused.why for refused in rebuilt.refused]


# One operation


def test_what_makes_no_sense_is_refused_and_changes_nothing():
    for operation, fault in [
        (op("remove", "full"), "cannot remove 'full': 2 memories are filed in it or below it"),
        (op("remove", "above"), "cannot remove 'above': 1 memories are filed in it or below it"),
        (op("remove", "root"), "cannot remove the root of the tree"),
        (op("remove", "none"), "the tree has no category 'none'"),
        (op("merge", "full", "none"), "the tree has no category 'none'"),
        (op("merge", "above", "above/below"), "cannot move 'above' to 'above/below'"),
        (op("merge", "full", "full"), "cannot move 'full' to 'full'"),
        (op("merge", "root", "full"), "cannot move 'root' to 'full'"),
        (op("rename", "full", "above"), "the category 'above' is already there"),
        (op("rename", "full", "a/b/c/d/e"), "cannot use path 'a/b/c/d/e': it has 5 levels"),
        (
            op("rename", "above", "x/y/z/full"),
            "cannot use path 'x/y/z/full/below': it has 5 levels",
        ),
        (op("rename", "full", "../etc"), "cannot use path '../etc': '..' is not a name"),
        (op("add", "full"), "the category 'full' is already there"),
        (op("add", "root"), "the category 'root' is already there"),
        (op("add", "a/b/c/d/e"), "cannot use path 'a/b/c/d/e': it has 5 levels"),
        (op("describe", "full"), "cannot use this description of 'full'"),
        (op("move", "full", "x"), "none of these memories can move from 'full' to 'x'"),
    ]:
        tree = tree_of("full", "above", "above/below", full=2)
        tree["above/below"] = Node("below", cold_count=1)
        done = apply(tree, [operation, op("describe", "full", summary="Still")], LIMITS, NOW)
        assert why(done) == [fault]
        assert [one.type for one in done.done] == ["describe"]
        assert set(done.tree) == set(tree)


# Whatever is wanted


paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5).map("/".join) | st.sampled_from(
    ["root", "", "..", "a//b", "_x", "new", "new/deep/er/yet/more"]
)
ids = st.integers(0, 19).map("m{}".format)
operations = st.builds(
    TreeChange,
    type=st.sampled_from(["add", "remove", "merge", "rename", "describe", "move"]),
    path=paths,
    new_path=paths,
    summary=st.text(max_size=8),
    ids=st.lists(ids, max_size=6).map(tuple),
)
limits = st.builds(
    TreeLimits,
    max_nodes=st.integers(2, 12),
    max_depth=st.integers(1, 4),
    max_children=st.integers(1, 4),
    max_size_bytes=st.integers(4, 60),
)


@given(
    st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)),
    st.lists(st.lists(st.sampled_from(NAMES), max_size=4).map("/".join), min_size=20, max_size=20),
    st.lists(operations, max_size=14),
    limits,
)
def test_no_memory_is_ever_lost_and_no_limit_broken(given_paths, homes, wanted, caps):
    fitted = fit(with_parents({path: Node(path) for path in given_paths}), caps, NOW)
    at = {f"m{n}": home if home in fitted.tree else ROOT for n, home in enumerate(homes)}
    tree = dict(fitted.tree)
    for home in at.values():
        if home != ROOT:
            node = tree[home]
            tree[home] = msgspec.structs.replace(node, warm_count=node.warm_count + 1)
    if fits(tree, caps) is not None:
        return
    done = apply(tree, wanted, caps, NOW, {key: Placed(home) for key, home in at.items()})
    assert fits(done.tree, caps) is None
    assert all(level(path) <= caps.max_depth for path in done.tree)
    assert dict(with_parents(done.tree)) == done.tree
    for step in done.steps:
        for key, home in at.items():
            if home == step.old and (isinstance(step, Relabel) or key in step.ids):
                at[key] = step.new
    counted = dict.fromkeys(done.tree, 0)
    for home in at.values():
        assert home == ROOT or home in done.tree
        if home != ROOT:
            counted[home] += 1
    assert counted == {path: node.warm_count for path, node in done.tree.items()}
