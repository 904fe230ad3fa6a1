"""Knowledge, reflections, episodes and skills: files of the agent's, over the socket."""

import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

LESSON = {"type": "failure", "context": "deploy", "lesson": "migrate before the restart"}


@pytest.fixture
def folder(shared_daemon: Any, call: Any) -> Path:
    """The folder of the agent's files."""
    return Path(shared_daemon.state) / "agents" / call.agent / "memory"


def test_what_is_added_stands_in_the_file_and_in_the_list(call, folder):
    made = call.ok("POST", "/api/reflections", {**LESSON, "action": "script it"})
    (line,) = (folder / "reflections.jsonl").read_text().splitlines()
    assert json.loads(line) == made
    assert set(made) == {"ts", "type", "context", "lesson", "action"}
    told = {"summary": "Ana could not log in", "tags": ["login"], "outcome": "resolved"}
    episode = call.ok("POST", "/api/episodes", told)
    (line,) = (folder / "episodes.jsonl").read_text().splitlines()
    assert json.loads(line) == episode
    assert (episode["agent"], episode["user"]) == (call.agent, "user")
    assert call.ok("GET", "/api/reflections") == {"results": [made], "total": 1}
    assert call.ok("GET", "/api/episodes?outcome=unresolved")["total"] == 0


def test_skills_are_trimmed_and_the_three_that_fit_best_as_in_tinyclaw(call):
    for name in ("one", "two", "three", "four", "best"):
        does = f"how to deploy{' heron safely' * (name == 'best')}"
        skill = {"id": name, "description": does, "text": f"\n\n# {name}\nrun it\n\n"}
        call.ok("POST", "/api/skills", skill)
    block = call.ok("GET", "/api/context?format=tinyclaw&query=please+deploy+heron+safely")["text"]
    skills = block.partition("## Relevant Skills\n")[2].partition("\n[/MEMORY]")[0]
    assert skills == "\n".join(f"### {n}\n# {n}\nrun it" for n in ("best", "one", "two"))


def test_missing_files_are_made_as_tinyclaw_makes_them_when_its_agent_first_calls(call, folder):
    assert call.ok("GET", "/api/context")["text"] == ""
    assert not folder.exists()
    assert call.ok("GET", "/api/context?format=tinyclaw&query=hello")["text"] == ""
    assert (folder / "knowledge.md").read_text().startswith("# Knowledge\n\n_No entries yet")
    assert (folder / "reflections.jsonl").read_text() == ""
    assert json.loads((folder / "skills" / "index.json").read_text()) == {}
    (folder / "knowledge.md").write_text("mine")
    for path in ("context", "knowledge", "reflections", "episodes", "skills"):
        (folder / "episodes.jsonl").unlink()
        call.ok("GET", f"/api/{path}")
        assert (folder / "knowledge.md").read_text() == "mine"
        assert (folder / "episodes.jsonl").read_text() == ""


def test_a_name_of_a_skill_is_what_the_message_says(call):
    hint = "use up to 60 letters, digits, dashes and underscores; the first is a letter or digit"
    for name in ("my skill", "v1.2", "-x", "_x", "x" * 61, "a\nb", "é!"):
        refused = call("POST", "/api/skills", {"id": name, "description": "y"})
        assert refused.refusal() == (400, "invalid", "id")
        assert refused.body["error"]["hint"] == hint


def test_an_index_that_is_none_is_neither_read_nor_replaced(call, folder):
    call.ok("POST", "/api/skills", {"id": "deploy", "description": "d"})
    (folder / "skills" / "index.json").write_text("[broken")
    assert call.ok("GET", "/api/skills")["total"] == 0
    refused = call("POST", "/api/skills", {"id": "other", "description": "d"})
    assert refused.refusal()[1] == "conflict"
    assert (folder / "skills" / "index.json").read_text() == "[broken"
    problems = call.ok("GET", "/api/status")["problems"]
    assert any("index.json is not a JSON object" in one["message"] for one in problems)


def test_a_broken_line_costs_only_itself_and_is_reported_until_it_is_mended(call, folder):
    call.ok("POST", "/api/reflections", LESSON)
    log = folder / "reflections.jsonl"
    whole = log.read_text()
    log.write_text(whole + '{"type": "insight", "lesson": \n\n' + whole.replace("migrate", "wait"))
    page = call.ok("GET", "/api/reflections")
    assert page["total"] == 2
    told = "line 2 of memory/reflections.jsonl is not a reflection and is left out"
    assert page["warning"] == told

    def problems() -> list[str]:
        found = call.ok("GET", "/api/status")["problems"]
        return [one["message"] for one in found if call.agent in json.dumps(one)]

    assert any(told in message for message in problems())
    (folder / "knowledge.md").write_text("# Knowledge\n\nmine\n")
    call.ok("GET", "/api/knowledge")
    assert any(told in message for message in problems())
    log.write_bytes(whole.encode() + b'{"type": "ins\xff')
    assert "warning" not in call.ok("GET", "/api/reflections")
    assert not any("reflections" in message for message in problems())
    call.ok("POST", "/api/reflections", LESSON | {"lesson": "three"})
    lessons = [one["lesson"] for one in call.ok("GET", "/api/reflections")["results"]]
    assert lessons == ["three", LESSON["lesson"]]


def test_a_skill_is_a_file_and_an_entry_of_the_index(call, folder):
    skill = {"id": "deploy", "description": "how to deploy", "text": "# Deploy\n\n1. make deploy\n"}
    assert call.ok("POST", "/api/skills", skill)["added"] is True
    assert (folder / "skills" / "deploy.md").read_text() == skill["text"]
    (folder / "skills" / "index.json").write_text('{"deploy": "how to deploy", "odd": 3}')
    assert call.ok("POST", "/api/skills", {"id": "new", "description": "n"})["added"] is True
    assert (
        call.ok("POST", "/api/skills", {"id": "new", "description": "m", "force": True})["added"]
        is False
    )
    index = json.loads((folder / "skills" / "index.json").read_text())
    assert index == {"deploy": "how to deploy", "odd": 3, "new": "m"}
    assert call.ok("GET", "/api/skills/deploy")["text"] == skill["text"]
    assert [one["id"] for one in call.ok("GET", "/api/skills")["results"]] == ["new", "deploy"]
    assert call("GET", "/api/skills/none").refusal()[1] == "not_found"
    results = call.ok("POST", "/api/recall", {"query": "how do I deploy?"})["results"]
    # The file of the skill may be indexed by now as well.
    [found] = [one for one in results if one["source"] == "skill"]
    assert (found["id"], found["path"]) == ("deploy", "memory/skills/deploy.md")


def test_no_link_is_followed_out_of_the_folder(call, folder, tmp_path):
    call.ok("POST", "/api/skills", {"id": "deploy", "description": "d", "text": "mine"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    outside = tmp_path / "outside.md"
    outside.write_text("secret")
    (folder / "skills" / "deploy.md").unlink()
    (folder / "skills" / "deploy.md").symlink_to(outside)
    assert call.ok("GET", "/api/skills/deploy")["text"] == ""
    body = {"id": "deploy", "description": "d", "text": "stolen"}
    assert call("POST", "/api/skills", body).refusal()[1] == "conflict"
    assert outside.read_text() == "secret"
    (folder / "reflections.jsonl").unlink()
    os.mkfifo(folder / "reflections.jsonl")
    assert call.ok("GET", "/api/reflections")["total"] == 0
    assert call("POST", "/api/reflections", LESSON).refusal()[1] == "conflict"
    # Nor is anything written through a folder that is one.
    folder.rename(tmp_path / "away")
    folder.symlink_to(elsewhere, target_is_directory=True)
    for path, body in (
        ("reflections", LESSON),
        ("episodes", {"summary": "x"}),
        ("skills", {"id": "x", "description": "y"}),
    ):
        assert call("POST", f"/api/{path}", body).refusal()[1] == "conflict"
    call.ok("GET", "/api/context")
    assert [*elsewhere.iterdir()] == []


def test_an_agent_that_takes_the_lock_loses_no_line(call, folder):
    call.ok("POST", "/api/reflections", LESSON)
    path = folder / "reflections.jsonl"

    def rewrite(number: int) -> None:
        with (folder / ".lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            line = json.dumps({**LESSON, "lesson": f"mine {number}"})
            path.write_text(f"{path.read_text()}{line}\n")

    with ThreadPoolExecutor(2) as threads:
        mine = threads.map(rewrite, range(30))
        for number in range(30):
            call.ok("POST", "/api/reflections", {**LESSON, "lesson": f"theirs {number}"})
        assert len([*mine]) == 30
    found = {one["lesson"] for one in call.ok("GET", "/api/reflections?limit=100")["results"]}
    assert found == {LESSON["lesson"]} | {
        f"{who} {n}" for who in ("mine", "theirs") for n in range(30)
    }


def test_who_holds_the_lock_is_waited_for(call, folder):
    call.ok("POST", "/api/reflections", LESSON)
    with (folder / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = call("POST", "/api/reflections", LESSON)
        assert refused.refusal()[1] == "conflict"
        assert ".lock" in refused.body["error"]["message"]
        assert call.ok("GET", "/api/reflections")["total"] == 1
    call.ok("POST", "/api/reflections", LESSON)
    assert call.ok("GET", "/api/reflections")["total"] == 2


def test_a_long_knowledge_is_told(call, folder):
    call.store("anything")
    call.ok("GET", "/api/context")
    lines = [f"- gauge {number} stands at kilometre {number * 3}" for number in range(230)]
    (folder / "knowledge.md").write_text("\n".join(["# Knowledge", *lines]))
    found = call.ok("GET", "/api/knowledge")
    assert (found["lines"], found["max_lines"]) == (231, 200)
    assert "231 lines" in found["warning"]
    assert "231 lines" in call.ok("GET", "/api/context")["warnings"][0]
    problems = {one["code"] for one in call.ok("GET", "/api/status")["problems"]}
    assert "knowledge_long" in problems
    (folder / "knowledge.md").write_text("# Knowledge\n- short\n")
    assert "warning" not in call.ok("GET", "/api/knowledge")


def test_an_agent_without_a_memory_has_no_files(call, folder):
    for path in ("reflections", "episodes", "skills"):
        assert call.ok("GET", f"/api/{path}") == {"results": [], "total": 0}
    assert call.ok("GET", "/api/context") == {"format": "thermocline", "tokens": 0, "text": ""}
    assert not folder.parent.exists()


def test_neither_a_removed_secret_nor_a_question_in_an_episode_is_a_sure_answer_to_it(call):
    for summary, outcome in (
        ("The staging box was reset; the staging password is [password removed]", "resolved"),
        (
            "User asked: who is my boss at the moment? The neighbour waters the plants.",
            "informational",
        ),
        ("Ana could not log in until her token was renewed.", "resolved"),
    ):
        call.ok("POST", "/api/episodes", {"summary": summary, "outcome": outcome})
    for query, words, sure in (
        ("staging password?", "staging", False),
        ("which password has the staging box?", "staging", False),
        ("was the staging box reset?", "staging", True),
        ("who is my boss at the moment", "my boss", False),
        ("when could Ana not log in", "Ana", True),
    ):
        first = call.ok("POST", "/api/recall", {"query": query})["results"][0]
        assert (words in first["text"], first["sure"]) == (True, sure), query
