"""Experiences on the command line."""

from __future__ import annotations

import json


def test_an_experience_is_added_found_used_and_pruned(shell):
    given = ("--type", "error_recovery", "--solution", "restart the queue", "--tag", "deploy")
    made = shell.out("experiences", "add", "the deploy hangs", *given).split()[1]
    assert made in shell.out("experiences", "search", "deploy hangs", "--tag", "deploy")
    assert "the deploy hangs → restart the queue" in shell.out("experiences")
    assert "→ restart the queue" in shell.out("experiences", "search", "deploy hangs")
    assert shell.run("experiences", "search", "giraffes").stderr
    assert "the deploy hangs" in shell.out("retrieve", "why does the deploy hang")
    assert shell.out("experiences", "use", made).startswith("used 2 times")
    assert json.loads(shell.out("experiences", "show", made))["solution"] == "restart the queue"
    assert "would prune 0 experiences, 1 left" in shell.out("experiences", "prune", "--dry-run")
    assert "pruned 1 experience, 0 left" in shell.out("experiences", "prune", "--min-weight", "1")
    assert shell.out("experiences") == ""
    assert shell.out("experiences", "delete", made) == f"deleted {made}\n"


def test_a_conversation_and_preferences(shell, tmp_path):
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
