"""Fits the hot state into its limits: the least important leaves, as statements to remember.

Nothing is shortened: a value is in the hot state whole, or in a memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec

from ...errors import InvalidInput, TooLarge
from ..checks import check_category
from ..records import Json
from .state import (
    LISTS,
    OBJECTS,
    RESERVED,
    HotLimits,
    HotState,
    Item,
    Section,
    document,
    document_size,
    importance_of,
    is_finished,
    number,
)
from .update import checked

# The key of a value in its object, or the index of an entry in its list.
_Key: TypeAlias = int | str

# One value may take 1/N of the state, by the key of its update, and at least `_ALWAYS` bytes.
_SHARES: Final = {
    "identity": 4, "owner_profile": 4, "project": 4, "lesson": 10, "event": 10, "task": 10,
}  # fmt: skip
_ALWAYS: Final = 512


# This many characters of any script are below the limit of a memory's text in bytes.
_PART_CHARACTERS: Final = 16_000
# Small values that are removed together share a statement of up to this many characters.
_GROUP_CHARACTERS: Final = 2_000


class _Words(msgspec.Struct, frozen=True):
    """The fields of a section's statements.

    `unnamed` are the keys whose values are in the statement or its fields without the key's name.
    """

    label: str
    category: str
    importance: float
    unnamed: frozenset[str] = frozenset()


_KINDS: Final[dict[Section, _Words]] = {
    "identity": _Words("Agent identity", "identity", 0.7),
    "owner_profile": _Words("Owner profile", "owner", 0.7),
    "project": _Words("Project", "projects", 0.6, frozenset({"name", "description"})),
    "event": _Words("", "events", 0.5, frozenset({"text", "timestamp"})),
    "task": _Words("Task", "tasks", 0.5, frozenset({"text", "timestamp"})),
    "lesson": _Words(
        "", "lessons", 0.5, frozenset({"text", "timestamp", "category", "importance"})
    ),
    "extra": _Words("Hot state", "context", 0.5),
    "context": _Words("Active context", "context", 0.5),
}


class Displaced(msgspec.Struct, frozen=True):
    """A value that was removed from the hot state."""

    section: Section
    # A statement with the full value, at most 64 KiB of UTF-8; a longer value has several parts,
    # marked `(part 1 of 3)`.
    text: str
    category: str  # a lesson's own category if it is valid, else that of the section
    importance: float
    created_at: float | None  # epoch seconds; None if the entry had no time
    # That of a project or a value, or the text of a task or lesson: what it was in the hot state,
    # so that it is one memory however often it leaves. Blank for parts, events, and values that
    # share a statement.
    name: str = ""


class Fitted(msgspec.Struct, frozen=True):
    """A state within its limits, and what was removed, in that order."""

    state: HotState
    displaced: tuple[Displaced, ...] = ()


def check_share(key: str, value: Json, limits: HotLimits) -> None:
    """Refuse a value of an `update` that takes more than its share of the hot state (`TooLarge`).

    A value of the identity or profile, and a project, may take a quarter of `max_bytes`; a lesson,
    event or task a tenth.
    """
    if key not in _SHARES:
        return
    fields = checked(key, value)
    most = max(_ALWAYS, limits.max_bytes // _SHARES[key])
    for name, inner in fields.items() if key in OBJECTS else [("", fields)]:
        size = document_size(inner) + (document_size(name) + 1 if name else 0)
        if size > most:
            whose = f"'{name}'" if name else f"the {key}"
            raise TooLarge(
                f"shorten {whose}: it takes {size:,} bytes, and may take {most:,}",
                field=key,
                hint="store it with `kv set` or as a memory, and refer to it here",
            )


def fit(state: HotState, limits: HotLimits) -> Fitted:
    """`state` within `limits`, whatever it holds.

    First what exceeds the limits of numbers leaves, then, until the document fits `max_bytes`, the
    least important entry of the section that takes the most: the least important lesson (among
    equals the oldest), the oldest event, finished then oldest tasks and projects, the largest value
    of the profile or of unknown keys. The identity leaves last.
    """
    waiting = {section: deque(_least_important_first(state, section)) for section in _SECTIONS}
    counts: dict[Section, int] = {
        "lesson": limits.max_lessons,
        "event": limits.max_events,
        "task": limits.max_tasks,
    }
    gone: list[tuple[Section, _Key]] = []
    size = document_size(document(state, (), limits))
    sizes = {section: sum(cost for cost, _ in costs) for section, costs in waiting.items()}

    def leave(section: Section) -> None:
        nonlocal size
        cost, key = waiting[section].popleft()
        # The last entry of a section has no comma, but unknown values are beside other keys.
        size -= cost + (bool(waiting[section]) or section in RESERVED)
        sizes[section] -= cost
        gone.append((section, key))

    for section, most in counts.items():
        while len(waiting[section]) > most:
            leave(section)
    while size > limits.max_bytes and any(waiting.values()):
        others = [section for section in _SECTIONS[1:] if waiting[section]] or _SECTIONS[:1]
        leave(max(others, key=sizes.__getitem__))
    if not gone:
        return Fitted(state)
    return Fitted(_without(state, {*gone}), tuple(_displaced(state, gone)))


_SECTIONS: Final[tuple[Section, ...]] = (*OBJECTS, *LISTS)


def _entries(state: HotState, section: Section) -> dict[_Key, Json]:
    """The entries of a section by their keys or indexes, without the known keys of the document."""
    if section in LISTS:
        return dict(enumerate(getattr(state, LISTS[section][0])))
    reserved = RESERVED.get(section, frozenset())
    return {key: value for key, value in getattr(state, section).items() if key not in reserved}


def _least_important_first(state: HotState, section: Section) -> list[tuple[int, _Key]]:
    """Size in bytes, without a comma, and key of each entry of a section."""
    entries = _entries(state, section)
    costs = {
        key: document_size(value) + (document_size(key) + 1 if isinstance(key, str) else 0)
        for key, value in entries.items()
    }
    match section:
        case "lesson":
            keys = sorted(entries, key=lambda key: importance_of(entries[key]))
        case "task" | "project":
            keys = sorted(entries, key=lambda key: not is_finished(entries[key]))
        case "event":
            keys = list(entries)
        case _:
            keys = sorted(entries, key=lambda key: -costs[key])
    return [(costs[key], key) for key in keys]


def _without(state: HotState, gone: set[tuple[Section, _Key]]) -> HotState:
    fields: dict[str, Json] = {}
    for section in _SECTIONS:
        left = {k: v for k, v in _entries(state, section).items() if (section, k) not in gone}
        if section in LISTS:
            fields[LISTS[section][0]] = tuple(left.values())
        else:
            fields[section] = left
    return HotState(**fields)


def _displaced(state: HotState, gone: list[tuple[Section, _Key]]) -> Iterator[Displaced]:
    by_section: dict[Section, list[_Key]] = {}
    for section, key in gone:
        by_section.setdefault(section, []).append(key)
    for section, keys in by_section.items():
        entries = _entries(state, section)
        if section in OBJECTS:
            yield from _displaced_values(section, ((str(key), entries[key]) for key in keys))
        else:
            for key in keys:
                yield from _displaced_entry(section, entries[key])


def _displaced_entry(section: Section, entry: Item) -> Iterator[Displaced]:
    category = _lesson_category(entry) if section == "lesson" else _KINDS[section].category
    importance = importance_of(entry) if section == "lesson" else _KINDS[section].importance
    parts = [*_parts(_sentence(section, entry))]
    name = "" if section == "event" or len(parts) > 1 else _plain(entry.get(LISTS[section][1], ""))
    for text in parts:
        yield Displaced(
            section=section,
            text=text,
            category=category,
            importance=importance,
            created_at=number(entry.get("timestamp")),
            name=name,
        )


def _displaced_values(section: Section, values: Iterable[tuple[str, Json]]) -> Iterator[Displaced]:
    """The statements of values of one section by key; small values share one."""
    kind = _KINDS[section]
    for name, group in _groups(values):
        for text in _parts(f"{kind.label}, {group}"):
            yield Displaced(section, text, kind.category, kind.importance, None, name)


def _lesson_category(lesson: Item) -> str:
    with suppress(InvalidInput):
        if isinstance(category := lesson.get("category"), str):
            return check_category(category)
    return _KINDS["lesson"].category


def _sentence(section: Section, entry: Item) -> str:
    rest = ", ".join(
        f"{key}: {_plain(value)}"
        for key, value in entry.items()
        if key not in _KINDS[section].unnamed
    )
    return _head(section, entry) + (f" ({rest})" if rest else "")


def _head(section: Section, entry: Item) -> str:
    if section == "project":
        description = entry.get("description")
        head = f"Project {_plain(entry.get('name', ''))}"
        return f"{head}: {_plain(description)}" if description else head
    text = _plain(entry.get("text", ""))
    return f"Task: {text}" if section == "task" else text


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _groups(values: Iterable[tuple[str, Json]]) -> Iterator[tuple[str, str]]:
    """Values in words, with the name of a value that stands alone."""
    gathered: dict[str, str] = {}
    length = 0
    for key, value in values:
        text = f"{key}: {_plain(value)}"
        if gathered and length + len(text) > _GROUP_CHARACTERS:
            yield next(iter(gathered)) if len(gathered) == 1 else "", "; ".join(gathered.values())
            gathered, length = {}, 0
        gathered[key] = text
        length += len(text) + 2
    if gathered:
        yield next(iter(gathered)) if len(gathered) == 1 else "", "; ".join(gathered.values())


def _parts(text: str) -> Iterator[str]:
    if len(text) <= _PART_CHARACTERS:
        yield text
        return
    count = -(-len(text) // _PART_CHARACTERS)
    for index in range(count):
        chunk = text[index * _PART_CHARACTERS : (index + 1) * _PART_CHARACTERS]
        yield f"(part {index + 1} of {count}) {chunk}"
