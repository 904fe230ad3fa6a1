"""Distilling by a model: what it may say, and what it may not lose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from thermocline.daemon.config.settings import Distillation
from thermocline.daemon.language.distilling import best
from thermocline.daemon.language.distilling import distil as rules_distil
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.memory.metadata import extract
from thermocline.daemon.tasks.distillation import distil, facts
from thermocline.daemon.tasks.model_or_rules import AskOptions, ModelOrRules
from thermocline.daemon.tasks.new_memories import event_of, memory_of

ASKED = AskOptions(model=True)
MEASURE = Distillation()
TEXT = (
    "User: let's ship the parser, see https://a.example/plan\n"
    "Agent: Done. I ran `make release` and wrote /srv/notes/release.md"
)


def mind(*answers: object) -> ModelOrRules:
    return ModelOrRules(ScriptedModel({"distil": list(answers)} if answers else {}), read_prompts())


async def test_a_model_says_the_fact_and_the_text_keeps_its_references():
    told = {"fact": "Ada ships the parser", "people": ["Ada", "User"], "outcome": "Positive"}
    thought = await distil(TEXT, MEASURE, mind(told), ASKED)
    assert (thought.method, thought.why) == ("llm", "")
    assert thought.value.fact == "Ada ships the parser"
    assert thought.value.people == ("Ada",)
    assert thought.value.outcome == "positive"
    assert thought.value.urls == ("https://a.example/plan",)
    assert thought.value.commands == ("make release",)
    assert thought.value.paths == ("/srv/notes/release.md",)
    assert thought.spent is not None


async def test_a_model_is_not_asked_unless_it_is_wished_for_or_there():
    asked = mind({"fact": "by a model"})
    assert (await distil(TEXT, MEASURE, asked, AskOptions(model=False))).method == "rule"
    assert (await distil(TEXT, MEASURE, mind(), AskOptions())).why == ""
    assert (await distil(TEXT, MEASURE, mind(), ASKED)).why == "no model is configured for distil"
    assert (await distil(TEXT, MEASURE, asked, AskOptions())).value.fact == "by a model"


async def test_a_fact_of_a_model_that_is_longer_than_the_text_is_not_taken_for_condensed():
    text = "Ada: tea, please"
    told = {"fact": "Ada asks politely for a cup of tea", "topics": ["tea"]}
    thought = await distil(text, MEASURE, mind(told), ASKED)
    assert (thought.value.fact, thought.value.topics) == (text, ("tea",))
    several = await facts(text, MEASURE, mind([told, {"fact": "Ada wants tea"}]), ASKED)
    assert [one.fact for one in several.value] == [text, "Ada wants tea"]


async def test_what_a_model_says_beside_a_long_fact_stays():
    told = {
        "fact": "The parser of the release moves to Rust, and Ada and Berta share the work on it"
        " until the notes are written",
        "people": ["Ada", "Berta"],
        "topics": ["parser", "release", "notes"],
        "actions": ["move the parser to Rust", "write the notes"],
        "emotion": "relieved",
    }
    thought = (await distil(TEXT * 3, MEASURE, mind(told), ASKED)).value
    assert len(thought.fact.encode()) <= 100
    assert (list(thought.people), thought.emotion) == (told["people"], "relieved")
    assert [list(thought.topics), list(thought.actions)] == [told["topics"], told["actions"]]


async def test_each_fact_has_its_references_and_the_first_those_of_none():
    told = [
        {"fact": "The parser ships today"},
        {"fact": "The notes are in /srv/notes/release.md"},
        {"fact": "\x07"},
    ]
    thought = await facts(TEXT, MEASURE, mind(told), ASKED)
    first, second = thought.value
    assert (first.urls, first.commands) == (("https://a.example/plan",), ("make release",))
    assert (first.paths, second.paths) == ((), ("/srv/notes/release.md",))
    assert best(thought.value, TEXT) in thought.value
    assert best([], TEXT) == rules_distil(TEXT)


async def test_no_fact_is_an_answer_unless_a_reference_would_be_lost():
    assert (await facts("Hello there", MEASURE, mind([]), ASKED)).value == []
    thought = await facts(TEXT, MEASURE, mind([]), ASKED)
    assert thought.method == "rule"
    assert any(one.urls for one in thought.value)


async def test_of_a_long_text_a_model_sees_what_the_rules_think_worth_keeping():
    model = ScriptedModel({"distil": [{"fact": "the port is 5433"}]})
    chat = "User: what a lovely day it is, isn't it? I wonder about lunch.\n" * 600
    text = f"{chat}User: We decided that the port is 5433.\n{chat}"
    asks = ModelOrRules(model, read_prompts())
    await distil(text, MEASURE, asks, ASKED)
    await asks.rules.close()
    (asked,) = model.asked
    assert "5433" in asked.parts[-1].text
    assert len(asked.parts[-1].text) < len(text) / 10


words = st.text(max_size=80)


@given(
    told=st.fixed_dictionaries(
        {"fact": words},
        optional={
            "emotion": words,
            "people": st.lists(words, max_size=9),
            "topics": st.lists(words, max_size=9),
            "actions": st.lists(words, max_size=9),
            "outcome": words,
        },
    ),
    text=st.text(min_size=1, max_size=200),
    most=st.integers(16, 300),
)
async def test_whatever_it_says_the_limits_hold_and_it_can_be_stored(told, text, most):
    thought = await distil(text, Distillation(max_distilled_bytes=most), mind(told), ASKED)
    assert len(thought.value.fact.encode()) <= most
    assert len(thought.value.fact.encode()) <= len(text.encode())
    found = extract(text)
    assert (thought.value.urls, thought.value.paths) == (found.urls, found.paths)
    memory = memory_of(thought.value, "general", now=1.0, writer="test")
    memory.text.encode()
    assert "\0" not in memory.text


@pytest.mark.parametrize(
    ("fact", "event", "importance"),
    [
        ("Ana prefers tea in the morning", "preference_learned", 0.8),
        ("Actually, the port is 5433, not 5432", "correction", 0.9),
        ("We decided to use Postgres for the store", "fact_stored", 0.7),
        ("The office has twelve desks", "fact_stored", 0.6),
    ],
)
async def test_what_gave_rise_to_a_fact_says_how_much_it_matters(fact, event, importance):
    thought = await distil(
        fact, Distillation(max_distilled_bytes=300), mind(), AskOptions(model=False)
    )
    assert event_of(thought.value) == (event, importance)
