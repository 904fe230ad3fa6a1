"""The memories: a table of all or of what a search finds, and the actions on each."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.memory import MemoryPage, MemoryView
from thermocline.daemon.shapes.recall import HitView, Recalled

from ..dialogs.form import Field, FormScreen
from ..widgets.paged import PAGE, PagedTable
from ..widgets.paint import paint
from . import memory_columns, memory_text
from .memory_actions import MemoryActions
from .memory_detail import MemoryDetail
from .view import View

_DEBOUNCE_SECONDS: Final = 0.15
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


class MemoriesView(View):
    """The tab."""

    DEFAULT_CSS = """
    MemoriesView { layout: vertical; }
    MemoriesView #search { height: 1; display: none; background: $panel; }
    MemoriesView #search > Static { width: 3; color: $accent; text-style: bold; }
    MemoriesView #search > Input { border: none; height: 1; padding: 0; background: $panel; }
    MemoriesView #search > Input:focus { border: none; }
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
    WRITES: ClassVar[frozenset[str]] = frozenset({"add", "edit", "forget", "reinforce", "pin"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/"),
        Binding("a", "add", "Add"),
        Binding("e", "edit", "Edit"),
        Binding("p", "pin", "Pin"),
        Binding("r", "reinforce", "Reinforce"),
        Binding("d", "forget", "Forget"),
        Binding("f", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("S", "turn", "Turn the order", show=False),
        Binding("escape", "clear", "Show all", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.filters: dict[str, str] = {}
        self.order, self.reverse = "newest", False
        self.query_text = ""
        self._found: Recalled | None = None
        self._actions = MemoryActions(self)
        self._pause: Timer | None = None
        self._shape: tuple[Any, ...] = ()

    def compose(self) -> ComposeResult:
        """The search, a line on what is shown, the table, and the memory under the cursor."""
        with Horizontal(id="search"):
            yield Static(" / ", markup=False)
            yield Input(placeholder="words, as in a question to the memory")
        yield Static(id="line")
        yield PagedTable[MemoryView](
            memory_columns.listed(self),
            lambda memory: memory.id,
            brief=memory_columns.brief(self),
            two_lines_below=70,
            empty="no memories yet: a adds one",
        )
        with Horizontal(id="preview"):
            yield Static(id="said")
            yield Static(id="why")

    @property
    def table(self) -> PagedTable[MemoryView]:
        """The table."""
        return self.query_one(PagedTable)

    @property
    def memory(self) -> MemoryView | None:
        """The memory under the cursor."""
        return self.table.here

    def first_focus(self) -> Widget:
        """The table."""
        return self.table

    def copied(self) -> str:
        """The text under the cursor."""
        return "" if self.memory is None else self.memory.text

    def paint(self, name: str, *, bold: bool = False) -> Style:
        """A colour of the theme."""
        return paint(self.app, name, bold=bold)

    async def show(self, what: str) -> None:
        """Open the memory with this id, or show those of `category:PATH`."""
        kind, _, path = what.partition(":")
        if kind == "category" and path:
            self.filters = {"category": path}
            self.query_text = self.query_one(Input).value = ""
            self.query_one("#search").display = False
            self.table.to_top()
            self.refresh_data()
            return
        memory = await self.call(Client.get, what)
        if memory is not None:
            self.app.push_screen(MemoryDetail(self, memory))

    # Reading

    async def update(self) -> None:
        """Read the pages on the screen, or ask the question again."""
        shape = (self.app.agent, self.query_text, *self.filters.items(), self.order, self.reverse)
        if shape != self._shape:
            self._shape = shape
            self.table.to_top()
        if self.query_text:
            await self._search()
        else:
            await self._list()
        self._tell()
        self._preview()

    async def _list(self) -> None:
        pages: dict[int, list[MemoryView]] = {}
        total = 0
        for page in self.table.wanted():
            found = await self.call(partial(_page, wish=self._wish(), page=page))
            if found is None:
                return
            pages[page], total = found.results, found.total
        self._found = None
        self.table.columns = memory_columns.listed(self)
        self.table.sorted_by = (_ORDERS[self.order], self.reverse)
        nothing = "nothing fits the filter" if self.filters else "no memories yet: a adds one"
        self.table.empty = Text(nothing)
        self.table.put(total, pages)

    async def _search(self) -> None:
        filters: dict[str, Any] = {
            {"type": "types", "tag": "tags"}.get(name, name): [value]
            if name in {"type", "tag"}
            else value
            for name, value in self.filters.items()
        }
        found = await self.call(partial(_hits, query=self.query_text[:8000], filters=filters))
        if found is None:
            return
        self._found = found
        why = found.why if isinstance(found.why, str) else "nothing found"
        self.table.columns = memory_columns.found(self)
        self.table.sorted_by = ("", False)
        self.table.empty = self.shown(why)
        self.table.put(len(found.results), {0: list[MemoryView](found.results)})

    def _wish(self) -> dict[str, Any]:
        return {**self.filters, "order": self.order, "reverse": self.reverse}

    def on_paged_table_moved(self) -> None:
        """Show the memory under the cursor, and read pages that are not known yet."""
        if not self.app.is_running:
            return
        self._preview()
        table = self.table
        if not self.query_text and any(
            page * PAGE not in table.rows for page in table.wanted() if page * PAGE < table.total
        ):
            self.refresh_data()

    # Drawing

    def _tell(self) -> None:
        line = Text(no_wrap=True, overflow="ellipsis")
        total = self.table.total
        if self._found is not None:
            hits = f"{total} or more hits" if total >= _HITS else number_of(total, "hit", "hits")
            line.append(hits, "bold").append(f" in {self._found.took_ms:.0f} ms, best first")
        else:
            line.append(number_of(total, "memory", "memories"), "bold")
            line.append(f" by {self.order}{', turned' if self.reverse else ''}")
        for name, value in self.filters.items():
            line.append("  ").append(f"{name} ", "bold").append_text(self.shown(value))
        if self.filters or self.query_text:
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
        memory_text.mark(
            text, memory_text.words_of(memory), self.paint("accent") + Style(underline=True)
        )
        said.update(text, layout=False)
        facts = memory_text.facts(memory, self.shown, self.paint, self.app.now())
        if isinstance(memory, HitView):
            why.update(memory_text.explained(memory, self.paint, 42), layout=False)
        else:
            why.update(memory_text.lined(facts), layout=False)

    # Search and filter

    def action_search(self) -> None:
        """Type a question."""
        self.query_one("#search").display = True
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Ask once the typing pauses."""
        event.stop()
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(_DEBOUNCE_SECONDS, self._ask)

    def _ask(self) -> None:
        text = self.query_one(Input).value.strip()
        if text != self.query_text:
            self.query_text = text
            self.refresh_data()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The keys go to the table."""
        event.stop()
        self._ask()
        self.table.focus()

    def on_key(self, event: events.Key) -> None:
        """From the search down into the table."""
        if event.key == "down" and self.query_one(Input).has_focus:
            event.stop()
            self.table.focus()

    def action_clear(self) -> None:
        """Leave the search first, then the filter."""
        search = self.query_one("#search")
        if search.display:
            search.display = False
            self.query_one(Input).value = self.query_text = ""
        else:
            self.filters = {}
        self.table.focus()
        self.refresh_data()

    @work
    async def action_filter(self) -> None:
        """Choose what is shown."""
        tree = await self.call(Client.tree)
        paths = [] if tree is None else [path for path in tree.tree if not path.startswith("_")]
        tags = sorted({tag for memory in self.table.rows.values() for tag in memory.tags})
        now = self.filters.get
        fields = [
            Field("type", "Type", now("type", ""), ", ".join(_TYPES), words=_TYPES),
            Field("tier", "Tier", now("tier", ""), ", ".join(_TIERS), words=_TIERS),
            Field("category", "Category, and all below it", now("category", ""), words=paths),
            Field("tag", "Tag", now("tag", ""), ", ".join(tags[:6]), words=tags),
        ]

        async def save(values: dict[str, str]) -> str:
            chosen = {name: text for name, value in values.items() if (text := value.strip())}
            for name, words in (("type", _TYPES), ("tier", _TIERS)):
                if name in chosen:
                    found = [word for word in words if word.startswith(chosen[name].lower())]
                    if not found:
                        return f"the {name} is one of {', '.join(words)}"
                    chosen[name] = found[0]
            self.filters = chosen
            return ""

        if await self.app.push_screen_wait(FormScreen("Show only", fields, save)):
            self.refresh_data()

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
        if self.query_text:
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
    async def action_edit(self) -> None:
        """Change it."""
        if self.memory is not None:
            await self._actions.edit(self.memory)

    @work
    async def action_forget(self) -> None:
        """Forget it."""
        if self.memory is not None:
            await self._actions.forget(self.memory)

    @work
    async def action_reinforce(self) -> None:
        """Count a use."""
        if self.memory is not None:
            await self._actions.reinforce(self.memory)

    @work
    async def action_pin(self) -> None:
        """Pin it or not."""
        if self.memory is not None:
            await self._actions.pin(self.memory)


def _page(client: Client, wish: dict[str, Any], page: int) -> MemoryPage:
    return client.list(**wish, limit=PAGE, offset=page * PAGE)


def _hits(client: Client, query: str, filters: dict[str, Any]) -> Recalled:
    # What is typed so far is rarely a question that anything answers.
    options = {"explain": True, "reinforce": False, "min_relevance": 0.0}
    return client.recall(query, **filters, **options, limit=_HITS)
