"""What models answer, read whatever surrounds it, and the schemas that replies are held to."""

import json
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import CONSTANTS, SHORT_TEXTS, json_values
from msgspec import Meta

from thermocline.daemon.llm.replies import UnreadableReply, form_of, read, without_thoughts


class Fact(msgspec.Struct):
    fact: str
    people: list[str] = []


class AgentPaths(msgspec.Struct):
    path: str
    relevance: Annotated[float, Meta(ge=0, le=1)]


def test_a_value_is_found_in_what_models_put_around_it():
    for text in [
        '{"fact": "f", "people": ["A"]}',
        '```json\n{"fact": "f", "people": ["A"]}\n```',
        '```\n{"fact": "f", "people": ["A"]}\n```\nI hope this helps!',
        'Sure! Here is [the] {JSON}: {"fact": "f", "people": ["A"]} – done.',
        '<think>perhaps {"fact": "wrong"}?</think>{"fact": "f", "people": ["A"]}',
        'the template ate the tag {"fact": "wrong"}</think>\n{"fact": "f", "people": ["A"]}',
        '<|channel|>final<|message|>{"fact": "f", "people": ["A"]}<|end|>',
        '{"fact": "f", "people": ["A",],}',
        "{'fact': 'f', 'people': ['A']}",
        "See [1]: {'fact': 'f', 'people': ['A',]}",
        '[{"fact": "f", "people": ["A"]}]',
        '{"result": {"fact": "f", "people": ["A"]}}',
        '{"note": 1} and then {"fact": "f", "people": ["A"]}',
        '\ufeff {"fact": "f", "people": ["A"], "extra": null}',
    ]:
        assert read(text, Fact) == Fact("f", ["A"])


def test_a_list_is_found_alone_wrapped_or_as_its_only_item():
    for text, paths in [
        ('[{"path": "a", "relevance": 0.9}, {"path": "b", "relevance": 0.3}]', ["a", "b"]),
        ('```json\n[{"path": "a", "relevance": "0.9"}]\n```', ["a"]),
        ('{"items": [{"path": "a", "relevance": 1}]}', ["a"]),
        ('{"path": "a", "relevance": 1}', ["a"]),
        ("[]", []),
        ('The lists [1, 2] and [{"path": "a", "relevance": 1}]', ["a"]),
    ]:
        assert [one.path for one in read(text, list[AgentPaths])] == paths


def test_what_cannot_be_read_says_why():
    for text, why in [
        ("not json", "it contains no JSON"),
        ("", "it contains no JSON"),
        ('{"fact": "cut o', "it contains no JSON"),
        ('<think>and so on {"fact": "thought"}', "it contains no JSON"),
        ('{"people": []}', "Object missing required field `fact`"),
        ('{"fact": 1}', "Expected `str`, got `int` - at `$.fact`"),
        ("[[[[" * 30_000, "it contains no JSON"),
    ]:
        with pytest.raises(UnreadableReply) as caught:
            read(text, Fact)
        assert caught.value.why == why
        assert not caught.value.refused


def test_the_longest_reply_is_read_in_no_time_whatever_it_is():
    for text in [
        '[{"fact": "' + 'he said, \\"so\\", ' * 6_000, "x " + '"\\' * 50_000,
        "x " + "[1," * 64 + "1," * 49_000, "x " + '{"fact": ["a", ' * 6_000,
        '{"fact": ".' + " " * 90_000 + 'x", "people": []}', "I can't" + " " * 90_000 + "x",
        "x ," + " " * 90_000,
    ]:  # fmt: skip
        # Where the time grows with the square of the length, the test's own time runs out.
        for kind in (Fact, list[Fact]):
            try:
                found: Any = read(text, kind)
            except UnreadableReply:
                continue
            assert isinstance(found, Fact | list)


def test_a_comma_too_many_is_read_behind_a_quotation_mark_that_is_left_alone():
    assert read('The 5" hull: {"fact": "so, ]", "people": ["A",],}', Fact) == Fact("so, ]", ["A"])


def test_a_value_beyond_its_bounds_is_no_value():
    with pytest.raises(UnreadableReply, match=r"<= 1.0 - at `\$\[0\].relevance`"):
        read('[{"path": "a", "relevance": 7}]', list[AgentPaths])


def test_a_refusal_is_an_error_and_never_a_value():
    for text in [
        "I'm sorry, but I can't help with that.",
        "I cannot assist with this request.",
        "Unfortunately, I am unable to extract facts from this.",
        "As an AI language model, I cannot process private data.",
        "Sorry, I won’t provide that.",
        '{"fact": "I\'m sorry, but I cannot help with that."}',
        '{"fact": "", "people": ["I can\'t assist with that."]}',
    ]:
        with pytest.raises(UnreadableReply) as caught:
            read(text, Fact)
        assert caught.value.refused


def test_words_of_the_text_itself_are_no_refusal():
    text = "I can't help with the move on Friday, said Ada"
    assert read(json.dumps({"fact": text}), Fact, question=f"Ada: {text}").fact == text
    said = "I will not deploy on Fridays"
    assert read(json.dumps({"fact": said}), Fact).fact == said


def test_tags_within_a_value_are_part_of_it():
    said = 'the <think> tag and <|im_end|> are [tokens], {he} said, "so"'
    assert read(json.dumps({"fact": said}), Fact).fact == said


def test_thoughts_are_cut_out_wherever_they_stand():
    assert without_thoughts("a<think>b</think>c<REASONING>d</REASONING>e<think>f") == "ace"


values = json_values(CONSTANTS | st.integers(-9, 9) | SHORT_TEXTS, leaves=9)


@given(
    fact=st.text(),
    people=st.lists(st.text(max_size=9)),
    before=st.text("abc ,.:!\n", max_size=20),
    fenced=st.booleans(),
)
def test_any_value_survives_prose_and_fences(fact, people, before, fenced):
    written = json.dumps({"fact": fact, "people": people})
    text = f"{before}```json\n{written}\n```" if fenced else f"{before}{written}"
    assert read(text, Fact, question=written) == Fact(fact, people)


@given(st.text("{}[]\",:'<think/>| ae1\\\n", max_size=200) | values.map(json.dumps))
def test_any_text_is_read_or_refused_and_nothing_else(text):
    for kind in (Fact, list[AgentPaths]):
        found: Any
        try:
            found = read(text, kind)
        except UnreadableReply:
            continue
        assert isinstance(found, Fact | list)


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


def test_a_list_is_wrapped_into_an_object():
    form = form_of(list[Relation])
    assert form.schema["type"] == "object"
    assert form.schema["required"] == ["items"]
    assert form.schema["properties"]["items"]["type"] == "array"
    assert form.name == "list"
