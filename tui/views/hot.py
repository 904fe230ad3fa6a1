"""The hot state: what is always in the agent's context, and how much room it takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from rich.text import Text
from textual.widget import Widget

from thermocline.daemon.client import AsyncClient
from thermocline.daemon.client.wording import size

from ..charts import Gauge, bar
from ..dialogs import Field
from ..feed import Done
from ..table import Column
from . import memory_actions
from .memory_detail import MemoryDetail
from .memory_text import grade
from .resource import Part, ResourceView
from .view import Action

Json: TypeAlias = Any

_BAR: Final = 10
_STATUSES: Final = ("active", "planned", "pending", "in_progress", "blocked", "done")
_DONE: Final = frozenset(
    {"done", "complete", "completed", "closed", "finished", "resolved", "cancelled", "canceled"}
)


class Section(NamedTuple):
    """One section of the document."""

    title: str
    entry: str  # what one entry is called; "": none is added or edited here
    # Those of an entry's form, the first of which names it; (): entries are names with values.
    fields: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.fields[0] if self.fields else ""


MEMORY: Final = "memory"
OTHER: Final = "other"
SECTIONS: Final = {
    "identity": Section("Identity", "a trait of the agent"),
    "owner_profile": Section("Owner", "a trait of the owner"),
    "project": Section("Projects", "a project", ("name", "status", "description")),
    "event": Section("Events", "an event", ("text",)),
    "task": Section("Tasks", "a task", ("text", "status")),
    "lesson": Section("Lessons", "a lesson", ("text", "category", "importance")),
    MEMORY: Section("Hot memories", "", ("id",)),
    OTHER: Section("Other", ""),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a section; the daemon knows it by its name: a key, a name, a text, or an id."""

    section: str
    name: str
    value: Json

    @property
    def size(self) -> int:
        """The bytes of its compact JSON, with its key."""
        text = json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))
        named = 0 if SECTIONS[self.section].key else len(self.name) + 3
        return len(text.encode("utf-8", "replace")) + 1 + named

    @property
    def text(self) -> str:
        text = self.value.get("text") if isinstance(self.value, dict) else None
        return str(text or readable(self.value))


def entries_of(state: dict[str, Json]) -> Iterator[Entry]:
    """The entries of the document, section by section."""
    context = dict(state.get("active_context", {}))
    rest = {name: value for name, value in state.items() if name != "_schema_version"}
    rest.pop("active_context", None)
    for section in ("identity", "owner_profile"):
        for name, value in rest.pop(section, {}).items():
            yield Entry(section, name, value)
    for section in ("project", "event", "task"):
        for value in context.pop(f"{section}s", ()):
            yield Entry(section, str(value.get(SECTIONS[section].key)), value)
    for section, name in (("lesson", "critical_lessons"), (MEMORY, "hot_memories")):
        for value in rest.pop(name, ()):
            yield Entry(section, str(value.get(SECTIONS[section].key)), value)
    for name, value in {**rest, **context}.items():
        yield Entry(OTHER, name, value)


def _title(entry: Entry) -> str:
    return SECTIONS[entry.section].title


def readable(value: Json) -> str:
    """A JSON value in words: lists with commas, objects as they are written."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value: Json, default: float) -> float:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if usable else default


# Entering


def fields_for(section: str, entry: Entry | None) -> list[Field]:
    """The form's fields for a new or an existing entry of a section."""
    name = "" if entry is None else entry.name
    if not SECTIONS[section].key:
        text = "" if entry is None else entry.value
        if not isinstance(text, str):
            text = json.dumps(text, ensure_ascii=False, indent=1)
        fields = [Field("name", "Name", name, "such as role or timezone")]
        return [*fields, Field("value", "Value", text, lines=4)]
    value: Json = {} if entry is None else entry.value
    status = str(value.get("status", "active" if section == "project" else "pending"))
    importance = f"{_number(value.get('importance'), 0.7):g}"
    known = (
        Field("name", "Name", name),
        Field("text", "Text", name, lines=4),
        Field("status", "Status", status, words=_STATUSES),
        Field("description", "Description", str(value.get("description", "")), lines=3),
        Field("category", "Category", str(value.get("category", "general"))),
        memory_actions.importance_field(importance),
    )
    return [field for field in known if field.name in SECTIONS[section].fields]


def entered(section: str, values: dict[str, str], entry: Entry | None) -> Entry:
    """The entry that was entered; what the form does not show of the one before stays.

    `ValueError`: a value is missing or of the wrong kind.
    """
    fields: dict[str, Json] = {name: text.strip() for name, text in values.items()}
    key = SECTIONS[section].key or "name"
    if not fields[key]:
        raise ValueError(f"give it a {key}")
    if not SECTIONS[section].key:
        if entry is not None and not isinstance(entry.value, str):
            try:
                fields["value"] = json.loads(fields["value"])
            except ValueError:
                raise ValueError(
                    'write it as JSON, such as ["tea", "coffee"], 7 or "words"'
                ) from None
        return Entry(section, fields["name"], fields["value"])
    if section == "lesson":
        fields["importance"] = memory_actions.importance_of(fields["importance"])
    before = {} if entry is None else entry.value
    # An empty field is left out, unless the entry had it before.
    fields = {name: value for name, value in fields.items() if value != "" or name in before}
    return Entry(section, fields[key], {**before, **fields})


# Changing


async def _replace(client: AsyncClient, old: Entry | None, new: Entry | None) -> tuple[str, ...]:
    """Set an entry in place of another; None stands for none. Returns the daemon's warnings."""
    warnings: tuple[str, ...] = ()
    if new is not None:
        # First the new entry: if it is refused, nothing is lost.
        update = new.value if SECTIONS[new.section].key else {new.name: new.value}
        answer = await client.hot_update(new.section, update)
        warnings = tuple(answer.warnings or ())
    if old is not None and (new is None or old.name != new.name):
        await client.hot_remove(old.section, old.name)
    return warnings


async def _replaced(client: AsyncClient, old: Entry | None, new: Entry | None) -> Done:
    did = "added" if old is None else "removed" if new is None else "changed"
    warnings = await _replace(client, old, new)
    return Done("; ".join((f"{did} 1 entry", *warnings)), lambda again: _replace(again, new, old))


# Actions


async def _add(view: HotView) -> None:
    choices = [(key, section.entry) for key, section in SECTIONS.items() if section.entry]
    if view.row is not None:
        # What one looks at comes first.
        choices.sort(key=lambda pair: pair[0] != view.row.section)
    section = await view.app.choose_from("Add", choices)
    if section is not None:
        await _form(view, section, None)


async def _edit(view: HotView, entry: Entry) -> None:
    if entry.section == MEMORY:
        memory = await view.call(AsyncClient.get, entry.name)
        if memory is not None:
            view.app.push_screen(MemoryDetail(view, memory))
    elif entry.section == OTHER:
        view.app.flash("another program keeps this here; it is left as it is", "warning")
    elif not view.app.read_only:
        await _form(view, entry.section, entry)


async def _form(view: HotView, section: str, entry: Entry | None) -> None:
    async def save(values: dict[str, str]) -> None:
        new = entered(section, values, entry)
        if new != entry:
            await view.change(partial(_replaced, old=entry, new=new))

    title = f"{'Add' if entry is None else 'Edit'} {SECTIONS[section].entry}"
    await view.enter(title, fields_for(section, entry), save)


async def _remove(view: HotView, entry: Entry) -> None:
    if entry.section == MEMORY:
        memory = await view.call(AsyncClient.get, entry.name)
        if memory is not None and memory.pinned:
            await memory_actions.pin(view, memory)
        elif memory is not None:
            words = "it is hot by its score; enter opens it, d there forgets it"
            view.app.flash(words, "warning")
    elif entry.section != OTHER:
        effects = (view.text_of(entry), "", "It is no longer in the agent's context.")
        if await view.app.confirm("Remove this entry", *effects, word="remove"):
            await view.do(partial(_replaced, old=entry, new=None))


class HotView(ResourceView):
    """The size, the entries, and the entry under the cursor with what each section takes."""

    DEFAULT_CSS = """
    HotView > Gauge { margin: 0 1; }
    HotView .detail { height: 6; max-height: 40%; border-top: solid $border-blurred; }
    Screen.-low HotView .detail { display: none; }
    Screen.-wide HotView .part { layout: horizontal; }
    Screen.-wide HotView .detail {
        width: 44; height: 1fr; max-height: 100%; border-top: none;
        border-left: solid $border-blurred;
    }
    """
    WATCHES = frozenset({"hot.", "memory."})
    ACTIONS = (
        Action("a", "Add", _add, writes=True),
        Action("e", "Edit", _edit, writes=True, row=True),
        Action("d", "Remove", _remove, writes=True, row=True),
    )

    def head(self) -> Iterable[Widget]:
        yield Gauge("Hot state")

    def parts(self) -> Mapping[str, Part[Entry]]:
        def section(entry: Entry) -> Text:
            return Text(_title(entry), self.paint("primary"))

        return {
            "entries": Part(
                "Entries",
                [
                    Column("Section", 12, section),
                    Column("Entry", 0, self.text_of),
                    Column("Size", 7, lambda entry: size(entry.size), least=70, right=True),
                ],
                lambda entry: entry.name,
                "nothing yet: a adds an entry",
                rows=lambda: self._entries,
                copied=lambda entry: entry.text,
                detail=self._explained,
                open=Action("", "Open", _edit, row=True),
                brief=lambda entry: (
                    self.text_of(entry),
                    section(entry).append(f"  {size(entry.size)}", "dim"),
                ),
                two_lines_below=60,
            )
        }

    def reset(self) -> None:
        self._entries: list[Entry] = []
        self._max_bytes = 1

    async def update(self) -> None:
        answer = await self.call(AsyncClient.hot)
        if answer is not None:
            self._entries, self._max_bytes = [*entries_of(answer.state)], answer.max_bytes
            self.query_one(Gauge).set_bytes(answer.size_bytes, answer.max_bytes)
            self.draw()

    def _explained(self, entry: Entry) -> Text:
        text = self.text_of(entry)
        if not self.screen.has_class("-wide"):
            return text
        text.append("\n\nWhere the room goes\n", "bold")
        for title, group in groupby(self._entries, _title):
            entries = [*group]
            used = sum(entry.size for entry in entries)
            full, empty = bar(used / self._max_bytes, _BAR)
            text.append(f"{title:<12} {len(entries):>3} ").append(full, self.paint("primary"))
            text.append(empty, "dim").append(f" {size(used):>8}\n")
        words = "\nHot memories fill what the rest leaves; a pinned one comes first."
        return text.append(words, "dim")

    def text_of(self, entry: Entry) -> Text:
        value, line = entry.value, Text()
        if not SECTIONS[entry.section].key:
            line.append(f"{self.shown(entry.name).plain}: ", "dim")
            return line.append_text(self.shown(readable(value)))
        if entry.section == "project":
            line.append(self.shown(entry.name).plain, "bold")
        elif entry.section == "task":
            done = str(value.get("status", "")).lower() in _DONE
            line.append("✓ " if done else "○ ", self.paint("success" if done else "warning"))
            line.append_text(self.shown(entry.name))
        elif entry.section in {"lesson", MEMORY}:
            word, color = grade(_number(value.get("importance"), 0.5))
            line.append(f"{word:<9} ", self.paint(color)).append_text(self.shown(entry.text))
        else:
            line.append_text(self.shown(entry.name))
        for name in ("status", "description", "category"):
            if value.get(name) and not (entry.section == "task" and name == "description"):
                line.append(f"  {self.shown(readable(value[name])).plain}", "dim")
        when = _number(value.get("timestamp"), 0.0)
        return line.append(
            f"  {self.ago(when)}" if when and entry.section == "event" else "", "dim"
        )
