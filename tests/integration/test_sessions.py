"""Sessions over the socket: what they see."""

from pathlib import Path
from typing import Any

import pytest


def start(call: Any, **fields: Any) -> str:
    return str(call.ok("POST", "/api/sessions", fields)["id"])


def recalled(call: Any, query: str, session: str, **more: Any) -> Any:
    return call.ok("POST", "/api/recall", {"query": query, "session": session, **more})


@pytest.fixture
def site(call: Any) -> Any:
    """A memory of a project, beside one of a person."""
    call.store("Ana keeps the keys of the site", category="people/ana")
    return call.store("the site runs on pond-2", category="projects/site")


@pytest.mark.usefixtures("site")
def test_a_session_has_what_it_was_given_and_with_paths_alone_sees_no_memory(call):
    body = {"name": "release", "conversationId": "c1", "userId": "ana", "paths": ["/srv/docs/"]}
    made = call.ok("POST", "/api/sessions", body | {"category": "projects"})
    assert (made["status"], made["conversation"]) == ("active", "c1")
    assert (made["category"], made["paths"]) == ("projects", ["/srv/docs/"])
    key = start(call, paths=["/srv/docs/"])
    for mode in ("keyword", "tree"):
        assert recalled(call, "the site", key, mode=mode)["results"] == []
    for query in ("the+site", ""):
        asked = f"/api/context?format=json&query={query}&session={key}"
        assert call.ok("GET", asked)["sections"] == []


def test_what_is_not_there_or_wrong_is_refused(call):
    assert call("GET", "/api/sessions/nosuch").status == 404
    assert call("POST", "/api/recall", {"query": "x", "session": "nosuch"}).status == 404
    key = start(call, category="projects")
    wrong = call("POST", "/api/recall", {"query": "x", "session": key, "category": "people"})
    assert (wrong.status, wrong.body["error"]["field"]) == (400, "category")
    assert call("GET", f"/api/context?session={key}&format=tinyclaw").status == 400
    assert call("POST", "/api/sessions", {"category": "a//b"}).status == 400
    assert call("POST", "/api/sessions", {"paths": [" "]}).status == 400
    for path in ("docs/", "../docs", "~/docs", "notes/memory/"):
        wrong = call("POST", "/api/sessions", {"paths": [path]})
        assert (wrong.status, wrong.body["error"]["field"]) == (400, "paths"), path
    for path in ("memory/", "MEMORY.md", "memory"):
        assert call("POST", "/api/sessions", {"paths": [path]}).status == 201


def test_a_session_with_a_category_sees_nothing_else(call, site):
    call.ok("PUT", "/api/kv/site", {"value": "pond-9"})
    experience = {"type": "error_recovery", "intent": "the site is slow", "solution": "wait"}
    call.ok("POST", "/api/experiences", experience)
    call.ok("PUT", "/api/hot/lesson", {"text": "the site is slow", "importance": 1})
    narrow, wide = start(call, category="projects"), start(call)
    found = recalled(call, "the site", narrow)
    assert [one["id"] for one in found["results"]] == [site["id"]]
    assert {one["source"] for one in found["results"]} == {"memory"}
    assert len(recalled(call, "the site", narrow, category="projects/site")["results"]) == 1
    everything = recalled(call, "the site", wide)
    assert len(everything["results"]) == 4
    assert {one["source"] for one in everything["results"]} == {"memory", "pair", "experience"}
    for query in ("the+site", ""):
        asked = f"/api/context?format=json&query={query}&session={narrow}"
        (section,) = call.ok("GET", asked)["sections"]
        assert [one["id"] for one in section["items"]] == [site["id"]]


def test_an_isolated_session_learns_nothing_of_what_is_outside(call):
    call.store("our captain is called Undine", category="people")
    for number in range(5):
        call.store(f"the harbour has basin {number}", category="harbour")
    inside = call.store("Undine repairs the winch on Mondays", category="projects/winch")
    old = call.store("the code of door 7 is 4711", category="projects/winch")
    new = call.store("the code of door 7 is 9932", category="secret/moves")
    assert old["id"] in new["supersedes"]
    key = start(call, category="projects")
    answer = recalled(call, "harbour basin", key, explain=True)
    assert answer["results"] == []
    assert "filter" not in answer["why"]
    assert answer["searched"] == {"memory": 2}
    assert answer["understood"]["tree"] == []
    assert answer["understood"]["common_words"] == []
    outside, nowhere = (recalled(call, word, key)["why"] for word in ("harbour", "zeppelin"))
    assert outside.replace("harbour", "zeppelin") == nowhere
    call.store("the crane is idle", category="harbour", actor="Nadia Kern")
    call.store("the rope is wet", category="projects/winch", actor="Udo Frei")
    for name, people in (("Nadia", []), ("Udo", ["Udo Frei"])):
        answer = recalled(call, f"what did {name} say?", key, explain=True)
        assert answer["understood"]["people"] == people
    paths = start(call, paths=["/srv/docs/"])
    assert recalled(call, "what did Nadia say?", paths, explain=True)["understood"]["people"] == []
    # Who the captain is stands outside.
    assert inside["id"] not in [
        one["id"] for one in recalled(call, "what does our captain do?", key)["results"]
    ]
    for query in ("what+is+the+code+of+door+7", ""):
        block = call.ok("GET", f"/api/context?format=json&query={query}&session={key}")
        assert "9932" not in str(block)
    call.store("the code of gate 3 is 1188", category="secret/pump")
    pump = call.store("the code of gate 3 is 2299", category="projects/pump")
    assert pump["supersedes"]
    block = call.ok("GET", f"/api/context?format=json&query=the+code+of+gate+3&session={key}")
    assert "1188" not in str(block)


def _written(call: Any, daemon: Any, name: str, text: str) -> None:
    path = Path(daemon.state) / "agents" / call.agent / "memory" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_session_with_paths_sees_the_files_below_them(call, shared_daemon):
    call.store("the crane lifts two tonnes", category="yard")
    _written(call, shared_daemon, "docs/crane.md", "# Crane\n\nThe crane lifts five tonnes.\n")
    _written(call, shared_daemon, "docs2/crane.md", "# Crane\n\nThe crane lifts nine tonnes.\n")
    # Opening it brings the index up to date.
    key = start(call, paths=["memory/docs/"])
    files = call.ok("POST", "/api/files/search", {"query": "what does the crane lift"})
    assert {one["path"] for one in files["chunks"]} == {
        "memory/docs/crane.md",
        "memory/docs2/crane.md",
    }
    asked = {"query": "what does the crane lift", "session": key}
    for method in ("files/search", "recall"):
        found = call.ok("POST", f"/api/{method}", asked)
        parts = found.get("chunks") or found["results"]
        assert [one["path"] for one in parts] == ["memory/docs/crane.md"]
    text = call.ok("POST", "/api/context", asked)["text"]
    assert "five tonnes" in text
    assert "two tonnes" not in text
    both = start(call, paths=["memory/docs"], category="yard")
    found = recalled(call, "what does the crane lift", both)
    assert sorted(one["source"] for one in found["results"]) == ["file", "memory"]


def test_an_empty_category_of_a_session_does_not_pass_for_an_empty_memory(call):
    call.store("the kettle is blue", category="kitchen")
    key = start(call, category="garage")
    assert recalled(call, "which kettle?", key)["why"] == "nothing is stored there yet"
