"""`thermocline import` of other systems' memories, of which each has a small sample."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from shells import Shell, run

from thermocline.daemon.cli.import_ import SYSTEMS
from thermocline.daemon.importers import source
from thermocline.daemon.importers.formats import NAMES
from thermocline.daemon.memory.agent_files import SEEDS
from thermocline.daemon.store.records.memory_md import section

SAMPLES = Path(__file__).parents[1] / "fixtures" / "imports"


def database(path: Path, script: str) -> Path:
    db = sqlite3.connect(path)
    db.executescript(script)
    db.close()
    return path


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def zipped(path: Path, **members: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, document in members.items():
            archive.writestr(
                name.replace("__", "/").replace("_json", ".json"), json.dumps(document)
            )
    return path


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def chatgpt() -> list[Any]:
    """The conversations of an export: one that has a branch which was not shown last."""
    conversations: list[Any] = json.loads(sample("chatgpt.json"))
    return conversations


def built(name: str) -> Callable[[Path], Path]:
    """Makes a database from its sample."""
    return lambda tmp_path: database(tmp_path / f"{name}.db", sample(f"{name}.sql"))


def exported(name: str) -> Callable[[Path], Path]:
    """Makes the export that a person downloads: a zip with other files beside."""
    conversations = json.loads(sample(f"{name}.json"))
    return lambda tmp_path: zipped(
        tmp_path / f"{name}.zip", data__conversations_json=conversations, memories_json=[]
    )


def copied(name: str) -> Callable[[Path], Path]:
    def copy(tmp_path: Path) -> Path:
        source, target = SAMPLES / name, tmp_path / name
        return Path(
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        )

    return copy


# Format, what makes the sample, how many memories it has, a question and a part of its answer.
CASES: list[tuple[str, Callable[[Path], Path], int, str, str]] = [
    ("claude-mem", built("claude-mem"), 4, "when are tide tables fetched?", "at noon"),
    ("mcp-memory", copied("mcp-memory.jsonl"), 5, "which language does Mira speak?", "Portuguese"),
    ("basic-memory", copied("basic-memory"), 5, "how is the greenhouse heated?", "compost"),
    ("mem0", copied("mem0.json"), 2, "what does Otis repair on Fridays?", "accordions"),
    ("texts", copied("texts.jsonl"), 2, "how is the sauna lit?", "birch"),
    ("claude-code", copied("claude-code"), 3, "when does the ferry leave?", "half past six"),
    ("codex", copied("codex"), 3, "what does the lock keeper want at dawn?", "coffee"),
    ("tinyclaw", built("tinyclaw"), 5, "which way does the windmill turn?", "left"),
    ("tinyclaw", copied("tinyclaw"), 4, "how heavy is the anvil?", "eighty kilos"),
    ("scalyclaw", built("scalyclaw"), 2, "when does Petra prune the vineyard?", "February"),
    ("profclaw", built("profclaw"), 1, "how much honey did the beehive give?", "eleven"),
    ("evoclaw", built("evoclaw"), 1, "how many steps has the attic?", "forty"),
    ("aider", copied("coast"), 2, "how fast does the lighthouse lamp turn?", "eleven"),
    ("openclaw", copied("openclaw"), 3, "how deep is the well?", "nine metres"),
    ("chatgpt", exported("chatgpt"), 2, "how much does the grandfather clock lose?", "two minutes"),
    ("claude", exported("claude"), 2, "where is my kayak stored?", "Lindau"),
]  # fmt: skip


@pytest.fixture
def shell(call: Any) -> Shell:
    """A shell of an agent of its own, who has no memories yet."""
    call.ok("PUT", "/api/kv/here", {"value": "now"})
    return Shell(call.path, call.agent)


def listed(shell: Shell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shell.json("list", "--limit", "500")["results"]
    return found


def snapshot(path: Path) -> dict[str, tuple[int, int]]:
    """What is there, with sizes and times."""
    paths = [path, *path.parent.rglob("*")]
    return {str(one): (one.stat().st_size, one.stat().st_mtime_ns) for one in paths}


@pytest.mark.parametrize(
    ("name", "make", "number", "question", "answer"),
    CASES,
    ids=[f"{name}-{at}" for at, (name, *_) in enumerate(CASES)],
)
def test_a_memory_is_detected_previewed_imported_once_and_found(
    shell, tmp_path, name, make, number, question, answer
):
    path = make(tmp_path)
    before = snapshot(path)
    if name == "evoclaw":
        shell = Shell(shell.socket, "evo")
    preview = shell.json("import", str(path), "--dry-run")
    assert {part["format"] for part in preview["read"]} - {"rows"} == {name}
    assert preview["stored"].get("memory") == number, preview
    assert name == "evoclaw" or listed(shell) == []
    first = shell.json("import", str(path))
    assert first["stored"] == preview["stored"]
    assert first["left_out"] == preview["left_out"]
    found = " ".join(one["text"] for one in shell.json("retrieve", question)[:3])
    assert answer.lower() in found.lower()
    again = shell.json("import", str(path), "--format", name)
    assert again["stored"] == {}, again
    assert sum(again["skipped"].values()) == sum(first["stored"].values())
    assert snapshot(path) == before


def test_aiders_output_and_commands_are_no_turns(shell, tmp_path):
    shell.run("import", str(copied("coast")(tmp_path) / ".aider.chat.history.md"))
    turns = sorted(listed(shell), key=lambda turn: int(turn["position"]))
    assert [turn["actor"] for turn in turns] == ["user", "assistant"]
    assert turns[0]["text"] == "the lamp of the lighthouse turns\nevery eleven seconds"
    assert "> quoted in the code" in turns[1]["text"]
    assert "Tokens" not in turns[1]["text"]
    assert turns[0]["tags"] == ["coast"]


@pytest.mark.parametrize(
    ("format_", "make", "what"),
    [
        ("scalyclaw", exported("chatgpt"), "chatgpt"),
        ("tinyclaw", built("profclaw"), "profclaw"),
        ("claude", exported("chatgpt"), "chatgpt"),
        ("warm", built("profclaw"), "profclaw"),
        ("memory-md", lambda t: written(t / "x.json", '{"root": {"desc": "r"}}'), "tree"),
        ("tree", lambda t: written(t / "x.json", '[{"text": "a wall"}]'), "warm"),
        ("mem0", lambda t: written(t / "x.json", '{"identity": {"a": 1}}'), "evoclaw"),
        ("mem0", lambda t: written(t / "deploy.md", "- run make\n"), "a Markdown page"),
    ],
)
def test_a_named_format_that_is_wrong_is_refused_with_what_it_is(
    shell, tmp_path, format_, make, what
):
    path = make(tmp_path)
    refused = shell.run("import", str(path), "--format", format_, code=None)
    assert f"not {format_}: it is {what}" in refused.stderr
    assert listed(shell) == []


def test_lines_of_texts_keep_their_fields_and_what_is_no_text_is_named(shell, tmp_path):
    refused = shell.run("import", str(copied("texts.jsonl")(tmp_path))).stderr
    assert "line 4: it has no 'text'" in refused
    assert "lines that are not JSON objects: 1 (line 5)" in refused
    jetty, sauna = sorted(listed(shell), key=lambda one: one["created_at"])
    assert jetty["created_at"] == 1_714_644_000
    assert sauna["category"] == "home/sauna"
    assert sauna["data"]["metadata"] == {"mood": "calm"}


def test_a_named_format_that_finds_nothing_fails(shell, tmp_path):
    path = written(tmp_path / "notes" / "list.txt", "bread\n").parent
    refused = shell.run("import", str(path), "--format", "openclaw", code=None)
    assert f"{path} is not openclaw: it is a folder with the entries list.txt" in refused.stderr


def test_what_a_page_says_otherwise_now_is_found_by_tidying(shell, tmp_path):
    written(tmp_path / "USER.md", "- Likes tea\n")
    for at, text in enumerate(("- The gate code is 4711\n", "- The gate code is 9902\n")):
        page = written(tmp_path / "MEMORY.md", text)
        os.utime(page, (1_790_000_000 + at, 1_790_000_000 + at))
        shell.run("import", tmp_path)
    assert shell.json("tidy")["superseded"] == 1
    assert "9902" in shell.json("retrieve", "what is the gate code?")[0]["text"]


def test_openclaws_own_folder_is_read_like_the_workspace_in_it(shell, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "openclaw.json").write_text("{}")
    workspace = copied("openclaw")(tmp_path).rename(home / "workspace")
    assert "stored 3 memories" in shell.out("import", home)
    again = shell.out("import", workspace)
    assert "nothing changed" in again
    assert "stored" not in again.replace("stored already", "")


def test_a_workspace_that_the_daemon_wrote_into_is_still_openclaws(shell, tmp_path):
    top = copied("openclaw")(tmp_path)
    for name, content in SEEDS.items():
        written(top / name, content)
    page = top / "MEMORY.md"
    page.write_text(page.read_text() + "\n" + section("# Hot\n\n- The daemon wrote this\n"))
    preview = shell.json("import", str(top), "--dry-run")
    assert {part["format"] for part in preview["read"]} == {"openclaw"}
    assert preview["left_out"] == []
    shell.run("import", str(top))
    texts = " ".join(memory["text"] for memory in listed(shell))
    assert "nine metres" in texts
    assert "letters on paper" in texts
    assert "daemon wrote" not in texts
    written(top / "memory" / "reflections.jsonl", '{"lesson": "dig deeper", "context": "well"}\n')
    again = shell.json("import", str(top))
    assert {part["format"] for part in again["read"]} == {"openclaw"}
    [left] = again["left_out"]
    assert "--format tinyclaw" in left
    assert shell.json("import", str(top), "--format", "tinyclaw")["stored"] == {"memory": 1}


def test_what_is_not_recognised_is_refused_with_the_names_of_the_formats(
    shell, tmp_path, shared_daemon
):
    file, folder, recipes = tmp_path / "n.json", tmp_path / "empty", tmp_path / "recipes.db"
    file.write_text('{"nonsense": 1}')
    error = shell.run("import", file, code=1).stderr
    assert f"cannot import {file}: it is a JSON object with the keys nonsense" in error
    for name in (*SYSTEMS, "hot", "rows"):
        assert f" {name}" in error
    folder.mkdir()
    assert "claude-mem" in shell.run("import", folder, code=1).stderr
    shell.run("import", written(tmp_path / "blank.json", ""), code=2)
    database(recipes, "CREATE TABLE soups (name TEXT); INSERT INTO soups VALUES ('borscht')")
    refused = shell.run("import", recipes, code=1).stderr
    assert "it is an SQLite database with the tables soups" in refused
    lines = written(tmp_path / "lines.jsonl", '{"a": 1}\n{"b": 2}\n')
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("song.txt", "la")
    kinds = {
        file: "a JSON object with the keys nonsense",
        folder: "a folder without entries",
        recipes: "an SQLite database with the tables soups",
        lines: "JSON lines with the keys a, b",
        tmp_path / "some.zip": "a zip with the files song.txt",
        written(tmp_path / "song.txt", "la la"): "a text that is not JSON",
    }
    named = [*((recipes, name) for name in SYSTEMS), *((path, "chatgpt") for path in kinds)]
    for path, name in named:
        refused = shell.run("import", path, "--format", name, code=1).stderr
        assert f"{path} is not {name}: it is {kinds[path]}" in refused
        assert f"{name} needs " in refused
    own = shared_daemon.folder(shell.agent) / "memory.db"
    assert "import what `thermocline export`" in shell.run("import", own, code=1).stderr


def test_of_a_session_of_claude_code_what_the_person_said_beside_a_reminder_is_imported(
    shell, tmp_path
):
    reminder = "<system-reminder>\nThe colour is red.\n</system-reminder>"
    said = [
        "[Request interrupted by user for tool use]",
        f"{reminder}\nThe ferry to Föhr leaves at noon",
        reminder,
        "<command-name>/clear</command-name>",
    ]
    lines = [
        {
            "type": "user", "sessionId": "s", "uuid": str(number), "cwd": "/home/a/boat",
            "timestamp": "2026-11-20T16:00:00.000Z",
            "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        }
        for number, text in enumerate(said)
    ]  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    shell.run("import", str(path))
    stored = shell.json("list")["results"]
    assert [memory["text"] for memory in stored] == ["The ferry to Föhr leaves at noon"]


def test_the_section_in_a_memory_folder_of_claude_code_is_not_imported(shell, tmp_path):
    path = copied("claude-code")(tmp_path)
    [note] = [one for one in path.rglob("*.md") if one.parent.name == "memory"][:1]
    mine = section("# Hot\n\n- The daemon wrote this\n")
    (note.parent / "MEMORY.md").write_text("# M\n\n- The buoy is green\n\n" + mine)
    shell.run("import", str(path))
    texts = " ".join(memory["text"] for memory in listed(shell))
    assert "buoy is green" in texts
    assert "daemon wrote" not in texts


def test_a_folder_of_claude_code_without_conversations_has_nothing_to_import(shell, tmp_path):
    folder = tmp_path / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text("{}")
    assert "nothing to import" in shell.out("import", str(folder))


def test_turns_have_actor_conversation_and_place_and_a_talk_that_went_on_adds_what_is_new(
    shell, tmp_path
):
    path = copied("claude-code")(tmp_path)
    shell.run("import", path)
    turns = [one for one in listed(shell) if one["event"] == "turn"]
    turns.sort(key=lambda one: int(one["position"]))
    assert [(one["actor"], one["position"]) for one in turns] == [("user", 0), ("assistant", 1)]
    assert len({one["group"] for one in turns}) == 1
    assert turns[0]["tags"] == ["harbour"]
    [note] = [one for one in listed(shell) if one["event"] != "turn"]
    assert note["category"] == "projects/harbour"
    assert note["data"]["imported"]["from"] == "claude-code"
    [transcript] = path.rglob("*.jsonl")
    more = {
        "type": "user",
        "uuid": "later",
        "sessionId": transcript.stem,
        "timestamp": "2026-11-22T13:00:00Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "The ferry is late"}]},
    }
    with transcript.open("a") as file:
        file.write(json.dumps(more) + "\n")
    assert shell.json("import", path)["stored"] == {"memory": 1}
    assert max(one["position"] or 0 for one in listed(shell)) == 2


def test_a_turn_belongs_to_the_conversation_that_hooks_would_name(shell, tmp_path):
    deep = tmp_path / "work" / "harbour" / "src" / "tides"
    deep.mkdir(parents=True)
    (tmp_path / "work" / "harbour" / ".git").mkdir()
    path = copied("claude-code")(tmp_path)
    for one in path.rglob("*.jsonl"):
        lines = [json.loads(line) for line in one.read_text().splitlines()]
        one.write_text("\n".join(json.dumps(line | {"cwd": str(deep)}) for line in lines))
    shell.run("import", str(path))
    [group] = {one["group"] for one in listed(shell) if one["event"] == "turn"}
    assert group.startswith("harbour/")


def test_what_scalyclaw_knew_of_people_is_in_the_graph(shell, tmp_path):
    taken = shell.json("import", str(built("scalyclaw")(tmp_path)))
    assert any(
        "relations that no memory states are not read: 1" in line for line in taken["left_out"]
    )
    petra = shell.json("graph", "petra")["graph"][0]
    assert (petra["name"], petra["type"], petra["mentionCount"]) == ("Petra", "person", 4)
    assert petra["firstSeen"] < 1.69e9 < petra["lastSeen"] < 1.71e9
    [link] = petra["relations"]
    assert (link["relation"], link["target"]) == ("prunes", "Vineyard")


def test_what_has_expired_is_not_stored_only_to_be_forgotten(shell, tmp_path):
    script = (
        sample("scalyclaw.sql")
        + """
        INSERT INTO memories VALUES ('s3', 'fact', 'Vineyard', 'The pump is lent to Ute', '',
          'chat', 5, NULL, '7d', 0, NULL, NULL, '2024-01-01 10:00:00', '2024-01-01 10:00:00');"""
    )
    path = str(database(tmp_path / "scaly.db", script))
    for verb in (("import", path, "--dry-run"), ("import", path)):
        report = shell.json(*verb)
        assert report["stored"]["memory"] == 2
        assert report["skipped"] == {"expired": 1}
    assert shell.json("import", path)["skipped"]["expired"] == 1


def test_what_another_system_also_has_is_named(shell, tmp_path):
    built("scalyclaw")(tmp_path)
    built("profclaw")(tmp_path)
    left_out = shell.json("import", str(tmp_path))["left_out"]
    assert "data of profclaw: import it with --format profclaw" in left_out[0]


def test_the_only_agent_of_a_workspace_is_imported_into_the_named_one(shell, tmp_path):
    fact = json.dumps([{"id": "f1", "text": "The sluice opens at dawn", "category": "canal"}])
    workspace, named = tmp_path / "workspace", ("--agent-id", "warden")
    written(workspace / "memory" / "warm-memory.json", fact)
    for number in (1, 0):
        assert shell.json(*named, "import", workspace)["stored"].get("memory", 0) == number
    assert [one["id"] for one in shell.json(*named, "list")["results"]] == ["f1"]
    written(workspace / "memory" / "scout" / "warm-memory.json", fact)
    refusal = shell.run("--agent-id", "nobody", "import", workspace, code=1).stderr
    assert "give one of default, scout, or the folder of one as PATH" in refusal


def test_an_agent_whose_name_cannot_be_one_here_is_left_out_and_the_others_are_not(shell, tmp_path):
    path = built("evoclaw")(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        row = ("c2", "a/b", "The attic is dry", "house", 0.5, 1_700_000_000, 0)
        db.execute("INSERT INTO cold_memories VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("UPDATE cold_memories SET agent_id = 'lodger' WHERE id = 'c1'")
        db.commit()
    printed = json.loads(run(f"--socket={shell.socket}", "--json", "import", path).stdout)
    assert printed["agents"]["lodger"]["stored"]["memory"] == 1
    assert "cannot use 'a/b' as an agent id" in str(printed["agents"]["a/b"]["left_out"])


def test_a_byte_order_mark_is_no_part_of_a_text(shell, tmp_path):
    line = json.dumps({"text": "\ufeffThe attic is dry"})
    shell.run("import", written(tmp_path / "texts.jsonl", line))
    assert [one["text"] for one in shell.json("list")["results"]] == ["The attic is dry"]


def test_a_release_with_other_columns_reads_the_same_and_prompts_of_transcripts_are_counted(
    shell, tmp_path
):
    path = built("claude-mem")(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE observations DROP COLUMN concepts")
        # A name that the reader uses for a value of its own.
        db.execute("ALTER TABLE observations ADD COLUMN kind TEXT DEFAULT 'odd'")
    taken = shell.json("import", path)
    assert taken["stored"] == {"memory": 4}
    assert any("user_prompts" in why and "prompts are not read" in why for why in taken["left_out"])
    tags = {tag for memory in listed(shell) for tag in memory["tags"]}
    assert {"decision", "bugfix"} <= tags
    assert not {"trade-off", "odd"} & tags


def test_odd_values_in_a_transcript_stop_nothing(shell, tmp_path):
    path = copied("claude-code")(tmp_path)
    [transcript] = path.rglob("*.jsonl")
    odd = [{"type": {"a": 1}, "message": {}}, {"type": ["user"]}, {"type": None, "message": 3}]
    with transcript.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in odd)
    assert shell.json("import", str(path))["stored"] == {"memory": 3}
    [talk] = chatgpt()
    talk["mapping"]["a"]["message"]["content"]["content_type"] = {"a": 1}
    export = written(tmp_path / "conversations.json", json.dumps([talk]))
    assert shell.json("import", str(export))["stored"] == {"memory": 1}


def test_a_huge_folder_is_read_in_part_and_the_report_says_up_to_where(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "_MOST_FILES", 3)
    for number in range(5):
        written(tmp_path / f"{number}.md", f"- the shed has {number} windows\n")
    look = source.SourcePath(tmp_path)
    assert [one.name for one in look.files(r".+\.md")] == ["0.md", "1.md", "2.md"]
    [fault] = look.faults()
    assert "3.md" in fault.why


def test_distilled_conversations_keep_statements_and_no_turns(shell, tmp_path):
    path = exported("claude")(tmp_path)
    taken = shell.json("import", str(path), "--distil")
    assert taken["stored"]["memory"] == 1
    [kept] = listed(shell)
    assert "Lindau" in kept["text"]
    assert (kept["event"], kept["group"]) != ("turn", "")
    assert shell.json("import", str(path), "--distil")["stored"] == {}


def test_what_changed_in_the_source_changes_here_unless_it_was_changed_here_later(shell, tmp_path):
    path = copied("mem0.json")(tmp_path)
    document = json.loads(path.read_text())
    for one in document["results"]:
        one |= {"created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z"}
    path.write_text(json.dumps(document))
    shell.run("import", str(path))
    edited = next(one["id"] for one in listed(shell) if "saffron" in one["text"])
    shell.run("update", edited, "--text", "I grow saffron and thyme")
    for one, text in zip(document["results"], ("Otis repairs organs", "I grow mint"), strict=True):
        one |= {"memory": text, "updated_at": "2024-06-01T00:00:00Z"}
    path.write_text(json.dumps(document))
    assert shell.json("import", str(path))["stored"] == {"memory": 1}
    here = {one["text"] for one in listed(shell)}
    assert here == {"Otis repairs organs", "I grow saffron and thyme"}
    shell.run("forget", next(one["id"] for one in listed(shell) if "organs" in one["text"]))
    assert shell.json("import", str(path))["skipped"]["forgotten since"] == 1


def test_secrets_are_left_out(shell, tmp_path):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    line = {"type": "entity", "name": "Repo", "entityType": "project",
            "observations": [f"its token is {key}"]}  # fmt: skip
    path = written(tmp_path / "memory.jsonl", json.dumps(line))
    shell.run("import", str(path))
    [kept] = listed(shell)
    assert key not in json.dumps(kept)
    assert "removed" in kept["text"]


def entities() -> str:
    """Two on one line, of which one has an observation that is no text, and a broken line."""
    one = {"type": "entity", "name": "A", "entityType": "x", "observations": ["a likes tea"]}
    other = one | {"name": "B", "observations": ["b likes cocoa", 7]}
    return f"{json.dumps(one)}{json.dumps(other)}\n{{broken\n"


def conversations() -> str:
    """One that is whole, one in a circle, and one that is none."""
    whole, circle = chatgpt()[0], chatgpt()[0]
    circle["conversation_id"] = "cg-2"
    circle["mapping"]["root"]["parent"] = "a"
    return json.dumps([whole, circle, 7])


@pytest.mark.parametrize(("name", "text", "number", "why"), [
    ("memory.jsonl", entities(), 2, ["line 2", "line 1: an observation is not text"]),
    ("conversations.json", conversations(), 4,
     ["1 messages of other branches", "in a circle", "conversation 3 is not an object"]),
    ("conversations.json", json.dumps([*chatgpt(), *chatgpt()])[:-30], 2,
     ["it is cut off, or not JSON, after 1"]),
    ("m.json", json.dumps({"results": [{"id": "m", "memory": "word " * 20_000}]}), 1,
     ["cut to 60,000 bytes"]),
    ("b.md", "---\npermalink: b\n---\n\n" + "word " * 250_000, 1, ["cut to 60,000 bytes"]),
    ("texts.jsonl", json.dumps({"text": "a"}) + "\n"
     + json.dumps({"text": "b", "data": {"x": "y" * 1_200_000}}) + "\n", 1, ["the limit is"]),
])  # fmt: skip
def test_what_is_whole_is_stored_and_what_is_not_is_reported_by_its_place(
    shell, tmp_path, name, text, number, why
):
    taken = shell.json("import", written(tmp_path / name, text))
    assert taken["stored"] == {"memory": number}
    for part in why:
        assert any(part in line for line in taken["left_out"]), taken["left_out"]


def test_members_of_a_zip_are_never_unpacked(shell, tmp_path):
    path = tmp_path / "in" / "evil.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../conversations.json", json.dumps(chatgpt()))
        archive.writestr("/etc/evil.json", "[]")
    assert shell.json("import", str(path))["stored"] == {"memory": 2}
    assert [one.name for one in tmp_path.rglob("*.json")] == []
    damaged = path.read_bytes()
    (tmp_path / "cut.zip").write_bytes(damaged[: len(damaged) // 2])
    _, err = shell.run("import", str(tmp_path / "cut.zip"), "--format", "chatgpt", code=1)
    assert "damaged" in err


def test_a_damaged_database_gives_what_can_be_read(shell, tmp_path):
    path = built("tinyclaw")(tmp_path)
    db = sqlite3.connect(path)
    db.executemany(
        "INSERT INTO episodic_memory VALUES (?, '', 'fact_stored', ?, '', 0.5, 0, ?, NULL)",
        [(f"n{number}", f"brick {number} is laid " + "x" * 900, number) for number in range(40)],
    )
    db.commit()
    db.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    taken = shell.json("import", str(path))
    assert 0 < taken["stored"]["memory"] < 45
    assert any("damaged after" in line for line in taken["left_out"])
    path.write_bytes(content[:2000])
    _, err = shell.run("import", str(path), "--format", "tinyclaw", code=1)
    assert "damaged" in err


def test_a_locked_database_is_read_with_what_is_still_in_its_log(shell, tmp_path):
    path = built("tinyclaw")(tmp_path)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("INSERT INTO memory VALUES ('k2', '', 'mill', 'brick', 1700000000000, 1)")
    db.execute("BEGIN EXCLUSIVE")
    path.chmod(0o400)
    try:
        taken = shell.json("import", str(path))
    finally:
        db.close()
    assert taken["stored"] == {"memory": 6}
    assert "mill: brick" in {one["text"] for one in listed(shell)}


def test_links_in_a_folder_are_not_followed(shell, tmp_path):
    secret = written(tmp_path / "private.md", "- the safe is behind the mirror\n")
    top = copied("openclaw")(tmp_path)
    (top / "memory" / "2026-02-04.md").symlink_to(secret)
    (top / "memory" / "again").symlink_to(top)
    taken = shell.json("import", str(top))
    assert taken["stored"] == {"memory": 3}
    assert any("link" in line for line in taken["left_out"])
    assert "mirror" not in json.dumps(listed(shell))


def test_the_daemon_opens_no_file_for_anybody(call, tmp_path):
    file = written(tmp_path / "warm-memory.json", json.dumps([{"id": "x", "text": "of a file"}]))
    answer = call("POST", "/api/import", {"path": str(file)})
    assert answer.status == 400
    record = {"id": "a1", "text": "sent as an entry", "category": "a/b"}
    assert call.ok("POST", "/api/import", {"memories": [record]})["stored"] == {"memory": 1}
    odd = {"id": "x y", "type": "tool_chain", "intent": "i", "created_at": 1, "last_used_at": 1}
    for one in ({}, odd, odd | {"id": "x", "created_at": "soon"}, odd | {"id": "x", "intent": ""}):
        assert call("POST", "/api/import", {"experiences": [one]}).status == 400
    both = {"memories": [record], "text": "[]"}
    assert call("POST", "/api/import", both).status == 400


def test_a_long_state_file_is_sent_in_parts(shell, tmp_path):
    facts = [{"id": f"f{n}", "text": f"brick {n} " + "x" * 600} for n in range(1_500)]
    path = written(tmp_path / "warm-memory.json", json.dumps(facts))
    assert path.stat().st_size > 900_000
    taken = shell.json("import", str(path))
    assert taken["stored"] == {"memory": 1_500}
    assert [part["entries"] for part in taken["read"]] == [1_500]
    assert shell.json("import", str(path))["stored"] == {}


def test_an_export_made_to_harm_is_refused(shell, tmp_path):
    for name, text in (("deep", "[" * 100_000), ("odd", '[{"mapping": 7}, {"mapping": {"a": 3}}]')):
        file = written(tmp_path / name / "conversations.json", text)
        _, err = shell.run("import", str(file), "--format", "chatgpt", code=None)
        assert "deep" in err or "no mapping" in err
    assert listed(shell) == []


# What is made to hold up or to fill a machine


def blanks(path: Path, megabytes: int, begin: bytes) -> Path:
    """An export that is nothing but blanks."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as file,
    ):
        file.write(begin)
        for _ in range(megabytes):
            file.write(b" " * (1 << 20))
        file.write(b"]")
    return path


# A process of its own: one that is started inherits the peak of the one that starts it.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)
sys.stdout.flush()
sys.stdout.buffer.write(done.stdout)
"""


def costs(shell: Shell, path: Path) -> tuple[str, float, int]:
    """What an import says, its seconds of processor time, and its peak of memory in megabytes."""
    words = [sys.executable, "-c", MEASURED, *shell.words("import", path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    used, _, said = done.stdout.partition("\n")
    seconds, megabytes = used.split()
    return said, float(seconds), int(megabytes)


@pytest.mark.parametrize("begin", [b"[", b'[{"mapping": '], ids=["between", "within"])
def test_a_zip_of_blanks_costs_little(shell, tmp_path, begin):
    said, seconds, megabytes = costs(shell, blanks(tmp_path / "small.zip", 100, begin))
    assert seconds < 10, said
    assert megabytes < 330, said


def test_a_zip_that_unpacks_to_hundreds_of_times_its_size_is_refused(shell, tmp_path):
    said, seconds, megabytes = costs(shell, blanks(tmp_path / "bomb.zip", 400, b"["))
    assert "unpacks from" in said
    assert seconds < 5
    assert megabytes < 100


def test_a_text_of_200_megabytes_in_a_database_is_left_out_and_reported(shell, tmp_path):
    path = tmp_path / "cold.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE cold_memories (id TEXT PRIMARY KEY, agent_id TEXT, text TEXT,"
            " category TEXT, importance REAL, created_at INTEGER, access_count INTEGER)"
        )
        for key, text in (("a", "the boat is red"), ("b", "x" * 200_000_000), ("c", "a mast")):
            row = (key, shell.agent, text, "boats", 0.5, 1_700_000_000, 0)
            db.execute("INSERT INTO cold_memories VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        db.commit()
    said, seconds, megabytes = costs(shell, path)
    assert "cold_memories, row 2" in said
    assert "more than 16 MiB" in said
    assert seconds < 20
    assert megabytes < 150
    listed = shell.json("list", "--limit", "10")["results"]
    assert {one["text"] for one in listed} == {"the boat is red", "a mast"}


def test_the_command_names_every_format():
    assert SYSTEMS == NAMES
    assert {name for name, *_ in CASES} | {"jsonl"} == {*NAMES}
