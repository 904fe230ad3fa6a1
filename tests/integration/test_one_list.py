"""One list of results over all sources, which every way of asking answers alike."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon
from shells import Shell

from thermocline.daemon.client import Client

QUERY = "how is the heron pump repaired?"
LONG = "The {} pump is repaired by Maya in the second week of each month"


def use(call: Any, name: str, tools: str = "default", **arguments: Any) -> Any:
    return call.ok("POST", f"/api/tools/{name}?tools={tools}", arguments)


@pytest.fixture
def workshop(call: Any, shared_daemon: Daemon, eventually: Callable[..., None]) -> Any:
    """Something of every source that says a word of the question."""
    lifts = {"relation": "lifts", "target": "Water"}
    entity = {"name": "Heron pump", "type": "technology", "relations": [lifts]}
    call.store("Maya repaired the heron pump on Friday", data={"entities": [entity]})
    call.store("The crane pump is repaired in spring", category="yard/crane")
    call.store("The heron pump is repaired with the small wrench")
    call.ok("PUT", "/api/kv/heron.pump", {"value": "repaired by order 4711"})
    call.ok("POST", "/api/reflections", {
        "type": "insight", "context": "heron pump", "lesson": "it is repaired while it is cold"
    })  # fmt: skip
    call.ok("POST", "/api/episodes", {"summary": "The heron pump was repaired", "tags": ["pump"]})
    skill = {"id": "heron", "description": "how to repair the heron pump", "text": "1. Cool it."}
    call.ok("POST", "/api/skills", skill)
    call.ok("POST", "/api/experiences", {
        "type": "task_solution", "intent": "repair the heron pump", "solution": "cool it first"
    })  # fmt: skip
    notes = Path(shared_daemon.state) / "agents" / call.agent / "memory"
    (notes / "pump.md").write_text("# Pumps\n\nThe heron pump is repaired in hall 3.\n")

    def indexed() -> bool:
        body = {"query": "heron pump hall", "wait_ms": 5_000}
        return bool(call.ok("POST", "/api/files/search", body)["chunks"])

    eventually(indexed, "the file is indexed")
    return call


def test_every_way_of_asking_gives_the_same_results_in_the_same_order(workshop):
    answer = workshop.ok("POST", "/api/recall", {"query": QUERY, "limit": 20})
    expected = [(one["source"], one["id"]) for one in answer["results"]]
    assert {source for source, _ in expected} == {
        *("memory", "pair", "file", "reflection", "episode", "skill", "experience", "entity")
    }
    shell = Shell(workshop.path, workshop.agent)
    told = shell.json("retrieve", QUERY, "--limit", "20")
    assert [(one["source"], one["id"]) for one in told] == expected
    assert {one["category"] for one in told if one["source"] != "memory"} == {
        source for source, _ in expected if source != "memory"
    }
    with Client(workshop.path, agent=workshop.agent) as client:
        results = client.recall(QUERY, limit=20).results
    assert [(one.source, one.id) for one in results] == expected
    tool = use(workshop, "recall", query=QUERY, limit=20)
    assert [(one["source"], one["id"]) for one in tool["results"]] == expected
    assert [one["relevance"] for one in tool["results"]] == [
        one["relevance"] for one in answer["results"]
    ]
    memories = [key for source, key in expected if source == "memory"]
    scaly = use(workshop, "memory_search", "scalyclaw", query=QUERY, topK=20)
    assert [one["id"] for one in scaly["results"]] == memories
    prof = use(workshop, "memory_search", "profclaw", query=QUERY, maxResults=20)
    assert [one["id"] for one in prof["chunks"]] == [
        key for source, key in expected if source in {"memory", "file"}
    ]
    body = {"query": QUERY, "format": "json", "max_tokens": 8_000}
    sections = workshop.ok("POST", "/api/context", body)["sections"]
    [remembered] = [one["items"] for one in sections if one["name"] == "remembered"]
    assert [one["id"] for one in remembered if one.get("relevance") is not None] == memories


def test_the_limits_are_those_of_the_whole_list(workshop):
    every = workshop.ok("POST", "/api/recall", {"query": QUERY, "limit": 20})["results"]
    assert workshop.ok("POST", "/api/recall", {"query": QUERY, "limit": 3})["results"] == every[:3]
    few = workshop.ok("POST", "/api/recall", {"query": QUERY, "limit": 20, "max_tokens": 30})
    assert few["results"] == every[: len(few["results"])]
    assert sum(len(one["text"]) for one in few["results"]) <= 120
    [first] = workshop.ok("POST", "/api/recall", {"query": QUERY, "max_tokens": 1})["results"]
    assert first == every[0]


def test_a_time_filters_every_source_and_other_filters_leave_memories(workshop):
    def found(**filters: Any) -> set[str]:
        body = {"query": QUERY, "limit": 20, **filters}
        return {one["source"] for one in workshop.ok("POST", "/api/recall", body)["results"]}

    every = found()
    assert len(every) == 8
    for wider in ({"include": ["merged", "expired"]}, {"since": "1d"}, {"until": time.time() + 60}):
        assert found(**wider) == every, wider
    for narrower in ({"since": time.time() + 60}, {"until": "1d"}):
        assert found(**narrower) == set(), narrower
    assert found(since="1d", category="yard") == found(category="yard") == {"memory"}


def test_the_full_answer_has_the_record_of_each_source_beside_the_lean_one(workshop):
    lean, full = (
        workshop.ok("POST", "/api/recall", {"query": QUERY, "limit": 20, "fields": fields})
        for fields in ("lean", "full")
    )
    names = {"reflection": "entry", "episode": "entry", "skill": "entry"}
    for short, whole in zip(lean["results"], full["results"], strict=True):
        name = names.get(short["source"], short["source"])
        record = whole.pop(name)
        assert whole == short
        if name == "memory":
            assert record == workshop.ok("GET", f"/api/memory/{short['id']}")
        elif name == "pair":
            assert record == workshop.ok("GET", f"/api/kv/{short['key']}")
    by_url = workshop.ok("GET", "/api/recall?query=heron+pump&fields=full&limit=20")
    assert all(names.get(one["source"], one["source"]) in one for one in by_url["results"])


def test_times_and_outdated_stand_where_they_are_set(call):
    stored = call.store("The gate code is 4711", expires="7d", created_at=1_700_000_000)
    call.ok("PUT", f"/api/memory/{stored['id']}", {"text": "The gate code is 1174"})
    [found] = call.ok("POST", "/api/recall", {"query": "gate code"})["results"]
    assert found["created_at"] == 1_700_000_000
    assert found["updated_at"] > 1_700_000_000
    assert found["expires_at"] > found["updated_at"] - 8 * 86_400
    call.store("Ana lives in Berlin", subject="Ana")
    use(call, "remember", text="Ana no longer lives in Berlin")
    results = call.ok("POST", "/api/recall", {"query": "where does Ana live?"})["results"]
    assert {one["text"]: one.get("outdated") for one in results} == {
        "Ana lives in Berlin": True,
        "Ana no longer lives in Berlin": None,
    }


def test_five_results_cost_little(call):
    for name in ("heron", "crane", "stork", "egret", "ibis"):
        call.store(LONG.format(name)[:60], category="work/pumps")
    answered = call("POST", "/api/recall", {"query": "which pump is repaired by Maya?"})
    answer = json.loads(answered.text)
    assert [len(one["text"]) for one in answer["results"]] == [60] * 5
    assert len(answered.text.encode()) <= 1_200


def test_an_answer_that_is_not_sure_says_so_everywhere(call):
    others = [{"text": f"buoy {n} was painted in week {n % 50}"} for n in range(100)]
    call.ok("POST", "/api/memory/batch", {"memories": others})
    call.store("the harbour closes at nine")
    query = "quarterly harbour subscription invoices overdue"
    answer = call.ok("POST", "/api/recall", {"query": query})
    assert (answer["confidence"], answer["results"][0]["sure"]) == ("unsure", False)
    tool = use(call, "recall", query=query)
    assert (tool["confidence"], tool["note"]) == ("unsure", "nothing certain; perhaps related")
    shell = Shell(call.path, call.agent)
    line, first = shell.out("retrieve", query).splitlines()
    assert line == "nothing certain; perhaps related:"
    assert "the harbour closes at nine" in first
    said = shell.run("--json", "retrieve", query)
    assert "nothing certain; perhaps related:" in said.stderr
    assert len(json.loads(said.stdout)) == 1
    none = use(call, "recall", query="zebra")
    assert (none["confidence"], none["results"]) == ("none", [])
    assert none["why"] == "nothing stored has a word of it, or a word that means the same: zebra"
    assert "note" not in none
    assert shell.run("retrieve", "zebra").stdout == ""
    assert "note" not in use(call, "recall", query="when does the harbour close?")


def test_files_that_only_share_a_word_are_not_empty_either(call):
    call.store("anything")
    answer = call.ok("POST", "/api/files/search", {"query": "zebra"})
    assert answer["chunks"] == []
    assert answer["why"]


def test_a_name_of_which_nothing_is_known_takes_no_place_among_the_results(call):
    def named(text: str, **entity: Any) -> None:
        call.store(text, data={"entities": [{"name": "Sirocco", "type": "concept", **entity}]})

    def sources() -> list[str]:
        answer = call.ok("POST", "/api/recall", {"query": "what is the Sirocco?"})
        return [one["source"] for one in answer["results"]]

    named("The Sirocco needs a new mast")
    assert sources() == ["memory"]
    owned = {"relation": "belongs to", "target": "Maya"}
    named("The Sirocco was sold in March", relations=[owned])
    assert sorted(sources()) == ["entity", "memory", "memory"]
