"""Experiences, sessions, the graph and the agent's own files on the command line."""

import json
import re
from pathlib import Path


def test_an_experience_is_added_observed_found_used_and_pruned(shell, tmp_path):
    given = ("--type", "error_recovery", "--solution", "restart the queue", "--tag", "deploy")
    made = shell.out("experiences", "add", "the deploy hangs", *given).split()[1]
    assert made in shell.out("experiences", "search", "deploy hangs", "--tag", "deploy")
    assert "the deploy hangs → restart the queue" in shell.out("experiences")
    assert "→ restart the queue" in shell.out("experiences", "search", "deploy hangs")
    assert shell.run("experiences", "search", "giraffes").stderr
    assert "the deploy hangs" in shell.out("retrieve", "why does the deploy hang")
    assert shell.out("experiences", "use", made).startswith("used 2 times")
    assert json.loads(shell.out("experiences", "show", made))["solution"] == "restart the queue"
    undone = shell.out("undo", made[:4], "--kind", "experience")
    assert undone == f"experience {made}: put back\n"
    assert "would prune 0 experiences, 1 left" in shell.out("experiences", "prune", "--dry-run")
    assert "pruned 1 experience, 0 left" in shell.out("experiences", "prune", "--min-weight", "1")
    assert shell.out("experiences") == ""
    assert shell.out("experiences", "delete", made[:8]) == f"deleted {made}\n"
    talk = tmp_path / "talk.json"
    text = "Decision: we use Postgres for the billing data."
    talk.write_text(json.dumps([{"role": "user", "content": text}]))
    observe = ("experiences", "observe", talk, "--conversation", "c1")
    assert "stored 1, told again 0" in shell.out(*observe)
    assert "stored 0, told again 1" in shell.out(*observe)
    shell.out("experiences", "prefer", "editor", "vim", "--user", "ana")
    told = shell.out("experiences", "prefer", "editor", "vim", "--user", "ana")
    assert told == "editor: vim (confidence 0.52)\n"
    assert shell.out("experiences", "preferences") == "ana  editor  vim  0.52  2x\n"
    assert shell.json("experiences", "stats")["total"] == 2


def test_a_session_from_its_start_to_its_end(shell):
    shell.json("store", "the site runs on pond-2", "--category", "projects/site")
    shell.out("store", "Ana keeps the keys of the site", "--category", "people/ana")
    key = shell.out("sessions", "start", "release", "--category", "projects").strip()
    found = shell.out("retrieve", "the site", "--session", key)
    assert "pond-2" in found
    assert "Ana" not in found
    assert "Ana" not in shell.out("context", "the site", "--session", key)
    assert "release" in shell.out("sessions")
    assert shell.out("sessions", "archive", "release") == f"archived {key}\n"
    refused = shell.run("retrieve", "the site", "--session", key, code=None)
    assert "is archived" in refused.stderr
    assert shell.out("sessions", "list", "--status", "active") == ""
    (archived,) = shell.json("sessions", "list", "--status", "archived")["sessions"]
    assert (archived["id"], archived["status"]) == (key, "archived")
    shell.out("undo", "release", "--kind", "session")
    assert "pond-2" in shell.out("retrieve", "the site", "--session", key)
    assert shell.json("sessions", "show", key[:4])["status"] == "active"
    # A name stands for a session where only one has it.
    second = shell.out("sessions", "start", "release").strip()
    assert [one["id"] for one in shell.json("sessions")["sessions"]] == [second, key]
    refused = shell.run("sessions", "archive", "release", code=1)
    assert "2 sessions are called 'release'" in refused.stderr
    assert key in refused.stderr
    assert second in refused.stderr
    assert "id or name 'x'" in shell.run("sessions", "show", "x", code=1).stderr


def test_what_a_conversation_names_is_shown_with_where_it_comes_from(shell, tmp_path):
    assert "no names yet" in shell.run("graph").stderr
    talk = tmp_path / "talk.json"
    said = (
        "My sister Marta lives in Lisbon and works at Acme.",
        "Decision: the importer is written in Rust, and Rust told us about every error.",
    )
    talk.write_text(json.dumps([{"role": "user", "content": text} for text in said]))
    shell.out("observe", talk, "--conversation", "c1")
    marta = shell.out("graph", "marta")
    assert "Marta (person): 1 memory" in marta
    assert "lives_in  Lisbon" in marta
    shell.out("store", "Marta plays chess on Mondays")
    assert "Marta (person): 2 memories" in shell.out("graph", "marta")
    assert re.search("^Marta +person +2 memories", shell.out("graph"), re.MULTILINE)
    assert "Rust (technology)" in shell.out("graph", "Rust")
    assert shell.out("graph", "Marta Silva", "--alias", "Marta").startswith(
        "Marta Silva (person, also Marta)"
    )
    assert "Marta Silva" in shell.out("graph", "--limit", "50")
    assert "Marta Silva" in shell.out("retrieve", "where does Marta live?")
    assert shell.out("graph", "marta", "--no-alias", "Marta").startswith("Marta (person)")
    assert "entity marta silva" in shell.out("history", "Marta Silva", "--kind", "entity")
    shell.out("undo", "Marta Silva", "--kind", "entity")
    assert shell.out("graph", "marta").startswith("Marta Silva (person, also Marta)")


def test_a_name_in_a_stored_memory_is_named_and_one_in_none_is_not_found(shell):
    neighbour = shell.json("store", "My neighbour Leopold fixes clocks")["id"]
    shell.out("store", "Never push to the release branch without Tomasz's approval")
    shell.out("store", "Leopold is away in May")
    shell.out("store", "我女朋友叫小雨")
    leopold = shell.out("graph", "leopold")
    assert "Leopold (person): 2 memories" in leopold
    assert neighbour[:8] in leopold
    assert "Tomasz" in shell.out("graph", "Tomasz")
    assert "1 memory" in shell.out("graph", "小雨")
    assert "Leopold" in shell.out("graph")
    assert "Leopold (person, also Leo): 2 memories" in shell.out(
        "graph", "Leopold", "--alias", "Leo"
    )
    for word in ("Zoe", "clocks", "Never the", "without", "Push"):
        assert f"no memory names '{word}'" in shell.run("graph", word, code=1).stderr
    assert json.loads(shell.run("--json", "graph", "Zoe", code=1).stdout)["found"] is False


def test_what_is_added_is_listed_and_in_the_context(shell, tmp_path):
    words = ("reflect", "add", "migrate first", "--type", "failure", "--context", "deploy")
    assert shell.out(*words) == "added: deploy: migrate first\n"
    assert "failure  deploy: migrate first" in shell.out("reflect")
    assert shell.out("reflect", "list", "--type", "success") == ""
    shell.out("episode", "add", "The deploy hung.", "--outcome", "resolved", "--tag", "lock")
    assert "resolved  The deploy hung. (lock)" in shell.out("episode")
    file = tmp_path / "deploy.md"
    file.write_text("# Deploy\n\n1. make deploy\n")
    options = ("--description", "how to deploy", "--file", file)
    assert shell.out("skill", "add", "deploy", *options) == "added memory/skills/deploy.md\n"
    file.write_text("# Deploy\n\n1. make release\n")
    _, err = shell.run("skill", "add", "deploy", *options, code=1)
    assert "it exists" in err
    assert "--force" in err
    assert shell.out("skill", "show", "deploy") == "# Deploy\n\n1. make deploy\n"
    assert shell.out("skill", "add", "deploy", *options, "--force").startswith("replaced")
    assert shell.out("skill") == "deploy  how to deploy\n"
    assert shell.out("skill", "show", "deploy") == "# Deploy\n\n1. make release\n"
    told = shell.out("context", "how do I deploy?")
    for known in ("migrate first", "The deploy hung.", "1. make release"):
        assert known in told
    assert told == shell.out("context", "--query", "how do I deploy?")
    assert json.loads(shell.out("context", "deploy", "--format", "json"))[0]["items"]
    assert shell.json("context", "deploy", "--format", "tinyclaw")["text"].startswith("[MEMORY]")
    found = shell.out("retrieve", "how do I deploy?")
    assert "memory/skills/deploy.md" in found


def test_the_context_has_what_stands_with_its_date_and_keeps_the_budget(shell, shared_daemon):
    shell.out("store", "Never push on Fridays")
    for number in range(40):
        shell.out("store", f"crate {number} went to the harbour store")
    shown = shell.out("context", "shall we release today?", "--max-tokens", "300")
    assert re.search(r"- Never push on Fridays \(\w+, now, \d{4}-\d\d-\d\d\)", shown)
    assert len(shown) <= 1_200
    other = shell.out("context", "where is crate 7?", "--format", "evoclaw", "--max-tokens", "200")
    assert len(other) <= 900
    # What is known is told of when it is too long.
    assert "_No entries yet" in shell.out("knowledge")
    path = Path(shared_daemon.state) / "agents" / shell.agent / "memory" / "knowledge.md"
    path.write_text("".join(f"- gauge {n} is at kilometre {n}\n" for n in range(202)))
    assert "202 lines" in shell.run("knowledge").stderr
    assert "202 lines" in shell.run("context").stderr
