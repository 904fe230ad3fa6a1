"""Distilling, observing, the graph and compacting over the socket, without a model."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

CHAT = (
    "User: Let's deploy to testnet first, see https://a.example/plan. Agent: Good idea, safer that"
    " way."
)
TEA = "I prefer oolong tea in the morning"


def turn(text: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"role": role, "text": text, "actor": "Ada" if role == "user" else "", **fields}


# Distil


def test_a_text_is_distilled_in_evoclaws_shape_and_its_references_survive(call):
    found = call.ok("POST", "/api/distill", {"text": CHAT, "core_summary": True})
    distilled = found["distilled"]
    assert set(distilled) == {
        *("fact", "emotion", "people", "topics", "actions", "outcome"),
        *("urls", "commands", "paths"),
    }
    assert "testnet" in distilled["fact"]
    assert distilled["people"] == []
    assert distilled["urls"] == ["https://a.example/plan"]
    assert found["mode"] == "rule"
    assert found["original_size"] == len(CHAT.encode())
    compact = json.dumps(distilled, ensure_ascii=False, separators=(",", ":"))
    assert found["distilled_size"] == len(compact.encode())
    assert len(found["core_summary"].encode()) == found["core_size"] <= 30
    assert found["stages"] == {
        "raw": found["original_size"],
        "fact": found["distilled_size"],
        "core": found["core_size"],
    }
    assert "core_summary" not in call.ok("POST", "/api/distill", {"text": CHAT})


def test_every_fact_of_a_text_is_kept_and_a_known_one_gets_its_new_references(call):
    call.store("Ada has moved the parser to Rust")
    wish = {"text": "Ada has moved the parser to Rust. https://a.example/pr/7", "store": True}
    (known,) = call.ok("POST", "/api/distill", wish)["stored"]
    assert known["duplicate"]
    (memory,) = call.ok("GET", "/api/memory")["results"]
    assert memory["metadata"]["urls"] == ["https://a.example/pr/7"]
    text = (
        "We decided to moor at the north pier. The new pump costs 120 dollars, see"
        " https://a.example/pump. Nice weather today!"
    )
    found = call.ok("POST", "/api/distill", {"text": text, "facts": True, "store": True})
    assert len(found["facts"]) == len(found["stored"]) == call.total() - 1 > 1
    kept = call.ok("GET", "/api/memory")["results"]
    urls = {url for one in kept for url in one["metadata"]["urls"]}
    assert urls == {"https://a.example/pump", "https://a.example/pr/7"}


def test_a_bare_reference_belongs_to_the_statement_beside_it(call):
    told = "We use Caddy as the reverse proxy for the shop."
    key = call.store(told)["id"]
    for number, text in enumerate(
        (
            f"{told} https://a.example/0",
            f"{told}\nSee https://a.example/1",
            f"https://a.example/2\n{told}",
            f"{told} [docs](https://a.example/3), `caddy run`",
        )
    ):
        for wish in ({"facts": True}, {}):
            found = call.ok("POST", "/api/distill", {"text": text, "store": True} | wish)
            assert [(fact["id"], fact["duplicate"]) for fact in found["stored"]] == [(key, True)]
        known = call.ok("GET", f"/api/memory/{key}")
        assert f"https://a.example/{number}" in known["metadata"]["urls"]


def test_an_automatic_subject_is_of_the_text(call):
    said = ("I am allergic to walnuts", "My neighbour Mrs. Weller keeps our spare key")
    turns = [{"role": "user", "actor": "Ben", "text": text} for text in said]
    kept = call.ok("POST", "/api/observe", {"conversation": "c", "turns": turns, "wait": True})
    distilled = call.ok("POST", "/api/distill", {"text": f"Ben: {said[0]}", "store": True})
    stored = [call.ok("GET", f"/api/memory/{one['id']}") for one in kept["stored"]]
    assert [(one["subject"], one["actor"]) for one in stored] == [
        ("", "Ben"),
        ("Mrs. Weller", "Ben"),
    ]
    assert "mrs" not in stored[1]["tags"]
    assert [one["duplicate"] for one in distilled["stored"]] == [True]
    own = call.ok("POST", "/api/distill", {"text": "Ben: I moved to Kiel", "store": True})
    told = call.ok("GET", f"/api/memory/{own['stored'][0]['id']}")
    assert (told["subject"], told["actor"]) == ("", "Ben")


def test_what_cannot_be_distilled_or_is_no_conversation_is_refused(call):
    for path, body, field in [
        ("distill", {}, "text"),
        ("distill", {"text": "a", "texts": ["b"]}, "text"),
        ("distill", {"texts": []}, "texts"),
        ("distill", {"text": " "}, "text"),
        ("distill", {"texts": ["a", "\0"]}, "texts[1]"),
        ("distill", {"text": "a", "category": "x"}, "category"),
        ("distill", {"text": "a", "store": True, "category": "a//b"}, "category"),
        ("distill", {"text": "a", "max_bytes": 3}, "max_bytes"),
        ("distill", {"text": "a", "llm_endpoint": "ftp://x"}, "llm_endpoint"),
        ("recall", {"query": "x", "llm_endpoint": "http://127.0.0.1:1/x"}, "llm_endpoint"),
        ("consolidate", {"mode": "quick", "llm_endpoint": "ftp://x"}, "llm_endpoint"),
        ("ingest", {"llm_endpoint": "ftp://x"}, "llm_endpoint"),
        ("observe", {"turns": [turn("x")]}, "conversation"),
        ("observe", {"conversation": "c", "conversationId": "c", "turns": []}, "conversationId"),
        ("observe", {"conversation": " ", "turns": [turn("x")]}, "conversation"),
        ("observe", {"conversation": "c"}, "turns"),
        ("observe", {"conversation": "c", "turns": []}, "turns"),
        ("observe", {"conversation": "c", "turns": [turn("x")], "messages": []}, "turns"),
        ("observe", {"conversation": "c", "turns": [{"role": "user"}]}, "turns[0].text"),
        ("observe", {"conversation": "c", "turns": [turn("x", content="y")]}, "turns[0].text"),
        ("observe", {"conversation": "c", "turns": [turn("x"), turn(" ")]}, "turns[1].text"),
        ("observe", {"conversation": "c", "turns": [turn("x", "")]}, "turns[0].role"),
        ("observe", {"conversation": "c", "turns": [turn("x", at="soon")]}, "turns[0].at"),
        ("observe", {"conversation": "c", "turns": [turn("x")], "llm": True}, "wait"),
    ]:
        assert call("POST", f"/api/{path}", body).refusal() == (400, "invalid", field)


# Observe


def test_turns_are_buffered_and_read_at_once_when_it_is_wished(call):
    body = {"conversation": "c", "turns": [turn(TEA), turn("Noted.", "assistant")]}
    found = call.ok("POST", "/api/observe", body)
    assert found == {"conversation": "c", "turns": 2, "buffered": 2, "ended": False}
    assert call.total() == 0
    found = call.ok("POST", "/api/observe", body | {"turns": [turn("Right?")], "wait": True})
    (tea,) = found["stored"]
    assert (tea["text"], tea["event"], tea["actor"]) == (TEA, "preference_learned", "Ada")
    assert (tea["group"], tea["position"], tea["source"]) == ("c", None, "user-stated")
    assert (found["buffered"], found["mode"], found["known"]) == (0, "rule", [])
    image = [{"role": "user", "content": [{"type": "image"}]}]
    body = {"conversation": "d", "messages": image, "wait": True}
    found = call.ok("POST", "/api/observe", body)
    assert (found["turns"], found["stored"], found["known"]) == (0, [], [])


def test_profclaws_names_are_understood_and_the_same_from_many_at_once_gets_in_once(call):
    def observe(number: int) -> list[tuple[str, str]]:
        messages = [
            {"role": "human", "content": TEA, "toolsUsed": ["shell", {"name": "git"}]},
            {"role": "ai", "content": "Noted."},
        ]
        body = {"conversationId": f"c{number}", "messages": messages, "userId": "Ada", "wait": True}
        stored = call.ok("POST", "/api/observe", body)["stored"]
        return [(one["text"], one["actor"]) for one in stored]

    with ThreadPoolExecutor(12) as pool:
        stored = list(pool.map(observe, range(24)))
    assert sorted(stored) == [[]] * 23 + [[(TEA, "Ada")]]
    assert call.total() == 1


def test_what_was_buffered_outlives_a_kill_and_ends_in_an_entry(make_daemon, calls_of, eventually):
    daemon = make_daemon("--set", "observe.debounce_seconds=600").start()
    call = calls_of(daemon)
    body = {"conversation": "c", "turns": [turn(TEA), turn("Noted.", "assistant")]}
    assert call.ok("POST", "/api/observe", body)["buffered"] == 2
    daemon.kill()
    daemon.start("--set", "observe.debounce_seconds=0.1")
    eventually(lambda: call.total() == 1, "the turns were read")
    path: Path = daemon.folder() / "memory" / "episodes.jsonl"
    assert not path.exists(), "it is not over"
    call.ok("POST", "/api/observe", {"conversation": "c", "end": True})
    eventually(lambda: path.is_file() and path.read_bytes().endswith(b"\n"), "it was written")
    (line,) = path.read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    assert set(entry) == {"ts", "user", "agent", "summary", "tags", "outcome"}
    assert (entry["user"], entry["agent"]) == ("Ada", "default")
    assert daemon.stop() == 0, daemon.log.read_text()


# Graph


def test_whom_memories_name_is_told_in_scalyclaws_shape(call):
    entities = [
        {
            "name": "Ada",
            "type": "person",
            "relations": [{"relation": "works_at", "target": "Acme"}],
        }
    ]
    stored = call.store("Ada works at Acme", data={"entities": entities})
    found = call.ok("GET", "/api/graph?entity=ada&depth=1")
    assert (found["entity"], found["found"]) == ("ada", True)
    ada, acme = found["graph"]
    assert (ada["name"], ada["type"], ada["mentionCount"]) == ("Ada", "person", 1)
    (works,) = ada["relations"]
    assert (works["relation"], works["target"], works["strength"]) == ("works_at", "Acme", 1)
    assert ada["memories"] == works["memories"] == [stored["id"]]
    assert (acme["name"], acme["relations"]) == ("Acme", [])
    found = call.ok("GET", "/api/graph?entity=ad")
    assert found["found"] is False
    assert "did you mean Ada?" in found["message"]
    best = call.ok("GET", "/api/graph?limit=1")
    assert [one["name"] for one in best["graph"]] == ["Acme"]


def test_an_entity_is_found_by_recall_and_by_its_alias(call):
    relations = [{"relation": "works_at", "target": "Acme"}]
    ada = {"name": "Ada Lovelace", "type": "person", "relations": relations}
    call.store("The countess signed the contract", data={"entities": [ada]})
    changed = call.ok("PUT", "/api/graph/ada%20lovelace", {"aliases": ["Enchantress"]})
    assert changed["aliases"] == ["Enchantress"]
    query = {"query": "who is the Enchantress?", "fields": "full"}
    found, *_ = call.ok("POST", "/api/recall", query)["results"]
    assert (found["id"], found["source"]) == ("ada lovelace", "entity")
    assert found["text"].startswith("Ada Lovelace (person, also Enchantress)")
    assert (found["entity"]["name"], found["entity"]["mentionCount"]) == ("Ada Lovelace", 1)
    assert call.ok("GET", "/api/graph?entity=enchantress")["graph"][0]["name"] == "Ada Lovelace"
    block = call.ok("GET", "/api/context?format=json")
    named = next(one for one in block["sections"] if one["name"] == "entities")
    assert any("Ada Lovelace" in one["text"] for one in named["items"])
    call.ok("PUT", "/api/graph/ada%20lovelace", {"type": "person", "aliases": []})
    assert call.ok("GET", "/api/graph?entity=enchantress")["found"] is False
    call.ok("POST", "/api/undo", {"id": "ada lovelace", "kind": "entity"})
    assert call.ok("GET", "/api/graph?entity=enchantress")["found"] is True
    assert call("PUT", "/api/graph/ada", {"type": "god"}).refusal()[2] == "type"


# Compact


def talk(number: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for n in range(number):
        messages.append({"role": "user", "content": f"Question {n}: " + "why " * 60})
        messages.append(
            {"role": "assistant", "content": f"We decided on {n}. " + "so " * 60, "x": n}
        )
    return messages


def test_a_conversation_is_compacted_in_profclaws_shape_unless_it_fits_or_is_only_checked(call):
    messages = talk(20)
    found = call.ok("POST", "/api/compact", {"messages": messages, "window": 3_000})
    assert found["needs_compaction"] is True
    assert found["wasCompacted"] is True
    assert found["originalCount"] == 41
    assert found["compactedCount"] == len(found["messages"]) < 41
    assert found["tokensReduced"] > 0
    assert "messages compacted]" in found["summary"]
    assert found["messages"][0] == messages[0]
    assert found["messages"][-6:] == messages[-6:]
    assert found["mode"] == "rule"
    assert found["share"] == pytest.approx(found["tokens"] / found["window"], rel=1e-4)
    checked = {"messages": messages, "window": 3_000, "check": True}
    found = call.ok("POST", "/api/compact", checked)
    assert (found["needs_compaction"], found["wasCompacted"]) == (True, False)
    assert "messages" not in found
    found = call.ok("POST", "/api/compact", {"messages": talk(6)})
    assert (found["needs_compaction"], found["messages"]) == (False, talk(6))


def test_contents_in_parts_and_beside_calls_are_counted(call):
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "x" * 400}, {"type": "image"}]},
        {"role": "assistant", "content": None, "tool_calls": [{}]},
    ]
    assert call.ok("POST", "/api/compact", {"messages": messages})["tokens"] == 120
    for wrong in ([], [{"content": "x"}], [{"role": "user", "content": 5}]):
        assert call("POST", "/api/compact", {"messages": wrong}).refusal()[0] == 400


# Recall


def test_recall_without_a_model_is_by_keywords_and_says_so(call):
    call.store("The server runs Debian", category="technical/server")
    found = call.ok("POST", "/api/recall", {"query": "debian", "mode": "llm"})
    assert [one["text"] for one in found["results"]] == ["The server runs Debian"]
    assert found["mode"] == "llm"
    why = "no model is configured for tree; name one in llm.model"
    assert found["llm"] == {"method": "rule", "tree": [], "why": why}
    assert "llm" not in call.ok("POST", "/api/recall", {"query": "debian"})


def test_a_conversation_is_found_as_a_path(call):
    said = [
        {"role": "user", "text": "The gauge at the weir reads 2.4 metres", "actor": "Ada"},
        {"role": "assistant", "text": "Noted: 2.4 metres."},
    ]
    call.ok("POST", "/api/turns", {"conversation": "weir", "turns": said})
    told = "I decided to open the sluice at the mill on Friday."
    body = {"conversation": "mill", "turns": [{"role": "user", "text": told}], "wait": True}
    call.ok("POST", "/api/observe", {**body, "llm": False})
    for query, path in (("gauge weir", "chat://weir"), ("sluice mill", "chat://mill")):
        found = call.ok("POST", "/api/recall", {"query": query})
        assert found["results"][0]["path"] == path
        narrowed = call.ok("POST", "/api/recall", {"query": query, "group": path})
        assert {one["path"] for one in narrowed["results"]} == {path}
    lines = call.ok("GET", "/api/files/get?path=chat://weir")
    assert lines["text"].splitlines() == [
        "Ada: The gauge at the weir reads 2.4 metres",
        "assistant: Noted: 2.4 metres.",
    ]
    assert call.ok("GET", "/api/files/get?path=chat://weir&from_line=2")["from_line"] == 2
    assert "sluice" in call.ok("GET", "/api/files/get?path=chat://mill")["text"]
    assert call("GET", "/api/files/get?path=chat://nosuch").status == 404
