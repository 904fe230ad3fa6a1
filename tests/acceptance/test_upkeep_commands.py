"""`consolidate`, `ingest-daily`, `validate`, `upkeep` and the trends on the command line."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from shells import Shell

NOTE = """## Boat
- [x] Ordered the new mainsail from https://sails.example.org/main
- Decided to paint the hull green before the season begins
"""


@pytest.fixture
def shell(shared_daemon: Any, call: Any) -> Shell:
    """A shell of an agent of its own, who remembers one thing."""
    call.store("Ana prefers tea", category="people/ana")
    return Shell(shared_daemon.socket, call.agent)


@pytest.fixture
def note(shared_daemon: Any, call: Any, shell: Shell) -> Callable[[str], Path]:
    """`note(text)` writes the agent's note of today."""
    assert shell

    def write(text: str) -> Path:
        folder = shared_daemon.folder(call.agent) / "memory"
        folder.mkdir(exist_ok=True)
        path: Path = folder / f"{datetime.now().astimezone().date()}.md"
        path.write_text(text)
        return path

    return write


# consolidate


def test_without_options_it_is_the_quick_run_and_a_dry_run_says_what_would_be_done(shell, note):
    out, err = shell.run("consolidate")
    assert out.splitlines()[-1].startswith("quick: done in ")
    assert err == ""
    path = note(NOTE)
    out, _ = shell.run("consolidate", "--mode", "daily", "--dry-run")
    assert "2  facts stored from notes" in out
    assert out.splitlines()[-1].startswith("daily: dry run, nothing changed, in ")
    # EvoClaw's options and fields.
    endpoint = ("--llm-endpoint", "http://localhost:1/v1/chat/completions")
    outcome = shell.json("consolidate", "--mode", "monthly", *endpoint)
    assert set(outcome) >= {
        "mode", "agent_id", "timestamp", "evicted_warm", "archived_cold", "hot_size_bytes",
        "ingested_facts", "ingest_skipped", "pruned_nodes", "tree_rebuilt",
    }  # fmt: skip
    assert outcome["ingested_facts"] == 2
    path.write_bytes(b"\xff\xfe\x00")
    _, err = shell.run("consolidate", "--mode", "daily")
    assert f"did not read {path.name}: it is not UTF-8 text" in err


def test_a_full_run_analyses_the_tree_and_writes_its_report(shell, call, shared_daemon):
    for number in range(10):
        call.ok("PUT", "/api/tree", {"path": f"boats/b{number}", "desc": "made by hand"})
    call.store("secret words", category="boats/b1/sails")
    call.store("more secret words", category="house/sails")
    lines = shell.run("consolidate", "--mode", "full")[0].splitlines()
    report = [line.removeprefix("report: ") for line in lines if line.startswith("report: ")]
    assert report[0] == "17 of 50 categories, 3 of 4 levels"
    assert report[1] == "3 memories: 3 warm, 0 archived; 0 in no category"
    assert "largest: boats/b1/sails (1), house/sails (1), people/ana (1)" in report
    assert "of the same name: boats/b1/sails and house/sails" in report
    assert "nearly full: boats (10 of 10 below it)" in report
    file = shared_daemon.folder(call.agent) / "tree-report.md"
    assert f"wrote {file}" in lines
    text = file.read_text(encoding="utf-8")
    assert text.startswith(f"# The tree of '{call.agent}', 20")
    assert all(f"- {line}\n" in text for line in report)
    assert "secret" not in text
    file.unlink()
    dry = shell.json("consolidate", "--mode", "full", "--dry-run")
    assert dry["report"] == report
    assert "report_file" not in dry
    assert not file.exists()
    assert "report" not in shell.json("consolidate", "--mode", "monthly")


def test_a_database_named_for_the_call_leaves_the_answer_in_json_as_it_is(shell):
    named = ("--db-url", "https://db.example.org", "--token-file", "-")
    ran = shell.json("consolidate", *named, stdin=b"token")
    assert (ran["mode"], "devices" in ran) == ("quick", False)
    assert "facts_stored" in shell.json("ingest-daily", *named, stdin=b"token")


# ingest-daily


def test_short_decisions_and_what_is_on_a_day_are_stored_and_ideas_are_not(shell, note):
    note(
        "- Decided: the cat stays\n- 决定: 冬天去海南\n- Entscheidung: kein Umzug nach Graz\n"
        "- The chimney sweep comes on Friday at 8\n- Vet appointment moved to 3 December, 16:15\n"
        "- Idea: maybe a second shed?\n- Slept badly\n- Ran the tests, all green\n"
    )
    shell.run("ingest-daily")
    texts = [memory["text"] for memory in shell.json("list")["results"]]
    assert sorted(texts)[1:] == [
        "Decided: the cat stays",
        "Entscheidung: kein Umzug nach Graz",
        "The chimney sweep comes on Friday at 8",
        "Vet appointment moved to 3 December, 16:15",
        "决定: 冬天去海南",
    ]


def test_notes_are_taken_in_once(shell, note):
    note(NOTE)
    dry, _ = shell.run("ingest-daily", "--dry-run")
    assert dry.splitlines()[-1] == "would store 2 of 2 facts in 1 note"
    lines = shell.run("ingest-daily", "--days", "3")[0].splitlines()
    assert "Ordered the new mainsail from https://sails.example.org/main" in lines[0]
    assert lines[-1] == "stored 2 of 2 facts in 1 note"
    assert shell.run("ingest-daily")[0] == "stored 0 of 2 facts in 1 note\n"
    again = shell.json("ingest-daily")
    assert set(again) == {
        "files_scanned", "mode", "facts_found", "facts_stored", "facts_skipped", "llm_fallbacks",
        "facts", "files", "dry_run",
    }  # fmt: skip
    assert again["facts_skipped"] == 2
    [sail] = shell.json("list", "--url", "sails.example.org")["results"]
    assert sail["writer"].endswith(" cli")
    found, _ = shell.run("retrieve", "what colour will the hull have?")
    assert "green" in found


# validate


def test_the_exit_code_is_the_number_of_warnings(shell, tmp_path):
    file = tmp_path / "note.md"
    for text, warning in (
        ("We install things later.", "Action 'install' mentioned without command example"),
        (
            "Tried ComfyUI today, works.",
            "Tool 'ComfyUI' mentioned without URL/documentation link",
        ),
        (
            "We decided to wait.",
            "Decision near 'We decided to wait....' may lack implementation details",
        ),
    ):
        file.write_text(text)
        answer = json.loads(shell.run("validate", "--file", file, "--json", code=1)[0])
        assert answer["suggestions"].pop().startswith("line 1: ")
        assert answer == {
            "status": "warning", "warnings_count": 1, "warnings": [warning], "file": str(file),
            "suggestions": [],
        }  # fmt: skip
    file.write_text("all fine")
    fine = {"status": "ok", "message": "nothing is left out", "file": str(file)}
    assert shell.json("validate", "--file", file) == fine
    assert shell.out("validate", "--file", "-", stdin="all fine") == "-: nothing is left out\n"
    missing = str(tmp_path / "none.md")
    assert "cannot open" in shell.run("validate", "--file", missing, code=1).stderr
    answer = json.loads(shell.run("validate", "--file", missing, "--json", code=1)[0])
    assert (answer["status"], answer["warnings_count"], answer["file"]) == ("warning", 1, missing)
    assert answer["warnings"] == [f"Daily notes file not found: {missing}"]
    assert len(answer["suggestions"]) == 1
    file.write_bytes(b"\xff\x00")
    shell.run("validate", "--file", file, code=2)


def test_todays_note_is_meant_when_none_is_named(shell, note):
    _, err = shell.run("validate", code=1)
    assert "today has no note yet" in err
    path = note("We install things later.\n\nWe decided to wait.")
    out, _ = shell.run("validate", code=2)
    first, second, third, _ = out.splitlines()
    assert first == f"{path}:1: Action 'install' mentioned without command example"
    assert second.startswith("  line 1: ")
    assert third.startswith(f"{path}:3: Decision near")


# What is scheduled, and what it comes to


def test_the_schedules_are_shown(shell):
    lines = shell.run("upkeep")[0].splitlines()
    assert re.fullmatch(r"run +times \(\S+\) +last +next", lines[0])
    assert [line.split()[0] for line in lines[1:]] == ["merging", "quick", "daily", "monthly"]
    assert "never" in lines[1]
    shell.run("consolidate", "--mode", "daily")
    daily = shell.run("upkeep")[0].splitlines()[3]
    assert daily.startswith("daily")
    assert " took " in daily
    status, _ = shell.run("status")
    assert "daily, " in status
    shell.run("consolidate", "--mode", "full")
    full = shell.run("upkeep")[0].splitlines()[-1]
    assert full.startswith("full")
    assert re.search(r"  by hand +took ", full)


def test_metrics_are_shown_as_bars_and_as_a_trend(shell):
    lines = shell.run("metrics", "--report")[0].splitlines()
    assert [line.split("  ")[0].strip() for line in lines[:3]] == ["hot state", "warm", "tree"]
    assert all(line.count("█") + line.count("░") == 10 for line in lines[:3])
    assert shell.run("metrics", "--trend")[0].startswith("nothing is recorded yet")
    shell.run("consolidate")
    trend, _ = shell.run("metrics", "--trend")
    assert trend.splitlines()[0].endswith(": 1 of 7 days are recorded")
    assert "warm count" in trend
    assert shell.json("metrics", "--trend")["numbers"]["warm_count"]["average"] == 1
    assert shell.json("metrics", "--report")["warm"]["count"] == 1


def test_a_rebuild_of_the_tree_is_taken_back(shell, call):
    batch = [{"text": f"sailing lesson {n}", "category": "all/boats"} for n in range(25)]
    call.ok("POST", "/api/memory/batch", {"memories": batch})
    shell.run("tree", "--rename", "all/boats", "sea")
    undone, _ = shell.run("tree", "--undo")
    assert undone == "undid 1 change of the tree; memories filed as before: 25\n"
    _, err = shell.run("tree", "--undo", code=1)
    assert "no rebuild" in err


# Another database


def test_another_database_gets_the_facts_of_notes_and_nothing_else(
    shell, note, sqld_with_auth, tmp_path
):
    note(NOTE)
    token = tmp_path / "token"
    token.write_text(sqld_with_auth.token())
    database = ("--db-url", sqld_with_auth.url, "--token-file", str(token))
    _, err = shell.run("consolidate", *database)
    assert "is left alone here" in err
    assert err.count("\n") == 1
    assert sqld_with_auth.query("SELECT name FROM sqlite_schema") == []
    out, err = shell.run("ingest-daily", *database)
    assert out.splitlines()[-1] == "stored 2 of 2 facts in 1 note"
    assert err == ""
    assert sqld_with_auth.query("SELECT count(*) FROM cold_memories") == [[2]]
