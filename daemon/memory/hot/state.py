"""The hot state, which is always in the agent's context: its entries, values and document.

The document has the shape of EvoClaw's `hot-memory-state.json`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import Meta

from ..records import Json, Memory

T = TypeVar("T")

Section: TypeAlias = Literal[
    "identity", "owner_profile", "project", "event", "task", "lesson", "extra", "context"
]
Item: TypeAlias = dict[str, Json]
Quota: TypeAlias = Annotated[int, Meta(ge=0, le=10_000)]

# The sections that are objects, each the field of a state; and those that are lists, with their
# field and the key that names an entry.
OBJECTS: Final[tuple[Section, ...]] = ("identity", "owner_profile", "extra", "context")
LISTS: Final[dict[Section, tuple[str, str]]] = {
    "project": ("projects", "name"),
    "event": ("events", "text"),
    "task": ("tasks", "text"),
    "lesson": ("lessons", "text"),
}
DEFAULT_LESSON_CATEGORY: Final = "general"
DEFAULT_TASK_STATUS: Final = "pending"
# The importance of a lesson without one, as in EvoClaw.
UNSTATED_IMPORTANCE: Final = 0.5

FINISHED: Final = frozenset(
    {
        "abandoned", "archived", "canceled", "cancelled", "closed", "complete", "completed",
        "done", "dropped", "finished", "obsolete", "rejected", "resolved", "shipped",
    }
)  # fmt: skip


SCHEMA_VERSION: Final = "2.0"
HOT_MEMORIES: Final = "hot_memories"
TOP_KEYS: Final = frozenset(
    {
        "identity", "owner_profile", "active_context", "critical_lessons",
        "_schema_version", HOT_MEMORIES,
    }
)  # fmt: skip
CONTEXT_KEYS: Final = frozenset({"projects", "events", "tasks"})
# The known keys beside the unknown values of these sections.
RESERVED: Final[dict[Section, frozenset[str]]] = {"extra": TOP_KEYS, "context": CONTEXT_KEYS}
MAX_DEPTH: Final = 32
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


class HotLimits(msgspec.Struct, frozen=True):
    """The limits of the hot state; the configuration's section `hot`.

    `max_bytes` counts its compact JSON in UTF-8.

    An empty document takes about 130 bytes, so a lower `max_bytes` cannot be kept.
    """

    max_bytes: Annotated[int, Meta(ge=512, le=1_048_576)] = 5_120
    max_lessons: Quota = 20
    max_events: Quota = 10
    max_tasks: Quota = 10


class HotState(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's hot state. Immutable: every function returns a new one.

    Lists are ordered from the oldest entry to the newest. `update` returns a normalised state:
    every lesson, event and task has a non-blank `text` and a `timestamp` in epoch seconds, every
    project a `name`, and the texts of lessons, texts of tasks and names of projects are unique.
    """

    identity: Item = {}
    owner_profile: Item = {}
    projects: tuple[Item, ...] = ()
    events: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    lessons: tuple[Item, ...] = ()
    # Unknown top-level keys of the document, kept unchanged; known keys are ignored.
    extra: Item = {}
    context: Item = {}  # the same for keys of `active_context`


def is_finished(item: Mapping[str, Json]) -> bool:
    """Whether the status of a task or project says that it is finished."""
    status = item.get("status")
    return isinstance(status, str) and status.strip().casefold() in FINISHED


def importance_of(lesson: Mapping[str, Json]) -> float:
    """A lesson's importance, 0 to 1; the default if it has no valid one."""
    value = number(lesson.get("importance"))
    return UNSTATED_IMPORTANCE if value is None else min(1.0, max(0.0, value))


def number(value: Json) -> float | None:
    """`value` as a float if it is a finite JSON number, else None (also for a boolean)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if abs(result) < float("inf") else None


def document(state: HotState, promoted: Sequence[Memory], limits: HotLimits) -> Item:
    """The document of `state`, with as many promoted memories as fit.

    Lessons are in EvoClaw's order, most important first, among equals oldest first. Promoted
    memories are last, in the given order, up to the first that does not fit `limits.max_bytes`.
    The state itself is written in full, so `fit` it first.
    """
    whole = _state_document(state)
    memories = _promote(promoted, limits.max_bytes - document_size(whole))
    return {**whole, HOT_MEMORIES: memories} if memories else whole


def document_size(value: Json) -> int:
    """The bytes of `value` as compact JSON in UTF-8, the measure of all limits."""
    return len(msgspec.json.encode(value))


def _state_document(state: HotState) -> Item:
    return {
        "identity": state.identity,
        "owner_profile": state.owner_profile,
        "active_context": {
            "projects": list(state.projects),
            "events": list(state.events),
            "tasks": list(state.tasks),
            **{key: value for key, value in state.context.items() if key not in CONTEXT_KEYS},
        },
        "critical_lessons": sorted(state.lessons, key=importance_of, reverse=True),
        **{key: value for key, value in state.extra.items() if key not in TOP_KEYS},
        "_schema_version": SCHEMA_VERSION,
    }


def _promote(promoted: Sequence[Memory], room: int) -> list[Item]:
    chosen: list[Item] = []
    # Each entry counts a comma; that of the first entry is the one before the key.
    room -= len(f'"{HOT_MEMORIES}":[]')
    for memory in promoted:
        entry = {
            "id": memory.id,
            "text": memory.text,
            "category": memory.category,
            "importance": memory.importance,
        }
        room -= document_size(entry) + 1
        if room < 0:
            break
        chosen.append(entry)
    return chosen


class Cleaning:
    """Makes values storable, and collects the changes that this needs."""

    def __init__(self) -> None:
        self.faults: list[str] = []  # one line for each change, `path: fault`

    def clean(self, value: Json, path: str, depth: int = 0) -> Json:
        """`value`, with anything that JSON in UTF-8 cannot hold replaced or removed."""
        if depth > MAX_DEPTH:
            return self._fault(path, f"nested deeper than {MAX_DEPTH} levels", None)
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, dict):
            return {
                self._text(str(key), path): self.clean(
                    inner, f"{path}.{key}" if path else str(key), depth + 1
                )
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [
                self.clean(inner, f"{path}[{index}]", depth + 1)
                for index, inner in enumerate(value)
            ]
        return self._scalar(value, path)

    def _scalar(self, value: Json, path: str) -> Json:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            small = value.bit_length() <= 64
            return value if small else self._fault(path, "a number beyond 64 bits", None)
        if isinstance(value, float):
            finite = math.isfinite(value)
            return value if finite else self._fault(path, f"{value} is not a JSON number", None)
        return self._fault(path, f"{type(value).__name__} is not a JSON type", None)

    def _text(self, value: str, path: str) -> str:
        if "\0" in value:
            value = self._fault(path, "a NUL character", value.replace("\0", _REPLACEMENT))
        if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
            return value
        repaired = "".join(
            _REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in value
        )
        return self._fault(path, "lone surrogate", repaired)

    def _fault(self, path: str, fault: str, instead: T) -> T:
        self.faults.append(f"{path or 'document'}: {fault}")
        return instead


EntryKey: TypeAlias = tuple[str, str]

_Rank: TypeAlias = tuple[int, float, str]

_SECTIONS: Final = frozenset(get_args(Section))
_FIRST: Final[_Rank] = (-1, float("inf"), "")


class Entry(msgspec.Struct, frozen=True):
    """The value of an entry, and its position in its section."""

    value: Json
    position: int


class Changes(msgspec.Struct, frozen=True):
    """The entries to write and to delete to turn one set of entries into another."""

    changed: dict[EntryKey, Entry]
    removed: tuple[EntryKey, ...]


def entries(state: HotState) -> dict[EntryKey, Entry]:
    """Every entry of `state`, under a key that is the same on all devices.

    The key is that of an identity, profile or unknown value, the name of a project, a hash of
    the text of a lesson or task, or a hash of text and time of an event. Entries with an equal
    key are numbered. `from_entries` restores exactly the same state.
    """
    entries: dict[EntryKey, Entry] = {}
    for section in OBJECTS:
        for position, (key, value) in enumerate(getattr(state, section).items()):
            entries[section, key] = Entry(value, position)
    for section, (field, _) in LISTS.items():
        for position, (key, item) in enumerate(_keyed(section, getattr(state, field))):
            entries[section, key] = Entry(item, position)
    return entries


def from_entries(entries: Mapping[tuple[str, str], Entry]) -> HotState:
    """The state that consists of these entries.

    Entries at equal positions, which come from two devices, are ordered by time, then by key:
    the same on each device. Sections of a later version are ignored, and so are values of a list
    section that are not objects.
    """
    sections: dict[str, list[tuple[str, Json]]] = {section: [] for section in _SECTIONS}
    for (section, key), entry in sorted(entries.items(), key=_rank):
        if section in sections:
            sections[section].append((key, entry.value))
    fields: dict[str, Json] = {section: dict(sections[section]) for section in OBJECTS}
    for section, (field, _) in LISTS.items():
        values = (value for _, value in sections[section])
        fields[field] = tuple(value for value in values if type(value) is dict)
    for section, reserved in RESERVED.items():
        fields[section] = {k: v for k, v in fields[section].items() if k not in reserved}
    return HotState(**fields)


def is_entry(section: str, value: Json) -> bool:
    """Whether an entry is valid in this release; a later release may have written it."""
    if section not in _SECTIONS:
        return False
    cleaning = Cleaning()
    cleaning.clean(value, section, depth=1)
    if cleaning.faults:
        return False
    if section in OBJECTS:
        return True
    name = value.get(LISTS[cast(Section, section)][1]) if isinstance(value, dict) else None
    return isinstance(name, str) and bool(name.strip())


def diff(old: Mapping[EntryKey, Entry], new: Mapping[EntryKey, Entry]) -> Changes:
    """The changes that turn the entries `old` into the state of `new`.

    An entry that only moved up because others were removed keeps its position and is no change;
    an appended entry gets a position after all others. With the changes applied to `old`,
    `from_entries` returns the same state as for `new`.
    """
    changed: dict[EntryKey, Entry] = {}
    last: dict[str, _Rank] = {}
    for key, entry in sorted(new.items(), key=_rank):
        before = old.get(key)
        previous = last.get(key[0], _FIRST)
        placed = Entry(entry.value, previous[0] + 1 if before is None else before.position)
        if _rank((key, placed)) <= previous:
            placed = Entry(entry.value, previous[0] + 1)
        last[key[0]] = _rank((key, placed))
        # Encoded, since Python takes True for 1 and 1 for 1.0.
        if before is None or msgspec.json.encode(before) != msgspec.json.encode(placed):
            changed[key] = placed
    return Changes(changed, tuple(key for key in old if key not in new))


def _keyed(section: Section, items: tuple[Item, ...]) -> Iterator[tuple[str, Item]]:
    used: set[str] = set()
    repeats: dict[str, int] = {}
    for item in items:
        base = key = _key(section, item)
        while key in used:
            repeats[base] = repeats.get(base, 1) + 1
            key = f"{base}#{repeats[base]}"
        used.add(key)
        yield key, item


def _key(section: Section, item: Item) -> str:
    name = item.get(LISTS[section][1])
    if not isinstance(name, str):
        return _hash(msgspec.json.encode(item, order="sorted"))
    if section == "project":
        return name
    if section == "event":
        return _hash(msgspec.json.encode([name, number(item.get("timestamp"))]))
    return _hash(name.encode())


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _rank(pair: tuple[tuple[str, str], Entry]) -> _Rank:
    (_, key), entry = pair
    time = number(entry.value.get("timestamp")) if isinstance(entry.value, dict) else None
    return entry.position, time or 0.0, key
