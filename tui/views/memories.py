"""The memories: a table of all or of what a search finds, and the actions on each."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.memory import MemoryView
from thermocline.daemon.shapes.recall import HitView, Recalled, RecallResult

from ..dialogs.form import Field
from ..widgets.paged import PagedTable
from . import memory_actions, memory_columns, memory_text
from .filtered import FilteredView
from .memory_actions import MemoryActions
from .memory_detail import MemoryDetail

_HITS: Final = 100
_TYPES: Final = ("semantic", "episodic", "procedural")
_TIERS: Final = ("hot", "warm", "cold", "frozen")
_ORDERS: Final = {
    "newest": "age",
    "importance": "importance",
    "score": "score",
    "uses": "uses",
    "type": "type",
    "category": "category",
    "subject": "subject",
}


class MemoriesView(FilteredView[MemoryView]):
    """The tab."""

    DEFAULT_CSS = """
    MemoriesView #line { height: 1; padding: 0 1; color: $text-muted; }
    MemoriesView #preview {
        height: 8; border-top: solid $border; padding: 0 1; layout: horizontal;
        overflow: hidden;
    }
    MemoriesView #preview #said { width: 1fr; height: 1fr; }
    MemoriesView #preview #why { width: 42; margin-left: 2; height: 1fr; }
    Screen.-wide MemoriesView #preview { height: 11; }
    Screen.-narrow MemoriesView #preview, Screen.-low MemoriesView #preview { display: none; }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset({"memory.", "category.", "tree."})
    WRITES: ClassVar[frozenset[str]] = frozenset({"add", "memory"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Search", key_display="/"),
        Binding("a", "add", "Add"),
        *memory_actions.KEYS,
        Binding("f", "narrow", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("S", "turn", "Turn the order", show=False),
        Binding("escape", "leave_filter", "Show all", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.filters: dict[str, str] = {}
        self.order, self.reverse = "newest", False
        self._found: Recalled | None = None
        self._actions = MemoryActions(self)
        self._shape: tuple[Any, ...] = ()

    def compose(self) -> ComposeResult:
        """The search, a line on what is shown, the table, and the memory under the cursor."""
        yield Input(placeholder="words, as in a question to the memory")
        yield Static(id="line")
        yield PagedTable[MemoryView](
            memory_columns.listed(self),
            lambda memory: memory.id,
            brief=lambda memory: memory_columns.brief(memory, self),
            two_lines_below=70,
            empty="no memories yet: a adds one",
        )
        with Horizontal(id="preview"):
            yield Static(id="said")
            yield Static(id="why")

    @property
    def memory(self) -> MemoryView | None:
        """The memory under the cursor."""
        return self.table.here

    def copied(self) -> str:
        """The text under the cursor."""
        return "" if self.memory is None else self.memory.text

    async def show(self, what: str) -> None:
        """Open the memory with this id, or show those of `category:PATH`."""
        kind, _, path = what.partition(":")
        if kind == "category" and path:
            self.filters = {"category": path}
            self.close_line()
            self.table.to_top()
            self.refresh_data()
            return
        memory = await self.call(Client.get, what)
        if memory is not None:
            self.app.push_screen(MemoryDetail(self, memory))

    # Reading

    async def update(self) -> None:
        """Read the pages on the screen, or ask the question again."""
        shape = (self.app.agent, self.typed, *self.filters.items(), self.order, self.reverse)
        if shape != self._shape:
            self._shape = shape
            self.table.to_top()
        if self.typed:
            await self._search()
        else:
            await self._list()
        self._tell()
        self._preview()

    async def _list(self) -> None:
        order = {"order": self.order, "reverse": self.reverse}
        if not await memory_columns.read(self, self.table, **self.filters, **order):
            return
        self._found = None
        self.table.columns = memory_columns.listed(self)
        self.table.sorted_by = (_ORDERS[self.order], self.reverse)
        nothing = "nothing fits the filter" if self.filters else "no memories yet: a adds one"
        self.table.empty = Text(nothing)

    async def _search(self) -> None:
        filters: dict[str, Any] = {
            {"type": "types", "tag": "tags"}.get(name, name): [value]
            if name in {"type", "tag"}
            else value
            for name, value in self.filters.items()
        }
        # What is typed so far is rarely a question that anything answers.
        options: dict[str, Any] = {"min_relevance": 0.0, "limit": _HITS, "fields": "full"}
        options |= {"explain": True, "reinforce": False}
        question = self.typed[:8000]
        found = await self.call(lambda client: client.recall(question, **filters, **options))
        if found is None:
            return
        self._found = found
        why = found.why if isinstance(found.why, str) else "nothing found"
        self.table.columns = memory_columns.found(self)
        self.table.sorted_by = ("", False)
        self.table.empty = self.shown(why)
        self.table.fill([hit for result in found.results if (hit := _hit_of(result))])

    def on_paged_table_moved(self) -> None:
        """Show the memory under the cursor, and read pages that are not known yet."""
        if not self.app.is_running:
            return
        self._preview()
        if self._found is None and self.table.lacks_page:
            self.refresh_data()

    # Drawing

    def _tell(self) -> None:
        line = Text(no_wrap=True, overflow="ellipsis")
        total = self.table.total
        if self._found is not None:
            hits = f"{total} or more hits" if total >= _HITS else number_of(total, "hit", "hits")
            line.append(hits, "bold").append(f" in {self._found.took_ms:.0f} ms, best first")
            if self._found.confidence == "unsure":
                line.append(", nothing certain")
        else:
            line.append(number_of(total, "memory", "memories"), "bold")
            line.append(f" by {self.order}{', turned' if self.reverse else ''}")
        for name, value in self.filters.items():
            line.append("  ").append(f"{name} ", "bold").append_text(self.shown(value))
        if self.filters or self.typed:
            line.append("  esc shows all", "dim")
        self.query_one("#line", Static).update(line)

    def _preview(self) -> None:
        memory = self.memory
        said, why = self.query_one("#said", Static), self.query_one("#why", Static)
        if memory is None:
            said.update("", layout=False)
            why.update("", layout=False)
            return
        text = self.shown(memory.text[:4000], keep="\n")
        memory_text.mark(text, memory_text.words_of(memory), self)
        said.update(text, layout=False)
        facts = memory_text.facts(memory, self)
        if isinstance(memory, HitView):
            why.update(memory_text.explained(memory, self, 42), layout=False)
        else:
            why.update(memory_text.lined(facts), layout=False)

    # Search and filter

    def redraw(self) -> None:
        """Ask once the typing pauses."""
        self.refresh_data()

    def action_leave_filter(self) -> None:
        """Leave the search first, then the filter."""
        if not self.line.has_class("-open"):
            self.filters = {}
        super().action_leave_filter()

    @work
    async def action_narrow(self) -> None:
        """Choose what is shown."""
        paths = await memory_actions.categories(self)
        tags = sorted({tag for memory in self.table.rows.values() for tag in memory.tags})
        now = self.filters.get
        fields = [
            Field("type", "Type", now("type", ""), ", ".join(_TYPES), words=_TYPES),
            Field("tier", "Tier", now("tier", ""), ", ".join(_TIERS), words=_TIERS),
            Field("category", "Category, and all below it", now("category", ""), words=paths),
            Field("tag", "Tag", now("tag", ""), ", ".join(tags[:6]), words=tags),
        ]

        async def save(values: dict[str, str]) -> None:
            chosen = {name: text for name, value in values.items() if (text := value.strip())}
            for name, words in (("type", _TYPES), ("tier", _TIERS)):
                if name in chosen:
                    found = [word for word in words if word.startswith(chosen[name].lower())]
                    if not found:
                        raise ValueError(f"the {name} is one of {', '.join(words)}")
                    chosen[name] = found[0]
            self.filters = chosen
            self.refresh_data()

        await self.enter("Show only", fields, save)

    # Order

    @work
    async def action_sort(self) -> None:
        """Choose the order."""
        choices = [(order, "age" if order == "newest" else order) for order in _ORDERS]
        chosen = await self.app.choose_from("Sort by", choices)
        if chosen is not None:
            self._sort(chosen)

    def action_turn(self) -> None:
        """Reverse the order."""
        self.reverse = not self.reverse
        self.refresh_data()

    def on_paged_table_head_clicked(self, event: PagedTable.HeadClicked) -> None:
        """Sort by that column, or if it is sorted by it, the other way round."""
        order = next((name for name, key in _ORDERS.items() if key == event.column), "")
        if order == self.order:
            self.action_turn()
        elif order:
            self._sort(order)

    def _sort(self, order: str) -> None:
        self.order, self.reverse = order, False
        if self.typed:
            self.app.flash("what a search finds stands by relevance", "warning")
        self.refresh_data()

    # Changes

    def on_paged_table_chosen(self) -> None:
        """Show all of it."""
        if self.memory is not None:
            self.app.push_screen(MemoryDetail(self, self.memory))

    @work
    async def action_add(self) -> None:
        """Add a memory, in the category that is shown."""
        await self._actions.add(self.filters.get("category", ""))

    @work
    async def action_memory(self, action: str) -> None:
        """Do something with the memory under the cursor, see `MemoryActions`."""
        if self.memory is not None:
            await getattr(self._actions, action)(self.memory)


def _hit_of(result: RecallResult) -> HitView | None:
    """A result as the table shows it; None if it is no memory."""
    memory = result.memory
    if not isinstance(memory, MemoryView):
        return None
    return HitView(
        **msgspec.structs.asdict(memory),
        relevance=result.relevance,
        search_method=result.search_method,
        parts=result.parts,
    )
