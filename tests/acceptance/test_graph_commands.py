"""The people and things that memories name, on the command line."""

from __future__ import annotations

import json


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
    assert "Rust (technology)" in shell.out("graph", "Rust")
    assert shell.out("graph", "Marta Silva", "--alias", "Marta").startswith(
        "Marta Silva (person, also Marta)"
    )
    assert "Marta Silva" in shell.out("graph", "--limit", "50")
    assert "Marta Silva" in shell.out("retrieve", "where does Marta live?")
    assert shell.out("graph", "marta", "--no-alias", "Marta").startswith("Marta (person)")


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
