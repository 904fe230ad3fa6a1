"""`distill`, and `retrieve` with a model, on the command line."""

from typing import Any

import pytest
from model_server import PATIENT
from shells import Shell

OPTIONS = PATIENT
CHAT = "User: Let's deploy to testnet first. Agent: Good idea, see https://a.example/plan"


@pytest.fixture
def shell(shared_daemon: Any, call: Any) -> Shell:
    """A shell of an agent of its own, who remembers a little."""
    call.store("Ada likes oolong", category="people/ada")
    return Shell(shared_daemon.socket, call.agent)


def test_a_text_is_distilled_as_evoclaw_does_it_and_without_a_model_by_rules(shell, tmp_path):
    found = shell.json("distill", "--text", CHAT, "--core-summary")
    assert {"core_summary", "why"} & set(found) == {"core_summary"}
    out, _ = shell.run("distill", "-", stdin=CHAT)
    assert "https://a.example/plan" in out
    assert "rule" in out
    err = shell.run("distill", CHAT, "--llm").stderr
    assert "by rules, without a model: no model is configured" in err
    out, err = shell.run("retrieve", "oolong", "--mode", "llm")
    assert "Ada likes oolong" in out
    assert "by keywords, without a model" in err
    (tmp_path / "empty.md").touch()
    assert "texts" not in shell.run("distill", "", code=2).stderr
    words = ("--file", __file__, "--file", tmp_path / "empty.md")
    assert "empty.md is empty" in shell.run("distill", *words, code=2).stderr


def test_several_files_are_distilled_and_kept(shell, tmp_path, call):
    files = [tmp_path / "one.md", tmp_path / "two.md"]
    facts = ["Ada has a sister called Berta", "The ferry leaves at nine from the north pier"]
    for file, fact in zip(files, facts, strict=True):
        file.write_text(fact, encoding="utf-8")
    words = [word for path in files for word in ("--file", str(path))]
    found = shell.json("distill", *words, "--store", "--category", "harbour")
    assert [one["file"] for one in found] == [str(path) for path in files]
    assert [one["distilled"]["fact"] for one in found] == facts
    kept = {one["text"]: one["category"] for one in call.ok("GET", "/api/memory")["results"]}
    # The first goes where Ada's are.
    assert [kept[fact] for fact in facts] == ["people/ada", "harbour"]
    out, _ = shell.run("distill", *words, "--store", "--category", "harbour")
    assert out.count("already stored as") == 2
    assert call.total() == 3


def test_files_of_any_size_are_distilled_with_who_said_what(shell, tmp_path):
    files = [tmp_path / "long.md", tmp_path / "longer.md", tmp_path / "talk.txt"]
    files[0].write_text("The ferry leaves at nine.\n" + "So it is.\n" * 60_000, encoding="utf-8")
    files[1].write_text("Паром уходит в девять.\n" + "Всё хорошо.\n" * 20_000, encoding="utf-8")
    talk = b"\xef\xbb\xbfAda: I am vegan.\r\nBen: I am allergic to nuts.\r\n"
    files[2].write_bytes(talk)
    words = [word for path in files for word in ("--file", str(path))]
    assert len(shell.json("distill", *words)) == 3
    shell.run("distill", "--file", str(files[2]), "--facts", "--store")
    memories = shell.json("list", "--category", "general")["results"]
    assert {memory["actor"]: memory["text"] for memory in memories} == {
        "Ada": "I am vegan",
        "Ben": "I am allergic to nuts",
    }
    files[2].write_bytes(b'\xef\xbb\xbf[{"role": "user", "content": "I live in Graz"}]')
    out, _ = shell.run("observe", str(files[2]), "--rules")
    assert "I live in Graz" in out
    files[2].write_text('{"messages": [{"role": "user", "content": "I live in Graz"}]}')
    assert "no list" in shell.run("observe", str(files[2]), "--turns", code=2).stderr
    assert "is empty" in shell.run("observe", "-", "--conversation", "c", code=2).stderr
    files[2].write_text("Ada: Yes.\nBen: No.\n" * 300)
    assert "in parts" in shell.run("observe", str(files[2]), "--turns", code=1).stderr


def test_a_model_at_an_address_distils_and_searches(shell, model_server):
    model_server.says('{"fact": "The testnet comes first"}')
    found = shell.json("distill", CHAT, "--llm", "--llm-endpoint", model_server.plain)
    assert (found["mode"], found["distilled"]["fact"]) == ("llm", "The testnet comes first")
    tree = '[{"path": "people/ada", "relevance": 0.8, "reason": "about her"}]'
    model_server.says(tree, tree)
    words = ("retrieve", "--query", "which beverage?", "--llm-endpoint", model_server.plain)
    (ada,) = shell.json(*words)
    assert (ada["text"], ada["search_method"]) == ("Ada likes oolong", "llm-tree")
    out, _ = shell.run(*words, "--explain")
    assert "root > people > people/ada  0.80 (about her)" in out


# Conversations


def test_a_conversation_is_observed_from_a_file_or_from_standard_input(shell, tmp_path, call):
    talk = tmp_path / "t.txt"
    talk.write_text("Maya: I moved to Berlin in March\nTom: We decided to visit in May.\n")
    assert "stored 2 facts of 2 turns" in shell.out("observe", talk)
    turns = ("observe", talk, "--conversation", "t", "--turns")
    assert shell.out(*turns) == "stored 2 turns\n"
    kept = call.ok("GET", "/api/memory?group=t")["results"]
    assert sorted((one["actor"], one["position"] is None) for one in kept) == [
        ("Maya", False), ("Maya", True), ("Tom", False), ("Tom", True),
    ]  # fmt: skip
    found = shell.json("observe", talk, "--conversation", "t")
    assert (found["stored"], len(found["known"])) == ([], 2)
    messages = '[{"role": "user", "content": "I prefer tea over coffee"}, 7]'
    out, err = shell.run("observe", "-", "--conversation", "j", stdin=messages)
    assert "stored 1 fact of 1 turn" in out
    assert "left out message 1" in err
    chat = "[2026-02-03 10:00] Ana: I moved to Köln last week\n[2026-02-03 10:01] Bo: ok\n"
    assert "of 2 turns" in shell.out("observe", "-", "--conversation", "c", stdin=chat)
    broken = shell.run("observe", "-", "--conversation", "b", stdin=' [ {"role": 1},]', code=2)
    assert "cannot read the messages: Expecting" in broken.stderr
    later = ("observe", "-", "--conversation", "k", "--later")
    assert shell.out(*later, stdin=messages) == "heard 1 turn\n"


def test_a_pair_with_a_secret_is_set_with_a_warning(shell):
    out, err = shell.run("kv", "set", "router.password", "hunter2-Blue-42")
    assert out == "set router.password\n"
    assert "forget --secrets" in err
    out, err = shell.run("forget", "--secrets")
    assert "holds a secret: pair router.password" in out
    out, _ = shell.run("forget", "--secrets", "--yes")
    assert "removed a secret from pair router.password" in out
