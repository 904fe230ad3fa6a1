"""Values removed from the hot state, as statements to remember elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from ...errors import InvalidInput
from ..checks import check_category
from ..records import Json
from .state import Item, Section, importance_of, number

# This many characters of any script are below the limit of a memory's text in bytes.
PART_CHARACTERS: Final = 16_000
# Small values that are removed together share a statement of up to this many characters.
GROUP_CHARACTERS: Final = 2_000


class _Kind(msgspec.Struct, frozen=True):
    """The fields of a section's statements.

    `told` are the keys whose values are in the statement or its fields without the key's name.
    """

    label: str
    category: str
    importance: float
    told: frozenset[str] = frozenset()


_KINDS: Final[dict[Section, _Kind]] = {
    "identity": _Kind("Agent identity", "identity", 0.7),
    "owner_profile": _Kind("Owner profile", "owner", 0.7),
    "project": _Kind("Project", "projects", 0.6, frozenset({"name", "description"})),
    "event": _Kind("", "events", 0.5, frozenset({"text", "timestamp"})),
    "task": _Kind("Task", "tasks", 0.5, frozenset({"text", "timestamp"})),
    "lesson": _Kind("", "lessons", 0.5, frozenset({"text", "timestamp", "category", "importance"})),
    "extra": _Kind("Hot state", "context", 0.5),
    "context": _Kind("Active context", "context", 0.5),
}


class Displaced(msgspec.Struct, frozen=True):
    """A value that was removed from the hot state, or shortened in it.

    Attributes:
        section: its section.
        text: a statement with the full value, at most 64 KiB of UTF-8; a longer value has several
            parts, marked `(part 1 of 3)`.
        category: a lesson's own category if it is valid, else that of the section.
        created_at: epoch seconds; None if the entry had no time.
    """

    section: Section
    text: str
    category: str
    importance: float
    created_at: float | None


def displaced_entry(section: Section, entry: Item) -> Iterator[Displaced]:
    """The statements of a project, event, task or lesson."""
    category = _lesson_category(entry) if section == "lesson" else _KINDS[section].category
    importance = importance_of(entry) if section == "lesson" else _KINDS[section].importance
    for text in _parts(_sentence(section, entry)):
        yield Displaced(
            section=section,
            text=text,
            category=category,
            importance=importance,
            created_at=number(entry.get("timestamp")),
        )


def displaced_values(
    section: Section, values: Iterable[tuple[str, Json]], name: str = ""
) -> Iterator[Displaced]:
    """The statements of values of one section by key; small values share one.

    `name` is the name of the project, for values of a project.
    """
    kind = _KINDS[section]
    label = f"{kind.label} {name}".rstrip()
    for group in _groups(f"{key}: {_plain(value)}" for key, value in values):
        for text in _parts(f"{label}, {group}"):
            yield Displaced(section, text, kind.category, kind.importance, None)


def _lesson_category(lesson: Item) -> str:
    with suppress(InvalidInput):
        if isinstance(category := lesson.get("category"), str):
            return check_category(category)
    return _KINDS["lesson"].category


def _sentence(section: Section, entry: Item) -> str:
    rest = ", ".join(
        f"{key}: {_plain(value)}" for key, value in entry.items() if key not in _KINDS[section].told
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


def _groups(pairs: Iterable[str]) -> Iterator[str]:
    gathered: list[str] = []
    length = 0
    for pair in pairs:
        if gathered and length + len(pair) > GROUP_CHARACTERS:
            yield "; ".join(gathered)
            gathered, length = [], 0
        gathered.append(pair)
        length += len(pair) + 2
    if gathered:
        yield "; ".join(gathered)


def _parts(text: str) -> Iterator[str]:
    if len(text) <= PART_CHARACTERS:
        yield text
        return
    count = -(-len(text) // PART_CHARACTERS)
    for index in range(count):
        chunk = text[index * PART_CHARACTERS : (index + 1) * PART_CHARACTERS]
        yield f"(part {index + 1} of {count}) {chunk}"
