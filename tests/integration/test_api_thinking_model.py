"""The same with a model: real ones' ways of answering, over the real process."""

import json
from datetime import datetime
from typing import Any

import pytest
from model_server import PATIENT, Heard, Saying

OPTIONS = PATIENT
TEA = "I prefer oolong tea in the morning"
FACT = '{"fact": "Ada ships the parser on Friday", "people": ["Ada"], "outcome": "pending"}'
TREE = '[{"path": "people/ada", "relevance": 0.9, "reason": "it is about what she drinks"}]'


@pytest.fixture
def filled(call: Any) -> Any:
    """Calls of an agent that remembers a little."""
    call.store("Ada likes oolong", category="people/ada")
    call.store("The hull is varnished in the morning", category="projects/boat")
    return call


# By an endpoint of the caller's


def _talk(of: str) -> list[dict[str, str]]:
    said = [f"We decided on {of} {n}. " + "so " * 60 for n in range(30)]
    told = [{"role": "user", "content": one} for one in said]
    return [{"role": "system", "content": "be brief"}, *told]


def test_what_leaves_a_conversation_is_summed_up_by_the_model_or_else_by_the_rules(
    call, model_server
):
    model_server.says('{"summary": "Colour 3 was chosen.\\nColour 4 was not."}')
    body = {"messages": _talk("colour"), "window": 2_000, "llm_endpoint": model_server.plain}
    found = call.ok("POST", "/api/compact", body)
    assert (found["mode"], found["llm"]["model"]) == ("llm", model_server.plain)
    title, *lines = found["summary"].splitlines()
    assert title.endswith("messages compacted]")
    assert lines == ["Colour 3 was chosen.", "Colour 4 was not."]
    assert {"role": "system", "content": found["summary"]} in found["messages"]
    assert "decided on colour 0" in model_server.heard[0].prompt
    by_rules = call.ok("POST", "/api/compact", {**body, "llm": False, "llm_endpoint": None})
    assert by_rules["mode"] == "rule"
    assert by_rules["messages"][-6:] == found["messages"][-6:]
    assert by_rules["compactedCount"] == found["compactedCount"]
    # A summary that is of no use.
    model_server.says('{"summary": " "}')
    found = call.ok("POST", "/api/compact", body | {"messages": _talk("plan")})
    assert found["mode"] == "rule"
    assert found["why"]
    assert "We decided on plan" in found["summary"]


def test_a_text_is_distilled_by_the_callers_own_model_without_its_secrets(call, model_server):
    text = "Ada: I will ship the parser on Friday, see https://a.example/plan"
    for url in (model_server.plain, model_server.base):
        model_server.says(f"Sure! ```json\n{FACT}\n```")
        body = {"text": text, "llm_endpoint": url, "llm": True}
        found = call.ok("POST", "/api/distill", body)
        assert (found["mode"], found.get("why")) == ("llm", None)
        assert found["distilled"]["fact"] == "Ada ships the parser on Friday"
        assert found["distilled"]["urls"] == ["https://a.example/plan"]
        assert found["llm"]["model"] == url
        assert text in model_server.heard[-1].prompt
    model_server.says(FACT)
    text = "The key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD, keep it in the vault"
    found = call.ok("POST", "/api/distill", body | {"text": text})
    assert "sk-proj" not in model_server.heard[-1].prompt
    assert sum(found["llm"]["cleared"].values()) == 1


@pytest.mark.parametrize(
    "sayings",
    [
        (Saying("out of order", status=400),),
        ("no JSON at all", "nor at the second attempt"),
        ("I'm sorry, but I can't help with that.",),
    ],
)
def test_what_a_model_gets_wrong_the_rules_do(call, model_server, sayings):
    model_server.says(*sayings)
    body = {"text": f"Ada: {TEA}", "llm_endpoint": model_server.plain, "llm": True}
    found = call.ok("POST", "/api/distill", body)
    assert found["mode"] == "rule"
    assert found["why"]
    assert "oolong" in found["distilled"]["fact"]


def test_recall_finds_by_reasoning_what_has_no_word_of_the_question(filled, model_server):
    model_server.says(TREE)
    body = {
        "query": "what beverage does she enjoy?",
        "mode": "llm",
        "llm_endpoint": model_server.plain,
        "explain": True,
    }
    found = filled.ok("POST", "/api/recall", body)
    first = found["results"][0]
    assert (first["text"], first["search_method"]) == ("Ada likes oolong", "llm-tree")
    assert first["parts"]["reason"] == "it is about what she drinks"
    assert first["parts"]["path"] == "people/ada"
    (path,) = found["llm"]["tree"]
    assert path["trace"] == ["root", "people", "people/ada"]
    prompt = model_server.heard[0].prompt
    assert prompt.index("people\n ada: Ada likes oolong\n") < prompt.index("what beverage")
    # Filters and what is excluded hold for what it names too.
    for narrower in ({"category": "projects"}, {"query": "what does she enjoy? -oolong"}):
        model_server.says(TREE)
        answer = filled.ok("POST", "/api/recall", body | narrower)
        assert [path["path"] for path in answer["llm"]["tree"]] == ["people/ada"]
        assert "Ada likes oolong" not in [one["text"] for one in answer["results"]]


def test_of_what_a_model_names_the_known_categories_above_a_threshold_count(filled, model_server):
    filled.store("The ship Ada lies in Kiel", category="projects/ada")
    filled.store("Peas go in in March", category="garden/beds")
    named = [
        ("people", 0.31, " it  is\nabout\x00 her "), ("/root/people/ada/", 7.0, ""),
        ("people/ada", 0.4, "again"), ("PROJECTS/Boat", 0.9, ""), ("beds", 0.6, "one has it"),
        ("ada", 0.95, "two have it"), ("people/bob", 1.0, ""), ("people", 0.3, ""),
        ("projects", 0.3, ""),
    ]  # fmt: skip
    keys = ("path", "relevance", "reason")
    said = json.dumps([dict(zip(keys, values, strict=True)) for values in named])
    body = {"llm_endpoint": model_server.plain}
    for query in ("what does Ada drink?", "where is the boat?"):
        model_server.says(said)
        results = filled.ok("POST", "/api/tree/search", body | {"query": query})["results"]
        assert [(one["path"], one["relevance"]) for one in results] == [
            ("people/ada", 1.0), ("projects/boat", 0.9), ("garden/beds", 0.6), ("people", 0.31),
        ]  # fmt: skip
        assert results[-1]["reason"] == "it is about her"
    # The tree comes first, in the same words: servers keep what begins alike.
    first, second = (heard.prompt.partition("[question")[0] for heard in model_server.heard)
    assert first == second
    assert "[tree " in first
    asked = filled("GET", "/api/tree/search/prompt?query=where+is+the+boat%3F").text
    assert first.partition("[tree ")[0] == asked.partition("[tree ")[0]


def test_a_conversation_is_read_and_summed_up_by_the_callers_model_in_a_question_each(
    call, model_server
):
    told = [{"text": "Ada prefers oolong tea in the morning", "event": "preference_learned"}]
    summary = {"summary": "By their model.", "tags": ["tea"], "outcome": "resolved"}
    model_server.says(json.dumps(told), json.dumps(summary))
    turns = [
        {"role": "user", "actor": "Ada", "text": TEA},
        {"role": "assistant", "text": "Noted."},
        {"role": "user", "actor": "Ada", "text": "And the milk goes in afterwards"},
    ]
    body = {"conversation": "c", "turns": turns, "wait": True}
    endpoint = {"llm_endpoint": model_server.plain, "llm": True}
    found = call.ok("POST", "/api/observe", body | endpoint)
    assert (found["mode"], len(found["stored"])) == ("llm", 1)
    assert len(model_server.heard) == 1
    ended = {"conversation": "c", "end": True, "wait": True}
    assert call.ok("POST", "/api/observe", ended | endpoint)["ended"]
    assert len(model_server.heard) == 2
    assert "oolong" in model_server.heard[1].prompt
    (episode,) = call.ok("GET", "/api/episodes")["results"]
    assert episode["summary"] == "By their model."


def test_nothing_short_is_sent_to_a_model_unless_the_call_asks_for_it(call, model_server):
    model_server.usually = Saying(FACT)
    endpoint = {"llm_endpoint": model_server.plain}
    talk = {"conversation": "c", "text": f"Ada: {TEA}", "end": True, "wait": True}
    for path, body in (
        ("distill", {"text": TEA}),
        ("distill", {"texts": [TEA, "The ferry leaves at nine"]}),
        ("observe", talk),
    ):
        found = call.ok("POST", f"/api/{path}", body | endpoint)
        first = found.get("results", [found])[0]
        assert (first["mode"], "llm.min_chars" in first["why"]) == ("rule", True)
    assert model_server.heard == []
    assert call.ok("POST", "/api/distill", {"text": f"{TEA}. " * 9} | endpoint)["mode"] == "llm"
    assert len(model_server.heard) == 1


def test_several_texts_are_one_question(call, model_server):
    texts = ["Ada: I ship the parser", "The ferry leaves at nine o'clock", "Bob plays the cello"]
    body = {"texts": texts, "llm_endpoint": model_server.plain, "llm": True}
    told = [
        {"text": 2, "fact": "The ferry leaves at nine", "topics": ["ferry"]},
        {"text": 1, "fact": "Ada ships the parser", "people": ["Ada"]},
        {"text": 7, "fact": "made up"},
    ]
    model_server.says(json.dumps(told))
    results = call.ok("POST", "/api/distill", body)["results"]
    assert len(model_server.heard) == 1
    assert [one["distilled"]["fact"] for one in results] == [
        "Ada ships the parser",
        "The ferry leaves at nine",
        "Bob plays the cello",
    ]
    first, second, _ = results
    assert (first["distilled"]["people"], second["distilled"]["topics"]) == (["Ada"], ["ferry"])
    assert [one["mode"] for one in results] == ["llm", "llm", "rule"]
    assert ["llm" in one for one in (first, second)] == [True, False]
    # And so is every fact of several texts.
    told = [
        {"text": 1, "fact": "Ada ships the parser"},
        {"text": 2, "fact": "The ferry leaves at nine"},
        {"text": 1, "fact": "Bob reads it"},
    ]
    model_server.says(json.dumps(told))
    first, second, _ = call.ok("POST", "/api/distill", body | {"facts": True})["results"]
    assert [one["fact"] for one in first["facts"]] == ["Ada ships the parser", "Bob reads it"]
    assert [one["fact"] for one in second["facts"]] == ["The ferry leaves at nine"]
    assert len(model_server.heard) == 2


# By the configured model


def test_nothing_short_goes_to_the_configured_model(
    make_daemon, calls_of, eventually, model_server
):
    model = ("--set", "llm.model=openai/test", "--set", f"llm.api_base={model_server.base}")
    quick = ("--set", "observe.debounce_seconds=0.05", "--set", "distillation.mode=llm")
    daemon = make_daemon(*model, *quick, *PATIENT).start()
    call = calls_of(daemon)
    found = call.ok("POST", "/api/distill", {"text": "Ada: I ship the parser on Friday"})
    assert (found["mode"], found.get("why")) == ("rule", None)
    turns = [{"role": "user", "actor": "Ada", "text": TEA}]
    call.ok("POST", "/api/observe", {"conversation": "c", "turns": turns, "end": True})
    entries = daemon.folder() / "memory" / "episodes.jsonl"
    eventually(
        lambda: entries.is_file() and entries.read_bytes().endswith(b"\n"),
        "the conversation was summed up",
    )
    note = daemon.folder() / "memory" / f"{datetime.now().astimezone().date()}.md"
    note.write_text("- [x] Ordered the pump that we talked about in June\n", encoding="utf-8")
    ingested = call.ok("POST", "/api/ingest", {})
    assert (ingested["facts_stored"], ingested["mode"]) == (1, "rule")
    assert model_server.heard == []
    assert daemon.stop() == 0, daemon.log.read_text()


def test_all_of_it_by_the_configured_model(make_daemon, calls_of, eventually, model_server):
    answers = {
        "You condense": FACT,
        "You decide in which": TREE,
        "You read the latest turns": '[{"text": "Ada prefers oolong in the morning", "turn": 0}]',
        "You write the entry": '{"summary": "By a model.", "tags": ["a"], "outcome": "resolved"}',
        "You are given memories": '{"text": ""}',
        "You keep the tree": '{"operations": [{"type": "describe", "path": "people",'
        ' "summary": "Whom we know", "reason": "clearer"}]}',
        "You read a daily note": '[{"text": "The pump was ordered in June"}]',
    }

    def answer(heard: Heard) -> Saying:
        return Saying(next(text for words, text in answers.items() if words in heard.prompt))

    model_server.usually = answer
    model = ("--set", "llm.model=openai/test", "--set", f"llm.api_base={model_server.base}")
    quick = ("--set", "observe.debounce_seconds=0.05", "--set", "distillation.mode=llm")
    quick += ("--set", "llm.min_chars=0")
    daemon = make_daemon(*model, *quick, *PATIENT).start()
    call = calls_of(daemon)
    found = call.ok("POST", "/api/distill", {"text": "Ada: I ship the parser on Friday"})
    assert (found["mode"], found["llm"]["model"]) == ("llm", "openai/test")
    rules = call.ok("POST", "/api/distill", {"text": "Ada ships it", "llm": False})
    assert rules["mode"] == "rule"
    call.store("She likes oolong", category="people/ada")
    recalled = call.ok("POST", "/api/recall", {"query": "which beverage?", "mode": "llm"})
    assert [one["search_method"] for one in recalled["results"]] == ["llm-tree"]
    turns = [{"role": "user", "actor": "Ada", "text": TEA}]
    call.ok("POST", "/api/observe", {"conversation": "c", "turns": turns, "end": True})
    entries = daemon.folder() / "memory" / "episodes.jsonl"
    eventually(
        lambda: entries.is_file() and entries.read_bytes().endswith(b"\n"),
        "the conversation was summed up",
    )
    assert "By a model." in entries.read_text(encoding="utf-8")
    note = daemon.folder() / "memory" / "2020-01-01.md"
    note.write_text("- [x] Ordered the pump that we talked about in June\n", encoding="utf-8")
    outcome = call.ok("POST", "/api/consolidate", {"mode": "monthly"})
    assert outcome["tree_rebuilt"] == "llm"
    status = call.ok("GET", "/api/status")["llm"]
    assert status["state"] == "ready"
    assert {name for name, one in status["purposes"].items() if one["calls"]} >= {
        *("distil", "tree", "observe", "episode", "rebuild"),
    }
    assert call.ok("GET", "/api/metrics")["daemon"]["llm_tokens_today"] > 0
    texts = [one["text"] for one in call.ok("GET", "/api/memory")["results"]]
    assert "Ada prefers oolong in the morning" in texts
    assert daemon.stop() == 0, daemon.log.read_text()
