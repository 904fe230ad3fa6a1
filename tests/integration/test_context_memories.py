"""Which memories a context block has, with what beside them, over the socket."""

import itertools
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from thermocline.daemon.memory.messages import estimated_tokens

DAY = 86_400.0
SYSTEMS = ["tinyclaw", "tiny-claw", "scalyclaw", "evoclaw"]
NOUNS = (
    *("anchor", "basket", "candle", "donkey", "engine", "feather"),
    *("garden", "hammer", "island", "jacket", "kettle", "ladder"),
)


def block(call: Any, query: str = "", **options: Any) -> Any:
    return call.ok("POST", "/api/context", {"query": query, **options})


def text_of(call: Any, query: str = "", **options: Any) -> str:
    return str(block(call, query, **options)["text"])


def items(call: Any, query: str = "", **options: Any) -> list[Any]:
    sections = block(call, query, format="json", **options)["sections"]
    return [item for section in sections for item in section["items"]]


def others(count: int) -> Iterator[dict[str, Any]]:
    """Memories about other things, of two months, most of them of the last weeks."""
    for number in range(count):
        first, second = NOUNS[number % 12], NOUNS[number // 12 % 12]
        yield {
            "text": f"The {first} beside the {second} was counted as number {number}",
            "created_at": time.time() - (number % 60) ** 2 / 60 * DAY,
        }


@pytest.fixture(scope="module")
def hundreds(shared_daemon: Any, calls_of: Any) -> str:
    """An agent with hundreds of memories, which the tests copy."""
    call = calls_of(shared_daemon, "hundreds")
    call.ok("POST", "/api/memory/batch", {"memories": [*others(400)]})
    return str(call.agent)


@pytest.fixture
def crowd(call: Any, hundreds: str, copy_agent: Any) -> Any:
    """Calls of an agent with hundreds of memories."""
    copy_agent(hundreds, call.agent)
    return call


def test_all_memories_of_a_first_week_are_in_it(call):
    texts = [f"On day {number} we bought a {noun}" for number, noun in enumerate((*NOUNS, *NOUNS))]
    for number, text in enumerate(texts):
        call.store(text, created_at=time.time() - number % 7 * DAY, importance=0.1)
    for query in ("what shall we cook tonight?", "what about the kettle?", ""):
        shown = text_of(call, query)
        assert [text for text in texts if shown.count(f"{text} (") != 1] == []
        assert "uncertain" not in shown
    assert estimated_tokens(text_of(call, "what about the kettle?", max_tokens=400)) <= 400


def test_what_stands_and_what_is_pinned_come_first_whatever_is_asked(crowd):
    long_ago = time.time() - 700 * DAY
    crowd.store("Our son can't have nuts", importance=0.3, created_at=long_ago)
    crowd.store("The lease ends in May", importance=0.1, pinned=True, created_at=long_ago)
    crowd.store("The roof was mended in May", importance=0.3, created_at=long_ago)
    for tokens in (300, 2_000):
        shown = text_of(crowd, "what about the kettle beside the anchor?", max_tokens=tokens)
        assert shown.index("can't have nuts") < shown.index("kettle")
        assert "The lease ends in May" in shown
        assert "roof" not in shown
        assert estimated_tokens(shown) <= tokens


def test_the_rest_of_the_budget_is_used_by_score(crowd):
    crowd.store("Never push on Fridays")
    shown = [item for item in items(crowd, "zebra crossing") if item.get("id")]
    assert len(shown) > 30
    assert shown[0]["text"] == "Never push on Fridays"
    # Of equal importance: the newest have the highest scores.
    assert max(item["age_seconds"] for item in shown) < 10 * DAY


def test_the_items_as_json_keep_the_budget_whatever_the_block_before_was(crowd):
    crowd.store("Never open the hatch beside the kettle")
    for tokens, query in itertools.product((200, 1_000, 4_000), ("", "where is the kettle?")):
        block(crowd, query, max_tokens=tokens)
        made = block(crowd, query, max_tokens=tokens, format="json")
        written = msgspec.json.encode(made["sections"]).decode()
        assert tokens / 3 < made["tokens"] <= tokens
        assert abs(made["tokens"] - estimated_tokens(written)) <= 1


def test_more_standing_memories_than_fit_leave_room_for_the_answer(crowd):
    rules = [
        {"text": f"Never open hatch {number} by hand", "importance": 0.9} for number in range(200)
    ]
    crowd.ok("POST", "/api/memory/batch", {"memories": rules})
    crowd.store("The quokka sleeps in the greenhouse")
    shown = block(crowd, "where does the quokka sleep?", max_tokens=600)
    assert shown["tokens"] <= 600
    assert shown["text"].count("Never open hatch") > 5
    assert "quokka sleeps in the greenhouse" in shown["text"]


def test_what_was_not_asked_for_has_three_uncertain_items_at_most_and_marks_them(crowd):
    crowd.store("The quokka sleeps in the greenhouse")
    distant = "who counted the jacket when my aunt visited the museum of modern cars in Turin?"
    assert items(crowd, distant, found=True) == []
    query = "where is the jacket of my aunt?"
    found = items(crowd, query, found=True)
    results = crowd.ok("POST", "/api/recall", {"query": query, "limit": 20})["results"]
    sure = {result["text"] for result in results if result["sure"]}
    uncertain = [item for item in found if item.get("uncertain")]
    assert 0 < len(uncertain) <= 3
    assert {item["text"] for item in found} - {item["text"] for item in uncertain} <= sure
    marked = text_of(crowd, query, found=True)
    assert marked.count("uncertain") == len(uncertain)
    certain = text_of(crowd, "where does the quokka sleep?", found=True)
    line = next(line for line in certain.split("\n") if "quokka" in line)
    assert "uncertain" not in line


def test_what_only_the_replaced_statement_says_is_not_lost_and_a_long_one_is_cut(call):
    older = "We run PostgreSQL 15 in production, on three nodes behind a load balancer"
    more = ", with a standby in the second data centre, and dumps every night"
    for text in (older, older + more):
        call.store(text)
        new = call.store(f"Production was upgraded to PostgreSQL 1{len(text)}")["id"]
        shown = text_of(call, "how many nodes does production have?")
        [line] = [line for line in shown.split("\n") if new[:8] in line]
        assert ", on three nodes behind a load balancer" in line
        (item,) = [item for item in items(call) if item.get("id") == new]
        assert item["replaces"] == (text if len(text) < 110 else f"{text[:110]}…")


def test_each_item_has_its_date_and_what_it_replaced(call):
    told = time.time() - 40 * DAY
    call.store("Ana lives in Bonn", created_at=told)
    new = call.ok("POST", "/api/tools/remember", {"text": "Ana lives in Kiel"})
    assert new["contradicts"]
    call.store("The boat is red", created_at=told)
    shown = text_of(call, "where does Ana live?")
    (line,) = [line for line in shown.split("\n") if "Kiel" in line]
    today = datetime.now(UTC).date().isoformat()
    pattern = rf'- Ana lives in Kiel \(\w+, now, {today}, replaces "Ana lives in Bonn"\)'
    assert re.fullmatch(pattern, line)
    assert shown.count("Bonn") == 1
    day = datetime.fromtimestamp(told, UTC).date().isoformat()
    assert f"1 mo, {day})" in shown
    (item,) = [item for item in items(call, "where does Ana live?") if "Kiel" in item["text"]]
    assert item["replaces"] == "Ana lives in Bonn"


def test_a_question_that_finds_the_older_statement_shows_the_newer(crowd):
    crowd.store("Ana lives in Bonn")
    assert crowd.ok("POST", "/api/tools/remember", {"text": "Ana lives in Kiel"})["contradicts"]
    shown = text_of(crowd, "who is it that is in Bonn?", found=True)
    assert "- Ana lives in Kiel" in shown
    assert shown.count("Bonn") == 1


def test_the_formats_of_other_systems_keep_the_budget(call):
    long = "The heron nests beside the long canal. " * 40
    for number in range(12):
        call.store(f"heron {number}: {long}", importance=0.9, subject="heron")
        call.ok("PUT", f"/api/kv/heron{number}", {"value": long[:900]})
        lesson = {"type": "insight", "context": "heron", "lesson": long}
        call.ok("POST", "/api/reflections", lesson)
        call.ok("POST", "/api/episodes", {"summary": long[:900], "tags": ["heron"]})
        skill = {"id": f"s{number}", "description": "counting heron nests", "text": long * 2}
        call.ok("POST", "/api/skills", skill)
    for format_, tokens in itertools.product(SYSTEMS, (200, 2_000, 8_000)):
        made = block(call, "how many heron nests are there?", format=format_, max_tokens=tokens)
        assert 0 < made["tokens"] == estimated_tokens(made["text"]) <= tokens
        assert "heron" in made["text"].lower()


def test_a_change_is_in_the_next_block_and_an_expired_memory_gone_at_once(call, eventually):
    stored = call.store("The kettle is blue")
    call.store("The anchor is heavy")
    for _ in range(2):
        assert "kettle is blue" in text_of(call)
    target = f"/api/memory/{stored['id']}"
    call.ok("PUT", target, {"text": "The kettle is green"})
    assert "kettle is green" in text_of(call)
    assert "blue" not in text_of(call)
    call.ok("PUT", target, {"standing": True})
    assert json.dumps(block(call, format="json")).index("always") > 0
    call.ok("DELETE", target)
    assert "kettle" not in text_of(call)
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Nova"})
    assert "Nova" in text_of(call)
    call.store("Never open the hatch before the crane is gone", expires=time.time() + 2)
    assert "hatch" in text_of(call)
    eventually(lambda: "hatch" not in text_of(call), "the memory is not shown", 5)


def test_a_secret_is_in_no_block_that_does_not_ask_for_it(call):
    secret = "tulpen-regen-88"
    stored = call.store(f"The Wi-Fi password of the house is {secret}", importance=0.9, pinned=True)
    assert "password" in stored["warning"]
    call.store("I take 50 mg of losartan every morning", importance=0.9)
    call.ok("PUT", "/api/kv/router-password", {"value": secret})
    # Nor is one that was replaced shown beside what replaced it.
    for place in (secret, "on the yellow note"):
        call.store(f"The password of the router is {place}", importance=0.9)
    queries = ("", "which pills do I take?", "which colour has the house of my aunt?")
    formats = ("thermocline", "json", *SYSTEMS)
    for query, found, format_ in itertools.product(queries, (False, True), formats):
        body = {"query": query, "format": format_, "found": found, "max_tokens": 4_000}
        answer = call("POST", "/api/context", body)
        assert secret not in json.dumps(answer.body), (query, found, format_)
    tool = {"query": "what is the Wi-Fi password?"}
    assert secret in json.dumps(call.ok("POST", "/api/tools/context", tool))
    asked = call.ok("POST", "/api/context", {**tool, "max_tokens": 4_000})
    assert secret in asked["text"]


def test_a_prompt_that_asks_nothing_gets_nothing_that_only_may_be_related(call):
    for text in (
        "Kessler went bankrupt, Therma Nord looks after the boiler now",
        "The boiler gets serviced by Firma Kessler",
        "My boss is called Anselmo Riquelme",
        "My wife is called Ineke and she teaches chemistry at a secondary school",
        "Bruno's new school is the Volksschule Rosenhain",
        "My laptop is a ThinkPad with a failing fan",
        "The parser of the importer has failing tests on Windows",
    ):
        call.store(text)
    for prompt in (
        "Fix the failing test in parser.py",
        "my boat is a Laser",
        "my parrot is called Kiki and I hate olives",
    ):
        assert not [item for item in items(call, prompt, found=True) if item.get("uncertain")]
    assert "Ineke" not in text_of(call, "what is my parrot called?", found=True)
    assert "Anselmo" in text_of(call, "who is my boss at the moment", found=True)
