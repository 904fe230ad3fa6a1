"""The entries of the hot state for display, and their changes with their undo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rich.text import Text

from thermocline.daemon.client import Client

from ..calls import Done
from ..dialogs.form import Field
from .memory_actions import graded
from .memory_text import grade

if TYPE_CHECKING:
    from .view import View

Json: TypeAlias = Any

MEMORY: Final = "memory"
OTHER: Final = "other"
# Each section: its key, its title, and what one entry is called.
SECTIONS: Final = (
    ("identity", "Identity", "a trait of the agent"),
    ("owner_profile", "Owner", "a trait of the owner"),
    ("project", "Projects", "a project"),
    ("event", "Events", "an event"),
    ("task", "Tasks", "a task"),
    ("lesson", "Lessons", "a lesson"),
)
_NAMED: Final = ("identity", "owner_profile")
# The lists: section, place in the document, and the key that names an entry.
_LISTS: Final = (
    ("project", "projects", "name"),
    ("event", "events", "text"),
    ("task", "tasks", "text"),
    ("lesson", "lessons", "text"),
)
_KNOWN: Final = frozenset(
    {
        *(*_NAMED, "active_context", "critical_lessons", "hot_memories", "_schema_version"),
        *(place for _, place, _ in _LISTS),
    }
)
_TITLES: Final = {key: title for key, title, _ in SECTIONS} | {
    MEMORY: "Hot memories",
    OTHER: "Other",
}
_DONE: Final = frozenset(
    {"done", "complete", "completed", "closed", "finished", "resolved", "cancelled", "canceled"}
)
_STATUSES: Final = ("active", "planned", "pending", "in_progress", "blocked", "done")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry.

    Attributes:
        section: a key of `SECTIONS`, `MEMORY` or `OTHER`.
        name: what the daemon knows it by: a key, a name, a text, or an id.
        value: the JSON that is stored.
    """

    section: str
    name: str
    value: Json

    @property
    def title(self) -> str:
        """The section's title."""
        return _TITLES[self.section]

    @property
    def size(self) -> int:
        """The bytes of its compact JSON, with its key."""
        named = self.section in {*_NAMED, OTHER}
        text = json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))
        return len(text.encode("utf-8", "replace")) + 1 + (len(self.name) + 3 if named else 0)


def entries_of(state: dict[str, Json]) -> Iterator[Entry]:
    """The entries of the document, section by section."""
    for section in _NAMED:
        for name, value in state.get(section, {}).items():
            yield Entry(section, name, value)
    context = state.get("active_context", {})
    lists = {**context, "lessons": state.get("critical_lessons", ())}
    for section, place, key in _LISTS:
        for value in lists.get(place, ()):
            yield Entry(section, str(value.get(key)), value)
    for value in state.get("hot_memories", ()):
        yield Entry(MEMORY, str(value["id"]), value)
    for name, value in (*state.items(), *context.items()):
        if name not in _KNOWN:
            yield Entry(OTHER, name, value)


def line_of(entry: Entry, view: View) -> Text:
    """An entry in one line."""
    value, line = entry.value, Text()
    if entry.section in {*_NAMED, OTHER}:
        line.append_text(view.shown(entry.name)).append(": ")
        line.stylize("dim")
        return line.append_text(view.shown(readable(value)))
    if entry.section == "project":
        line.append_text(view.shown(entry.name)).stylize("bold")
    elif entry.section == "task":
        done = str(value.get("status", "")).lower() in _DONE
        line.append("✓ " if done else "○ ", view.paint("success" if done else "warning"))
        line.append_text(view.shown(entry.name))
    elif entry.section in {"lesson", MEMORY}:
        word, color = grade(_number(value.get("importance"), 0.5))
        line.append(f"{word:<9} ", view.paint(color)).append_text(
            view.shown(str(value.get("text")))
        )
    else:
        line.append_text(view.shown(entry.name))
    for name in ("status", "description", "category"):
        if value.get(name) and not (entry.section == "task" and name == "description"):
            line.append("  ").append(view.shown(readable(value[name])).plain, "dim")
    when = _number(value.get("timestamp"), 0.0)
    if when and entry.section == "event":
        line.append(f"  {view.ago(when)}", "dim")
    return line


def readable(value: Json) -> str:
    """A JSON value in words: lists with commas, objects as they are written."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value: Json, default: float) -> float:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if usable else default


# Entering


def fields_for(section: str, entry: Entry | None) -> list[Field]:
    """The form's fields for a new or an existing entry of a section."""
    value: Json = {} if entry is None or section in _NAMED else entry.value
    name = "" if entry is None else entry.name
    if section in _NAMED:
        text = "" if entry is None else _written(entry.value)
        return [
            Field("name", "Name", name, "such as role or timezone"),
            Field("value", "Value", text, lines=4),
        ]
    if section == "project":
        return [
            Field("name", "Name", name),
            Field("status", "Status", str(value.get("status", "active")), words=_STATUSES),
            Field("description", "Description", str(value.get("description", "")), lines=3),
        ]
    fields = [Field("text", "Text", name, lines=4)]
    if section == "task":
        fields.append(
            Field("status", "Status", str(value.get("status", "pending")), words=_STATUSES)
        )
    if section == "lesson":
        importance = _number(value.get("importance"), 0.7)
        fields += [
            Field("category", "Category", str(value.get("category", "general"))),
            Field("importance", "Importance", f"{importance:g}", "0 to 1", told=graded),
        ]
    return fields


def entered(section: str, values: dict[str, str], entry: Entry | None) -> Entry:
    """The entry that was entered; what the form does not show of the one before stays.

    Raises:
        ValueError: a value is missing or of the wrong kind.
    """
    if section in _NAMED:
        name = values["name"].strip()
        if not name:
            msg = "give it a name"
            raise ValueError(msg)
        plain = entry is None or isinstance(entry.value, str)
        return Entry(section, name, values["value"].strip() if plain else _read(values["value"]))
    key = "name" if section == "project" else "text"
    given: dict[str, Json] = {name: text.strip() for name, text in values.items()}
    if not given[key]:
        msg = f"give it a {key}"
        raise ValueError(msg)
    if section == "lesson":
        try:
            given["importance"] = float(given["importance"].replace(",", "."))
        except ValueError:
            msg = "the importance is a number from 0 to 1, such as 0.7"
            raise ValueError(msg) from None
    before = {} if entry is None else entry.value
    # An empty field is left out, unless the entry had it before.
    given = {name: value for name, value in given.items() if value != "" or name in before}
    return Entry(section, given[key], {**before, **given})


def _written(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _read(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        msg = 'write it as JSON, such as ["tea", "coffee"], 7 or "words"'
        raise ValueError(msg) from None


# Changing, on a thread


def put(client: Client, entry: Entry, before: Entry | None) -> Done:
    """Set an entry in place of another."""
    warnings = _replace(client, before, entry)
    told = "added 1 entry" if before is None else "changed 1 entry"
    return Done("; ".join((told, *warnings)), lambda again: _replace(again, entry, before))


def remove(client: Client, entry: Entry) -> Done:
    """Remove an entry; undoing puts it back at the end of its section."""
    client.hot_remove(entry.section, entry.name)
    return Done("removed 1 entry", lambda again: _replace(again, None, entry))


def _replace(client: Client, old: Entry | None, new: Entry | None) -> tuple[str, ...]:
    if new is None:
        if old is not None:
            client.hot_remove(old.section, old.name)
        return ()
    # First the new one: if it is refused, nothing is lost.
    updated = client.hot_update(new.section, _update(new))
    if old is not None and old.name != new.name:
        client.hot_remove(old.section, old.name)
    return tuple(updated.warnings) if isinstance(updated.warnings, list) else ()


def _update(entry: Entry) -> Json:
    return {entry.name: entry.value} if entry.section in _NAMED else entry.value
