"""Distilling by a model: what it may say, and what it may not lose."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from thermocline.daemon.config.settings import Distillation
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.memory.metadata import extract
from thermocline.daemon.tasks.distillation import distil
from thermocline.daemon.tasks.model_or_rules import AskOptions, ModelOrRules
from thermocline.daemon.tasks.new_memories import memory_of

ASKED = AskOptions(model=True)


def mind(*answers: object) -> ModelOrRules:
    return ModelOrRules(ScriptedModel({"distil": list(answers)} if answers else {}), read_prompts())


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
