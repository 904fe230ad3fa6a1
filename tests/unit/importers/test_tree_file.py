from hypothesis import given
from hypothesis import strategies as st
from json_values import HUGE_SCALARS, json_values

from thermocline.daemon.importers.tier_files import parse_tree as parse
from thermocline.daemon.memory import tree as trees
from thermocline.daemon.memory import tree_nodes
from thermocline.daemon.memory.tree_nodes import Node, TreeLimits

NOW = 1_800_000_000.0


def test_a_tree_of_evoclaw_is_read_without_its_root_and_version():
    document = {
        "root": {"desc": "Memory root", "warm_count": 0, "children": ["a"]},
        "a": {"desc": "A", "warm_count": 3, "cold_count": 4, "last_access": 17.5, "children": []},
        "b/c": {"desc": "C", "warm_count": 0, "cold_count": 0, "last_access": 0, "children": []},
        "_schema_version": "2.0",
    }
    parsed = parse(document, NOW)
    assert parsed.content == {"a": Node("A", last_access=17.5), "b/c": Node("C"), "b": Node("B")}
    assert parsed.faults == ()


def test_the_go_service_nests_its_nodes():
    document = {
        "root": {
            "path": "",
            "summary": "Root",
            "children": [
                {
                    "path": "a",
                    "summary": "s" * 120,
                    "warm_count": 1,
                    "cold_count": 2,
                    "last_updated": "2026-02-11T08:00:00Z",
                    "children": [
                        {"path": "a/b", "summary": "B", "children": None},
                        {"path": "c", "summary": "named from its parent on"},
                    ],
                },
                {"path": "z", "last_updated": "0001-01-01T00:00:00Z"},
            ],
        },
        "node_count": 5,
        "version": 3,
    }
    parsed = parse(document, NOW)
    assert parsed.content == {
        "a": Node("s" * 100, last_access=1_770_796_800),
        "a/b": Node("B"),
        "a/c": Node("named from its parent on"),
        "z": Node("Z"),
    }
    assert parsed.faults == ()


def test_an_empty_tree_of_the_go_service_is_empty():
    for children in [None, [], {}]:
        document = {"root": {"path": "", "summary": "", "children": children}, "node_count": 1}
        assert parse({**document, "version": 1}, NOW) == parse({}, NOW)


def test_times_may_be_milliseconds_or_lie_in_the_future():
    document = {
        "ms": {"last_access": 1_770_000_000_000},
        "ahead": {"last_access": NOW + 10**6},
    }
    parsed = parse(document, NOW)
    assert parsed.content["ms"].last_access == 1_770_000_000
    assert parsed.content["ahead"].last_access == NOW


def test_too_deep_categories_are_read_and_left_to_the_fitting():
    parsed = parse({"a/b/c/d/e": {"warm_count": 1}}, NOW)
    assert tree_nodes.depth(parsed.content) == 5
    assert parsed.faults == ()


def test_what_cannot_be_read_is_named_and_the_rest_is_read():
    for document, fault in [
        ([], "expected an object, got a list"),
        (None, "expected an object, got null"),
        ({"a": 5}, "'a': expected an object or text, got 5"),
        ({"../a": "x"}, "'../a': cannot use path"),
        ({"a": {"last_access": "soon"}}, "'a'.last_access: expected a time, got text"),
        ({"a": {"desc": 5}}, "'a'.desc: expected text, got 5"),
    ]:
        parsed = parse(document, NOW)
        assert len(parsed.faults) == 1
        assert parsed.faults[0].startswith(fault)
        if isinstance(document, dict):
            assert "ok" in parse({**document, "ok": "fine"}, NOW).content


def test_ten_thousand_levels_are_named_as_a_fault():
    child = {"path": "x"}
    for _ in range(10_000):
        child = {"path": "x", "children": [child]}
    parsed = parse({"root": {"children": [child]}}, NOW)
    assert len(parsed.faults) == 1
    assert tree_nodes.depth(parsed.content) <= 100


NODES = st.builds(
    Node,
    desc=st.sampled_from(["One", "Zwei", "三"]),
    last_access=st.integers(0, int(NOW)).map(float),
)
PATHS = st.lists(st.sampled_from(["a", "b", "ü"]), min_size=1, max_size=4).map("/".join)


@given(st.dictionaries(PATHS, NODES, max_size=12))
def test_what_was_written_is_read_back_the_same(tree):
    tree = tree_nodes.with_parents(tree)
    assert parse(tree_nodes.document(tree, 1, 2), NOW).content == tree


KEYS = ["root", "children", "path", "summary", "desc", "warm_count", "last_access", "a", "a/b"]
ANYTHING = json_values(
    HUGE_SCALARS, st.sampled_from(KEYS) | st.text(max_size=4), longest=6, leaves=30
)


@given(ANYTHING | ANYTHING.map(lambda inner: {"root": {"children": inner}}))
def test_no_json_can_make_it_fail_and_what_it_reads_can_be_fitted(document):
    parsed = parse(document, NOW)
    assert tree_nodes.with_parents(parsed.content) == parsed.content
    fitted = trees.fit(parsed.content, TreeLimits(), NOW)
    assert tree_nodes.size(fitted.tree, TreeLimits()) <= 2_048
    "\n".join(parsed.faults).encode()
