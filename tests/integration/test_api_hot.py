"""`/api/hot`: the state that is always in the agent's context."""

import json
import re
from typing import Any


def state(call: Any) -> Any:
    return call.ok("GET", "/api/hot")["state"]


def test_the_size_is_that_of_compact_json_and_within_the_cap(call):
    call.store("the owner is allergic to nuts", importance=1.0)
    call.store("it rained on Tuesday", importance=0.4)
    shown = json.dumps(state(call))
    assert "allergic" in shown
    assert "rained" not in shown
    for number in range(40):
        text = f"lesson {number} " + "é" * 100
        call.ok("PUT", "/api/hot/lesson", {"text": text, "importance": number / 40})
    hot = call.ok("GET", "/api/hot")
    compact = json.dumps(hot["state"], ensure_ascii=False, separators=(",", ":"))
    assert hot["size_bytes"] == len(compact.encode()) <= hot["max_bytes"] == 5120
    assert "lesson 39 " in compact
    assert "lesson 0 " not in compact


def test_a_full_state_loses_entries_of_the_largest_list(call):
    for number in range(8):
        call.ok("PUT", "/api/hot/lesson", {"text": f"lesson {number} {'l' * 60}"})
        call.ok("PUT", "/api/hot/event", {"text": f"event {number} {'e' * 40}"})
        call.ok("PUT", "/api/hot/task", {"text": f"task {number} {'t' * 40}"})
    before = state(call)
    for number in range(30):
        description = f"project {number} " + "d" * 200
        call.ok("PUT", "/api/hot/project", {"name": f"P{number}", "description": description})
    after = state(call)
    assert after["critical_lessons"] == before["critical_lessons"]
    for part in ("events", "tasks"):
        assert after["active_context"][part] == before["active_context"][part]
    projects = [one["name"] for one in after["active_context"]["projects"]]
    assert projects == [f"P{number}" for number in range(30 - len(projects), 30)]
    memories = call.ok("GET", "/api/memory?limit=100")["results"]
    assert len(memories) == 30 - len(projects)
    assert all("d" * 200 in one["text"] for one in memories)


def test_what_comes_and_goes_is_one_memory(calls_of, shared_daemon):
    for key, value in (
        ("project", lambda n: {"name": f"P{n}", "description": "d" * 300}),
        ("task", lambda n: {"text": f"{n} " + "t" * 400}),
        ("owner_profile", lambda n: {f"k{n}": f"{n} " + "v" * 900}),
    ):
        call = calls_of(shared_daemon, f"goes-{key}")
        for turn in range(3):
            for number in range(20):
                status = {"status": f"step {turn}"} if key == "project" else {}
                call.ok("PUT", f"/api/hot/{key}", value(number) | status)
        texts = [one["text"] for one in call.ok("GET", "/api/memory?limit=100")["results"]]
        assert 0 < len({re.findall(r"\d+", text)[0] for text in texts}) == len(texts) <= 20
        assert key != "project" or any("step 2" in text for text in texts)


def test_values_are_merged_not_replaced(call):
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Alex", "creature": "owl"})
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Robin"})
    identity = state(call)["identity"]
    assert (identity["agent_name"], identity["creature"]) == ("Robin", "owl")
    call.ok("PUT", "/api/hot/project", {"name": "Boat", "status": "active"})
    call.ok("PUT", "/api/hot/project", {"name": "Boat", "description": "a ketch"})
    (project,) = state(call)["active_context"]["projects"]
    assert (project["status"], project["description"]) == ("active", "a ketch")


def test_entries_are_removed_by_name_or_exact_text(call):
    for key in ("identity", "owner_profile"):
        call.ok("PUT", f"/api/hot/{key}", {"tea & milk": key, "tea": f"{key} stays"})
    for key in ("lesson", "event", "task", "project"):
        for text in ("tea & milk", f"{key} stays"):
            call.ok(
                "PUT", f"/api/hot/{key}", {"text": text} if key != "project" else {"name": text}
            )
    for key in ("identity", "owner_profile", "lesson", "event", "task", "project"):
        target = f"/api/hot/{key}?name=tea%20%26%20milk"
        assert call.ok("DELETE", target) == {"removed": key, "name": "tea & milk"}
        assert call("DELETE", target).refusal() == (404, "not_found", "name")
        assert f"{key} stays" in json.dumps(state(call))
    assert "milk" not in json.dumps(state(call))
    assert call("DELETE", "/api/hot/lessons?name=x").refusal() == (400, "invalid", "key")


def test_a_value_of_the_wrong_shape_changes_nothing(call):
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Alex"})

    def content() -> Any:
        found = state(call)
        found.pop("generated_at", None)
        found.pop("updated_at", None)
        return found

    before = content()
    keys = ("identity", "owner_profile", "lesson", "event", "task", "project")
    for key, value, field in [
        *((key, {"text": "x"}, "key") for key in ("nothing", "lessons", "extra", "Identity")),
        *((key, value, key) for key in keys for value in ("text", 17, True, [], [{"text": "x"}])),
        ("identity", {"": "x"}, "identity"), ("identity", {" ": 1}, "identity"),
        ("lesson", {"category": "x"}, "text"), ("lesson", {"text": " \n"}, "text"),
        ("event", {"text": 5}, "text"), ("task", {"text": None}, "text"),
        *(("lesson", {"text": "x", "importance": n}, "importance") for n in (2, -1, "high", True)),
        ("lesson", {"text": "x", "category": 5}, "category"),
        ("lesson", {"text": "x", "category": "../.."}, "category"),
        ("task", {"text": "x", "status": 1}, "status"),
        *(("event", {"text": "x", "timestamp": at}, "timestamp") for at in ("soon", -1, [])),
        ("project", {"status": "active"}, "name"), ("project", {"name": " "}, "name"),
        ("project", {"name": "x", "status": []}, "status"),
        ("project", {"name": "x", "description": 5}, "description"),
        ("identity", {"big": "x" * 20_000}, "identity"),
        ("owner_profile", {"bio": "ä" * 8_190}, "owner_profile"),
        ("lesson", {"text": "owl " * 1500, "importance": 0.9}, "lesson"),
    ]:  # fmt: skip
        answer = call("PUT", f"/api/hot/{key}", value)
        status, _, found = answer.refusal()
        assert (status in {400, 413}, found) == (True, field), (key, value)
        if field == "key":
            assert all(valid in answer.body["error"]["message"] for valid in keys)
        if not isinstance(value, dict):
            assert "such as {" in answer.body["error"]["hint"]
    assert content() == before


def test_the_markdown_is_what_memory_md_holds_in_evoclaws_order(call, shared_daemon):
    for text, importance in (("a", 0.4), ("save often – immer", 0.9), ("c", 0.4), ("d", 0.7)):
        call.ok("PUT", "/api/hot/lesson", {"text": text, "importance": importance})
    call.ok("PUT", "/api/hot/task", {"text": "buy tea", "status": "Done"})
    lessons = [lesson["text"] for lesson in state(call)["critical_lessons"]]
    assert lessons == ["save often – immer", "d", "a", "c"]
    rebuilt = call.ok("POST", "/api/hot/rebuild")
    markdown = call("GET", "/api/hot/markdown")
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    places = [markdown.text.index(f"[general]** {text}") for text in lessons]
    assert places == sorted(places)
    assert "Pending" not in markdown.text
    file = shared_daemon.folder(call.agent) / "MEMORY.md"
    assert rebuilt["output"] == str(file)
    assert 0 < rebuilt["size_bytes"] <= rebuilt["max_bytes"]
    assert "save often – immer" in file.read_text()
    call.ok("PUT", "/api/hot/task", {"text": "brew it"})
    page = call("GET", "/api/hot/markdown").text
    assert "- [PENDING] brew it" in page
    assert "buy tea" not in page


def test_a_change_that_is_refused_creates_no_agent(shared_daemon, call):
    for target, body in (
        ("/api/hot/lesson", {"text": ""}),
        ("/api/hot/identity", {"about": "x" * 9_000}),
        ("/api/tree", {"path": "/".join("abcdefgh")}),
    ):
        assert call("PUT", target, body).status in (400, 409, 413), target
    with shared_daemon.client() as client:
        assert call.agent not in client.status().agents
