"""Checking one layer against the typed tree: every fault is collected, with what is expected.

A layer may leave out any key. An entry of a map (a grant, an agent) is complete in itself. A key
that begins with an underscore is a comment, in a map too: an account or an agent of such a name
cannot be configured, except an account by its numeric id.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from typing import TYPE_CHECKING, Any, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, inspect

from .settings import EVERY_AGENT, ROLES, Grant, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .settings import Json, KeyPath

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 80
# Where a URL may contain a token or a password: before its host, and after its path.
_SECRET = re.compile(r"(?<=://)[^/?#]*(?=@)|(?<=[?#]).+", re.DOTALL)


class Fault(msgspec.Struct, frozen=True):
    """One error, of a key or of a file as a whole; its `str` is a line for people."""

    source: str
    key: str
    text: str

    def __str__(self) -> str:
        """`FILE: key.path: what is wrong`, without line breaks or escape sequences."""
        return ": ".join(visible(part) for part in (self.source, self.key, self.text) if part)


class Pairs(tuple[tuple[str, "Json"], ...]):
    """A JSON object as it was written: its pairs in order, duplicate keys included."""

    __slots__ = ()


def visible(text: str) -> str:
    """`text` with everything that could control a terminal or break the line escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def dotted(path: KeyPath) -> str:
    """The path as `--set` takes it; a name with a dot or a blank in it is quoted."""
    return ".".join(
        name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in path
    )


def shown(value: Json) -> str:
    """A value as a message shows it: short, without secrets, with its type if not obvious."""
    match value:
        case str():
            return f"{_cut(json.dumps(_harmless(value), ensure_ascii=False))} (text)"
        case Pairs():
            return "an object"
        case list() if any(isinstance(item, list | Pairs) for item in value):
            return "a list"
        case list():
            items = [_harmless(item) if isinstance(item, str) else item for item in value]
            return _cut(json.dumps(items, ensure_ascii=False))
        case _:
            return _cut(json.dumps(value, ensure_ascii=False))


def expected(kind: inspect.Type) -> str:
    """The allowed values of this type, in words."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            text = str(schema["description"]) if schema else expected(inner)
        case inspect.UnionType(types=types):
            text = either([expected(item) for item in types])
        case inspect.LiteralType(values=values):
            text = either([f'"{value}"' for value in values])
        case inspect.IntType(ge=low, le=high):
            text = f"an integer {low} to {high}"
        case inspect.FloatType(ge=low, le=high):
            text = f"a number {low} to {high}"
        case inspect.BoolType():
            text = "true or false"
        case inspect.NoneType():
            text = "null"
        case _:
            text = "an object"
    return text


def either(words: list[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _harmless(text: str) -> str:
    return _SECRET.sub("…", text) if "://" in text else text


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def check(document: Json, source: str) -> tuple[dict[str, Json], list[Fault]]:
    """The valid values of a layer as nested dicts, and all its faults, which name the `source`."""
    checker = _Checker(source)
    return checker.section(Settings, document, ()), checker.faults


def type_at(path: KeyPath) -> Any:
    """The type of the value at a key; None if there is no such key."""
    kind: Any = Settings
    for name in path:
        if get_origin(kind) is dict:
            key, kind = get_args(kind)
            if convert(name, key) is UNSET:
                return None
        else:
            kind = _fields(kind).get(name) if is_section(kind) else None
        if kind is None:
            return None
    return kind


def unknown(name: str, path: KeyPath) -> str:
    """The message for an unknown key at `path`: the nearest one, or its place elsewhere."""
    kind = type_at(path)
    siblings = tuple(_fields(kind)) if is_section(kind) else ()
    near = [(*path, match) for match in difflib.get_close_matches(name, siblings, n=1)]
    sections = [(default, kind) for default, kind in _fields(Settings).items() if is_section(kind)]
    near += [(section, name) for section, kind in sections if name in _fields(kind)]
    if near:
        return f"unknown key; did you mean {either([dotted(key) for key in near[:3]])}?"
    place = f"{dotted(path)} has" if path else "the top level has"
    return f"unknown key; {place} {', '.join(siblings) or 'no keys'}"


def convert(value: Json, kind: Any) -> Json:
    """`value` as a `kind` within its bounds, else UNSET. 2000.0 counts as an integer."""
    if isinstance(value, float) and value.is_integer():
        whole = convert(int(value), kind)
        if whole is not UNSET:
            return whole
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return UNSET


def allowed(kind: Any) -> str:
    """The allowed values of a type, in words."""
    if kind is Grant:
        roles = ", ".join(f'"{role}"' for role in ROLES)
        return f'{roles} or {{"role": …, "agents": […]}}'
    return expected(inspect.type_info(kind))


def is_section(kind: Any) -> bool:
    """Whether a type is a struct whose keys are keys of the configuration; a grant is a value."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind is not Grant


class _Checker:
    def __init__(self, source: str) -> None:
        self.source = source
        self.faults: list[Fault] = []

    def fault(self, path: KeyPath, text: str) -> None:
        self.faults.append(Fault(self.source, dotted(path), text))

    def value(self, kind: Any, value: Json, path: KeyPath, *, whole: bool = False) -> Json:
        """The value with its type, UNSET if it has a fault."""
        if is_section(kind):
            return self.section(kind, value, path, whole=whole)
        if get_origin(kind) is dict:
            return self.entries(kind, value, path)
        if kind is Grant:
            return self.grant(value, path)
        converted = convert(value, kind)
        if converted is UNSET:
            self.fault(path, f"expected {allowed(kind)}, got {shown(value)}")
        return converted

    def section(
        self, struct: Any, value: Json, path: KeyPath, *, whole: bool = False
    ) -> dict[str, Json]:
        """The valid keys of a struct; unless it has to be `whole`, keys may be missing."""
        fields = _fields(struct)
        values: dict[str, Json] = {}
        if whole and isinstance(value, Pairs):
            present = {name for name, _ in value}
            values |= {
                name: default for name, default in _defaults(struct).items() if name not in present
            }
            for name in (name for name in fields if name not in present | values.keys()):
                self.fault((*path, name), f"missing; expected {allowed(fields[name])}")
        for name, inner in self.pairs(value, path):
            if name not in fields:
                self.fault((*path, name), unknown(name, path))
                continue
            converted = self.value(fields[name], inner, (*path, name))
            if converted is not UNSET:
                values[name] = converted
        return values

    def entries(self, kind: Any, value: Json, path: KeyPath) -> dict[str, Json]:
        key, inner_kind = get_args(kind)
        values = {}
        for name, inner in self.pairs(value, path):
            before = len(self.faults)
            if convert(name, key) is UNSET:
                self.fault((*path, name), f"the key is not {allowed(key)}")
            converted = self.value(inner_kind, inner, (*path, name), whole=True)
            if len(self.faults) == before:
                values[name] = converted
        return values

    def grant(self, value: Json, path: KeyPath) -> Json:
        """A grant from its short form, a role, or its long one."""
        if isinstance(value, Pairs):
            fields = self.section(Grant, value, path, whole=True)
            return Grant(**fields) if len(fields) == len(_fields(Grant)) else UNSET
        if value in ROLES:
            return Grant(role=value, agents=(EVERY_AGENT,))
        self.fault(path, f"expected {allowed(Grant)}, got {shown(value)}")
        return UNSET

    def pairs(self, value: Json, path: KeyPath) -> Iterator[tuple[str, Json]]:
        """The pairs of an object without comments and duplicate keys."""
        if not isinstance(value, Pairs):
            self.fault(path, f"expected an object, got {shown(value)}")
            return
        seen = set()
        for name, inner in value:
            if name.startswith("_"):
                continue
            if name in seen:
                self.fault((*path, name), "the key is there more than once")
                continue
            seen.add(name)
            yield name, inner


def _defaults(struct: Any) -> dict[str, Any]:
    fields = msgspec.structs.fields(struct)
    defaults = {field.name: field.default for field in fields if field.default is not NODEFAULT}
    made = (field for field in fields if field.default_factory is not NODEFAULT)
    return defaults | {field.name: field.default_factory() for field in made}


@functools.cache
def _fields(struct: Any) -> dict[str, Any]:
    """The types of a struct's keys; none for any other type."""
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        return {}
    return {field.name: field.type for field in msgspec.structs.fields(struct)}
