"""The formulas of ScalyClaw and Tiny Claw: their weights order the matches and drop none."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

DAY = 86_400
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


@pytest.mark.parametrize("search", [by_api, by_tool])
def test_weights_lose_no_match(shelf: Any, search: Any) -> None:
    for weights in ({}, {"semantic": 0, "recency": 1}, {"semantic": 0.001, "importance": 5}):
        assert {one["text"] for one in search(shelf, **weights)} == {*TEXTS}


@pytest.mark.parametrize("search", [by_api, by_tool])
def test_recency_alone_puts_the_last_change_first(shelf: Any, search: Any) -> None:
    results = search(shelf, semantic=0, recency=1, importance=0)
    assert [one["text"] for one in results] == [TEXTS[1], *reversed(TEXTS[2:]), TEXTS[0]]


@pytest.mark.parametrize("search", [by_api, by_tool])
def test_the_score_is_the_composite(shelf: Any, search: Any) -> None:
    results = search(shelf, semantic=0, recency=1, importance=2)
    assert [one["score"] for one in results] == pytest.approx(
        [1 + 2 * (0.4 if one["text"] == TEXTS[1] else 0.6) for one in results], abs=1e-3
    )
    scores = [one["score"] for one in search(shelf)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(0.6 + 0.2 + 0.2 * 0.6, abs=1e-3)


def test_scalyclaws_search_path_ranks_by_its_formula(shelf: Any) -> None:
    results = shelf.ok("GET", "/api/memory/search?q=ferry+northern+harbour&topK=20")["results"]
    assert [one["score"] for one in results] == pytest.approx(
        [one["score"] for one in by_tool(shelf)], abs=1e-3
    )


def test_tiny_claws_weights_can_be_changed_too(shelf: Any) -> None:
    body = {"query": QUESTION, "limit": 20, "preset": "tinyclaw"}
    weights = {"match": 0, "recency": 0, "importance": 1}
    results = shelf.ok("POST", "/api/recall", {**body, "weights": weights})["results"]
    assert len(results) == len(TEXTS)
    assert results[-1]["text"] == TEXTS[1]
    assert results[0]["score"] == pytest.approx(0.6)


def test_tiny_claw_gives_a_pair_half_the_share_of_its_words(call: Any) -> None:
    for key, value in (("theme", "dark"), ("favourite colour", "dark blue")):
        call.ok("PUT", f"/api/kv/{quote(key)}", {"value": value})
    for preset in ("tinyclaw", None):
        body = {"query": "a dark theme", "preset": preset, "min_relevance": 0}
        results = call.ok("POST", "/api/recall", body)["results"]
        assert [one["text"] for one in results] == ["theme: dark", "favourite colour: dark blue"]
        if preset:
            assert [one["score"] for one in results] == [0.5, 0.25]


def test_a_weight_has_one_name_at_a_time(call: Any) -> None:
    body = {"query": "x", "weights": {"match": 1, "semantic": 1}}
    assert call("POST", "/api/recall", body).refusal() == (400, "invalid", "weights")
