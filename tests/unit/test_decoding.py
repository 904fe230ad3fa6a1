"""A request as structs: the body, the query, and other systems' spellings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, Struct, UnsetType

from thermocline.daemon.api.decoding import body_as, name_as_called, query_as
from thermocline.daemon.errors import InvalidInput


class Turn(Struct, forbid_unknown_fields=True):
    text: str
    tools_used: tuple[str, ...] = ()


class Question(Struct, forbid_unknown_fields=True):
    query: str = ""
    top_k: int | None = None
    tags: tuple[str, ...] | UnsetType = UNSET
    conversation: str = ""
    user_id: str = ""
    turns: tuple[Turn, ...] = ()
    first: Turn | None = None
    data: dict[str, Any] = {}


def test_a_key_that_is_no_field_is_tried_in_snake_case():
    for body, question in [
        (b'{"query": "x", "topK": 3}', Question("x", 3)),
        (b'{"userId": "ada", "conversationId": "c"}', Question(conversation="c", user_id="ada")),
        (b'{"turns": [{"text": "a", "toolsUsed": ["b"]}]}', Question(turns=(Turn("a", ("b",)),))),
        (b'{"first": {"text": "a", "toolsUsed": ["b"]}}', Question(first=Turn("a", ("b",)))),
        (b'{"data": {"topK": 1}}', Question(data={"topK": 1})),
        (b'{"turns": [], "first": null}', Question()),
    ]:
        assert body_as(body, Question | None, {}) == question


def test_a_mistake_is_named():
    for body, field in [
        (b'{"topK": 3, "top_k": 4}', "topK"),
        (b'{"nonSense": 3}', "nonSense"),
        (b'{"turns": [{"text": "a", "nonSense": 1}]}', "turns[0].nonSense"),
        (b'{"topK": "x"}', "topK"),
        (b'{"turns": [{"text": "a", "toolsUsed": [1]}]}', "turns[0].toolsUsed[0]"),
        (b'{"turns": [3]}', "turns[0]"),
        (b"", None),
        (b"[]", None),
    ]:
        spelled: dict[str, str] = {}
        with pytest.raises(InvalidInput) as raised:
            body_as(body, Question, spelled)
        name_as_called(raised.value, spelled)
        assert raised.value.field == field
        assert field is None or f"'{field}'" in raised.value.message


def test_the_query_of_a_url_fills_the_same_struct():
    for query, question in [
        ({"query": ["a,b"], "topK": ["3"]}, Question("a,b", 3)),
        ({"tags": ["a,b", "c", ""]}, Question(tags=("a", "b", "c"))),
        ({"agent": ["x", "y"]}, Question()),
    ]:
        assert query_as(query, Question, {}) == question


def test_a_parameter_that_does_not_fit_is_refused():
    for query in [{"query": ["a", "b"]}, {"topK": ["x"]}, {"first": ["x"]}]:
        with pytest.raises(InvalidInput):
            query_as(query, Question, {})
