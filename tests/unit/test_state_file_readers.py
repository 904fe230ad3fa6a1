"""State files of every generation load, and no JSON at all can stop their readers.

`tests/data/state_files.jsonl` has a document in each line, with the content that is read of it,
without defaults, and the faults.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import CONSTANTS, HUGE_SCALARS, json_values

from thermocline.daemon.importers import tier_files, warm_file
from thermocline.daemon.importers.state_files import parse_metrics
from thermocline.daemon.importers.values import Parsed
from thermocline.daemon.memory import tree as trees
from thermocline.daemon.memory import tree_nodes
from thermocline.daemon.memory.hot import HotLimits, HotState, document, fit, update
from thermocline.daemon.memory.records import Memory, Metadata
from thermocline.daemon.memory.scoring import DAY, Scoring, record
from thermocline.daemon.memory.tree_nodes import Node, TreeLimits

NOW = 1_800_000_000.0
FILE = Path(__file__).parents[1] / "data" / "state_files.jsonl"
CASES = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
# The reader of each kind of file, what it gives, and that of an empty file.
READERS: dict[str, tuple[Callable[..., Parsed[Any]], Any, Any]] = {
    "hot": (tier_files.parse_hot, HotState, {}),
    "warm": (warm_file.parse, tuple[Memory, ...], []),
    "tree": (tier_files.parse_tree, dict[str, Node], {}),
    "metrics": (parse_metrics, dict[str, float], {}),
}
FACT = {
    "id": "0123456789ab",
    "text": "Ada builds a boat",
    "category": "projects/boat",
    "importance": 0.8,
    "created_at": 1_770_000_000.5,
    "access_count": 2,
    "score": 0.7,
    "metadata": {"urls": ["https://b.example"], "commands": [], "paths": ["/srv/boat"]},
    "tier": "hot",
}


@pytest.mark.parametrize("kind", READERS)
def test_each_document_is_read_as_its_line_says(kind):
    parse, content, empty = READERS[kind]
    cases = [case for case in CASES if case["kind"] == kind]
    assert cases
    for case in cases:
        expected = msgspec.convert(case.get("content", empty), content)
        faults = tuple(case.get("faults", ()))
        assert parse(case["document"], NOW) == Parsed(expected, faults), case["what"]


def test_no_fault_quotes_a_text():
    parsed = tier_files.parse_hot(
        {"tasks": "my secret", "events": [{"text": "a", "timestamp": "my secret"}]}, NOW
    )
    faults = (*parsed.faults, *warm_file.parse([{"text": ["my secret"]}], NOW).faults)
    assert len(faults) == 3
    assert "secret" not in "".join(faults)


def test_bottomless_json_is_cut_not_followed():
    value: list[Any] = []
    for _ in range(900):
        value = [value]
    parsed = tier_files.parse_hot({"identity": {"a": value, "b": 1}, "tasks": value}, NOW)
    assert parsed.content.identity["b"] == 1
    assert any("nested deeper" in fault for fault in parsed.faults)
    child: dict[str, Any] = {"path": "x"}
    for _ in range(10_000):
        child = {"path": "x", "children": [child]}
    tree = tier_files.parse_tree({"root": {"children": [child]}}, NOW)
    assert len(tree.faults) == 1
    assert tree_nodes.depth(tree.content) <= 100


# The records of memories


def only(fact, **options):
    parsed = warm_file.parse([fact], NOW, **options)
    assert len(parsed.content) == 1, parsed
    return parsed.content[0], parsed.faults


def without(*names, **fields):
    return {name: value for name, value in FACT.items() if name not in names} | fields


def test_a_field_is_read_or_set_right_with_a_fault():
    for fields, name, value, fault in [
        ({"importance": None}, "importance", 0.5, None),
        (
            {"importance": 7},
            "importance",
            1.0,
            "[0].importance: expected a number from 0 to 1, got 7",
        ),
        ({"importance": -1}, "importance", 0.0, "[0].importance: expected a number"),
        ({"importance": "high"}, "importance", 0.5, "[0].importance: expected a number"),
        ({"importance": float("nan")}, "importance", 0.5, "[0].importance: expected a number"),
        ({"importance": True}, "importance", 0.5, "[0].importance: expected a number"),
        ({"access_count": 3.0}, "access_count", 3, None),
        ({"access_count": -3}, "access_count", 0, "[0].access_count: expected a whole number"),
        ({"access_count": 1.5}, "access_count", 0, "[0].access_count: expected a whole number"),
        ({"access_count": 2**63}, "access_count", 0, "[0].access_count: expected a whole number"),
        ({"created_at": 1_770_000_000}, "created_at", 1_770_000_000, None),
        ({"created_at": 1_770_000_000_500}, "created_at", 1_770_000_000.5, None),
        ({"created_at": "2026-02-11T08:00:00Z"}, "created_at", 1_770_796_800, None),
        ({"created_at": "soon"}, "created_at", NOW, "[0].created_at: expected a time, got text"),
        ({"created_at": -5}, "created_at", NOW, "[0].created_at: expected a time, got -5"),
        ({"created_at": 1e300, "timestamp": 9}, "created_at", 9, "[0].created_at: expected a time"),
        ({"category": "/a / b/"}, "category", "a/b", None),
        ({"category": None}, "category", "general", None),
        ({"category": ""}, "category", "general", None),
        ({"category": "../.."}, "category", "general", "filed under 'general'"),
        ({"category": 5}, "category", "general", "[0].category: expected text, got 5"),
        ({"category": "a/b/c/d/e/f"}, "category", "a/b/c/d", None),
        ({"category": "a/b/c/d/e/f"}, "original_category", "a/b/c/d/e/f", None),
        ({"metadata": None}, "metadata", Metadata(), None),
        ({"metadata": []}, "metadata", Metadata(), "[0].metadata: expected an object, got a list"),
        ({"metadata": {"urls": "x"}}, "metadata", Metadata(), "urls: expected a list, got text"),
        ({"metadata": {"urls": [1, "u"]}}, "metadata", Metadata(urls=("u",)), "urls[0]: expected"),
        ({"tags": ["a", "a", 3]}, "tags", ("a",), "[0].tags[2]: expected text, got 3"),
        ({"tags": ["x" * 65]}, "tags", (), "[0].tags: shorten"),
        ({"type": "gossip"}, "type", "semantic", "[0].type: expected analysis, conversation"),
        ({"source": "tele\0gram"}, "source", "", "[0].source: expected text"),
        ({"source": "cold"}, "source", "cold", None),
        ({"id": 17}, "id", "17", None),
        ({"data": "\ud800"}, "data", None, "[0].data: cannot be written as JSON"),
        ({"expires_at": 253_402_300_799}, "expires_at", 253_402_300_799, None),
        ({"archived_at": 5}, "archived_at", None, None),
    ]:
        memory, faults = only({**FACT, **fields})
        assert getattr(memory, name) == value
        if fault is None:
            assert faults == ()
        else:
            assert len(faults) == 1
            assert fault in faults[0]


def test_a_text_that_no_memory_takes_is_named():
    [fault] = warm_file.parse([{"text": "x" * 65_537}], NOW).faults
    assert fault.startswith("[0]: shorten 'text': it has 65537 bytes")


def test_a_missing_id_is_the_same_at_every_reading():
    for ident in [None, ""]:
        fact = without("created_at", id=ident)
        first, faults = only(fact)
        again = warm_file.parse([{"text": "other"}, fact], NOW + DAY).content[1]
        assert faults == ()
        assert len(first.id) == 12
        assert first.id == again.id
        assert only({**fact, "created_at": 5})[0].id != first.id


def test_an_id_that_no_address_could_carry_is_replaced():
    for ident in ["a/b", "a b", "a\0", "\ud800", "x" * 129, ["a"], 1.5, True]:
        memory, faults = only({**FACT, "id": ident})
        assert len(memory.id) == 12
        assert faults == ("[0].id: cannot be used as an id; it got a new one",)


TEXT = st.text(
    max_size=30, alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0")
)
NAME = st.text("abz-", min_size=1, max_size=8)
TIME = st.floats(0, 253_402_300_799)
LABELS = st.lists(NAME, max_size=3, unique=True).map(tuple)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
JSON = json_values(CONSTANTS | NUMBERS | TEXT, TEXT, leaves=8)
MEMORIES = st.builds(
    Memory,
    id=NAME,
    text=TEXT.filter(str.strip),
    type=st.sampled_from(["semantic", "episodic", "procedural"]),
    event=NAME,
    subject=TEXT,
    outcome=TEXT,
    category=st.sampled_from(["general", "root", "a/b/c/d", "Ünï/cödé"]),
    original_category=st.sampled_from(["", "a/b/c/d/e"]),
    tags=LABELS,
    importance=st.floats(0, 1),
    source=TEXT,
    actor=TEXT,
    group=TEXT,
    position=st.none() | st.integers(0, 2**63 - 1),
    metadata=st.builds(Metadata, urls=LABELS, commands=LABELS, paths=LABELS),
    data=JSON.filter(lambda data: data not in (float("inf"), float("-inf"))),
    created_at=TIME,
    updated_at=TIME,
    last_accessed_at=st.none() | TIME,
    access_count=st.integers(0, 2**63 - 1),
    expires_at=st.none() | TIME,
    merged_into=st.none() | NAME,
    superseded_by=st.none() | NAME,
    archived_at=st.none() | TIME,
    writer=TEXT,
)


@given(st.lists(MEMORIES, max_size=4, unique_by=lambda memory: memory.id), st.booleans())
def test_memories_that_were_written_are_read_back_the_same(memories, is_pretty):
    written = msgspec.json.encode([record(memory, NOW, Scoring()) for memory in memories])
    written = msgspec.json.format(written, indent=2) if is_pretty else written
    parsed = warm_file.parse(msgspec.json.decode(written), NOW + DAY)
    plain = [
        msgspec.structs.replace(
            memory,
            archived_at=None,
            data=msgspec.json.decode(msgspec.json.encode(memory.data)),
        )
        for memory in memories
    ]
    assert parsed.faults == ()
    assert list(parsed.content) == plain


ODD = ["2026-02-11T08:00:00Z", "0001-01-01T00:00:00Z", "a/b/c/d/e", "\ud800", "\0"]
KEYS = [*Memory.__struct_fields__, "timestamp", "content", "fact", "last_accessed"]
ANYTHING = json_values(
    HUGE_SCALARS | st.sampled_from(ODD),
    st.sampled_from(KEYS) | st.text(max_size=4),
    longest=8,
    leaves=30,
)


@given(ANYTHING | st.lists(ANYTHING.map(lambda value: {"text": "x", "metadata": value} | FACT)))
def test_no_json_can_stop_the_reading_of_memories_and_they_can_be_stored(document):
    parsed = warm_file.parse(document, NOW)
    ids = [memory.id for memory in parsed.content]
    assert len(ids) == len(set(ids))
    for memory in parsed.content:
        assert msgspec.json.decode(msgspec.json.encode(memory), type=Memory).id == memory.id
        assert 0 <= memory.importance <= 1
        assert 0 <= memory.created_at < 253_402_300_800
        assert memory.access_count < 2**63
    "\n".join(parsed.faults).encode()


@given(st.sampled_from([*FACT, "data", "tags", "type", "expires_at"]), ANYTHING)
def test_one_bad_field_never_costs_the_memory_unless_it_is_the_text(name, value):
    parsed = warm_file.parse([{**FACT, name: value}], NOW)
    assert len(parsed.content) == 1 or name == "text"


# Hot states


HOT_VALUES = json_values()
HOT_KEYS = ["text", "description", "timestamp", "date", "learned_at", "importance", "category",
        "status", "name"]  # fmt: skip
HOT_ENTRY = st.dictionaries(st.sampled_from(HOT_KEYS), HOT_VALUES, max_size=5)
HOT_PART = HOT_VALUES | st.lists(HOT_ENTRY | HOT_VALUES, max_size=4)
HOT_CONTEXT = st.dictionaries(
    st.sampled_from(["projects", "events", "tasks", "current_project", "current_projects",
                     "recent_events", "pending_tasks", "recent_topics"]),
    HOT_PART,
)  # fmt: skip
HOT_DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["lessons", "critical_lessons", "events", "tasks", "projects",
                         "pending_tasks", "hot_memories", "_schema_version", "mood"], HOT_PART),
        **dict.fromkeys(["identity", "agent", "owner", "owner_profile"], HOT_VALUES),
        "active_context": HOT_CONTEXT | HOT_VALUES,
    },
)  # fmt: skip


@given(HOT_VALUES | HOT_DOCUMENTS)
def test_no_json_at_all_stops_the_reader_and_its_result_is_normalised(value):
    state = tier_files.parse_hot(value, NOW).content
    whole = document(state, (), HotLimits())
    again = tier_files.parse_hot(
        json.loads(json.dumps(whole, ensure_ascii=False).encode()), NOW + 1
    )
    assert again.faults == ()
    assert again.content == state
    fitted = fit(state, HotLimits(max_bytes=400)).state
    assert tier_files.parse_hot(document(fitted, (), HotLimits()), NOW).faults == ()


HOT_WORDS = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=8).filter(
    str.strip
)
HOT_UPDATES = st.lists(
    st.tuples(
        st.sampled_from(["lesson", "event", "task"]), st.fixed_dictionaries({"text": HOT_WORDS})
    )
    | st.tuples(
        st.just("project"),
        st.fixed_dictionaries({"name": HOT_WORDS, "note": st.booleans() | HOT_WORDS}),
    )
    | st.tuples(st.just("identity"), st.dictionaries(HOT_WORDS, st.booleans() | HOT_WORDS)),
    max_size=12,
)


@given(HOT_UPDATES)
def test_what_updates_build_is_read_back_exactly(steps):
    state = HotState()
    for number, (key, value) in enumerate(steps):
        state = update(state, key, value, NOW + number)
    parsed = tier_files.parse_hot(document(state, (), HotLimits()), NOW + 99)
    assert parsed.faults == ()
    assert parsed.content == state


# Trees


NODES = st.builds(
    Node,
    desc=st.sampled_from(["One", "Zwei", "三"]),
    last_access=st.integers(0, int(NOW)).map(float),
)
PATHS = st.lists(st.sampled_from(["a", "b", "ü"]), min_size=1, max_size=4).map("/".join)


@given(st.dictionaries(PATHS, NODES, max_size=12))
def test_a_tree_that_was_written_is_read_back_the_same(tree):
    tree = tree_nodes.with_parents(tree)
    assert tier_files.parse_tree(tree_nodes.document(tree, 1, 2), NOW).content == tree


TREE_KEYS = ["root", "children", "path", "summary", "desc", "warm_count", "last_access", "a", "a/b"]
TREE_DOCUMENTS = json_values(
    HUGE_SCALARS, st.sampled_from(TREE_KEYS) | st.text(max_size=4), longest=6, leaves=30
)


@given(TREE_DOCUMENTS | TREE_DOCUMENTS.map(lambda inner: {"root": {"children": inner}}))
def test_no_json_can_stop_the_reading_of_a_tree_and_it_can_be_fitted(document):
    parsed = tier_files.parse_tree(document, NOW)
    assert tree_nodes.with_parents(parsed.content) == parsed.content
    fitted = trees.fit(parsed.content, TreeLimits(), NOW)
    assert tree_nodes.size(fitted.tree, TreeLimits()) <= 2_048
    "\n".join(parsed.faults).encode()


# Counters


@given(
    st.dictionaries(
        st.sampled_from(["retrieval_count", "last_consolidation", "Bad Name"]) | st.text(),
        st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=6),
    )
)
def test_no_json_can_stop_the_reading_of_counters(document):
    parsed = parse_metrics(document, NOW)
    assert all(math.isfinite(value) and value >= 0 for value in parsed.content.values())
    "\n".join(parsed.faults).encode()
