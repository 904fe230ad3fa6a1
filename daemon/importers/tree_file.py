"""Reading `memory-tree.json`, as EvoClaw's skill (flat) or its Go service (nested) wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeAlias

from ..errors import InvalidInput
from ..memory.checks import check_category, shown
from ..memory.records import Json
from ..memory.tree_nodes import ROOT, Node, one_line, title, with_parents
from .values import Fields, Parsed, unexpected, unknown_keys

# Deeper paths are read unchanged; fitting the tree merges them.
_DEEPEST: Final = 100

_DESCRIPTIONS: Final = ("desc", "summary", "description")
_KNOWN: Final = frozenset(
    (*_DESCRIPTIONS, "path", "children", "warm_count", "cold_count", "last_access", "last_updated")
)

_Found: TypeAlias = tuple[str, Json]


def parse(document: Json, now: float) -> Parsed[dict[str, Node]]:
    """The categories of a tree file of any generation, by path, without the root and counts.

    A node may be an object or only its description. Paths that are equal once cleaned are one
    category; every node has its parents, and the limits may be exceeded. Never raises.
    """
    if not isinstance(document, dict):
        return Parsed({}, (unexpected("an object", document),))
    reader = _Reader(now)
    for path, value in _nested(document, reader) if _is_nested(document) else document.items():
        if path != ROOT and not path.startswith("_"):
            reader.read(path, value)
    faults = (*reader.faults, *unknown_keys(reader.unknown))
    return Parsed(with_parents(reader.nodes), faults)


def _is_nested(document: dict[str, Json]) -> bool:
    root = document.get(ROOT)
    if not isinstance(root, dict):
        return False
    below = _children(root)
    return any(isinstance(child, dict) for _, child in below) or (
        not below and ("summary" in root or "node_count" in document)
    )


def _nested(document: dict[str, Json], reader: _Reader) -> Iterator[_Found]:
    waiting: list[tuple[str, str, Json]] = [
        ("", name, child) for name, child in _children(document[ROOT])
    ]
    while waiting:
        above, name, value = waiting.pop()
        relative = value.get("path") if isinstance(value, dict) else None
        path = reader.clean(
            _joined(above, relative if isinstance(relative, str) and relative else name)
        )
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
            self.faults.append(f"{shown(path)}: {unexpected('an object or text', value)}")
            return
        self.unknown.update(value.keys() - _KNOWN)
        fields = Fields(shown(clean), value, self.faults)
        described = (one_line(fields.text(name)) for name in _DESCRIPTIONS)
        node = Node(
            desc=next(filter(None, described), title(clean)),
            last_access=min(self.now, fields.time("last_access", "last_updated") or 0.0),
        )
        if (before := self.nodes.get(clean)) is not None:
            node = Node(before.desc, last_access=max(before.last_access, node.last_access))
        self.nodes[clean] = node
