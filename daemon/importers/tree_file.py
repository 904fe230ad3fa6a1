"""Reading `memory-tree.json`, as EvoClaw's skill (flat) or its Go service (nested) wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from ..errors import InvalidInput
from ..memory.checks import check_category, shown
from ..memory.records import Json
from ..memory.tree_nodes import ROOT, Node, one_line, title, with_parents
from .values import count, kind, moment, says_nothing, unknown_keys

# Deeper paths are read as they are; fitting the tree merges them.
_DEEPEST: Final = 100
# A billion: the counts are counted anew, and must only not fill the file.
_LARGEST_COUNT: Final = 1_000_000_000

_DESCRIPTIONS: Final = ("desc", "summary", "description")
_KNOWN: Final = frozenset(
    (*_DESCRIPTIONS, "path", "children", "warm_count", "cold_count", "last_access", "last_updated")
)

_Found: TypeAlias = tuple[str, Json]


class ParsedTree(msgspec.Struct, frozen=True):
    """What a tree file holds.

    Attributes:
        tree: path -> node, without the root; no node lacks a parent. It may exceed the limits.
        faults: what could not be read, a line each.
        left_out: the keys that have no meaning here, a line each.
    """

    tree: dict[str, Node]
    faults: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def parse(document: Json, now: float) -> ParsedTree:
    """The categories of a tree file of any generation.

    A node may be an object or just its description. Paths that are the same once cleaned are
    one category, with their counts added. Never raises: what cannot be read is in the faults.
    """
    if not isinstance(document, dict):
        return ParsedTree({}, (f"expected an object, got {kind(document)}",))
    reader = _Reader(now)
    for path, value in _nested(document, reader) if _is_nested(document) else _flat(document):
        reader.read(path, value)
    return ParsedTree(
        with_parents(reader.nodes), tuple(reader.faults), unknown_keys(reader.unknown)
    )


def _is_nested(document: dict[str, Json]) -> bool:
    root = document.get(ROOT)
    if not isinstance(root, dict):
        return False
    below = _children(root)
    return any(isinstance(child, dict) for _, child in below) or (
        not below and ("summary" in root or "node_count" in document)
    )


def _flat(document: dict[str, Json]) -> Iterator[_Found]:
    for path, value in document.items():
        if path != ROOT and not str(path).startswith("_"):
            yield str(path), value


def _nested(document: dict[str, Json], reader: _Reader) -> Iterator[_Found]:
    """Every node below the root, parents first, with its whole path."""
    waiting: list[tuple[str, str, Json]] = [
        ("", name, child) for name, child in _children(document[ROOT])
    ]
    while waiting:
        above, name, value = waiting.pop()
        given = value.get("path") if isinstance(value, dict) else None
        path = reader.clean(_joined(above, given if isinstance(given, str) and given else name))
        if path is None:
            continue
        yield path, value
        if isinstance(value, dict):
            waiting += [(path, name, child) for name, child in _children(value)]


def _children(node: dict[str, Json]) -> list[_Found]:
    below = node.get("children")
    if isinstance(below, dict):
        return [(str(name), child) for name, child in below.items()]
    if isinstance(below, list):
        return [(child if isinstance(child, str) else "", child) for child in below]
    return []


def _joined(above: str, path: str) -> str:
    """The whole path: `path` itself, unless it is only the name below `above`."""
    path = path.strip("/")
    if not above or path.startswith(f"{above}/"):
        return path
    return f"{above}/{path}"


class _Reader:
    """Collects nodes and faults."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.nodes: dict[str, Node] = {}
        self.faults: list[str] = []
        self.unknown: Counter[str] = Counter()

    def clean(self, path: str) -> str | None:
        try:
            clean = check_category(path, _DEEPEST, field="path")
        except InvalidInput as error:
            self.faults.append(f"{shown(path)}: {error.message}")
            return None
        return None if clean == ROOT else clean

    def read(self, path: str, value: Json) -> None:
        clean = self.clean(path)
        if clean is None:
            return
        if isinstance(value, str):
            value = {"desc": value}
        if not isinstance(value, dict):
            self.faults.append(f"{shown(path)}: expected an object or text, got {kind(value)}")
            return
        self.unknown.update(value.keys() - _KNOWN)
        node = Node(
            desc=self.desc(clean, value),
            warm_count=self.counted(clean, value, "warm_count"),
            cold_count=self.counted(clean, value, "cold_count"),
            last_access=self.last_access(clean, value),
        )
        before = self.nodes.get(clean)
        self.nodes[clean] = node if before is None else _together(before, node)

    def desc(self, path: str, value: dict[str, Json]) -> str:
        for name in _DESCRIPTIONS:
            given = value.get(name)
            if isinstance(given, str) and (described := one_line(given)):
                return described
            if given is not None and not isinstance(given, str):
                self.faults.append(f"{shown(path)}.{name}: expected text, got {kind(given)}")
        return title(path)

    def counted(self, path: str, value: dict[str, Json], name: str) -> int:
        given = value.get(name)
        found = 0 if given is None else count(given, _LARGEST_COUNT)
        if found is None:
            self.faults.append(f"{shown(path)}.{name}: expected a count, got {shown(given)}")
        return found or 0

    def last_access(self, path: str, value: dict[str, Json]) -> float:
        given = _first(value.get(name) for name in ("last_access", "last_updated"))
        if says_nothing(given):
            return 0.0
        found = moment(given)
        if found is None:
            self.faults.append(f"{shown(path)}.last_access: {shown(given)} is no time")
            return 0.0
        return min(found, self.now)


def _first(values: Iterable[Json]) -> Json:
    return next((value for value in values if value is not None), None)


def _together(one: Node, other: Node) -> Node:
    return Node(
        desc=one.desc,
        warm_count=min(one.warm_count + other.warm_count, _LARGEST_COUNT),
        cold_count=min(one.cold_count + other.cold_count, _LARGEST_COUNT),
        last_access=max(one.last_access, other.last_access),
    )
