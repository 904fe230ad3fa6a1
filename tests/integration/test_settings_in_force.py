"""What settings do, over the socket."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import pytest
from daemon_process import Daemon

DAY = 86_400.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose configuration each test changes."""
    folder = tmp_path_factory.mktemp("tuned")
    file = folder / "config.json"
    file.write_text("{}")
    daemon = Daemon(folder, f"--config={file}").start()
    yield daemon
    assert daemon.stop() == 0


@pytest.fixture
def tuned(daemon: Daemon, calls_of: Any, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`tuned(**recall)` puts these settings of recall in force, and gives calls of an agent."""

    def tune(**recall: Any) -> Any:
        call = calls_of(daemon, f"agent{crc32(request.node.name.encode())}")
        call.ok("PUT", "/api/config", {"unset": ["recall"]})
        if recall:
            call.ok("PUT", "/api/config", {"set": {"recall": recall}})
        return call

    return tune


def texts(call: Any, path: str = "/api/recall", **options: Any) -> list[str]:
    if path == "/api/cold":
        answer = call.ok("GET", f"/api/cold?query={options['query']}")
    else:
        answer = call.ok("POST", path, {"reinforce": False} | options)
    return [memory["text"] for memory in answer["results"]]


def test_the_preset_of_the_configuration_ranks_unless_a_call_gives_weights(tuned):
    call = tuned(preset="scalyclaw")
    call.store("old lantern", created_at=time.time() - 30 * DAY, importance=0.9)
    call.store("new lantern", importance=0.9)

    def relevances(**options: Any) -> list[float]:
        body = {"query": "lantern", "reinforce": False} | options
        return [hit["relevance"] for hit in call.ok("POST", "/api/recall", body)["results"]]

    assert relevances() == relevances(preset="scalyclaw")
    assert relevances(preset="tinyclaw") != relevances()
    weights = {"match": 0.6, "recency": 0.2, "importance": 0.2}
    assert relevances(weights=weights) not in (relevances(), relevances(preset="tinyclaw"))


@pytest.mark.parametrize("preset", [None, "scalyclaw", "tinyclaw"])
def test_recency_falls_as_fast_as_the_configuration_says(tuned, preset):
    call = tuned(decay_per_day=0.5, candidates=120, preset=preset)
    call.store("lantern", created_at=time.time() - 2 * DAY)
    body = {"query": "lantern", "reinforce": False, "explain": True}
    [hit] = call.ok("POST", "/api/recall", body)["results"]
    # A text that was stored a moment ago is as new to ScalyClaw, which counts from its change.
    expected = 1.0 if preset == "scalyclaw" else pytest.approx(0.3679, abs=1e-3)
    assert hit["parts"]["recency"] == pytest.approx(expected, abs=1e-3)


def test_the_archive_is_searched_with_the_weights_of_the_configuration(tuned):
    call, now = tuned(), time.time()
    call.store("brass lantern", created_at=now - 400 * DAY, importance=0.1)
    call.store("a lantern that was left behind", created_at=now - 300 * DAY, importance=0.2)
    call.ok("POST", "/api/consolidate", {"mode": "quick"})
    found = texts(call, "/api/cold", query="brass%20lantern")
    assert found == ["brass lantern", "a lantern that was left behind"]
    tuned(weights={"match": 0, "recency": 0, "importance": 1})
    assert texts(call, "/api/cold", query="brass%20lantern") == found[::-1]


def test_the_reason_of_an_empty_answer_is_found_with_the_configuration(tuned):
    # A word that most memories have decides nothing by default; here it does.
    call = tuned(common_word_share=1.0, candidates=1)
    for number in range(80):
        call.store(f"lantern of shelf {number}", importance=0.5)
    answer = call.ok("POST", "/api/recall", {"query": "lantern", "tags": ["none"]})
    assert answer["results"] == []
    assert answer["why"] == "there are matches, but the filters leave none of them"


@pytest.mark.parametrize("lower", [{"max_lessons": 2}, {"max_bytes": 512}])
def test_upkeep_applies_a_lower_limit_of_the_hot_state_and_keeps_what_leaves(tuned, lower):
    call = tuned()
    lessons = [f"lesson {number} {'about lanterns ' * 5}".strip() for number in range(8)]
    for number, text in enumerate(lessons):
        call.ok("PUT", "/api/hot/lesson", {"text": text, "importance": 0.9 - number / 10})
    call.ok("PUT", "/api/config", {"set": {"hot": lower}})
    call.ok("POST", "/api/consolidate", {"mode": "quick"})
    call.ok("PUT", "/api/config", {"unset": ["hot"]})
    hot = [lesson["text"] for lesson in call.ok("GET", "/api/hot")["state"]["critical_lessons"]]
    left = [memory["text"] for memory in call.ok("GET", "/api/memory?limit=20")["results"]]
    assert 0 < len(hot) < 5
    assert hot == lessons[: len(hot)]
    assert sorted(left) == lessons[len(hot) :]
