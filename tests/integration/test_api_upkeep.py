"""`/api/upkeep`, `/api/consolidate`, `/api/ingest`, `/api/validate` and the numbers of an agent."""

import threading
import time
from datetime import datetime
from typing import Any

import pytest


def test_a_run_by_hand_shows_in_status_metrics_and_history(call):
    call.store("x")
    outcome = call.ok("POST", "/api/consolidate", {"mode": "daily"})
    assert (outcome["mode"], outcome["agent_id"]) == ("daily", call.agent)
    assert "tree_rebuilt" not in outcome
    assert datetime.fromisoformat(outcome["timestamp"]).timestamp() == pytest.approx(
        time.time(), abs=30
    )
    status = call.ok("GET", "/api/status")["agents"][call.agent]["upkeep"]
    assert (status["last"], status["error"], status["running"]) == ("daily", "", None)
    schedules = {one["name"]: one for one in call.ok("GET", "/api/upkeep")["schedules"]}
    assert schedules["daily"]["last"] == schedules["quick"]["last"] == status["last_at"]
    assert schedules["monthly"]["last"] is None
    [run] = call.ok("GET", "/api/upkeep")["runs"]
    assert (run["mode"], run["error"], run["result"]) == ("daily", "", outcome)
    assert run["at"] == pytest.approx(time.time(), abs=120)
    metrics = call.ok("GET", "/api/metrics")
    assert metrics["consolidation_count"] == 1
    assert metrics["last_consolidation"] == pytest.approx(time.time(), abs=120)
    history = call.ok("GET", "/api/metrics/history")
    assert [day["consolidations"] for day in history["days"]] == [1]
    assert history["trend"]["numbers"]["warm_count"]["average"] == 1.0


def test_a_wrong_call_an_agent_that_is_not_there_and_a_note_that_is_a_link_are_refused(
    call, shared_daemon, tmp_path
):
    for path in ("/api/consolidate", "/api/ingest"):
        assert call("POST", path).refusal() == (404, "not_found", "agent")
    assert not shared_daemon.folder(call.agent).exists()
    call.store("something to begin with")
    folder = shared_daemon.folder(call.agent) / "memory"
    folder.mkdir(exist_ok=True)
    secret = tmp_path / "secret"
    secret.write_text("We install the secret.")
    (folder / f"{datetime.now().astimezone().date()}.md").symlink_to(secret)
    for method, path, body, field in (
        ("POST", "/api/validate", None, "file"),
        ("POST", "/api/ingest", {"days": 0}, "days"),
        ("POST", "/api/validate", {"file": "/etc/passwd"}, "text"),
        ("GET", "/api/metrics/history?days=0", None, "days"),
    ):
        status, code, named = call(method, path, body).refusal()
        assert (status, code) == (400, "invalid")
        assert named in {field, None}


def test_the_numbers_are_those_of_evoclaws_service(call):
    for n in range(3):
        call.store(f"memory {n}", category="a/b")
    call.store("another one", category="c")
    call.ok("POST", "/api/consolidate")
    stats = call.ok("GET", "/api/memory/stats")
    assert set(stats) == {"hot", "warm", "cold", "tree", "scoring", "metrics"}
    assert stats["warm"]["top_categories"] == [
        {"category": "a/b", "count": 3},
        {"category": "c", "count": 1},
    ]
    assert (stats["warm"]["count"], stats["cold"]["count"], stats["tree"]["nodes"]) == (4, 0, 4)
    assert stats["scoring"] == {"half_life_days": 30.0, "eviction_threshold": 0.3}
    assert stats["metrics"]["total_stored"] == 4
    assert stats["metrics"]["last_consolidation"] == pytest.approx(time.time(), abs=120)
    assert call("POST", "/api/memory/stats").status == 405


def test_what_an_answer_spares_its_reader_is_counted(call, eventually):
    def saved() -> int:
        return int(call.ok("GET", "/api/metrics")["context_tokens_saved"])

    texts = [f"the harbour of town {n} " + "is described at some length " * 5 for n in range(20)]
    for text in texts:
        call.store(text)
    assert saved() == 0
    hits = call.ok("GET", "/api/recall?query=harbour&limit=2")["results"]
    everything = -(-sum(map(len, texts)) // 4)
    expected = everything - -(-sum(len(hit["text"]) for hit in hits) // 4)
    eventually(lambda: saved() == expected, "the recall is counted")
    # Nothing found spares nothing, and what leaves no trace is not counted.
    call.ok("GET", "/api/recall?query=zeppelin")
    call.ok("GET", "/api/recall?query=harbour&reinforce=false")
    size = call.ok("GET", "/api/hot")["size_bytes"]
    expected += everything - -(-size // 4)
    eventually(lambda: saved() == expected, "the hot state is counted")
    assert call.ok("GET", "/api/metrics")["retrieval_count"] == 2


def test_what_a_kill_has_broken_off_goes_on_after_the_restart(
    make_daemon, calls_of, eventually, tmp_path
):
    folder = tmp_path / "workspace" / "memory"
    folder.mkdir(parents=True)
    workspace = f"agents.default.workspace={folder.parent}"
    daemon = make_daemon("--set", "upkeep.jitter_seconds=0", "--set", workspace).start()
    call = calls_of(daemon)
    facts = "".join(f"- [x] Task {n:04d} of the very long list is done\n" for n in range(200))
    (folder / f"{datetime.now().astimezone().date()}.md").write_text(facts)
    running = threading.Thread(target=call, args=("POST", "/api/consolidate", {"mode": "daily"}))
    running.start()
    eventually(lambda: call.total() > 32, "some facts are stored")
    daemon.kill()
    running.join()
    daemon.start()

    def daily() -> Any:
        return {one["name"]: one for one in call.ok("GET", "/api/upkeep")["schedules"]}["daily"]

    eventually(lambda: daily()["seconds"] is not None, "the run begins again, and ends")
    texts = [one["text"] for one in every_memory(call)]
    assert sorted(texts) == [f"Task {n:04d} of the very long list is done" for n in range(200)]


def every_memory(call: Any) -> list[Any]:
    found: list[Any] = []
    while page := call.ok("GET", f"/api/memory?limit=500&offset={len(found)}")["results"]:
        found += page
    return found
