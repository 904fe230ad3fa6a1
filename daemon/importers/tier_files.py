"""Reading `memory-tree.json` and `hot-memory-state.json`, in all shapes of the EvoClaw family.

Its skill wrote a flat tree, its Go service a nested one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ..errors import InvalidInput
from ..memory.checks import check_category, shown
from ..memory.hot.state import (
    CONTEXT_KEYS,
    DEFAULT_LESSON_CATEGORY,
    DEFAULT_TASK_STATUS,
    TOP_KEYS,
    UNSTATED_IMPORTANCE,
    Cleaning,
    HotState,
    Item,
)
from ..memory.records import Json
from ..memory.tree_nodes import ROOT, Node, one_line, title, with_parents
from .values import Fields, Parsed, is_no_time, moment, unexpected, unknown_keys

# Deeper paths are read unchanged; fitting the tree merges them.
_DEEPEST: Final = 100

_DESCRIPTIONS: Final = ("desc", "summary", "description")
_KNOWN: Final = frozenset(
    (*_DESCRIPTIONS, "path", "children", "warm_count", "cold_count", "last_access", "last_updated")
)

_Placed: TypeAlias = tuple[str, Json]


def parse_tree(document: Json, now: float) -> Parsed[dict[str, Node]]:
    """The categories of a tree file of any generation, by path, without the root and counts.

    A node may be an object or only its description. Paths that are equal once cleaned are one
    category; every node has its parents, and the limits may be exceeded. Never raises.
    """
    if not isinstance(document, dict):
        return Parsed({}, (unexpected("an object", document),))
    reader = _TreeReader(now)
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


def _nested(document: dict[str, Json], reader: _TreeReader) -> Iterator[_Placed]:
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


def _children(node: dict[str, Json]) -> list[_Placed]:
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


class _TreeReader:
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


# The hot state.
_CONTEXT: Final = "active_context"
# The possible places of each part, older names first; a later one overrides an earlier one.
_IDENTITY: Final = ("agent", "identity")
_PROFILE: Final = ("owner", "owner_profile")
_LESSONS: Final = ("lessons", "critical_lessons")
_PROJECTS: Final = (
    "projects",
    f"{_CONTEXT}.current_project",
    f"{_CONTEXT}.current_projects",
    f"{_CONTEXT}.projects",
)
_EVENTS: Final = ("events", f"{_CONTEXT}.recent_events", f"{_CONTEXT}.events")
_TASKS: Final = ("tasks", "pending_tasks", f"{_CONTEXT}.pending_tasks", f"{_CONTEXT}.tasks")
_READ: Final = frozenset((*_IDENTITY, *_PROFILE, *_LESSONS, *_PROJECTS, *_EVENTS, *_TASKS))
_Pairs: TypeAlias = Iterator[tuple[str, Json]]


def parse_hot(document: Json, now: float) -> Parsed[HotState]:
    """The normalised state in `document`, of any variant.

    Accepts any JSON value and never raises: what cannot be read is left out and reported. `now`, or
    better the time of the file, is the time of entries without one. Data that the daemon derives,
    `hot_memories` and `_schema_version`, is ignored; unknown keys are kept. A document written from
    a normalised state gives that state back.
    """
    cleaning = Cleaning()
    clean = cleaning.clean(document, "")
    reader = _HotReader(clean if isinstance(clean, dict) else {}, now, cleaning.faults)
    if not isinstance(clean, dict):
        reader.fault("document", "an object", clean)
    return Parsed(reader.state(), tuple(reader.faults))


class _HotReader:
    def __init__(self, document: Item, now: float, faults: list[str]) -> None:
        self.faults = faults
        self._now = now
        self._document = document
        self._context: Item = {}
        self._context = self._object(_CONTEXT)

    def state(self) -> HotState:
        return HotState(
            identity=self._merged(_IDENTITY),
            owner_profile=self._merged(_PROFILE),
            projects=self._projects(),
            events=self._latest(_EVENTS, self._timed, "text", "timestamp"),
            tasks=self._latest(_TASKS, self._task, "text"),
            lessons=self._latest(_LESSONS, self._lesson, "text"),
            extra={
                key: value
                for key, value in self._document.items()
                if key not in TOP_KEYS and key not in _READ
            },
            context={
                key: value
                for key, value in self._context.items()
                if key not in CONTEXT_KEYS and f"{_CONTEXT}.{key}" not in _READ
            },
        )

    def fault(self, path: str, expected: str, value: Json) -> None:
        self.faults.append(f"{path}: {unexpected(expected, value)}")

    def _at(self, path: str) -> Json:
        outer, _, inner = path.rpartition(".")
        return self._context.get(inner) if outer else self._document.get(path)

    def _object(self, path: str) -> Item:
        value = self._at(path)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.fault(path, "an object", value)
        return {}

    def _merged(self, paths: tuple[str, ...]) -> Item:
        return {key: value for path in paths for key, value in self._object(path).items()}

    def _elements(self, path: str) -> _Pairs:
        value = self._at(path)
        if path == f"{_CONTEXT}.current_project" and not isinstance(value, list):
            value = None if value is None or value == "" else [value]
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield f"{path}[{index}]", element
        elif value is not None:
            self.fault(path, "a list", value)

    def _latest(
        self, paths: tuple[str, ...], read: Callable[[str, Item], Item], *keys: str
    ) -> tuple[Item, ...]:
        entries: dict[tuple[Json, ...], Item] = {}
        for path in paths:
            for place, element in self._elements(path):
                if (fields := self._entry(place, element)) is not None:
                    entry = read(place, fields)
                    key = tuple(entry[name] for name in keys)
                    entries.pop(key, None)
                    entries[key] = entry
        return tuple(entries.values())

    def _projects(self) -> tuple[Item, ...]:
        projects: dict[str, Item] = {}
        for path in _PROJECTS:
            for place, element in self._elements(path):
                project = {"name": element} if isinstance(element, str) else element
                name = project.get("name") if isinstance(project, dict) else None
                if isinstance(name, str) and name.strip():
                    name = name.strip()
                    projects[name] = {**projects.get(name, {}), **project, "name": name}
                else:
                    self.fault(place, "a name or an object with one", element)
        return tuple(projects.values())

    def _entry(self, place: str, element: Json) -> Item | None:
        """An element as an object with a text that is not blank, or None and a fault."""
        fields = {"text": element} if isinstance(element, str) else element
        if not isinstance(fields, dict):
            self.fault(place, "text or an object", element)
            return None
        for key in ("text", "description", "title", "content"):
            text = fields.get(key)
            if isinstance(text, str) and text.strip():
                rest = {other: value for other, value in fields.items() if other != key}
                return {**rest, "text": text.strip()}
        self.fault(place, "a text that is not blank", element)
        return None

    def _lesson(self, place: str, item: Item) -> Item:
        fields = Fields(place, item, self.faults)
        return {
            **self._timed(place, item),
            "category": fields.text("category").strip() or DEFAULT_LESSON_CATEGORY,
            "importance": fields.importance(UNSTATED_IMPORTANCE),
        }

    def _task(self, place: str, item: Item) -> Item:
        status = Fields(place, item, self.faults).text("status").strip()
        return {**self._timed(place, item), "status": status or DEFAULT_TASK_STATUS}

    def _timed(self, place: str, fields: Item) -> Item:
        for key in ("timestamp", "learned_at", "date", "created_at"):
            value = fields.get(key)
            if is_no_time(value):
                continue
            if (time := moment(value)) is not None:
                rest = {other: inner for other, inner in fields.items() if other != key}
                return {**rest, "timestamp": time}
            if key == "timestamp":
                self.fault(f"{place}.timestamp", "a time", value)
        return {**fields, "timestamp": self._now}
