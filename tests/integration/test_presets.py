"""Other systems over the socket: the formulas of ScalyClaw and Tiny Claw, ScalyClaw's clients."""

import itertools
from typing import Any
from urllib.parse import quote

import pytest

# Few of them have as many of the words as the first.
TEXTS = (
    "The ferry to Rügen leaves the northern harbour at nine",
    "A ferry is late",
    "Ana took the ferry home and read a long book about the history of lighthouses",
    "ferry",
    "The northern lights were seen",
    "Bring the dog to the harbour, not to the airport",
)
QUESTION = "ferry northern harbour"


@pytest.fixture
def shelf(call: Any) -> Any:
    for text in TEXTS:
        call.store(text)
    call.store("Nobody asks for this")
    # The last change decides, not the storing.
    changed = call.ok("GET", "/api/memory?order=oldest")["results"][1]
    call.ok("PUT", f"/api/memory/{changed['id']}", {"importance": 0.4})
    return call


def by_api(call: Any, **weights: float) -> list[dict[str, Any]]:
    body = {"query": QUESTION, "limit": 20, "preset": "scalyclaw", "weights": weights}
    return [*call.ok("POST", "/api/recall", body)["results"]]


def by_tool(call: Any, **weights: float) -> list[dict[str, Any]]:
    body = {"query": QUESTION, "topK": 20, "weights": weights}
    answer = call.ok("POST", "/api/tools/memory_search?tools=scalyclaw", body)
    return [{**one, "text": one["content"]} for one in answer["results"]]


def test_scalyclaws_weights_lose_no_match_and_the_score_is_their_composite(shelf):
    for search in (by_api, by_tool):
        for weights in ({}, {"semantic": 0, "recency": 1}, {"semantic": 0.001, "importance": 5}):
            assert {one["text"] for one in search(shelf, **weights)} == {*TEXTS}
        newest = search(shelf, semantic=0, recency=1, importance=0)
        assert [one["text"] for one in newest] == [TEXTS[1], *reversed(TEXTS[2:]), TEXTS[0]]
        results = search(shelf, semantic=0, recency=1, importance=2)
        assert [one["score"] for one in results] == pytest.approx(
            [1 + 2 * (0.4 if one["text"] == TEXTS[1] else 0.6) for one in results], abs=1e-3
        )
        scores = [one["score"] for one in search(shelf)]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] == pytest.approx(0.6 + 0.2 + 0.2 * 0.6, abs=1e-3)
    found = shelf.ok("GET", "/api/memory/search?q=ferry+northern+harbour&topK=20")["results"]
    assert [one["score"] for one in found] == pytest.approx(scores, abs=1e-3)
    body = {"query": QUESTION, "limit": 20, "preset": "tinyclaw"}
    weights = {"match": 0, "recency": 0, "importance": 1}
    results = shelf.ok("POST", "/api/recall", {**body, "weights": weights})["results"]
    assert len(results) == len(TEXTS)
    assert results[-1]["text"] == TEXTS[1]
    assert results[0]["score"] == pytest.approx(0.6)


def test_tiny_claw_gives_a_pair_half_the_share_of_its_words(call):
    for key, value in (("theme", "dark"), ("favourite colour", "dark blue")):
        call.ok("PUT", f"/api/kv/{quote(key)}", {"value": value})
    for preset in ("tinyclaw", None):
        body = {"query": "a dark theme", "preset": preset, "min_relevance": 0}
        results = call.ok("POST", "/api/recall", body)["results"]
        assert [one["text"] for one in results] == ["theme: dark", "favourite colour: dark blue"]
        if preset:
            assert [one["score"] for one in results] == [0.5, 0.25]


def test_tiny_claws_events_are_stored_and_found_for_their_user(call):
    user = f"{call.agent}-user"
    event = {
        "userId": user,
        "type": "correction",
        "content": "The ferry leaves at ten",
        "outcome": "the timetable was old",
        "importance": 1,
    }
    stored = call.ok("POST", "/api/memory", event)
    assert (stored["event"], stored["type"]) == ("correction", "episodic")
    assert (stored["importance"], stored["outcome"]) == (1.0, event["outcome"])
    plain = call.ok(
        "POST", "/api/memory", {"userId": user, "type": "task_completed", "content": "x"}
    )
    assert plain["importance"] == 0.5
    question = {"query": "ferry", "preset": "tinyclaw"}
    assert call.ok("POST", "/api/recall", question)["results"] == []
    (found,) = call.ok("POST", "/api/recall", {**question, "userId": user})["results"]
    assert found["id"] == stored["id"]
    path = f"/api/recall?query=ferry&preset=tinyclaw&userId={user}"
    assert call.ok("GET", path)["results"] == [found]
    block = call.ok("GET", f"/api/context?format=tiny-claw&query=ferry&userId={user}")
    assert "The ferry leaves at ten" in block["text"]
    assert call.ok("GET", "/api/context?format=tiny-claw&query=ferry")["text"] == ""
    newest = call.ok("GET", f"/api/memory?userId={user}&limit=1")["results"]
    assert [one["id"] for one in newest] == [plain["id"]]
    of_user = f"/api/memory/{stored['id']}"
    assert call("GET", of_user).status == 404
    assert call.ok("GET", f"{of_user}?userId={user}")["text"] == event["content"]
    used = call.ok("POST", f"{of_user}/reinforce", {"userId": user})
    assert (used["id"], used["access_count"]) == (stored["id"], 1)
    assert call.ok("POST", "/api/consolidate", {"userId": user})["agent_id"] == user
    alone = {"userId": "default-user", "type": "fact_stored", "content": "The pier is closed"}
    call.ok("POST", "/api/memory", alone)
    assert call.total() == 1


def test_what_another_system_would_not_take_either_is_refused(call):
    turn = {"type": "fact_stored", "content": "x"}
    refusals = {}
    for path, body, field in (
        *(("/api/memory", turn | {"userId": user}, "userId") for user in ("../x", "a:b", "")),
        ("/api/recall", {"query": "x", "weights": {"match": 1, "semantic": 1}}, "weights"),
        ("/api/memory", {"type": "semantic", "subject": "note"}, "text"),
        ("/api/memory", {"content": "x", "ttl": "nonsense"}, "ttl"),
        ("/api/memory", {"text": "x", "expires": "nonsense"}, "expires"),
        ("/api/memory", {"content": "  "}, "content"),
    ):
        refused = call("POST", path, body)
        assert refused.refusal() == (400, "invalid", field), body
        refusals[field] = refused.body["error"]["message"]
    for field in ("ttl", "expires", "content"):
        assert f"'{field}'" in refusals[field]
    refused = call("GET", "/api/memory?tier=lukewarm")
    assert refused.refusal() == (400, "invalid", "tier")
    assert "one of cold, frozen, hot, warm (got 'lukewarm')" in refused.body["error"]["message"]


def remember(call: Any, content: str, **fields: Any) -> str:
    body = {"type": "semantic", "subject": "note", "content": content, **fields}
    answered = call("POST", "/api/memory", body)
    assert answered.status == 201
    return str(answered.body["id"])


def test_a_list_comes_under_results_and_what_was_found_counts_as_used(call, eventually):
    key = remember(call, "the tide table")
    remember(call, "two")
    results = call.ok("GET", "/api/memory")["results"]
    assert [memory["content"] for memory in results] == ["two", "the tide table"]
    call.ok("GET", "/api/memory/search?q=tide")
    eventually(
        lambda: call.ok("GET", f"/api/memory/{key}")["access_count"] == 1, "the use is counted"
    )


def test_an_integer_from_2_to_10_is_scalyclaws_scale(call):
    scale = ((2, 0.2), (5, 0.5), (10, 1.0), (0.7, 0.7), (1.0, 1.0))
    for word, (given, kept) in itertools.product(("content", "text"), scale):
        memory = {word: f"{word} of {given!r}", "importance": given}
        key = call.ok("POST", "/api/memory", memory)["id"]
        assert call.ok("GET", f"/api/memory/{key}")["importance"] == kept, memory
        call.ok("PUT", f"/api/memory/{key}", {"importance": 0.3})
        assert call.ok("PUT", f"/api/memory/{key}", {"importance": given})["importance"] == kept
        batch = call.ok("POST", "/api/memory/batch", {"memories": [memory], "force": True})
        assert batch["results"][0]["importance"] == kept
