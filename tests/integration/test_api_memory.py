"""`/api/memory`: storing, reading, listing, changing and forgetting, over the socket."""

import time
from typing import Any

import pytest

KEYS = {
    "archived_at",
    "standing",
    "id", "text", "content", "type", "event", "subject", "outcome", "category",
    "original_category", "tags", "importance", "pinned", "source", "actor", "group", "position",
    "metadata", "data", "created_at", "updated_at", "last_accessed_at", "access_count",
    "expires_at", "merged_into", "superseded_by", "archived", "score", "tier", "writer",
}  # fmt: skip
EVERYTHING = {
    "text": "Ana moved the boat to https://harbour.example.com/pier/7",
    "subject": "boat",
    "type": "episodic",
    "event": "task_completed",
    "outcome": "done",
    "category": "projects/boat",
    "tags": ["boat", "harbour"],
    "importance": 0.4,
    "source": "chat",
    "actor": "Ana",
    "group": "session-7",
    "position": 12,
    "metadata": {"urls": ["https://given.example.com"], "commands": ["make sail"], "paths": []},
    "data": {"steps": [1, 2.5, "three", None, True], "nested": {"a": {"b": []}}},
    "created_at": 1_700_000_000.25,
}


def texts(page: Any) -> list[str]:
    return [memory["text"] for memory in page["results"]]


def without_stored(answer: Any) -> Any:
    """The memory in the answer to storing it."""
    assert answer.pop("stored") is True
    return answer


def listed(call: Any, query: str = "") -> list[str]:
    page = call.ok("GET", f"/api/memory?{query}")
    assert page["total"] == len(page["results"])
    return sorted(texts(page))


@pytest.fixture(scope="module")
def anyone(shared_daemon: Any, calls_of: Any) -> Any:
    """Calls of an agent of several tests: those that look at their own memory alone."""
    return calls_of(shared_daemon, "anyone")


# Storing


def test_a_text_alone_becomes_a_complete_memory(call):
    before = time.time()
    stored = call.store("Ana prefers tea")
    assert stored.keys() == KEYS | {"stored"}
    assert before - 1 <= stored["created_at"] == stored["updated_at"] <= time.time()
    assert stored["writer"].startswith("uid:")
    expected = {
        "text": "Ana prefers tea", "content": "Ana prefers tea", "type": "semantic",
        "event": "fact_stored", "category": "general", "original_category": "", "access_count": 0,
        "last_accessed_at": None, "expires_at": None, "merged_into": None, "archived": False,
    }  # fmt: skip
    assert {name: stored[name] for name in expected} == expected


def test_every_field_that_is_given_comes_back_and_stays(call):
    stored = call.store(**EVERYTHING)
    expected = EVERYTHING | {
        "metadata": {
            "urls": ["https://given.example.com", "https://harbour.example.com/pier/7"],
            "commands": ["make sail"],
            "paths": [],
        }
    }
    for answer in (stored, call.ok("GET", f"/api/memory/{stored['id']}")):
        assert {name: answer[name] for name in expected} == expected
    assert call.ok("GET", "/api/memory")["results"] == [without_stored(stored)]


def test_any_text_comes_back_as_it_was(anyone):
    for text in [
        "  kept as it is \n", "日本語のメモ", "👩‍👩‍👧", "مرحبا", "'\"\\\u2028", "x" * 65_536,
        "a\tb\rc",
    ]:  # fmt: skip
        stored = anyone.store(text)
        assert anyone.ok("GET", f"/api/memory/{stored['id']}")["text"] == text


def test_a_batch_keeps_its_order_is_stored_whole_and_listed_50_at_a_time(call):
    memories = [{"text": f"number {n}", "category": f"c{n % 3}"} for n in range(60)]
    stored = call.ok("POST", "/api/memory/batch", {"memories": memories})
    assert texts(stored) == [memory["text"] for memory in memories]
    assert len({memory["id"] for memory in stored["results"]}) == 60
    page = call.ok("GET", "/api/memory")
    assert (len(page["results"]), page["total"]) == (50, 60)
    assert len(call.ok("GET", "/api/memory?limit=500")["results"]) == 60


def test_agents_do_not_see_each_other(call, calls_of, shared_daemon):
    mine = call.store("mine")
    other = calls_of(shared_daemon, f"{call.agent}-other")
    other.store("theirs")
    assert listed(call) == ["mine"]
    assert listed(other) == ["theirs"]
    assert other("GET", f"/api/memory/{mine['id']}").refusal()[:2] == (404, "not_found")
    by_query = calls_of(shared_daemon, call.agent).ok("GET", f"/api/memory?agent={call.agent}")
    assert texts(by_query) == ["mine"]


# Ids


def test_the_beginning_of_an_id_is_enough_while_it_is_the_only_one(call):
    key = call.store("x")["id"]
    for length in (4, 8, 15, 16):
        assert call.ok("GET", f"/api/memory/{key[:length]}")["id"] == key
    # An id is no pattern either.
    for wrong in (key[:3], f"{key}0", "%25%25%25%25", "____", "****", "0000%25", "[0-9]"):
        assert call("GET", f"/api/memory/{wrong}").refusal() == (404, "not_found", "id")
    changed = call.ok("PUT", f"/api/memory/{key[:6]}", {"subject": "s"})
    assert (changed["id"], changed["subject"]) == (key, "s")
    assert call.ok("POST", f"/api/memory/{key[:6]}/reinforce")["id"] == key
    assert call.ok("DELETE", f"/api/memory/{key[:6]}") == {"id": key, "deleted": True}


def test_a_beginning_of_several_ids_is_a_conflict(call):
    # Of 1,500 random ids two begin with the same four digits, but for one time in 10^7.
    for _ in range(3):
        call.ok("POST", "/api/memory/batch", {"memories": [{"text": "x"}] * 500, "force": True})
    pages = [call.ok("GET", f"/api/memory?limit=500&offset={at}") for at in (0, 500, 1000)]
    starts = [memory["id"][:4] for page in pages for memory in page["results"]]
    twice = next(start for start in starts if starts.count(start) > 1)
    assert call("GET", f"/api/memory/{twice}").refusal() == (409, "conflict", "id")
    assert call("DELETE", f"/api/memory/{twice}").refusal() == (409, "conflict", "id")
    assert call.total() == 1500


# Changing


def test_what_is_left_out_of_a_change_stays_and_a_fault_changes_nothing(call):
    stored = call.store(**EVERYTHING)
    target = f"/api/memory/{stored['id']}"
    assert call("PUT", target, {}).refusal()[:2] == (400, "invalid")
    assert call("PUT", target, {"text": "y", "importance": 17}).refusal()[2] == "importance"
    assert call.ok("GET", target) == without_stored(stored)
    changed = call.ok("PUT", target, {"importance": 0.9})
    assert changed.pop("updated") is True
    assert changed.keys() == KEYS
    for name in KEYS - {"importance", "updated_at", "score", "tier"}:
        assert changed[name] == stored[name], name
    assert changed["importance"] == call.ok("GET", target)["importance"] == 0.9
    assert changed["updated_at"] > stored["updated_at"]


def test_each_field_can_be_changed(anyone):
    for name, value in [
        ("text", "new words"), ("subject", ""), ("type", "procedural"), ("event", "correction"),
        ("outcome", "undone"), ("category", "people/ana"), ("tags", []), ("importance", 0),
        ("source", "mail"), ("actor", "Bo"), ("group", ""), ("position", None), ("data", None),
        ("metadata", {"urls": ["https://new.example.com"], "commands": [], "paths": []}),
        ("created_at", 1_600_000_000.0),
    ]:  # fmt: skip
        fields = {key: given for key, given in EVERYTHING.items() if key != "text"}
        target = f"/api/memory/{anyone.store('no references here', **fields)['id']}"
        assert anyone.ok("PUT", target, {name: value})[name] == value
        assert anyone.ok("GET", target)[name] == value
    assert anyone.store("x", expires=None)["expires_at"] is None
    lent = anyone.store("x", expires="1h")
    assert anyone.ok("PUT", f"/api/memory/{lent['id']}", {"ttl": None})["expires_at"] is None


def test_a_new_text_is_found_at_once_and_its_references_follow_it(call):
    given = {"urls": ["https://given.example.com"]}
    stored = call.store("the boat is at https://old.example.com", metadata=given)
    target = f"/api/memory/{stored['id']}"
    text = "the house is at https://new.example.com"
    changed = call.ok("PUT", target, {"content": text})
    urls = ["https://given.example.com", "https://new.example.com"]
    assert changed["metadata"]["urls"] == urls
    assert texts(call.ok("POST", "/api/recall", {"query": "house"})) == [text]
    assert call.ok("POST", "/api/recall", {"query": "boat"})["results"] == []


# Merging


def test_a_merged_memory_leaves_lists_and_recall_but_can_be_read_and_leaves_its_pin(call):
    old, new = call.store("Ana drinks coffee", pinned=True), call.store("Ana drinks tea")
    call.ok("POST", f"/api/memory/{old['id']}/merge", {"into": new["id"][:8]})
    assert listed(call) == ["Ana drinks tea"]
    assert listed(call, "include=merged") == ["Ana drinks coffee", "Ana drinks tea"]
    for key in (new["id"], new["id"][:6]):
        assert texts(call.ok("GET", f"/api/memory?merged_into={key}")) == ["Ana drinks coffee"]
    assert texts(call.ok("POST", "/api/recall", {"query": "Ana drinks"})) == ["Ana drinks tea"]
    assert call.ok("GET", f"/api/memory/{old['id']}")["merged_into"] == new["id"]
    assert call.ok("GET", f"/api/memory/{new['id']}")["pinned"] is True
    call.ok("POST", f"/api/memory/{old['id']}/unmerge")
    assert listed(call) == ["Ana drinks coffee", "Ana drinks tea"]
    assert call.ok("GET", f"/api/memory/{new['id']}")["pinned"] is False
    assert texts(call.ok("GET", f"/api/memory?merged_into={new['id']}")) == []


# Expiry


def test_an_expired_memory_vanishes_everywhere_at_once(call, eventually):
    gone = call.store("the tide is high", expires="0.5s", importance=0.95)
    kept = call.store("the tide is low")
    target = f"/api/memory/{gone['id']}"
    eventually(lambda: time.time() >= gone["expires_at"], "the moment has come")
    assert call("GET", target).refusal() == (404, "not_found", "id")
    assert listed(call) == ["the tide is low"]
    assert texts(call.ok("POST", "/api/recall", {"query": "tide"})) == [kept["text"]]
    assert texts(call.ok("GET", "/api/memory/search?q=tide")) == [kept["text"]]
    assert "high" not in call("GET", "/api/hot").text
    assert call("POST", f"{target}/reinforce").refusal() == (404, "not_found", "id")
    # The next commit, whoever makes it, forgets it for good.
    eventually(
        lambda: listed(call, "include=expired") == ["the tide is low"] or touched(call), "forgotten"
    )


def touched(call: Any) -> bool:
    call.ok("PUT", "/api/kv/touched", {"value": "x"})
    return False


# Forgetting and using


def test_each_use_raises_the_score_by_a_tenth(call):
    stored = call.store("x", importance=0.5, created_at=time.time() + 60)
    for uses in (1, 2, 3):
        used = call.ok("POST", f"/api/memory/{stored['id']}/reinforce")
        assert (used["id"], used["access_count"]) == (stored["id"], uses)
        assert used["score"] == pytest.approx(0.5 * (1 + 0.1 * uses))
    assert used["tier"] == "warm"
    found = call.ok("GET", f"/api/memory/{stored['id']}")
    assert found["access_count"] == 3
    assert found["last_accessed_at"] >= stored["created_at"] - 60


def test_a_pinned_memory_is_hot_whatever_its_age_and_its_pin_can_be_undone(call):
    faded = call.store("the key is under the mat", importance=0.1, created_at=1_500_000_000)
    target = f"/api/memory/{faded['id']}"
    assert (faded["pinned"], faded["tier"]) == (False, "frozen")
    pinned = call.ok("PUT", target, {"pinned": True})
    assert (pinned["pinned"], pinned["tier"], pinned["score"]) == (True, "hot", 0.7)
    assert texts(call.ok("GET", "/api/memory?tier=hot")) == [faded["text"]]
    (shown,) = call.ok("GET", "/api/hot")["state"]["hot_memories"]
    assert shown["id"] == faded["id"]
    call.ok("POST", "/api/undo", {"id": faded["id"]})
    assert call.ok("GET", target)["tier"] == "frozen"
    assert "hot_memories" not in call.ok("GET", "/api/hot")["state"]


def test_what_is_pinned_leaves_the_archive_and_is_archived_last(calls_of, make_daemon):
    call = calls_of(make_daemon("--set=warm.max_kb=1").start())
    first = call.store("the first of all", importance=0.1)
    for number in range(8):
        call.store(f"number {number}", importance=0.9)
    target = f"/api/memory/{first['id']}"
    assert call.ok("GET", target)["archived"] is True
    assert call.ok("PUT", target, {"pinned": True})["archived"] is False
    for number in range(8):
        call.store(f"another {number}", importance=1.0)
    assert call.ok("GET", target)["archived"] is False


# Listing


BETA = "beta https://Docs.Example.com/Guide"


@pytest.fixture(scope="module")
def shelf(shared_daemon: Any, calls_of: Any) -> Any:
    """A few memories that differ in everything; nobody changes them."""
    call = calls_of(shared_daemon, "shelf")
    memories = [
        {"text": "alpha", "type": "semantic", "event": "correction", "category": "proj",
         "tags": ["red", "old, wise"], "importance": 0.9, "source": "chat", "actor": "Ana",
         "group": "g1", "created_at": 1_000_000_000},
        {"text": BETA, "type": "episodic", "event": "tool_chain", "subject": "apples",
         "category": "proj/boat", "tags": ["red", "blue"], "importance": 0.2, "source": "mail",
         "actor": "Bo", "group": "g1", "created_at": 2_000_000_000},
        {"text": "gamma", "type": "procedural", "subject": "Boats", "category": "projects2/boat",
         "tags": ["blue"], "importance": 0.5, "created_at": 1_500_000_000},
    ]  # fmt: skip
    call.ok("POST", "/api/memory/batch", {"memories": memories})
    return call


def test_filters_leave_what_fits_all_of_them(shelf):
    for query, expected in [
        ("", ["alpha", BETA, "gamma"]),
        ("type=semantic", ["alpha"]),
        ("type=semantic,episodic", ["alpha", BETA]),
        ("type=semantic&type=procedural", ["alpha", "gamma"]),
        ("event=correction", ["alpha"]),
        ("event=correction&event=tool_chain", ["alpha", BETA]),
        ("event=nothing", []),
        ("category=proj", ["alpha", BETA]),
        ("category=proj/boat", [BETA]),
        ("category=projects2", ["gamma"]),
        ("category=/projects2/", ["gamma"]),
        ("category=pro", []),
        ("category=root", ["alpha", BETA, "gamma"]),
        ("category=proj%25", []),
        ("tag=red", ["alpha", BETA]),
        ("tag=red&tag=blue", [BETA]),
        ("tag=red,blue", []),
        ("tag=old,%20wise", ["alpha"]),
        ("tag=re", []),
        ("url=example.com", [BETA]),
        ("url=docs.EXAMPLE", [BETA]),
        ("url=GUIDE", [BETA]),
        ("url=%25", []),
        ("url=other", []),
        ("actor=Ana", ["alpha"]),
        ("actor=ana", []),
        ("group=g1", ["alpha", BETA]),
        ("source=mail", [BETA]),
        ("since=1500000000", [BETA, "gamma"]),
        ("until=1500000000", ["alpha", "gamma"]),
        ("since=2017-07-14T02:40:00Z&until=2017-07-14T02:40:00Z", ["gamma"]),
        ("since=2017-07-14T02:40:00%2B00:00", [BETA, "gamma"]),
        ("min_importance=0.5", ["alpha", "gamma"]),
        ("min_importance=1", []),
        ("tier=frozen", ["alpha", "gamma"]),
        ("tier=cold", [BETA]),
        ("tier=hot", []),
        ("type=semantic&tag=blue", []),
        ("tag=%27%20OR%201=1--", []),
    ]:
        assert listed(shelf, query) == expected


def test_a_list_and_an_answer_are_limited_by_days_in_words(call):
    for days in (0, 1, 9):
        call.store(f"lantern {days}", created_at=time.time() - days * 86_400)
    for query, expected in [
        ("since=yesterday", "01"),
        ("since=gestern", "01"),
        ("since=today", "0"),
        ("since=5d", "01"),
        ("until=yesterday", "19"),
        ("until=2d", "9"),
        ("since=yesterday&until=yesterday", "1"),
    ]:
        for path in ("memory?", "recall?query=lantern&"):
            results = call.ok("GET", f"/api/{path}{query}")["results"]
            assert sorted(one["text"][-1] for one in results) == list(expected), query
    for value in ("soon", "yesterday+and+today", "a+yesterday"):
        refusal = call("GET", f"/api/memory?since={value}")
        assert refusal.refusal() == (400, "invalid", "since")


def test_a_list_has_the_order_that_was_asked_for(shelf):
    for order, expected in [
        ("newest", [BETA, "gamma", "alpha"]), ("oldest", ["alpha", "gamma", BETA]),
        ("importance", ["alpha", "gamma", BETA]), ("score", [BETA, "gamma", "alpha"]),
        ("newest&reverse=true", ["alpha", "gamma", BETA]),
        ("importance&reverse=true", [BETA, "gamma", "alpha"]),
        ("score&reverse=true", ["alpha", "gamma", BETA]), ("uses", [BETA, "gamma", "alpha"]),
        ("type", [BETA, "gamma", "alpha"]), ("category", ["alpha", BETA, "gamma"]),
        ("category&reverse=true", ["gamma", BETA, "alpha"]), ("subject", [BETA, "gamma", "alpha"]),
        ("subject&reverse=true", ["gamma", BETA, "alpha"]),
    ]:  # fmt: skip
        assert texts(shelf.ok("GET", f"/api/memory?order={order}")) == expected
        pages = [shelf.ok("GET", f"/api/memory?order={order}&limit=1&offset={n}") for n in range(4)]
        assert [texts(page) for page in pages] == [[text] for text in expected] + [[]]
        assert {page["total"] for page in pages} == {3}
