"""What encoders behind a server are sent, and where texts go."""

import pytest

from thermocline.daemon.config.settings import Llm
from thermocline.daemon.llm.encoder import Encoding, destination, same_encoder
from thermocline.daemon.llm.failures import CallFailed
from thermocline.daemon.llm.remote_encoder import prepared, vectors_of
from thermocline.daemon.llm.wire import Embed

SEARCH = "Represent this sentence for searching relevant passages: "


def sent(model: str, provider: str = "ollama") -> tuple[str, str]:
    """A query and a passage as a model sees them."""
    query, _ = prepared(Embed(model, ("x",), "query"), provider)
    passage, _ = prepared(Embed(model, ("x",), "passage"), provider)
    return query[0], passage[0]


def test_families_of_models_have_prefixes():
    for model, query, passage in [
        ("openai/text-embedding-3-small", "x", "x"),
        ("ollama/all-minilm", "x", "x"),
        ("ollama/nomic-embed-text:latest", "search_query: x", "search_document: x"),
        ("lm_studio/intfloat/multilingual-e5-small", "query: x", "passage: x"),
        ("ollama/bge-m3", "x", "x"),
        ("lm_studio/BAAI/bge-small-en-v1.5", f"{SEARCH}x", "x"),
        ("ollama/mxbai-embed-large", f"{SEARCH}x", "x"),
        ("ollama/snowflake-arctic-embed:33m", f"{SEARCH}x", "x"),
        ("ollama/snowflake-arctic-embed2", "query: x", "x"),
    ]:
        assert sent(model) == (query, passage)


def test_an_instruction_stands_before_queries_alone():
    query, passage = sent("ollama/qwen3-embedding:0.6b")
    assert query.startswith("Instruct: ")
    assert query.endswith("\nQuery:x")
    assert passage == "x"


def test_a_provider_that_is_told_the_role_gets_no_prefix():
    for provider, name, query, passage in [
        ("cohere", "input_type", "search_query", "search_document"),
        ("voyage", "input_type", "query", "document"),
        ("nvidia_nim", "input_type", "query", "passage"),
        ("jina_ai", "task", "retrieval.query", "retrieval.passage"),
    ]:
        model = f"{provider}/some-e5-v5"
        assert sent(model, provider) == ("x", "x")
        assert prepared(Embed(model, ("x",), "query"), provider)[1] == {name: query}
        assert prepared(Embed(model, ("x",), "passage"), provider)[1] == {name: passage}


def test_an_answer_without_a_vector_for_each_text_is_refused():
    for data in [
        [],
        [{"embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 1, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}],
        [{"embedding": [1.0]}] * 3,
        [{"embedding": []}] * 2,
        [{"embedding": [1.0] * 20_000}] * 2,
    ]:
        with pytest.raises(CallFailed) as caught:
            vectors_of("m", data, 2)
        assert caught.value.code == "nonsense"


def test_vectors_are_in_the_order_of_the_texts():
    data = [{"index": 1, "embedding": [0.0, -2.0]}, {"index": 0, "embedding": [1.0, 0.0]}]
    assert vectors_of("m", data, 2) == ((b"\x7f\x00", b"\x00\x81"), 2)
    data = [{"embedding": [1, 0]}, {"embedding": [0, 0]}]
    assert vectors_of("m", data, 2) == ((b"\x7f\x00", None), 2)


def test_where_texts_go():
    for model, settings, place in [
        ("static:/a", {}, ""),
        ("ollama/nomic", {}, ""),
        ("ollama/nomic", {"api_bases": {"ollama": "http://127.0.0.1:1"}}, ""),
        ("ollama/nomic", {"api_bases": {"ollama": "http://box:11434"}}, "box:11434"),
        ("openai/small", {}, "openai"),
        ("openai/small", {"api_base": "http://localhost:8080/v1"}, ""),
        ("openai/small", {"api_base": "https://host.example/v1"}, "host.example"),
        ("voyage/v", {"model": "openai/gpt", "api_base": "http://localhost:1/v1"}, "voyage"),
        ("text-embedding-3-small", {}, "the provider of text-embedding-3-small"),
    ]:
        plan = Llm(**{"models": {"embed": (model,)}, **settings})
        assert destination(plan, model) == place


def test_an_encoder_is_the_same_if_all_is_and_the_probes_are_near():
    first = Encoding("m", 3, "r", b"\x7f\x01\x00")
    assert same_encoder(first, Encoding("m", 3, "r", b"\x7f\x02\x00"))
    assert same_encoder(first, Encoding("m", 3, "r", b""))
    assert not same_encoder(first, Encoding("m", 3, "r", b"\x7f\x40\x00"))
    assert not same_encoder(first, Encoding("n", 3, "r", first.probe))
    assert not same_encoder(first, Encoding("m", 3, "s", first.probe))
    assert not same_encoder(first, Encoding("m", 2, "r", b"\x7f\x01"))


def test_a_model_for_questions_encodes_nothing_and_the_other_way_round():
    assert Llm(model="openai/gpt").encoder is None
    plan = Llm(models={"embed": ("openai/small",)})
    assert (plan.encoder, plan.answering, plan.main) == ("openai/small", None, "openai/small")
    assert plan.models_for("distil") == ()
    assert Llm(models={"embed": ("static:/a",)}).main is None
    plan = Llm(models={"embed": ("openai/small",), "distil": ("ollama/x",)})
    assert (plan.answering, plan.main) == ("ollama/x", "ollama/x")
