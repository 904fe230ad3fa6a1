"""Questions while an encoder is configured: what it adds, and what they say when it is away."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from calls import Caller
from daemon_process import Daemon, wait_until
from model_server import Saying
from static_model import write

KILN = "the annealer reaches cone six overnight"
OTHERS = ("the ledger lies in the blue drawer", "the permit expires in spring")
# Shares no word and no concept with it.
QUESTION = "tempering firing schedule"
ALIKE = dict.fromkeys(("annealer", "tempering", "stoneware"), "annealer") | {"ledger": "ledger"}
NOTE = "found by words alone"


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with an encoder to which the question is like the kiln."""
    pytest.importorskip("tokenizers")
    model = write(tmp_path_factory.mktemp("model"), alike=ALIKE)
    patient = "--set=recall.embed_deadline_ms=60000"
    embed = f'--set=llm.models.embed=["static:{model}"]'
    daemon = Daemon(tmp_path_factory.mktemp("daemon"), embed, patient).start()
    yield daemon
    assert daemon.stop() == 0, daemon.log.read_text()


def encoded(call: Caller, at_least: int) -> None:
    """Wait until everything is encoded."""

    def is_done() -> bool:
        progress = call.ok("GET", "/api/status")["agents"][call.agent]["vectors"]
        return progress is not None and progress["encoded"] >= at_least and not progress["left"]

    wait_until(is_done, "the texts are encoded")


def stored(call: Caller) -> None:
    for text in (KILN, *OTHERS):
        call.store(text)
    encoded(call, 3)


def test_what_is_near_in_meaning_is_found_wherever_a_question_is_asked(call):
    body = {"intent": KILN, "type": "task_solution", "solution": {"fix": "wait"}}
    call.ok("POST", "/api/experiences", body)
    stored(call)
    encoded(call, 4)
    answer = call.ok("POST", "/api/recall", {"query": QUESTION, "explain": True})
    first = next(result for result in answer["results"] if result["source"] == "memory")
    assert (first["text"], first["search_method"]) == (KILN, "meaning")
    assert [*first["parts"]["signals"]] == ["meaning"]
    assert answer["confidence"] == "unsure"
    assert "note" not in answer
    scalyclaw = call.ok("GET", f"/api/memory/search?q={quote(QUESTION)}")["results"]
    assert [memory["text"] for memory in scalyclaw] == [KILN]
    similar = call.ok("GET", f"/api/experiences/search?q={quote(QUESTION)}")["experiences"]
    assert [experience["intent"] for experience in similar] == [KILN]
    block = call.ok("POST", "/api/context", {"query": QUESTION, "format": "json", "found": True})
    assert KILN in str(block["sections"])
    tool = call.ok("POST", "/api/tools/recall", {"query": QUESTION})
    assert KILN in str(tool)


def test_what_is_told_around_a_question_is_not_what_it_means(call):
    stored(call)
    around = "I read that ledger on Tuesday. All of it was there, and it took me until noon."

    def near(query: str) -> dict[str, float]:
        body = {"query": query, "explain": True, "limit": 10}
        answer = call.ok("POST", "/api/recall", body)
        signals = {result["text"]: result["parts"]["signals"] for result in answer["results"]}
        return {text: parts.get("meaning", 0.0) for text, parts in signals.items()}

    asking = near(f"{around} What about the tempering?")
    assert asking[OTHERS[0]] < asking[KILN] / 2
    assert near(around)[OTHERS[0]] == 0
    assert near("tempering in whatever form and from whichever old shelf that is by the sea")[KILN]


def test_an_encoder_that_is_away_leaves_words_and_a_note(make_daemon, model_server):
    options = (f"--set=llm.api_base={model_server.base}", "--set=recall.embed_deadline_ms=100")
    daemon = make_daemon('--set=llm.models.embed=["openai/embed-test"]', *options).start()
    call = Caller(daemon.socket, "default")
    stored(call)
    model_server.usually = Saying("down", status=503)
    words = {"query": "where is the ledger?"}
    answer = call.ok("POST", "/api/recall", words)
    assert answer["results"][0]["text"] == OTHERS[0]
    assert NOTE in answer["note"]
    assert NOTE in call.ok("POST", "/api/context", words)["note"]
    assert NOTE in call.ok("GET", "/api/experiences/search?q=ledger")["note"]
    assert NOTE in call.ok("GET", "/api/memory/search?q=ledger")["note"]
    assert NOTE in call.ok("POST", "/api/files/search", words)["note"]
    assert NOTE in call.ok("POST", "/api/tools/recall", words)["note"]


def test_a_fact_without_a_category_is_filed_where_its_like_is(call):
    for text in (KILN, "the annealer reaches cone six by noon"):
        call.store(text, category="studio/firing")
    call.store(OTHERS[0], category="office")
    encoded(call, 3)
    body = {"text": "Stoneware matures slowly in July", "store": True}
    distilled = call.ok("POST", "/api/distill", body)
    assert distilled["stored"][0]["category"] == "studio/firing"
