"""JSON with comments, or JSON5: one member or item set or removed, every other byte kept.

Configuration files of editors have comments and trailing commas, and their owners' order and
indentation. So a change is an edit of the text at one place, and never a new rendering.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

_GAP: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
# In JSON5, as OpenClaw reads it, a name needs no quotes, and single ones will do.
_SINGLE: Final = re.compile(r"'(?:[^'\\\n]|\\.)*'")
_NAME: Final = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_PLAIN: Final = re.compile(r"[^\s,\]}/\"']+")
_REST: Final = re.compile(r"[ \t]*\n")
_REMARK: Final = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


class Malformed(ValueError):
    """The text is not JSON; the message names the line."""


class _Node(msgspec.Struct, frozen=True):
    """A value, its place in the text, and its members: of a list they have numbers as keys."""

    start: int
    end: int
    value: Any
    members: tuple[_Member, ...] = ()

    def member(self, key: str | int) -> _Member | None:
        # Of two with one key, programs read the last.
        return next((member for member in reversed(self.members) if member.key == key), None)


class _Member(msgspec.Struct, frozen=True):
    key: str | int
    start: int
    node: _Node


def load(text: str) -> Any:
    """The value of a text; an empty one is an empty object.

    Raises:
        Malformed: it is not JSON with comments.
    """
    start = _skip(text, 0)
    if start == len(text):
        return {}
    node = _node(text, start)
    if (end := _skip(text, node.end)) != len(text):
        raise _malformed(text, end)
    return node.value


def put(text: str, path: Sequence[str | int], value: Any) -> str:
    """The text with `value` at a path of keys; what is missing or null on the way is created.

    A number in the path is the place in a list, at most the one behind its end.

    Raises:
        Malformed: the text is not JSON with comments, or the path leads through a value that is
            not an object, or not a list.
    """
    if _skip(text, 0) == len(text):
        text = "{}\n"
    node, indent = _node(text, _skip(text, 0)), ""
    for number, key in enumerate(path):
        if node.value is None:
            rendered = _rendered(_nested(path[number:], value), indent, _step(text))
            return text[: node.start] + rendered + text[node.end :]
        wanted, name = (list, "a list") if isinstance(key, int) else (dict, "an object")
        if not isinstance(node.value, wanted):
            where = f"'{path[number - 1]}' is" if number else "it is"
            raise Malformed(f"{where} not {name} (line {_line(text, node.start)})")
        member, rest = node.member(key), path[number + 1 :]
        if member is None:
            return _inserted(text, node, key, _nested(rest, value))
        node, indent = member.node, _indent_of(text, member.start)
    rendered = _rendered(value, indent, _step(text))
    return text[: node.start] + rendered + text[node.end :]


def remove(text: str, path: Sequence[str | int]) -> str:
    """The text without the member at a path, and without what it leaves empty.

    Raises:
        Malformed: the text is not JSON with comments.
    """
    if (start := _skip(text, 0)) == len(text):
        return text
    node = _node(text, start)
    ways: list[tuple[_Node, _Member]] = []
    for key in path:
        if (member := node.member(key)) is None:
            return text
        ways.append((node, member))
        node = member.node
    while len(ways) > 1 and len(ways[-1][0].members) == 1:
        ways.pop()
    return _without(text, *ways[-1])


def _without(text: str, node: _Node, gone: _Member) -> str:
    number, end = node.members.index(gone), gone.node.end
    comma = _skip(text, end)
    if text[comma] == ",":
        start, line = text.rfind("\n", 0, gone.start) + 1, _REST.match(text, comma + 1)
        if line is not None and not text[start : gone.start].strip(" \t"):
            return text[:start] + text[line.end() :]
        return text[: gone.start] + text[comma + 1 :].lstrip(" ")
    if number:
        comma = _skip(text, node.members[number - 1].node.end)
        return _joined(text[:comma] + text[comma + 1 : gone.start], text[end:])
    opened = node.start + 1
    if text[opened : gone.start].strip():
        return _joined(text[: gone.start], text[end:])
    return text[:opened] + text[comma:]


def _joined(before: str, after: str) -> str:
    """Both parts of a text, so that a comment at the end of the first does not hide the second."""
    before = before.rstrip()
    hides = "//" in before.rpartition("\n")[2] and not _REST.match(after)
    return f"{before}\n{after}" if hides else before + after


def _inserted(text: str, node: _Node, key: str | int, value: Any) -> str:
    step, outer = _step(text), _indent_of(text, node.start)
    inner = _indent_of(text, node.members[0].start) if node.members else outer + step
    name = "" if isinstance(key, int) else f"{json.dumps(key)}: "
    member = name + _rendered(value, inner, step)
    if not node.members:
        before = text[: node.end - 1].rstrip()
        return f"{before}\n{inner}{member}\n{outer}{text[node.end - 1 :]}"
    last = node.members[-1].node.end
    comma = _skip(text, last)
    behind = comma + 1 if text[comma] == "," else last
    # A comment behind the last member stays there.
    remark = _REMARK.match(text, behind)
    end = remark.end() if remark else behind
    is_line = "\n" in text[node.start : last] or (remark is not None and "//" in remark[0])
    gap = f"\n{inner}" if is_line else " "
    return text[:last] + "," + text[behind:end] + gap + member + text[end:]


def _nested(keys: Sequence[str | int], value: Any) -> Any:
    for key in reversed(keys):
        value = [value] if isinstance(key, int) else {key: value}
    return value


def _rendered(value: Any, indent: str, step: str) -> str:
    inner = indent + step
    if isinstance(value, Mapping) and value:
        lines = [
            f"{json.dumps(key)}: {_rendered(item, inner, step)}" for key, item in value.items()
        ]
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        lines = [_rendered(item, inner, step) for item in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    opened, closed = "{}" if isinstance(value, Mapping) else "[]"
    return f"{opened}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{closed}"


def _step(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match else "  "


def _indent_of(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    return text[start : start + len(text[start:at]) - len(text[start:at].lstrip(" \t"))]


def _node(text: str, at: int) -> _Node:
    closing = {"{": "}", "[": "]"}.get(text[at : at + 1])
    if closing is None:
        match = _STRING.match(text, at) or _SINGLE.match(text, at) or _PLAIN.match(text, at)
        if match is None:
            raise _malformed(text, at)
        return _Node(at, match.end(), _decoded(text, at, match[0]))
    start, at = at, _skip(text, at + 1)
    members: list[_Member] = []
    while text[at : at + 1] != closing:
        begin = at
        key: str | int = len(members)
        if closing == "}":
            key, at = _key(text, at)
        node = _node(text, at)
        members.append(_Member(key, begin, node))
        at = _skip(text, node.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _malformed(text, at)
    values = [member.node.value for member in members]
    by_key = {member.key: member.node.value for member in members}
    return _Node(start, at + 1, values if closing == "]" else by_key, tuple(members))


def _key(text: str, at: int) -> tuple[str, int]:
    quoted = _STRING.match(text, at) or _SINGLE.match(text, at)
    match = quoted or _NAME.match(text, at)
    colon = _skip(text, match.end()) if match else at
    if match is None or text[colon : colon + 1] != ":":
        raise _malformed(text, colon)
    return str(_decoded(text, at, match[0]) if quoted else match[0]), _skip(text, colon + 1)


def _decoded(text: str, at: int, token: str) -> Any:
    if token[0] == "'":
        token = '"' + token[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    try:
        return json.loads(token)
    except ValueError as error:
        raise _malformed(text, at) from error


def _skip(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _malformed(text: str, at: int) -> Malformed:
    return Malformed(f"line {_line(text, at)} is not valid JSON")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
