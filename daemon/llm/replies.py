"""The JSON Schema of a reply, and parsing a reply into the requested value.

Accepts JSON in code fences, after prose or thoughts, with a comma before a closing bracket, or with
Python's quotes. Missing values are not invented.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from ..language.sentences import printable
from .wire import ReplyForm

T = TypeVar("T")
Json = Any

_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_TOKEN: Final = re.compile(r"<\|[^|<>\n]{1,40}\|>")
_OPENING: Final = re.compile(r"[\[{]")
# The quantifiers are possessive, so that the time is linear in the length of any reply.
# A string, possibly cut off, or a comma directly before a closing bracket.
_LAST_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|,(?=\s*+[\]}])', re.DOTALL)
_REFUSAL: Final = re.compile(
    r"\A\W*+(?:i['’]?m|i am|we['’]?re)?\s*+(?:very |really |terribly )?"
    r"(?:sorry|afraid|apologi[sz]e|unfortunately)?[,.]?\s*+(?:but |that |for )?\s*+"
    r"(?:i|we|as an ai\b.{0,40}?)\s*+"
    r"(?:can['’]?t|can ?not|won['’]?t|will not|am unable to|['’]m unable to"
    r"|am not able to|['’]m not able to|must decline|have to decline)\s++"
    r"(?:help|assist|comply|fulfil|provide|process|do that|do this|answer|engage|continue"
    r"|with that|with this|extract|summari[sz]e|generate|create)",
    re.IGNORECASE | re.DOTALL,
)
_MOST_STARTS: Final = 64
# The limit of characters read from all brackets together, as a multiple of the text's length.
_MOST_READ: Final = 4
_MOST_LITERALS: Final = 5
_LONGEST_LITERAL: Final = 20_000
_LONGEST_REASON: Final = 160

_json = json.JSONDecoder(strict=False)


# Servers that enforce a schema support only a part of JSON Schema.
_DROPPED: Final = frozenset({"default", "title", "$defs"})
WRAPPER: Final = "items"


class UnreadableReply(Exception):
    """A reply does not have the requested form."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.why = why  # the reason for the model, without quoting its reply
        self.refused = refused  # whether it is a refusal


def form_of(kind: Any) -> ReplyForm:
    """The schema of a kind: always an object, without references or optional keys.

    This is the strictest form that servers require. A reply may still omit keys with a default.
    """
    whole = msgspec.json.schema(kind)
    schema = _strict(whole, whole.get("$defs", {}))
    if schema.get("type") != "object":
        schema = _strict({"type": "object", "properties": {WRAPPER: schema}}, {})
    name = re.sub(r"[^A-Za-z0-9_]", "", getattr(kind, "__name__", "")).lower() or "reply"
    return ReplyForm(name[:64], schema, msgspec.json.encode(schema).decode())


def _strict(node: Json, named: dict[str, Json]) -> Json:
    if isinstance(node, list):
        return [_strict(item, named) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _strict(named[node["$ref"].rpartition("/")[2]], named)
    fields = {key: value for key, value in node.items() if key not in _DROPPED}
    # Names of properties are not keywords of the schema.
    properties = fields.pop("properties", None)
    made = {key: _strict(value, named) for key, value in fields.items()}
    if properties is not None:
        made["properties"] = {name: _strict(schema, named) for name, schema in properties.items()}
        made["required"] = list(properties)
        made["additionalProperties"] = False
    return made


def read(text: str, kind: type[T], *, question: str = "") -> T:
    """The value in a reply, else `UnreadableReply`. Takes time that grows with the reply's length.

    `question` is the data of the question; a refusal that is in it is a quotation.
    """
    why = "it contains no JSON"
    for candidate in _values(text):
        try:
            value = _fitting(candidate, kind)
        except msgspec.ValidationError as error:
            why = str(error)[:_LONGEST_REASON]
            continue
        if refusal_in(candidate, question):
            raise UnreadableReply("it refuses", refused=True)
        return value
    raise UnreadableReply(why, refused=_REFUSAL.match(without_thoughts(text)) is not None)


def without_thoughts(text: str) -> str:
    """A reply without thoughts and without the model's own control tokens."""
    spoken: list[str] = []
    thinking, at = False, 0
    for tag in _THOUGHT.finditer(text):
        if not thinking:
            spoken.append(text[at : tag.start()])
        if tag[1] and not thinking:
            # Some servers omit the opening tag.
            spoken.clear()
        thinking, at = not tag[1], tag.end()
    if not thinking:
        spoken.append(text[at:])
    return _TOKEN.sub("", "".join(spoken)).strip()


def refusal_in(value: Json, question: str) -> bool:
    """Whether the texts of a value are a refusal."""
    refusals = {text.strip().lower()[:40] for text in _texts(value) if _REFUSAL.match(text)}
    known = question.lower() if refusals else ""
    return any(refusal not in known for refusal in refusals)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _values(text: str) -> Iterator[Json]:
    """Everything in a reply that parses as an object or a list, likeliest first."""
    whole = text.strip()
    try:
        yield msgspec.json.decode(whole)
    except (msgspec.DecodeError, RecursionError):
        pass
    else:
        return
    bare = without_thoughts(whole)
    if bare != whole or bare[:1] not in {"{", "["}:
        yield from _decoded(bare)
    # Quotation marks in the prose before it are not strings.
    if start := _OPENING.search(bare):
        yield from _decoded(_LAST_COMMA.sub(lambda match: match[1] or "", bare[start.start() :]))
    yield from _python(bare)


def _decoded(text: str) -> Iterator[Json]:
    at, left = 0, _MOST_READ * len(text)
    for _ in range(_MOST_STARTS):
        start = _OPENING.search(text, at)
        if start is None or left <= 0:
            return
        try:
            value, at = _json.raw_decode(text, start.start())
        except (ValueError, RecursionError) as error:
            at = start.end()
            # An error without a position may be at the end.
            left -= getattr(error, "pos", len(text)) - start.start()
            continue
        yield value


def _python(text: str) -> Iterator[Json]:
    """The text from a bracket to the last one, if it is a Python literal."""
    end = max(text.rfind("}"), text.rfind("]")) + 1
    for start in islice(_OPENING.finditer(text), _MOST_LITERALS):
        if 0 < end - start.start() <= _LONGEST_LITERAL:
            try:
                value = ast.literal_eval(text[start.start() : end])
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                continue
            yield value


def _fitting(value: Json, kind: type[T]) -> T:
    """The value as a `kind`, also with an additional or a missing wrapper."""
    first: msgspec.ValidationError | None = None
    for item in (value, *_unwrapped(value)):
        try:
            return msgspec.convert(item, kind, strict=False)
        except msgspec.ValidationError as error:
            first = first or error
    assert first is not None
    raise first


def _unwrapped(value: Json) -> Iterable[Json]:
    if isinstance(value, dict) and len(value) == 1:
        (inner,) = value.values()
        return (inner, [value])
    if isinstance(value, list) and len(value) == 1:
        return value
    return ([value],) if isinstance(value, dict) else ()


def one_line(text: str, most: int | None = None) -> str:
    """A model's text, ready to be stored: on one line, at most `most` printable characters."""
    return " ".join(printable(text).split())[:most].strip()


def short_list(values: Iterable[str], most: int, chars: int) -> tuple[str, ...]:
    """The first `most` different non-blank values, each on one line and cut."""
    clean = dict.fromkeys(one_line(value, chars) for value in values)
    return tuple(value for value in clean if value)[:most]


def share_of(value: float | None, default: float = 0.0) -> float:
    """An importance from a model as 0 to 1; a value above 1 is taken as 1 to 10."""
    if value is None or not math.isfinite(value) or value < 0:
        return default
    return min(1.0, value / 10 if value > 1 else value)


def one_of(name: str, options: Sequence[Any], default: Any) -> Any:
    """The option that a model names, in any case, or the default."""
    name = name.strip().lower()
    return name if name in options else default


def ends(text: str, most: int) -> str:
    """A text for a model; only its beginning and end if it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most // 2]}\n…\n{text[-(most // 2) :]}"
