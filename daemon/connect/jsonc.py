"""JSON with comments: one member set or removed, every other byte kept.

Configuration files of editors have comments and trailing commas, and their owners' order and
indentation. So a change is an edit of the text at one place, and never a new rendering.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

_GAP: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PLAIN: Final = re.compile(r"[^\s,\]}/\"]+")
_REST: Final = re.compile(r"[ \t]*\n")
_REMARK: Final = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


class Malformed(ValueError):
    """The text is not JSON; the message names the line."""


class _Member(msgspec.Struct, frozen=True):
    key: str
    start: int
    value: int
    end: int


def load(text: str) -> Any:
    """The value of a text; an empty one is an empty object.

    Raises:
        Malformed: it is not JSON with comments.
    """
    start = _skip(text, 0)
    if start == len(text):
        return {}
    end = _value_end(text, start)
    if _skip(text, end) != len(text):
        raise _malformed(text, _skip(text, end))
    return _decoded(text, start)


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at a path of keys; missing objects on the way are created.

    Raises:
        Malformed: the text is not JSON with comments, or the path leads through a value that is
            not an object.
    """
    if _skip(text, 0) == len(text):
        text = "{}\n"
    at = _skip(text, 0)
    for number, key in enumerate(path):
        members = [*_members(text, at)]
        found = next((one for one in members if one.key == key), None)
        rest = path[number + 1 :]
        if found is None:
            return _inserted(text, at, members, key, _nested(rest, value))
        if not rest:
            rendered = _rendered(value, _indent_of(text, found.start), _step(text))
            return text[: found.value] + rendered + text[found.end :]
        at = found.value
    return text


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the member at a path, and without the objects that it leaves empty.

    Raises:
        Malformed: the text is not JSON with comments.
    """
    at = _skip(text, 0)
    ways: list[tuple[list[_Member], _Member]] = []
    for key in path:
        if at >= len(text) or text[at] != "{":
            return text
        members = [*_members(text, at)]
        found = next((one for one in members if one.key == key), None)
        if found is None:
            return text
        ways.append((members, found))
        at = found.value
    while len(ways) > 1 and len(ways[-1][0]) == 1:
        ways.pop()
    return _without(text, *ways[-1])


def _without(text: str, members: list[_Member], gone: _Member) -> str:
    number = members.index(gone)
    comma = _skip(text, gone.end)
    if text[comma] == ",":
        start, line = text.rfind("\n", 0, gone.start) + 1, _REST.match(text, comma + 1)
        if line is not None and not text[start : gone.start].strip(" \t"):
            return text[:start] + text[line.end() :]
        return text[: gone.start] + text[comma + 1 :].lstrip(" ")
    if number:
        comma = _skip(text, members[number - 1].end)
        return text[:comma] + text[comma + 1 : gone.start].rstrip() + text[gone.end :]
    opened = text.rindex("{", 0, gone.start)
    if text[opened + 1 : gone.start].strip():
        return text[: gone.start].rstrip() + text[gone.end :]
    return text[: opened + 1] + text[comma:]


def _inserted(text: str, at: int, members: list[_Member], key: str, value: Any) -> str:
    step = _step(text)
    outer = _indent_of(text, at)
    if members:
        inner = _indent_of(text, members[0].start)
        last = members[-1].end
        comma = _skip(text, last)
        behind = comma + 1 if text[comma] == "," else last
        # A comment behind the last member stays there.
        remark = _REMARK.match(text, behind)
        end = remark.end() if remark else behind
        is_line = "\n" in text[at:last] or (remark is not None and "//" in remark[0])
        gap = f"\n{inner}" if is_line else " "
        member = f"{json.dumps(key)}: {_rendered(value, inner, step)}"
        return text[:last] + "," + text[behind:end] + gap + member + text[end:]
    inner = outer + step
    member = f"{json.dumps(key)}: {_rendered(value, inner, step)}"
    closed = text.index("}", _skip(text, at + 1))
    before = text[:closed].rstrip()
    return f"{before}\n{inner}{member}\n{outer}{text[closed:]}"


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _rendered(value: Any, indent: str, step: str) -> str:
    inner = indent + step
    if isinstance(value, Mapping) and value:
        lines = [f"{json.dumps(key)}: {_rendered(one, inner, step)}" for key, one in value.items()]
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        lines = [_rendered(one, inner, step) for one in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    opened, closed = "{}" if isinstance(value, Mapping) else "[]"
    return f"{opened}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{closed}"


def _step(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _indent_of(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    return text[start : start + len(text[start:at]) - len(text[start:at].lstrip(" \t"))]


def _members(text: str, at: int) -> Iterator[_Member]:
    if text[at : at + 1] != "{":
        raise _malformed(text, at)
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        if key is None:
            raise _malformed(text, at)
        colon = _skip(text, key.end())
        if text[colon : colon + 1] != ":":
            raise _malformed(text, colon)
        value = _skip(text, colon + 1)
        end = _value_end(text, value)
        yield _Member(json.loads(key[0]), at, value, end)
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "}":
            raise _malformed(text, at)


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        end = _value_end(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise _malformed(text, at)


def _value_end(text: str, at: int) -> int:
    first = text[at : at + 1]
    if first == "{":
        last = at + 1
        for member in _members(text, at):
            last = member.end
        return text.index("}", _after(text, last)) + 1
    if first == "[":
        last = at + 1
        for _, last in _items(text, at):  # noqa: B007 - the end of the last one
            pass
        return text.index("]", _after(text, last)) + 1
    found = _STRING.match(text, at) if first == '"' else _PLAIN.match(text, at)
    if found is None:
        raise _malformed(text, at)
    return found.end()


def _after(text: str, at: int) -> int:
    """Behind a value, its comma and the comments that follow."""
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at : at + 1] == "," else at


def _decoded(text: str, at: int) -> Any:
    first = text[at : at + 1]
    if first == "{":
        return {one.key: _decoded(text, one.value) for one in _members(text, at)}
    if first == "[":
        return [_decoded(text, start) for start, _ in _items(text, at)]
    try:
        return json.loads(text[at : _value_end(text, at)])
    except ValueError as error:
        raise _malformed(text, at) from error


def _skip(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _malformed(text: str, at: int) -> Malformed:
    return Malformed(f"line {text.count(chr(10), 0, at) + 1} is not valid JSON")
