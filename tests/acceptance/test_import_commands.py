"""`thermocline import`, as a person uses it on what other tools and other hands have written."""

import asyncio
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from shells import Shell, run

from thermocline.sync import SqlStatement, turso

FACT = {
    "id": "0a1b2c3d4e5f",
    "text": "The garage server has 64 GB of memory",
    "category": "technical/server",
    "importance": 0.8,
    "created_at": 1_707_700_000.5,
    "access_count": 3,
}
HOT = {
    "identity": {"agent_name": "Ada"},
    "critical_lessons": [{"text": "measure twice", "importance": 0.9}],
}
TREE = {"root": {"desc": "Memory root", "children": ["craft"]}, "craft": {"desc": "Handwork"}}
METRICS = {"retrieval_count": 7, "last_consolidation": 1_707_700_000, "mood": "x"}


@pytest.fixture
def shell(call: Any) -> Shell:
    """A shell of an agent of its own, who has no memories yet."""
    call.ok("PUT", "/api/kv/here", {"value": "now"})
    return Shell(call.path, call.agent)


@pytest.fixture
def folder(shared_daemon: Any, shell: Shell) -> Path:
    """The folder of that agent."""
    path: Path = shared_daemon.folder(shell.agent)
    return path


def texts(shell: Shell) -> dict[str, str]:
    listed = shell.json("list", "--limit", "500")
    return {one["id"]: one["text"] for one in listed["results"]}


def written(path: Path, document: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2))
    return str(path)


def shown(folder: Path, name: str, eventually: Callable[..., None], mark: str) -> Path:
    """A state file of the daemon's, once it shows something."""
    path = folder / name
    eventually(lambda: path.exists() and mark in path.read_text(), f"{name} shows {mark}")
    return path


@pytest.mark.parametrize(
    ("name", "document", "stored"),
    [
        ("warm-memory.json.changed-20260301T120000", [FACT], {"memory": 1}),
        ("any.json", [FACT], {"memory": 1}),
        ("any.json", {"a1": {"content": {"fact": "Tea at five"}}}, {"memory": 1}),
        ("hot-memory-state.json", HOT, {"hot": 2}),
        ("any.json", HOT, {"hot": 2}),
        ("memory-tree.json.changed-20260301T120000-2", TREE, {"category": 1}),
        ("any.json", TREE, {"category": 1}),
    ],
)
def test_each_state_file_is_taken_in_once(shell, tmp_path, name, document, stored):
    file = written(tmp_path / name, document)
    preview = shell.json("import", file, "--dry-run")
    assert (preview["stored"], preview["dry_run"]) == (stored, True)
    first = shell.json("import", file)
    assert first["stored"] == stored
    assert first["left_out"] == []
    again = shell.json("import", file)
    assert again["stored"] == {}
    assert sum(again["skipped"].values()) == sum(stored.values())


def test_counters_are_taken_over_by_a_memory_that_has_counted_nothing(make_daemon, tmp_path):
    daemon = make_daemon()
    written(daemon.state / "agents" / "ana" / "metrics.json", METRICS)
    shell = Shell(daemon.start().socket, "ana")
    assert shell.json("metrics")["retrieval_count"] == 7
    again = shell.json("import", written(tmp_path / "metrics.json", METRICS))
    assert again["stored"] == {}
    assert any("'mood'" in line for line in again["left_out"])
    assert shell.json("metrics")["retrieval_count"] == 7


def test_a_file_as_the_daemon_wrote_it_holds_nothing_new(folder, shell, tmp_path, eventually):
    shell.run("store", "Ana builds a boat at https://boat.example", "--category", "work/boat")
    shell.run("store", "Ana drinks tea", "--tag", "tea", "--tag", "b", "--importance", "0.4")
    shell.run("hot", "--update", "lesson", '{"text": "measure twice"}')
    shown(folder, "memory-tree.json", eventually, "boat")
    shown(folder, "hot-memory-state.json", eventually, "measure")
    shown(folder, "warm-memory.json", eventually, "tea")
    for name in ("warm-memory.json", "hot-memory-state.json", "memory-tree.json"):
        copy = shutil.copy(folder / name, tmp_path / name)
        taken = shell.json("import", str(copy))
        assert taken["stored"] == {}, taken
        assert taken["left_out"] == []


def test_an_edit_by_hand_is_taken_in_from_the_file_that_was_set_aside(folder, shell, eventually):
    kept = shell.json("store", "Ana builds a boat", "--tag", "boat", "--tag", "old")["id"]
    gone = shell.json("store", "Ana drinks tea")["id"]
    path = shown(folder, "warm-memory.json", eventually, "tea")
    records = json.loads(path.read_text())
    for record in records:
        if record["id"] == kept:
            record |= {"text": "Ana builds a plane", "importance": 0.9, "tags": ["boat", "new"]}
    records.append({"id": "byhand", "text": "Ana has a dog"})
    path.write_text(json.dumps(records))
    shell.run("forget", gone)
    eventually(lambda: any(folder.glob("warm-memory.json.changed-*")), "it is set aside")
    [aside] = folder.glob("warm-memory.json.changed-*")
    taken = shell.json("import", str(aside))
    assert taken["stored"] == {"memory": 2}
    assert taken["skipped"] == {"forgotten since": 1}
    assert texts(shell) == {kept: "Ana builds a plane", "byhand": "Ana has a dog"}
    memory = shell.json("get", kept)
    assert (memory["importance"], sorted(memory["tags"])) == (0.9, ["boat", "new"])
    assert shell.json("import", str(aside))["stored"] == {}


def test_an_old_copy_takes_no_change_back(folder, shell, tmp_path, eventually):
    key = shell.json("store", "Ana builds a boat")["id"]
    path = shown(folder, "warm-memory.json", eventually, "boat")
    copy = tmp_path / "warm-memory.json"
    shell.run("update", key, "--text", "Ana builds a plane")
    shown(folder, "warm-memory.json", eventually, "plane")
    records = json.loads(path.read_text())
    records[0]["text"] = "Ana builds a boat"
    copy.write_text(json.dumps(records))
    taken = shell.json("import", str(copy))
    assert taken["stored"] == {}
    assert taken["skipped"] == {"an earlier version of what is there": 1}
    assert texts(shell) == {key: "Ana builds a plane"}


def test_previews_at_the_same_time_count_each_entry_once(call):
    # Their transactions share a commit, so each is undone and run again alone.
    call.ok("PUT", "/api/kv/here", {"value": "now"})
    body = {
        "memories": [FACT | {"id": f"m{n}", "text": f"{n}"} for n in range(200)],
        "dry_run": True,
    }
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(call.ok, "POST", "/api/import", body) for _ in range(8)]
    assert [one.result()["stored"] for one in asked] == [{"memory": 200}] * 8


def test_the_lines_of_memory_md_become_memories(shell, tmp_path):
    page = tmp_path / "MEMORY.md"
    page.write_text(
        "# Our memory\n\n*Generated: 2026-03-01 12:00*\n\n"
        "A preface of\ntwo lines.\n\n## The Boat\n- [x] hull *done*\n"
        "- keel: `make keel`\n  in oak\n\n### Sails\n1. red\n\n---\n<!-- nothing\nto see -->\n"
        "<!-- thermocline:begin -->\n- a lesson of the daemon's\n<!-- thermocline:end -->\n"
    )
    shell.run("store", "Red.", "--category", "the_boat/sails")
    taken = shell.json("import", str(page))
    assert taken["stored"]["memory"] == 3
    assert taken["skipped"] == {"already there": 1}
    assert len(taken["left_out"]) == 1
    listed = shell.json("list", "--limit", "500")["results"]
    assert {(one["category"], one["text"]) for one in listed} == {
        ("general", "A preface of\ntwo lines."),
        ("the_boat", "hull *done*"),
        ("the_boat", "keel: `make keel`\nin oak"),
        ("the_boat/sails", "Red."),
    }
    page.write_text(page.read_text().replace("The Boat", "A Ship"))
    assert shell.json("import", str(page))["stored"] == {}


def test_the_marks_of_tasks_and_events_are_no_part_of_what_a_page_says(shell, tmp_path):
    page = tmp_path / "MEMORY.md"
    page.write_text(
        "# Context\n\n## ✅ Pending Tasks\n\n- [PENDING] paint the fence\n- [IN PROGRESS] sand it\n"
        "- [API] keys are due\n\n## 📅 Recent Events\n\n- [Nov 29] the fair began\n\n"
        "## 🔥 Hot Memories\n\n- **[general]**      \n- **[home/gate]** The code is new\n\n"
        "## Notes\n\n- [API] limits hold\n"
    )
    shell.run("import", page)
    listed = shell.json("list")["results"]
    assert {(one["category"], one["text"]) for one in listed} == {
        ("pending_tasks", "paint the fence"),
        ("pending_tasks", "sand it"),
        ("pending_tasks", "keys are due"),
        ("recent_events", "the fair began"),
        ("home/gate", "The code is new"),
        ("notes", "[API] limits hold"),
    }


def test_a_file_that_is_too_large_keeps_no_other_out(shell, tmp_path):
    written(tmp_path / "memory" / "warm-memory.json", [FACT])
    large = written(tmp_path / "memory" / "hot-memory-state.json", HOT | {"notes": "x" * 1_200_000})
    taken = shell.json("import", str(tmp_path))
    assert taken["stored"] == {"memory": 1}
    [line] = taken["left_out"]
    assert line.startswith(f"{large}: cannot take the body: the limit is ")
    _, err = shell.run("import", large, code=1)
    assert f"cannot import {large}: cannot take the body" in err


def test_a_workspace_is_taken_in_with_every_agent_in_it(daemon, tmp_path):
    written(tmp_path / "ws" / "memory" / "warm-memory.json", [FACT])
    written(tmp_path / "ws" / "memory" / "ada" / "warm-memory.json", [FACT | {"text": "of ada"}])
    secret = written(tmp_path / "secret.json", [FACT | {"text": "a secret"}])
    (tmp_path / "ws" / "memory" / "bob").mkdir()
    (tmp_path / "ws" / "memory" / "bob" / "warm-memory.json").symlink_to(secret)
    for stored in (1, None):
        told = run(f"--socket={daemon.socket}", "import", tmp_path / "ws", "--json").stdout
        answers = json.loads(told)["agents"]
        assert [answers[name]["stored"].get("memory") for name in ("", "ada")] == [stored, stored]
    assert texts(Shell(daemon.socket, "default")) == {FACT["id"]: FACT["text"]}
    assert texts(Shell(daemon.socket, "ada")) == {FACT["id"]: "of ada"}
    assert "link" in answers["bob"]["left_out"][0]
    assert texts(Shell(daemon.socket, "bob")) == {}


def test_rows_are_merged_by_their_stamps(shell, tmp_path):
    def line(value: str, at: int) -> str:
        data = {"value": value, "created_at": 1.0, "updated_at": 1.0}
        row = {"kind": "pair", "id": "door", "data": data, "clocks": {"at": [at, "d"]}}
        return json.dumps(row)

    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join((line("blue", 3), line("red", 2), '{"kind": "pair"}', "nonsense")))
    taken = shell.json("import", str(file))
    assert taken["stored"] == {"pair": 1}
    assert "2 lines are not rows" in taken["left_out"][0]
    assert shell.json("kv", "get", "door")["value"] == "blue"
    shell.run("kv", "set", "door", "green")
    assert shell.json("import", str(file))["stored"] == {}
    assert shell.json("kv", "get", "door")["value"] == "green"


def test_what_cannot_be_told_or_read_is_refused(shell, tmp_path):
    files = {
        "any.json": ('{"x": 1}', ["a JSON object with the keys x", "--format"]),
        "notes.txt": ("- the boat is red\n", ["not JSON", "--format"]),
        "missing": (None, ["missing"]),
        "warm-memory.json": ('"text"', ["warm-memory.json: expected a list"]),
    }
    for name, (text, reasons) in files.items():
        if text is not None:
            (tmp_path / name).write_text(text)
        err = shell.run("import", tmp_path / name, code=1).stderr
        assert all(reason in err for reason in reasons), err
    with (tmp_path / "warm-memory.json").open("wb") as file:
        file.truncate(1 << 30)
    assert "more than" in shell.run("import", tmp_path / "warm-memory.json", code=1).stderr
    rows = tmp_path / "other.jsonl"
    rows.write_text('{"id": "x1", "note": "Ana prefers tea"}\n')
    refused = shell.run("import", "--format", "jsonl", rows, code=1)
    assert f"{rows} is not jsonl: it is a JSON object with the keys id, note" in refused.stderr
    assert "standard input is empty" in shell.run("import", "-", stdin="", code=2).stderr


def test_a_backup_is_merged_into_a_memory_that_goes_on(make_daemon, tmp_path):
    one = Shell(make_daemon(name="one").start().socket, "default")
    other = Shell(make_daemon(name="other").start().socket, "default")
    kept = one.json("store", "Ana builds a boat")["id"]
    gone = one.json("store", "Ana drinks tea")["id"]
    one.run("forget", one.json("store", "gone by now")["id"])
    one.run("kv", "set", "door", "blue")
    file = tmp_path / "ana.tar.gz"
    one.run("backup", file)
    one.run("forget", gone)
    one.run("update", kept, "--text", "Ana builds a plane")
    mine = other.json("store", "Bob has a dog")["id"]
    taken = other.json("import", file)
    assert (taken["stored"]["memory"], taken["stored"]["pair"]) == (2, 1)
    assert taken["skipped"] == {"deleted where they come from": 1}
    assert texts(other) == {
        kept: "Ana builds a boat",
        gone: "Ana drinks tea",
        mine: "Bob has a dog",
    }
    assert "nothing changed" in other.out("import", file)
    assert one.json("import", file)["stored"] == {}
    assert texts(one) == {kept: "Ana builds a plane"}
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(file.read_bytes()[:-40])
    assert "cut off" in other.run("import", broken, code=1).stderr


def test_secrets_in_state_files_are_left_out_but_for_those_that_are_here_already(shell, tmp_path):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    mine, told = shell.json("store", f"the token of CI is {key}")["id"], texts(shell)
    facts = [FACT | {"text": f"the bot uses {key}", "metadata": {"commands": [f"login {key}"]}}]
    facts.append({"id": mine, "text": told[mine], "category": "ci"})
    hot = {"identity": {"agent_name": "Ada", "api_key": "tulip-4711-lamp"}}
    hot["critical_lessons"] = [f"use {key}"]
    for name, document in (("warm-memory", facts), ("hot-memory-state", hot)):
        path = written(tmp_path / f"{name}.json", document)
        assert shell.json("import", path)["stored"]
        assert shell.json("import", path)["stored"] == {}
    assert texts(shell)[FACT["id"]] == "the bot uses [github token removed]"
    assert texts(shell)[mine] == told[mine]
    kept = json.dumps([shell.json("get", FACT["id"]), shell.json("hot")])
    assert key not in kept
    assert "tulip" not in kept


def test_a_database_that_evoclaw_filled_can_be_imported_again_and_again(daemon, sqld):
    shell = Shell(daemon.socket)

    async def fill(*statements: tuple[Any, ...]) -> None:
        remote = await turso.connect(sqld.url, "any")
        try:
            await remote.batch([SqlStatement(*one) for one in statements])
        finally:
            await remote.close()

    cold = (
        "CREATE TABLE cold_memories (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL,"
        " text TEXT NOT NULL, category TEXT NOT NULL, importance REAL DEFAULT 0.5,"
        " created_at INTEGER NOT NULL, access_count INTEGER DEFAULT 0)"
    )
    critical = (
        "CREATE TABLE critical_state (agent_id TEXT PRIMARY KEY, data TEXT NOT NULL,"
        " updated_at INTEGER NOT NULL)"
    )
    insert = "INSERT INTO cold_memories VALUES (?, ?, ?, 'work/boat', 0.7, 1700000000, 2)"
    state = json.dumps({"hot_state": HOT, "tree_nodes": TREE, "timestamp": 1, "odd": 2})
    asyncio.run(
        fill(
            (cold,),
            (critical,),
            *(
                (insert, (f"m{number}", agent, f"fact {number} of {agent}"))
                for number, agent in enumerate(("default", "default", "ada", "b/c"))
            ),
            ("INSERT INTO critical_state VALUES ('default', ?, 1700000000)", (state,)),
        )
    )
    words = ("import", "--url", sqld.url, "--auth-token", "any")
    taken = shell.json(*words)
    assert taken["stored"] == {"category": 1, "hot": 2, "memory": 2}
    assert [other["agent"] for other in taken["others"]] == ["ada"]
    assert taken["left_out"] == [
        "agents: cannot use 'b/c' as an agent id",
        "critical_state: unknown key 'odd'",
    ]
    assert texts(shell) == {"m0": "fact 0 of default", "m1": "fact 1 of default"}
    assert shell.json("get", "m0")["access_count"] == 2
    assert "used        2 times\n" in shell.out("get", "m0")
    assert shell.json(*words)["stored"] == {}
    asyncio.run(fill((insert, ("late", "default", "a late fact"))))
    shell.run("update", "m0", "--text", "changed here")
    assert shell.json(*words)["stored"] == {"memory": 1}
    assert texts(shell)["m0"] == "changed here"
