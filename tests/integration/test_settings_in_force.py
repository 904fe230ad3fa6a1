"""What the settings of recall do, over the socket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

DAY = 86_400.0
Set = Callable[..., None]


@pytest.fixture
def tuned(make_daemon: Any, calls_of: Any) -> Callable[..., Any]:
    """`tuned(**recall)` starts a daemon with these settings of recall and gives its calls."""

    def make(**recall: Any) -> Any:
        sets = [f"--set=recall.{name}={json.dumps(value)}" for name, value in recall.items()]
        return calls_of(make_daemon(*sets, name=f"d{len(sets)}").start())

    return make


def texts(call: Any, path: str = "/api/recall", **options: Any) -> list[str]:
    if path == "/api/cold":
        answer = call.ok("GET", f"/api/cold?query={options['query']}")
    else:
        answer = call.ok("POST", path, {"reinforce": False} | options)
    return [memory["text"] for memory in answer["results"]]


def test_the_number_of_results_is_that_of_the_configuration(tuned: Any) -> None:
    call = tuned(limit=2)
    for number in range(4):
        call.store(f"lantern {number}")
    assert len(texts(call, query="lantern")) == 2
    assert len(call.ok("GET", "/api/recall?query=lantern")["results"]) == 2
    assert len(texts(call, query="lantern", limit=3)) == 3


def test_the_preset_of_the_configuration_ranks_unless_a_call_gives_weights(tuned: Any) -> None:
    call = tuned(preset="scalyclaw")
    call.store("old lantern", created_at=time.time() - 30 * DAY, importance=0.9)
    call.store("new lantern", importance=0.9)

    def asked(**options: Any) -> list[float]:
        body = {"query": "lantern", "reinforce": False} | options
        return [hit["relevance"] for hit in call.ok("POST", "/api/recall", body)["results"]]

    assert asked() == asked(preset="scalyclaw")
    assert asked(preset="tinyclaw") != asked()
    weights = {"match": 0.6, "recency": 0.2, "importance": 0.2}
    assert asked(weights=weights) not in (asked(), asked(preset="tinyclaw"))


@pytest.mark.parametrize("preset", [None, "scalyclaw", "tinyclaw"])
def test_recency_falls_as_fast_as_the_configuration_says(tuned: Any, preset: str | None) -> None:
    call = tuned(decay_per_day=0.5, candidates=120, preset=preset)
    call.store("lantern", created_at=time.time() - 2 * DAY)
    body = {"query": "lantern", "reinforce": False, "explain": True}
    [hit] = call.ok("POST", "/api/recall", body)["results"]
    # A text that was stored a moment ago is as new to ScalyClaw, which counts from its change.
    expected = 1.0 if preset == "scalyclaw" else pytest.approx(0.3679, abs=1e-3)
    assert hit["parts"]["recency"] == pytest.approx(expected, abs=1e-3)


def test_the_archive_is_searched_with_the_weights_of_the_configuration(tuned: Any) -> None:
    now = time.time()

    def fill(call: Any) -> None:
        call.store("brass lantern", created_at=now - 400 * DAY, importance=0.1)
        call.store("a lantern that was left behind", created_at=now - 300 * DAY, importance=0.2)
        call.ok("POST", "/api/consolidate", {"mode": "quick"})
        assert len(texts(call, "/api/cold", query="brass%20lantern")) == 2

    by_match = tuned()
    fill(by_match)
    by_importance = tuned(weights={"match": 0, "recency": 0, "importance": 1})
    fill(by_importance)
    assert texts(by_match, "/api/cold", query="brass%20lantern")[0] == "brass lantern"
    assert texts(by_importance, "/api/cold", query="brass%20lantern")[0].startswith("a lantern")


def test_the_reason_of_an_empty_answer_is_found_with_the_configuration(tuned: Any) -> None:
    # A word that most memories have decides nothing by default; here it does.
    call = tuned(common_word_share=1.0, candidates=1)
    for number in range(80):
        call.store(f"lantern of shelf {number}", importance=0.5)
    answer = call.ok("POST", "/api/recall", {"query": "lantern", "tags": ["none"]})
    assert answer["results"] == []
    assert answer["why"] == "there are matches, but the filters leave none of them"
