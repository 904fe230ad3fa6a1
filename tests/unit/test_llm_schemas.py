"""The schemas that replies are held to."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from thermocline.daemon.llm.replies import form_of


class Relation(msgspec.Struct):
    relation: str
    target: str = "nothing"


class Entity(msgspec.Struct):
    name: str
    default: str | None = None
    relations: list[Relation] = []


def keys(node: Any) -> set[str]:
    if isinstance(node, list):
        return {key for item in node for key in keys(item)}
    if not isinstance(node, dict):
        return set()
    return set(node) | {key for value in node.values() for key in keys(value)}


def test_a_struct_becomes_an_object_without_references_or_optional_keys():
    form = form_of(Entity)
    assert form.name == "entity"
    assert form.schema["type"] == "object"
    assert form.schema["required"] == ["name", "default", "relations"]
    relation = form.schema["properties"]["relations"]["items"]
    assert relation == {
        "type": "object",
        "properties": {"relation": {"type": "string"}, "target": {"type": "string"}},
        "required": ["relation", "target"],
        "additionalProperties": False,
    }
    assert not keys(form.schema) & {"$ref", "$defs", "title"}


def test_a_field_may_have_the_name_of_a_schemas_word():
    assert "default" in form_of(Entity).schema["properties"]


def test_a_list_is_wrapped_into_an_object():
    form = form_of(list[Relation])
    assert form.schema["type"] == "object"
    assert form.schema["required"] == ["items"]
    assert form.schema["properties"]["items"]["type"] == "array"
    assert form.name == "list"


def test_the_words_for_a_prompt_are_the_schema():
    form = form_of(Entity)
    assert json.loads(form.words) == form.schema
