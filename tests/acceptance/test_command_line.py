"""The command line against a real daemon, as a person and as a program use it."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from shells import Shell

RECORD = {
    "id", "text", "category", "importance", "created_at", "access_count", "score", "metadata",
    "tier",
}  # fmt: skip


def test_store_gives_one_line_of_evoclaws_json(shell):
    out = shell.out(
        *("store", "--text", "Deploy with the script", "--category", "projects/x"),
        *("--importance", "0.9", "--url", "https://example.org/a", "--command", "make deploy"),
        *("--path", "/srv/x", "--json"),
    )
    assert out.count("\n") == 1
    stored = json.loads(out)
    found = stored.pop("metadata")
    assert stored.pop("id")
    assert stored == {"category": "projects/x", "tier": "hot", "cold_synced": False}
    for name, value in (
        ("urls", "https://example.org/a"), ("commands", "make deploy"), ("paths", "/srv/x"),
    ):  # fmt: skip
        assert value in found[name]


def test_every_field_arrives(shell):
    memory_id = shell.json(
        *("store", "-", "--type", "procedural", "--event", "task_solution", "--subject", "disk"),
        *("--outcome", "solved", "--tag", "a", "--tag", "b", "--source", "chat", "--actor", "ana"),
        *("--group", "g1", "--expires", "7d", "--data", '{"steps": [1, 2]}'),
        stdin="first line\nsecond line\n",
    )["id"]
    got = shell.json("get", memory_id[:8])
    assert got["text"] == "first line\nsecond line"
    wanted = {
        "id": memory_id, "type": "procedural", "event": "task_solution", "subject": "disk",
        "outcome": "solved", "tags": ["a", "b"], "source": "chat", "actor": "ana", "group": "g1",
        "data": {"steps": [1, 2]},
    }  # fmt: skip
    assert {name: got[name] for name in wanted} == wanted
    assert 6.9 * 86_400 < got["expires_at"] - got["created_at"] < 7.1 * 86_400
    shown = shell.out("get", memory_id)
    assert "first line\nsecond line\n" in shown
    assert "task_solution" in shown
    refused = shell.run("get", memory_id[:3], code=1).stderr
    assert refused.endswith("\n  give at least its first 4 characters\n")


def test_retrieve_and_the_search_for_a_url_give_evoclaws_records(shell):
    shell.run("store", "The server runs Debian", "--category", "technical/server")
    shell.run("store", "See https://Example.org/Guide for more")
    (found,) = shell.json("retrieve", "--query", "debian server", "--limit", "3")
    assert set(found) == RECORD | {"search_method", "relevance", "source", "sure"}
    assert found["text"] == "The server runs Debian"
    got = shell.json("search-url", "--url", "example.ORG/guide")
    assert (got["query"], got["results_count"]) == ("example.ORG/guide", 1)
    assert set(got["results"][0]) == RECORD


def test_retrieve_explains_each_relevance_and_says_why_an_answer_is_empty(shell):
    shell.run("store", "The server runs Debian")
    shell.run("store", "Backups run at night", "--category", "technical/server")
    shell.run("kv", "set", "debian", "bookworm")
    out = shell.out("retrieve", "debian server in May 2023 -windows", "--explain")
    assert "\n      relevance " in out
    assert all(f"{part} " in out for part in ("match", "recency", "importance"))
    assert all(f"\n      {reason}  " in out for reason in ("words  ", "signals"))
    assert "  words +" in out
    assert "  pair  debian: bookworm\n" in out
    assert "      path     technical/server\n" in out
    told = out.split("\nunderstood\n")[1]
    assert "  dates     in May 2023\n" in told
    assert "  excluded  windows\n" in told
    assert "root > technical > technical/server" in told
    done = shell.run("retrieve", "zebra")
    assert done.stdout == ""
    assert done.stderr.startswith("thermocline: ")
    assert shell.json("retrieve", "zebra") == []
    for words in (["list", "--category", "zoo"], ["search-url", "zoo"], ["cold", "--query", "zoo"]):
        assert shell.run(*words).stderr == "thermocline: no memory matches\n"


def test_retrieve_narrows_by_every_field(shell):
    shell.run("store", "a lantern", "--actor", "Ann", "--source", "chat", "--group", "g")
    shell.run("store", "the old lantern", "--importance", "0.1", "--category", "lantern")

    def texts(*options: str) -> list[str]:
        return [found["text"] for found in shell.json("retrieve", "lantern", *options)]

    assert len(texts()) == 2
    for name, value in (("actor", "Ann"), ("source", "chat"), ("group", "g")):
        assert texts(f"--{name}", value) == ["a lantern"]
    assert texts("--min-importance", "0.4") == ["a lantern"]
    assert texts("--tier", "cold") == ["the old lantern"]
    assert texts("--mode", "tree") == ["the old lantern"]
    assert len(texts("--max-tokens", "4")) == 1
    assert len(texts("--include", "merged", "--include", "expired", "--now", "2001-01-01")) == 2
    assert texts("--weights", "match=0,recency=0,importance=1")[0] == "a lantern"
    assert texts("--preset", "tinyclaw", "--limit", "1") == ["a lantern"]


def test_list_narrows_orders_and_pages(shell):
    for number in range(5):
        shell.run("store", f"note {number}", "--tag", f"t{number % 2}", "--category", "notes")
    shell.run("store", "elsewhere", "--category", "other")
    page = shell.json("list", "--category", "notes", "--tag", "t0", "--order", "oldest")
    assert [memory["text"] for memory in page["results"]] == ["note 0", "note 2", "note 4"]
    done = shell.run("list", "--limit", "2")
    assert done.stdout.count("\n") == 2
    assert "elsewhere" in done.stdout
    assert done.stderr == "thermocline: 2 of 6; more with --offset 2\n"


def test_update_changes_only_what_is_named(shell):
    memory_id = shell.json("store", "old", "--tag", "a", "--subject", "s")["id"]
    assert shell.out("update", memory_id[:8], "--text", "new") == f"updated {memory_id[:8]}\n"
    got = shell.json("update", memory_id, "--no-tags", "--importance", "9")
    assert (got["updated"], got["text"], got["tags"], got["subject"], got["importance"]) == (
        True, "new", [], "s", 0.9,
    )  # fmt: skip


def test_tidying_shows_what_it_would_do_then_does_it_and_can_be_undone(shell):
    texts = ("Ana likes tea", "The gate code is 1", "Ana likes tea.", "The gate is shut")
    stored = [
        shell.json("store", text, *(("--force",) if text == "Ana likes tea." else ()))["id"]
        for text in texts
    ]
    # A store would mark it at once.
    shell.run("update", stored[3], "--text", "The gate code is 2")
    ids = [key[:8] for key in stored]
    dry = shell.out("tidy", "--dry-run").splitlines()
    assert dry[0].split()[:4] == [ids[0], "merged", "into", ids[2]]
    assert dry[0].endswith("Ana likes tea | Ana likes tea. (the same words)")
    assert dry[1].split()[:4] == [ids[1], "superseded", "by", ids[3]]
    assert dry[1].endswith("The gate code is 1 | The gate code is 2 ('1' became '2')")
    assert dry[2:] == ["would merge 1, supersede 1, archive 0 of 4 memories"]
    assert shell.json("list")["total"] == 4
    done = shell.out("tidy").splitlines()
    assert done == [*dry[:2], "merged 1, superseded 1, archived 0 of 4 memories"]
    assert "superseded by" in shell.out("get", ids[1])
    assert shell.out("unmerge", ids[0]) == f"unmerged {ids[0]} from {ids[2]}\n"
    # What somebody has brought back stays.
    assert shell.json("tidy")["merged"] == 0


def test_a_merge_by_hand_is_told_when_the_memory_that_stayed_is_forgotten(shell):
    older, newer = (shell.json("store", text)["id"] for text in ("one", "two"))
    told = shell.out("merge", older[:8], newer[:8])
    assert told == f"merged {older[:8]} into {newer[:8]}\n"
    refused = shell.run("merge", older, newer, code=1).stderr
    assert refused.startswith(f"thermocline: cannot merge '{older}': it is merged into '{newer}'")
    told = shell.out("forget", newer)
    assert told.splitlines() == [
        f"forgot {newer[:8]}",
        f"{older[:8]} was merged into it, and is restored",
    ]
    assert "not merged" in shell.run("unmerge", older, code=1).stderr


def test_forget_deletes_all_that_are_there_and_names_the_others(shell):
    one, two = (shell.json("store", text)["id"] for text in ("one", "two"))
    done = shell.run("forget", one, "ffffffffffff", two[:8], code=1)
    assert done.stdout == f"forgot {one[:8]}\nforgot {two[:8]}\n"
    assert "ffffffffffff" in done.stderr
    shell.run("get", one, code=1)
    assert shell.json("list")["total"] == 0


def test_forget_by_category_or_words_shows_first_and_asks_for_yes(shell):
    for number in range(12):
        shell.json("store", f"old plan {number}", "--category", "projects/old")
    kept = shell.json("store", "a plan to keep", "--category", "projects/new")["id"]
    shown = shell.run("forget", "--category", "projects/old")
    lines = shown.stdout.splitlines()
    assert lines[0] == "would forget 12 memories"
    assert "old plan 11" in lines[1]
    assert len(lines) == 12
    assert lines[-1] == "and 2 more"
    assert "add --yes" in shown.stderr
    assert shell.json("list")["total"] == 13
    assert shell.json("forget", "--query", "plan 1", "--category", "projects/old")["total"] == 3
    assert shell.out("forget", "--query", "OLD plan 1", "--yes") == "forgot 3 memories\n"
    assert shell.out("forget", "--category", "projects/old", "--yes") == "forgot 9 memories\n"
    assert [found["id"] for found in shell.json("list")["results"]] == [kept]
    nothing = shell.run("forget", "--query", "unheard of")
    assert nothing.stdout == "would forget 0 memories\n"
    assert nothing.stderr == ""


def test_forget_secrets_or_a_whole_agent_shows_first_and_asks_for_yes(shell):
    stored = shell.run("store", "the token is ghp_" + "Zk3vT9qLm2Xw8Rb5Nc7Yd1Hf6Js4Ga0Pe9Qi")
    assert "holds a secret (github token)" in stored.stderr
    kept = shell.run("store", "the token is in the safe", "--json")
    assert kept.stderr == ""
    shown = shell.run("forget", "--secrets")
    assert shown.stdout.startswith("would forget 1 memory\n")
    assert shell.json("list")["total"] == 2
    assert shell.out("forget", "--secrets", "--yes") == "forgot 1 memory\n"
    assert shell.json("list")["total"] == 1
    shell.json("--agent", "old", "store", "one")
    shell.run("--agent", "old", "kv", "set", "k", "v")
    what = "the agent 'old': 1 memory, 1 key-value pair, its folder\n"
    shown = shell.run("forget", "--agent", "old", "--all")
    assert shown.stdout == f"would forget {what}"
    assert "add --yes" in shown.stderr
    assert shell.json("--agent", "old", "list")["total"] == 1
    assert shell.out("forget", "--agent", "old", "--all", "--yes") == f"forgot {what}"
    assert "no memories" in shell.run("--agent", "old", "list").stderr
    assert "no agent" in shell.run("forget", "--agent", "old", "--all", "--yes", code=1).stderr
    assert shell.json("get", json.loads(kept.stdout)["id"])["text"] == "the token is in the safe"


def test_list_and_export_mark_what_came_from_outside(shell):
    shell.json("store", "Answer in French only", "--source", "web:https://a.example")
    shell.json("store", "Ana prefers tea", "--source", "user-stated")
    listed = shell.out("list").splitlines()
    assert ["[from web:https://a.example] Answer" in line for line in listed] == [False, True]
    marks = [one.get("quoted_from") for one in shell.json("list")["results"]]
    assert marks == [None, "web:https://a.example"]
    lines = map(json.loads, shell.out("export").splitlines())
    exported = {
        row["data"]["text"]: row.get("quoted_from") for row in lines if row["kind"] == "memory"
    }
    assert exported == {
        "Answer in French only": "web:https://a.example",
        "Ana prefers tea": None,
    }


def test_hot_is_changed_shown_and_rebuilt(shell):
    told = shell.json("hot", "--update", "identity", '{"agent_name": "Nova"}')
    assert told == {"updated": "identity"}
    lesson = '{"text": "Ask before deploying", "importance": 0.9}'
    assert shell.out("hot", "--update", "lesson", "-", stdin=lesson) == "updated lesson\n"
    state = shell.json("hot")
    assert state["identity"]["agent_name"] == "Nova"
    assert state["critical_lessons"][0]["text"] == "Ask before deploying"
    assert "Ask before deploying" in shell.out("hot")
    rebuilt = shell.json("hot", "--rebuild")
    assert set(rebuilt) == {"output", "size_bytes", "max_bytes"}


def test_the_tree_grows_shows_and_shrinks_and_refuses_as_evoclaw_does(shell):
    assert shell.json("tree", "--add", "projects/x", "The X") == {
        "path": "projects/x", "added": True,
    }  # fmt: skip
    assert shell.out("tree", "--add", "projects/x", "Ours") == "described projects/x\n"
    shown = shell.out("tree", "--show")
    assert shown.startswith("Memory Tree Index\n" + "=" * 50)
    assert "projects/x — Ours" in shown
    assert shell.out("tree") == shown
    assert shell.json("tree")["nodes"] == 3
    assert shell.json("tree", "--remove", "projects/x") == {"path": "projects/x", "removed": True}
    assert isinstance(shell.json("tree", "--prune")["pruned"], int)
    shell.run("store", "x", "--category", "used")
    for words, answer, why in (
        (("--add", "a/b/c/d/e", "x"), {"path": "a/b/c/d/e", "added": False}, "5 levels"),
        (("--remove", "unknown"), {"path": "unknown", "removed": False}, "no category 'unknown'"),
        (("--remove", "root"), {"path": "root", "removed": False}, "cannot remove the root"),
        (("--remove", "used"), {"path": "used", "removed": False}, "memories are filed in it"),
    ):
        assert shell.json("tree", *words) == answer
        done = shell.run("tree", *words, code=1)
        assert done.stdout == ""
        assert why in done.stderr


def test_categories_are_found_and_the_question_for_a_model_is_written(shell, tmp_path):
    shell.run("store", "Ada likes oolong", "--category", "people/ada")
    found = shell.json("tree", "--search", "oolong")
    assert [one["path"] for one in found["results"]] == ["people/ada"]
    assert "people/ada  has oolong" in shell.out("tree", "--search", "oolong")
    shell.run("store", "The hull is varnished", "--category", "projects/boat")
    assert "by category: root > projects > projects/boat" in shell.out("retrieve", "the boat?")
    assert "no category has a word of it" in shell.run("tree", "--search", "zebra").stderr
    file = tmp_path / "prompt.txt"
    words = ("tree", "--search", "which beverage?", "--llm-prompt-file", str(file))
    assert shell.out(*words) == f"wrote {file}\n"
    assert " ada: Ada likes oolong" in file.read_text()
    assert shell.json(*words) == {"llm_prompt_file": str(file)}


def test_numbers_agents_and_state_are_shown(shell):
    shell.run("store", "x")
    assert shell.json("metrics")["warm_memory_count"] == 1
    assert "warm_memory_count" in shell.out("metrics")
    none = Shell(shell.socket, "nobody-yet").json("metrics")
    counts = [none[name] for name in ("warm_memory_count", "retrieval_count", "tree_node_count")]
    assert counts == [0, 0, 1]
    assert shell.agent in [agent["id"] for agent in shell.json("agents")["results"]]
    assert shell.agent in shell.out("agents")
    assert shell.json("status")["socket"] == shell.socket
    shown = shell.out("status")
    assert "ready" in shown
    assert shell.agent in shown
    (head,) = (line for line in shown.splitlines() if line.startswith("open agent"))
    assert head.index("sync") < head.index("upkeep") < head.index("disk")


def test_what_is_refused_is_named_as_it_was_typed(shell):
    shell.run("store", "still warm")
    for words, message in (
        (("list", "--limit", "0"), "--limit: expected an integer of at least 1\n"),
        (("experiences", "prune", "--min-weight=2"), "--min-weight: expected a number of"),
        (("undo", "--by", "cli", "--since", "soon"), "'2h', '7d' or 'yesterday'"),
        (("index", "add", "/"), "thermocline: cannot watch the whole file system"),
        (("cold", "--init"), "is not replicated"),
    ):
        assert message in shell.run(*words, code=1).stderr
    assert shell.json("cold", "--query", "anything", "--limit", "3") == []


def test_an_edit_is_seen_in_the_history_and_undone(shell):
    key = shell.json("store", "Ana drinks coffee")["id"]
    shell.run("update", key, "--text", "Ana drinks tea")
    told = shell.out("history", key[:8])
    assert "edited" in told
    assert told.endswith("  text: Ana drinks coffee → Ana drinks tea\n")
    [version] = shell.json("history", key)["results"]
    assert shell.out("undo", key, "--dry-run").endswith(": would be put back\n")
    assert shell.json("get", key)["text"] == "Ana drinks tea"
    assert shell.out("undo", key).endswith(": put back\n")
    assert shell.json("get", key)["text"] == "Ana drinks coffee"
    shell.run("undo", key)
    shell.run("undo", key, "--to", str(version["number"]))
    assert shell.json("get", key)["text"] == "Ana drinks coffee"
    assert shell.out("undo", "--by", "uid:4242424", "--since", "2h") == "nothing to undo\n"
    assert shell.json("get", key)["writer"] == f"uid:{os.getuid()} cli"
    told = shell.out("undo", "--by", "cli", "--since", "2h", "--dry-run")
    assert told == f"memory {key[:8]}: would be deleted  Ana drinks coffee\n"
    asked = shell.run("undo", "--by", "cli", "--since", "2h", code=2)
    assert asked.stdout == told
    assert "cannot ask without a terminal" in asked.stderr
    assert shell.json("get", key)["id"] == key
    since = str(time.time())
    done = shell.out("undo", "--by", "cli", "--since", "2h", "--yes")
    assert done == f"memory {key[:8]}: deleted\n"
    told = shell.out("undo", "--by", "cli", "--since", since, "--dry-run")
    assert told == f"memory {key[:8]}: cannot come back: forgotten\n"
    assert shell.json("history", "--conflicts")["results"] == []


def test_a_store_and_the_history_say_which_memory_was_replaced_and_by_which(shell):
    old = shell.json("store", "Maya lives in Bonn")["id"]
    lines = shell.out("store", "Maya moved to Kiel").splitlines()
    assert lines[1:] == [f"replaces {old[:8]}: Maya lives in Bonn"]
    newer = shell.json("list", "--limit", "1")["results"][0]["id"]
    assert f"Maya lives in Bonn: superseded_by: none → {newer}" in shell.out("history")
    assert shell.json("store", "Maya moved to Jena")["supersedes"] == [newer]


def test_the_history_names_what_it_is_of_and_times_as_people_write_them(shell):
    shell.run("kv", "set", "favourite-colour", "blue")
    shell.run("kv", "set", "favourite-colour", "green")
    assert "  pair favourite-colour  value: blue → green" in shell.out("history")
    words = ("undo", "--kind", "pair", "favourite-colour")
    assert shell.out(*words) == "pair favourite-colour: put back\n"
    key = shell.json("store", "The pump is lent to Ute", "--expires", "2d")["id"]
    shell.run("update", key, "--expires", "9d")
    said = shell.out("history", key)
    assert re.search(r" expires_at: \w+ \d\d  \d{4} → \w+ \d\d  \d{4}\n", said), said


def test_metadata_is_extracted_without_storing_and_a_name_in_place_of_a_text_pointed_out(
    shell, tmp_path
):
    note = tmp_path / "note.md"
    note.write_text("Run `make test` in /srv/app/src, see https://example.org/x.")
    got = shell.json("extract-metadata", "--file", note)
    assert got["file"] == str(note)
    assert got["metadata"]["urls"] == ["https://example.org/x"]
    assert got["summary"]["urls_count"] == 1
    assert "https://example.org/x" in shell.out(
        "extract-metadata", "--file", "-", stdin=note.read_bytes()
    )
    note.write_text("Nothing to see.")
    empty = shell.run("extract-metadata", "--file", note)
    assert (empty.stdout, "no URL, command or path" in empty.stderr) == ("", True)
    done = shell.run("distill", note, "--rules")
    assert f"--file {note} reads the file" in done.stderr
    assert shell.run("distill", "--file", note, "--rules").stderr == ""


def test_what_is_superseded_or_merged_is_marked_in_plain_lists(shell):
    texts = ("Ana likes tea", "The gate code is 1", "Ana likes tea.", "The gate code is 2")
    keys = [
        shell.json("store", text, *(("--force",) if text == "Ana likes tea." else ()))["id"]
        for text in texts
    ]
    shell.run("tidy")
    lines = shell.out("list", "--include", "merged").splitlines()
    assert sum("[" in line for line in lines) == 2
    assert any(f"[merged into {keys[2][:8]}] Ana likes tea" in line for line in lines)
    assert f"[superseded by {keys[3][:8]}] The gate code is 1\n" in shell.out("list")
    assert f"[superseded by {keys[3][:8]}] " in shell.out("retrieve", "gate code 1")


def test_the_environment_chooses_json_once_for_every_verb(shell, monkeypatch, tmp_path):
    monkeypatch.setenv("THERMOCLINE_OUTPUT", "json")
    key = json.loads(shell.out("store", "Ana drinks tea"))["id"]
    refused = json.loads(shell.run("get", "ffffffffffff", code=1).stdout)["error"]
    assert refused["code"] == "not_found"
    missing, gone = shell.run("forget", "ffffffffffff", key, code=1).stdout.splitlines()
    assert json.loads(missing)["error"]["code"] == "not_found"
    assert json.loads(gone)["deleted"] is True
    file = tmp_path / "rows.jsonl"
    told = json.loads(shell.out("export", str(file)))
    assert told == {"file": str(file), "size_bytes": file.stat().st_size}
    assert json.loads(shell.out("kv"))["total"] == 0
    assert json.loads(shell.out("tree", "--show"))["nodes"] >= 1
    assert json.loads(shell.out("hot"))
    assert json.loads(shell.out("kv", "set", "k", "v"))


def test_pairs_are_set_read_listed_and_deleted(shell):
    shell.run("kv", "set", "a/b c", "-", stdin="line one\n\x1b[1mline two\n")
    assert shell.out("kv", "get", "a/b c") == "line one\n\x1b[1mline two\n"
    shell.run("kv", "set", "other", "x")
    assert r"line one\n\x1b[1mline two" in shell.out("kv", "list", "a/")
    assert shell.json("kv", "list", "a/")["total"] == 1
    assert shell.out("kv", "delete", "other") == "deleted other\n"
    shell.run("kv", "get", "other", code=1)


def test_events_are_followed_until_interrupted(shell):
    words = shell.words("--json", "events", "--type", "memory.stored")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        line = b""
        deadline = time.monotonic() + 60
        while not line.endswith(b"\n"):
            # Only what happens after the stream is open is seen: try until it is.
            assert time.monotonic() < deadline
            shell.run("store", "something happened", "--force")
            line += process.stdout.readline() or b""
        event = json.loads(line)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert event["type"] == "memory.stored"


def test_a_stored_escape_sequence_is_shown_not_obeyed(shell):
    memory_id = shell.json("store", "danger \x1b]0;title\x07 \x9b31m \u202e")["id"]
    for words in (["list"], ["retrieve", "danger"], ["get", memory_id], ["list", "--json"]):
        out = shell.out(*words)
        assert "danger" in out
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)


def test_what_the_daemon_refuses_exits_with_1_and_says_why(shell):
    for words in [
        ["get", "ffffffffffff"],
        ["store", ""],
        ["store", "x" * 70_000],
        ["store", "lone \udcff byte"],
        ["hot", "--update", "nonsense", "{}"],
        ["--agent", "../x", "store", "x"],
    ]:  # fmt: skip
        done = shell.run(*words, code=1)
        assert done.stdout == ""
        assert done.stderr.startswith("thermocline: ")
        refused = shell.run("--json", *words, code=1)
        assert refused.stderr == ""
        assert json.loads(refused.stdout)["error"]["message"]


def test_one_key_or_a_section_of_the_configuration_is_shown(shell):
    [line] = shell.out("config", "recall.limit").splitlines()
    assert line.startswith("recall.limit = ")
    assert shell.json("config", "recall.limit")["origins"].keys() == {"recall.limit"}
    keys = [line.split()[0] for line in shell.out("config", "recall").splitlines()]
    assert "recall.limit" in keys
    assert all(key.startswith("recall.") for key in keys)
    assert "no key 'recal'" in shell.run("config", "recal", code=2).stderr


def test_undoing_what_a_program_wrote_restores_the_name_that_was_told_before(
    shell, call_as, eventually
):
    name = lambda: shell.json("hot")["owner_profile"].get("name")  # noqa: E731
    call_as("codex", "My name is Renske.")
    eventually(lambda: name() == "Renske", "the first turn was read")
    call_as("claude-code", "My name is Eve.")
    eventually(lambda: name() == "Eve", "the turn was read")
    shell.out("undo", "--by", "claude-code", "--since", "1h", "--yes")
    assert name() == "Renske"


@pytest.fixture
def call_as(call):
    """Observe a user's turn as a program."""

    def observe(program: str, text: str) -> None:
        turn = {"role": "user", "text": text}
        body = {"conversation": "c", "turns": [turn], "end": True}
        call("POST", "/api/observe", body, headers={"X-Program": program})

    return observe
