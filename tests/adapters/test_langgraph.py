"""`ThermoclineStore` against LangGraph's interface, and beside its own store in memory."""

import asyncio
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from daemon_process import Daemon, wait_until
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langgraph", reason="make adapters")

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from thermocline.daemon.client.adapters.langgraph import ThermoclineStore

pytestmark = pytest.mark.adapters

ANA, BEN = ("users", "ana"), ("users", "ben")


@pytest.fixture
def store(shared_daemon: Daemon, agent: str) -> Iterator[ThermoclineStore]:
    with closing(ThermoclineStore(agent, shared_daemon.socket)) as made:
        yield made


def test_an_item_is_put_read_changed_and_deleted(store):
    value = {"text": "Ana likes green tea", "deep": [{"a": None, "b": 1.5, "c": [True]}]}
    store.put(ANA, "tea", value)
    item = store.get(ANA, "tea")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (ANA, "tea", value)
    store.put(ANA, "tea", {"text": "Ana likes black tea"})
    changed = store.get(ANA, "tea")
    assert changed is not None
    assert changed.value == {"text": "Ana likes black tea"}
    assert changed.created_at == item.created_at
    assert changed.updated_at > item.updated_at
    assert store.get(BEN, "tea") is None
    store.delete(ANA, "tea")
    store.delete(ANA, "tea")
    assert store.get(ANA, "tea") is None


def test_an_item_is_a_memory_with_its_namespace_as_category_and_a_history(store, client):
    store.put(ANA, "tea", {"text": "Ana likes green tea"})
    store.put(ANA, "tea", {"text": "Ana likes black tea"})
    (memory,) = client.list(category="users").results
    assert (memory.text, memory.category) == ("Ana likes black tea", "users/ana")
    assert (memory.source, memory.tags) == ("langgraph", ("key:tea",))
    assert client.recall("which tea does Ana like?").results[0].id == memory.id
    versions = client.history(memory.id).results
    assert [version.data["text"] for version in versions] == ["Ana likes green tea"]


@pytest.mark.parametrize("namespace", [
    ("a/b", "c"), ("_x",), ("root",), ("root", "x"), (" blank ",), ("x" * 300,), ("e\u0301",),
    ("a", "b", "c", "d", "e", "f"), ("Ünï", "日本"), ("y" * 64,) * 9, ("back\\slash", "new\nline"),
])  # fmt: skip
def test_any_name_is_kept_exactly(store, namespace):
    keys = ["k", "a/b?c#d", "x" * 300, " ", "é\n", "key:1"]
    store.batch([PutOp(namespace, key, {"n": n}) for n, key in enumerate(keys)])
    store.put((*namespace, "below"), "k", {"n": 9})
    for number, key in enumerate(keys):
        item = store.get(namespace, key)
        assert item is not None
        assert (item.namespace, item.key, item.value) == (namespace, key, {"n": number})
    assert len(store.search(namespace)) == 7
    assert store.list_namespaces() == [namespace, (*namespace, "below")]


def test_names_that_make_one_category_stay_apart(store):
    for number, label in enumerate(["a/b", "a\\b", "a-b"]):
        store.put((label,), "k", {"n": number})
    for number, label in enumerate(["a/b", "a\\b", "a-b"]):
        assert [item.value["n"] for item in store.search((label,))] == [number]
    assert len(store.list_namespaces()) == 3


def test_a_question_finds_the_best_item_with_its_score(store):
    store.put(ANA, "1", {"text": "Ana's dentist is Dr. Weber"})
    store.put(ANA, "2", {"text": "Ana plays the cello on Mondays"})
    store.put(BEN, "3", {"text": "Ben plays the cello too"})
    best = store.search(ANA, query="who plays the cello?")[0]
    assert best.key == "2"
    assert best.score is not None
    assert 0 < best.score <= 1
    assert [item.key for item in store.search(BEN, query="who plays the cello?")] == ["3"]
    assert store.search(ANA, query="volcano") == []


def test_a_question_sees_other_memories_of_the_agent_neither_as_items_nor_in_lists(store, client):
    client.store("Ana plays the cello", category="users/ana")
    assert store.search(ANA) == store.search(ANA, query="cello") == []
    assert store.list_namespaces() == []


def test_index_says_what_is_searched(shared_daemon, agent):
    store = ThermoclineStore(agent, shared_daemon.socket, fields=["title", "tags[*]"])
    value = {"title": "harbour plan", "tags": ["quay", "crane"], "body": "secret lighthouse"}
    store.put(ANA, "default", value)
    store.put(ANA, "body", {**value, "title": "other"}, index=["body"])
    store.put(ANA, "none", {"title": "unsearchable meadow"}, index=False)
    assert [item.key for item in store.search(ANA, query="crane")] == ["default"]
    assert [item.key for item in store.search(ANA, query="lighthouse")] == ["body"]
    assert store.search(ANA, query="meadow") == []
    assert {item.key for item in store.search(ANA)} == {"default", "body", "none"}
    store.close()


VALUES = [
    {"n": 1, "tag": "a", "deep": {"x": [1, 2]}},
    {"n": 2.5, "tag": "b", "deep": {"x": []}},
    {"n": -3, "tag": None},
    {"tag": ["a", "b"]},
]


@pytest.mark.parametrize("condition", [
    {}, {"tag": "a"}, {"tag": None}, {"n": {"$gt": 1}}, {"n": {"$gte": 1, "$lt": 2.5}},
    {"n": {"$ne": 1}}, {"n": {"$eq": 2.5}}, {"n": {"$lte": -3}}, {"deep": {"x": [1, 2]}},
    {"deep": {"x": {"$ne": []}}}, {"tag": ["a", "b"]}, {"tag": "a", "n": 2.5}, {"nothing": 1},
])  # fmt: skip
def test_a_filter_selects_what_the_store_in_memory_selects(store, condition):
    reference = InMemoryStore()
    numbers = any("$g" in str(part) or "$l" in str(part) for part in condition.values())
    for number, value in enumerate(VALUES[: 3 if numbers else 4]):
        store.put(ANA, f"{number}", value)
        reference.put(ANA, f"{number}", value)
    wanted = {item.key for item in reference.search(ANA, filter=condition)}
    assert {item.key for item in store.search(ANA, filter=condition)} == wanted


def test_an_unknown_operator_is_refused(store):
    store.put(ANA, "1", {"n": 1})
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(ANA, filter={"n": {"$near": 1}})


def test_pages_of_a_search_are_complete_and_disjoint(store):
    store.batch([PutOp(ANA, f"{n}", {"n": n}) for n in range(23)])
    pages = [store.search(ANA, limit=5, offset=at) for at in range(0, 30, 5)]
    assert [len(page) for page in pages] == [5, 5, 5, 5, 3, 0]
    assert {item.value["n"] for page in pages for item in page} == {*range(23)}


def test_more_items_than_one_answer_of_the_daemon_holds(store):
    store.batch([PutOp((*ANA, f"{n % 3}"), f"{n}", {"n": n}) for n in range(1_203)])
    assert len(store.search(ANA, limit=2_000)) == 1_203
    assert len(store.search(ANA, filter={"n": {"$lt": 7}}, limit=2_000)) == 7
    assert store.list_namespaces() == [(*ANA, "0"), (*ANA, "1"), (*ANA, "2")]


NAMESPACES = [
    ("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"),
    ("b", "a", "f"), ("users", "123"), ("users", "456", "settings"), ("admin", "users", "789"),
]  # fmt: skip


def test_namespaces_are_listed_as_the_store_in_memory_lists_them(store):
    reference = InMemoryStore()
    for at, namespace in enumerate(NAMESPACES):
        store.put(namespace, f"{at}", {"n": at})
        reference.put(namespace, f"{at}", {"n": at})
    for options in (
        {}, {"prefix": ("a", "b")}, {"suffix": ("f",)}, {"prefix": ("a",), "suffix": ("f",)},
        {"prefix": ("a", "b"), "max_depth": 3}, {"max_depth": 1}, {"prefix": ("a", "*", "f")},
        {"suffix": ("*", "f")}, {"prefix": ("*", "users")}, {"limit": 2, "offset": 3},
        {"prefix": ("users", "123")}, {"prefix": ("none",)},
    ):  # fmt: skip
        assert store.list_namespaces(**options) == reference.list_namespaces(**options), options


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("a", ""), ("langgraph", "x")])
def test_an_invalid_namespace_is_refused(store, namespace):
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"n": 1})


def test_a_batch_reads_what_was_there_before_it_and_the_last_write_counts(store):
    store.put(ANA, "1", {"n": 1})
    results = store.batch([
        PutOp(ANA, "1", {"n": 2}),
        GetOp(ANA, "1"),
        SearchOp(ANA),
        PutOp(ANA, "2", {"n": 1}),
        PutOp(ANA, "2", {"n": 2}),
        ListNamespacesOp((MatchCondition("prefix", ("users",)),)),
        GetOp(BEN, "nothing"),
    ])  # fmt: skip
    assert results[0] is results[3] is results[4] is results[6] is None
    assert results[1].value == {"n": 1}
    assert [item.value for item in results[2]] == [{"n": 1}]
    assert results[5] == [ANA]
    assert sorted((i.key, i.value["n"]) for i in store.search(ANA)) == [("1", 2), ("2", 2)]


def test_equal_values_are_items_of_their_own_even_after_the_upkeep_merged_them(store, client):
    for user in ("ana", "ben", "cy"):
        store.put(("users", user), "theme", {"text": "Prefers the dark theme in every editor"})
    client.consolidate("daily")
    client.call("POST /api/memory/tidy")
    for user in ("ana", "ben", "cy"):
        namespace = ("users", user)
        assert store.get(namespace, "theme") is not None
        assert [item.namespace for item in store.search(namespace)] == [namespace]
        assert [i.namespace for i in store.search(namespace, query="theme")] == [namespace]
    store.put(("users", "ben"), "theme", {"text": "Prefers the light theme"})
    changed = store.get(("users", "ben"), "theme")
    assert changed is not None
    assert changed.value == {"text": "Prefers the light theme"}


def test_more_namespaces_than_the_tree_holds_and_a_renamed_category(store, client):
    namespaces = [("users", f"u{n:03}", "facts") for n in range(90)]
    store.batch([PutOp(namespace, "k", {"n": n}) for n, namespace in enumerate(namespaces)])
    client.tree_rename("users", "people")
    assert store.list_namespaces(prefix=("users",)) == namespaces
    for number, namespace in enumerate(namespaces):
        (item,) = store.search(namespace)
        assert item.value == {"n": number}
        assert store.get(namespace, "k") == store.get(namespace, "k")


def test_an_item_expires_unless_it_is_read(store, client):
    store.put(ANA, "long", {"n": 1}, ttl=60)
    store.put(ANA, "short", {"n": 2}, ttl=0.5 / 60)

    def expiry() -> float:
        return max(memory.expires_at or 0 for memory in client.list(category="users").results)

    before = expiry()
    store.get(ANA, "long", refresh_ttl=False)
    assert expiry() == before
    wait_until(lambda: client.list(category="users").total == 1, "the short one expires")
    assert [item.key for item in store.search(ANA)] == ["long"]
    assert expiry() > before
    assert store.get(ANA, "short") is None
    store.put(ANA, "long", {"n": 1})
    assert client.list(category="users").results[0].expires_at is None


async def test_the_asynchronous_twins_do_the_same(shared_daemon, agent):
    store = ThermoclineStore(agent, shared_daemon.socket)
    await asyncio.gather(*[store.aput(ANA, f"{n}", {"text": f"fact {n}"}) for n in range(30)])
    assert len(await store.asearch(ANA, limit=100)) == 30
    assert (await store.asearch(ANA, query="fact 17"))[0].key == "17"
    item = await store.aget(ANA, "3")
    assert item is not None
    assert item.value == {"text": "fact 3"}
    await store.adelete(ANA, "3")
    assert await store.aget(ANA, "3") is None
    assert await store.alist_namespaces() == [ANA]
    await store.aclose()


def test_threads_share_a_store(store):
    def write(first: int) -> None:
        for number in range(first, first + 10):
            store.put(ANA, f"{number}", {"n": number})

    threads = [threading.Thread(target=write, args=(n * 10,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {item.value["n"] for item in store.search(ANA, limit=100)} == {*range(40)}


def test_an_item_that_two_programs_created_at_once_is_one_item(store, client):
    store.put(ANA, "k", {"n": 1})
    (memory,) = client.list().results
    client.store(
        "n: 2", source="langgraph", category="users/ana", tags=["key:k"],
        data={**memory.data, "value": {"n": 2}},
    )  # fmt: skip
    assert [item.value for item in store.search(ANA)] == [{"n": 2}]
    item = store.get(ANA, "k")
    assert item is not None
    assert item.value == {"n": 2}
    store.put(ANA, "k", {"n": 3})
    assert client.list().total == 1
    assert [item.value for item in store.search(ANA)] == [{"n": 3}]


LABELS = st.sampled_from(["a", "b", "a/b", "Ü"])
NAMES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
VALUE = st.fixed_dictionaries({"n": st.integers(0, 2)})
OPERATIONS = st.lists(
    st.one_of(
        st.builds(PutOp, NAMES, st.sampled_from("xy"), st.none() | VALUE, st.none(), st.none()),
        st.builds(GetOp, NAMES, st.sampled_from("xy")),
        st.builds(SearchOp, NAMES | st.just(()), st.none() | st.just({"n": 1}), st.just(100)),
    ),
    max_size=12,
)  # fmt: skip


def plain(result: Any) -> Any:
    """A result without times and order."""
    if isinstance(result, list):
        return sorted(map(repr, map(plain, result)))
    return result and (result.namespace, result.key, result.value)


@settings(max_examples=15)
@given(OPERATIONS)
def test_any_operations_have_the_results_of_the_store_in_memory(shared_daemon, operations):
    reference = InMemoryStore()
    with closing(ThermoclineStore(uuid.uuid4().hex, shared_daemon.socket)) as store:
        for operation in operations:
            ours, theirs = store.batch([operation]), reference.batch([operation])
            assert [*map(plain, ours)] == [*map(plain, theirs)]


def test_the_example_runs(run_example):
    assert run_example("langgraph_store.py") == ["I will.", "I will.", "Ana drinks green tea"]
