"""The hot state: what is always in the agent's context, and how much room it takes."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import OptionList, Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import size

from ..widgets.choices import Choices
from ..widgets.gauge import Gauge, bar
from . import hot_entries
from .hot_entries import MEMORY, OTHER, SECTIONS, Entry
from .memory_actions import MemoryActions
from .memory_detail import MemoryDetail
from .view import View

_BAR: Final = 10


class HotView(View):
    """The tab."""

    DEFAULT_CSS = """
    HotView > Gauge { margin: 0 1; }
    HotView > Horizontal { height: 1fr; margin-top: 1; }
    HotView Choices { width: 1fr; height: 1fr; }
    HotView #sizes { width: 40; height: auto; padding: 0 1; margin-left: 1; }
    Screen.-narrow HotView #sizes, Screen.-normal HotView #sizes { display: none; }
    Screen.-low HotView > Horizontal { margin-top: 0; }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset({"hot.", "memory."})
    WRITES: ClassVar[frozenset[str]] = frozenset({"add", "edit", "remove"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add"),
        Binding("e", "edit", "Edit"),
        Binding("d", "remove", "Remove"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        # The entry in each line of the list; None: a title.
        self._lines: list[Entry | None] = []
        self._actions = MemoryActions(self)

    def compose(self) -> ComposeResult:
        """The size, the entries, and what each section takes of it."""
        yield Gauge("Hot state")
        with Horizontal():
            yield Choices()
            yield Static(id="sizes")

    @property
    def options(self) -> Choices:
        """The list."""
        return self.query_one(Choices)

    @property
    def entry(self) -> Entry | None:
        """The entry under the cursor."""
        at = self.options.highlighted
        return self._lines[at] if at is not None and at < len(self._lines) else None

    def first_focus(self) -> Widget:
        """The list."""
        return self.options

    def copied(self) -> str:
        """The entry under the cursor."""
        entry = self.entry
        if entry is None:
            return ""
        text = entry.value.get("text") if isinstance(entry.value, dict) else None
        return str(text or hot_entries.readable(entry.value))

    async def show(self, what: str) -> None:
        """Select the entry with this name."""
        at = next((n for n, one in enumerate(self._lines) if one and one.name == what), None)
        if at is not None:
            self.options.highlighted = at

    async def update(self) -> None:
        """Read the state, and draw it."""
        found = await self.call(Client.hot)
        if found is None:
            return
        self.query_one(Gauge).set_bytes(found.size_bytes, found.max_bytes)
        self._draw(list(hot_entries.entries_of(found.state)), found.max_bytes)

    def _draw(self, entries: list[Entry], most: int) -> None:
        before, at = self.entry, self.options.highlighted
        lines: list[Entry | None] = []
        drawn: list[Text] = []
        sizes = Text().append("Where the room goes\n", "bold")
        for title, group in groupby(entries, lambda entry: entry.title):
            found = list(group)
            used = sum(entry.size for entry in found)
            head = Text().append(f" {title} ", self.paint("primary", bold=True))
            head.append(f"{len(found)}, {size(used)}")
            lines.append(None)
            drawn.append(head)
            for entry in found:
                lines.append(entry)
                line = hot_entries.line_of(entry, self)
                drawn.append(line)
            full, empty = bar(used / most, _BAR)
            sizes.append(f"{title:<13}").append(full, self.paint("primary"))
            sizes.append(empty, "dim").append(f" {size(used):>8}\n")
        if not entries:
            lines, drawn = [None], [Text("  nothing yet: a adds an entry")]
        sizes.append("\nHot memories fill what the rest leaves; a pinned one comes first.", "dim")
        self._lines = lines
        titles = frozenset(n for n, line in enumerate(lines) if line is None)
        self.options.fill(drawn, titles)
        self.query_one("#sizes", Static).update(sizes)
        self._select(before, at)

    def _select(self, before: Entry | None, at: int | None) -> None:
        known = [number for number, line in enumerate(self._lines) if line is not None]
        if not known:
            return
        same = (
            n
            for n in known
            if before is not None
            and (one := self._lines[n]) is not None
            and (one.section, one.name) == (before.section, before.name)
        )
        near = min(known, key=lambda number: abs(number - (at or 0)))
        self.options.highlighted = next(same, near)

    # Changes

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter edits, and opens a memory."""
        event.stop()
        self.action_edit()

    @work
    async def action_add(self) -> None:
        """Add an entry to a section."""
        here = self.entry
        choices = [(key, words) for key, _, words in SECTIONS]
        if here is not None:
            # What one looks at comes first.
            choices.sort(key=lambda pair: pair[0] != here.section)
        section = await self.app.choose_from("Add", choices)
        if section is not None:
            await self._form(section, None)

    @work
    async def action_edit(self) -> None:
        """Change the entry."""
        entry = self.entry
        if entry is None:
            return
        if entry.section == MEMORY:
            memory = await self.call(Client.get, entry.name)
            if memory is not None:
                self.app.push_screen(MemoryDetail(self, memory))
        elif entry.section == OTHER:
            self.app.flash("another program keeps this here; it is left as it is", "warning")
        elif not self.app.read_only:
            await self._form(entry.section, entry)

    @work
    async def action_remove(self) -> None:
        """Remove the entry; of a hot memory, its pin."""
        entry = self.entry
        if entry is None or entry.section == OTHER:
            return
        if entry.section == MEMORY:
            await self._unpin(entry)
            return
        line = hot_entries.line_of(entry, self)
        effects = (line, "", "It is no longer in the agent's context.")
        if await self.app.confirm("Remove this entry", *effects, word="remove"):
            await self.do(partial(hot_entries.remove, entry=entry))

    async def _unpin(self, entry: Entry) -> None:
        memory = await self.call(Client.get, entry.name)
        if memory is not None and memory.pinned:
            await self._actions.pin(memory)
        elif memory is not None:
            self.app.flash("it is hot by its score; enter opens it, d there forgets it", "warning")

    async def _form(self, section: str, entry: Entry | None) -> None:
        async def save(values: dict[str, str]) -> None:
            new = hot_entries.entered(section, values, entry)
            if new != entry:
                await self.change(partial(hot_entries.put, entry=new, before=entry))

        what = next(words for key, _, words in SECTIONS if key == section)
        title = f"{'Add' if entry is None else 'Edit'} {what}"
        await self.enter(title, hot_entries.fields_for(section, entry), save)
