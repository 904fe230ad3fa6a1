"""Holding one layer against the typed tree, and naming everything that does not fit.

A layer may leave out any key. An entry of a map (a grant, an agent) is complete in itself.
A key that begins with an underscore is a comment, in a map too: an account or an agent of
such a name cannot be configured but, for an account, by its numeric id.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, inspect

from .faults import Fault, Pairs, dotted, either, expected, found
from .settings import EVERY_AGENT, ROLES, Grant, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .kinds import Json, KeyPath


def typed_tree() -> inspect.StructType:
    """The types and bounds of all settings; takes milliseconds, so make it once per load."""
    kind = inspect.type_info(Settings)
    assert isinstance(kind, inspect.StructType)
    return kind


def check(
    tree: inspect.StructType, document: Json, source: str
) -> tuple[dict[str, Json], tuple[Fault, ...]]:
    """What is valid in a layer, as nested dicts, and all its faults.

    Args:
        tree: what the layer is held against.
        document: the parsed layer, its objects as `Pairs`.
        source: the layer's name in the faults.
    """
    walk = _Walk(source)
    values = walk.section(tree, document, ())
    return values, tuple(walk.faults)


class _Walk:
    """One pass over one layer; collects the faults on its way."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.faults: list[Fault] = []

    def fault(self, path: KeyPath, text: str) -> None:
        self.faults.append(Fault(self.source, dotted(path), text))

    def value(self, kind: inspect.Type, value: Json, path: KeyPath) -> Json:
        """The value as the tree holds it, UNSET if it is at fault."""
        match kind:
            case inspect.StructType(cls=cls) if cls is Grant:
                return self.grant(kind, value, path)
            case inspect.StructType():
                return self.section(kind, value, path)
            case inspect.DictType():
                return self.entries(kind, value, path)
        admitted = admit(kind, value)
        if admitted is UNSET:
            self.fault(path, f"expected {expected(kind)}, got {found(value)}")
        return admitted

    def section(self, kind: inspect.StructType, value: Json, path: KeyPath) -> dict[str, Json]:
        """The valid keys of a struct; keys may be missing."""
        kinds = {field.name: field.type for field in kind.fields}
        values = {}
        for name, inner in self.pairs(value, path):
            if name not in kinds:
                self.fault((*path, name), _unknown(name, tuple(kinds), path))
                continue
            admitted = self.value(kinds[name], inner, (*path, name))
            if admitted is not UNSET:
                values[name] = admitted
        return values

    def entries(self, kind: inspect.DictType, value: Json, path: KeyPath) -> dict[str, Json]:
        """The valid entries of a map with free keys."""
        values = {}
        for name, inner in self.pairs(value, path):
            before = len(self.faults)
            if admit(kind.key_type, name) is UNSET:
                self.fault((*path, name), f"the key is not {expected(kind.key_type)}")
            admitted = self.value(kind.value_type, inner, (*path, name))
            self.require(kind.value_type, inner, (*path, name))
            if len(self.faults) == before:
                values[name] = admitted
        return values

    def grant(self, kind: inspect.StructType, value: Json, path: KeyPath) -> Json:
        """A grant from its short form, a role, or its long one."""
        if isinstance(value, Pairs):
            before = len(self.faults)
            fields = self.section(kind, value, path)
            whole = len(fields) == len(kind.fields) and len(self.faults) == before
            return Grant(**fields) if whole else UNSET
        if value in ROLES:
            return Grant(role=value, agents=(EVERY_AGENT,))
        words = ", ".join(f'"{role}"' for role in ROLES)
        self.fault(path, f'expected {words} or {{"role": …, "agents": […]}}, got {found(value)}')
        return UNSET

    def require(self, kind: inspect.Type, value: Json, path: KeyPath) -> None:
        """A fault for every key that an entry of a map lacks."""
        if not isinstance(kind, inspect.StructType) or not isinstance(value, Pairs):
            return
        given = {name for name, _ in value}
        for field in kind.fields:
            if field.name not in given:
                self.fault((*path, field.name), f"missing; expected {expected(field.type)}")

    def pairs(self, value: Json, path: KeyPath) -> Iterator[tuple[str, Json]]:
        """The pairs of an object but for comments and doubled keys."""
        if not isinstance(value, Pairs):
            self.fault(path, f"expected an object, got {found(value)}")
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


def admit(kind: inspect.Type, value: Json) -> Json:
    """`value` if it is of the type and within its bounds, else UNSET.

    A number with no fraction counts as an integer; true and false are no numbers.
    """
    match kind:
        case inspect.Metadata(type=inner):
            admitted = admit(inner, value)
        case inspect.UnionType(types=types):
            results = (admit(one, value) for one in types)
            admitted = next((result for result in results if result is not UNSET), UNSET)
        case inspect.IntType() | inspect.FloatType():
            admitted = _number(kind, value)
        case inspect.VarTupleType():
            admitted = _items(kind, value)
        case _:
            admitted = value if _fits(kind, value) else UNSET
    return admitted


def _fits(kind: inspect.Type, value: Json) -> bool:
    match kind:
        case inspect.StrType(pattern=pattern):
            return isinstance(value, str) and re.search(pattern or "", value) is not None
        case inspect.LiteralType(values=values):
            return isinstance(value, str) and value in values
        case inspect.BoolType():
            return isinstance(value, bool)
        case _:
            return isinstance(kind, inspect.NoneType) and value is None


def _number(kind: inspect.IntType | inspect.FloatType, value: Json) -> float | msgspec.UnsetType:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return UNSET
    assert kind.ge is not None
    assert kind.le is not None
    if not kind.ge <= value <= kind.le:
        return UNSET
    if isinstance(kind, inspect.FloatType):
        return float(value)
    return int(value) if value == int(value) else UNSET


def _items(kind: inspect.VarTupleType, value: Json) -> Json:
    if not isinstance(value, list) or len(value) < (kind.min_length or 0):
        return UNSET
    items = tuple(admit(kind.item_type, item) for item in value)
    return UNSET if UNSET in items else items


def _unknown(name: str, siblings: tuple[str, ...], path: KeyPath) -> str:
    """The message for an unknown key, with the nearest one, or its home in another section."""
    near = [(*path, match) for match in difflib.get_close_matches(name, siblings, n=1)]
    near += list(_homes(name))
    if near:
        return f"unknown key; did you mean {either([dotted(key) for key in near[:3]])}?"
    place = f"{dotted(path)} has" if path else "the top level has"
    return f"unknown key; {place} {', '.join(siblings)}"


def _homes(name: str) -> Iterator[KeyPath]:
    """The paths of all keys of this name in the sections."""
    for section in msgspec.structs.fields(Settings):
        if name in getattr(section.type, "__struct_fields__", ()):
            yield section.name, name
