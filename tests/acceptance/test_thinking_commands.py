"""`distill`, and `retrieve` with a model, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model_server import PATIENT, ModelServer
from shells import Shell

OPTIONS = PATIENT
CHAT = "User: Let's deploy to testnet first. Agent: Good idea, see https://a.example/plan"


@pytest.fixture
def shell(shared_daemon: Any, call: Any) -> Shell:
    """A shell of an agent of its own, who remembers a little."""
    call.store("Ada likes oolong", category="people/ada")
    return Shell(shared_daemon.socket, call.agent)


def test_a_text_is_distilled_as_evoclaw_does_it(shell: Shell) -> None:
    found = shell.json("distill", "--text", CHAT, "--core-summary")
    assert {"distilled", "mode", "original_size", "distilled_size", "core_summary"} <= set(found)
    assert found["distilled"]["urls"] == ["https://a.example/plan"]
    out, _ = shell.run("distill", "-", stdin=CHAT)
    assert "https://a.example/plan" in out
    assert "rule" in out


def test_several_files_are_distilled_and_kept(shell: Shell, tmp_path: Path, call: Any) -> None:
    files = [tmp_path / "one.md", tmp_path / "two.md"]
    files[0].write_text("Ada has a sister called Berta", encoding="utf-8")
    files[1].write_text("The ferry leaves at nine from the north pier", encoding="utf-8")
    words = [word for path in files for word in ("--file", str(path))]
    found = shell.json("distill", *words, "--store", "--category", "harbour")
    assert [one["file"] for one in found] == [str(path) for path in files]
    kept = {one["text"]: one["category"] for one in call.ok("GET", "/api/memory")["results"]}
    assert kept["Ada has a sister called Berta"] == "people/ada"
    assert kept["The ferry leaves at nine from the north pier"] == "harbour"
    out, _ = shell.run("distill", *words, "--store", "--category", "harbour")
    assert out.count("already stored as") == 2


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("a", "--text", "b"),
        ("a", "--file", "b"),
        ("--file", "-", "--file", "-"),
        ("a", "--category", "x"),
        ("a", "--rules", "--llm"),
    ],
)
def test_what_makes_no_sense_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    shell.run("distill", *words, code=2)


def test_a_wish_for_a_model_that_is_not_there_is_told(shell: Shell) -> None:
    _, err = shell.run("distill", CHAT, "--llm")
    assert "by rules, without a model: no model is configured" in err


def test_a_model_at_an_address_distils_and_searches(
    shell: Shell, model_server: ModelServer
) -> None:
    model_server.says('{"fact": "The testnet comes first"}')
    found = shell.json("distill", CHAT, "--llm-endpoint", model_server.plain)
    assert (found["mode"], found["distilled"]["fact"]) == ("llm", "The testnet comes first")
    tree = '[{"path": "people/ada", "relevance": 0.8, "reason": "about her"}]'
    model_server.says(tree, tree)
    words = ("retrieve", "--query", "which beverage?", "--llm-endpoint", model_server.plain)
    (ada,) = shell.json(*words)
    assert (ada["text"], ada["search_method"]) == ("Ada likes oolong", "llm-tree")
    out, _ = shell.run(*words, "--explain")
    assert "root > people > people/ada  0.80 (about her)" in out


def test_a_mode_without_a_model_asks_none(shell: Shell) -> None:
    shell.run("retrieve", "x", "--llm", "--mode", "tree", code=2)
    out, err = shell.run("retrieve", "oolong", "--mode", "hybrid")
    assert "Ada likes oolong" in out
    assert "by keywords, without a model" in err
