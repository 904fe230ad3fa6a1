"""The agent's own files and the context block on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path


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


def test_the_context_has_what_stands_with_its_date_and_keeps_the_budget(shell):
    shell.out("store", "Never push on Fridays")
    for number in range(40):
        shell.out("store", f"crate {number} went to the harbour store")
    shown = shell.out("context", "shall we release today?", "--max-tokens", "300")
    assert re.search(r"- Never push on Fridays \(\w+, now, \d{4}-\d\d-\d\d\)", shown)
    assert len(shown) <= 1_200
    other = shell.out("context", "where is crate 7?", "--format", "evoclaw", "--max-tokens", "200")
    assert len(other) <= 900


def test_knowledge_is_shown_and_told_when_too_long(shell, shared_daemon):
    shell.out("store", "anything")
    shell.out("context")
    assert "_No entries yet" in shell.out("knowledge")
    path = Path(shared_daemon.state) / "agents" / shell.agent / "memory" / "knowledge.md"
    path.write_text("".join(f"- gauge {n} is at kilometre {n}\n" for n in range(202)))
    assert "202 lines" in shell.run("knowledge").stderr
    assert "202 lines" in shell.run("context").stderr
