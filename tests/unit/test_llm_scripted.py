"""The model for tests of those who ask one keeps to the port."""

from __future__ import annotations

import msgspec
import pytest
from scripted_model import ScriptedModel

from thermocline.daemon.errors import ModelUnavailable
from thermocline.daemon.llm.model import Model, ModelQuestion, Part

TREE = ModelQuestion("tree", "search", (Part("question", "where?"),), 100, 0.0)


class Choice(msgspec.Struct):
    path: str
    relevance: float = 1.0


async def test_it_says_what_it_was_told_in_order_and_notes_what_it_was_asked() -> None:
    model: Model = ScriptedModel({"tree": [[{"path": "a"}], [Choice("b")]]})
    assert model.available("tree")
    assert not model.available("distil")
    first = await model.ask(TREE, list[Choice])
    second = await model.ask(TREE, list[Choice], endpoint="http://localhost/x")
    assert (first.value, first.model) == ([Choice("a")], "scripted")
    assert (second.value, second.model) == ([Choice("b")], "http://localhost/x")
    assert isinstance(model, ScriptedModel)
    assert model.asked == [TREE, TREE]


async def test_it_has_nothing_to_say_beyond_that() -> None:
    model = ScriptedModel({"tree": [ModelUnavailable("it is late")]})
    for message in ("it is late", "no model is configured for tree"):
        with pytest.raises(ModelUnavailable, match=message):
            await model.ask(TREE, list[Choice])
