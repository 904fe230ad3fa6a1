"""Reading `hot-memory-state.json` in all shapes that the EvoClaw family has written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

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
from .values import Fields, Parsed, moment, says_nothing, unexpected

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


def parse(document: Json, now: float) -> Parsed[HotState]:
    """The normalised state in `document`, of any variant.

    Accepts any JSON value and never raises: what cannot be read is left out and reported. `now`, or
    better the time of the file, is the time of entries without one. Data that the daemon derives,
    `hot_memories` and `_schema_version`, is ignored; unknown keys are kept. A document written from
    a normalised state gives that state back.
    """
    cleaning = Cleaning()
    clean = cleaning.clean(document, "")
    reader = _Reader(clean if isinstance(clean, dict) else {}, now, cleaning.faults)
    if not isinstance(clean, dict):
        reader.fault("document", "an object", clean)
    return Parsed(reader.state(), tuple(reader.faults))


class _Reader:
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
            if says_nothing(value):
                continue
            if (time := moment(value)) is not None:
                rest = {other: inner for other, inner in fields.items() if other != key}
                return {**rest, "timestamp": time}
            if key == "timestamp":
                self.fault(f"{place}.timestamp", "a time", value)
        return {**fields, "timestamp": self._now}
