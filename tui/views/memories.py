"""The memories: a table of all or of what answers a question, and the actions on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from thermocline.daemon.client import AsyncClient
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.schemas.memory import MemoryView
from thermocline.daemon.schemas.recall import HitView, Recalled, RecallResult

from ..dialogs import Field
from ..table import PagedTable
from . import memory_actions, memory_text
from .memory_detail import OPEN, MemoryDetail
from .resource import Part, ResourceView
from .view import Action

_MAX_HITS: Final = 100
_TIERS: Final = ("hot", "warm", "cold", "frozen")
# The orders, and the columns that show them.
_ORDERS: Final = {
    "newest": "age",
    "importance": "importance",
    "score": "score",
    "uses": "uses",
    "type": "type",
    "category": "category",
    "subject": "subject",
}


async def _add(view: MemoriesView) -> None:
    await memory_actions.add(view, view.filters.get("category", ""))


async def _filter(view: MemoriesView) -> None:
    paths = await memory_actions.categories(view)
    tags = sorted({tag for memory in view.table.rows.values() for tag in memory.tags})
    now = view.filters.get
    types = memory_actions.TYPES
    fields = [
        Field("type", "Type", now("type", ""), ", ".join(types), words=types),
        Field("tier", "Tier", now("tier", ""), ", ".join(_TIERS), words=_TIERS),
        Field("category", "Category, and all below it", now("category", ""), words=paths),
        Field("tag", "Tag", now("tag", ""), ", ".join(tags[:6]), words=tags),
    ]

    async def save(values: dict[str, str]) -> None:
        chosen = {name: text for name, value in values.items() if (text := value.strip())}
        for name, words in (("type", types), ("tier", _TIERS)):
            if name in chosen:
                fits = [word for word in words if word.startswith(chosen[name].lower())]
                if not fits:
                    raise ValueError(f"the {name} is one of {', '.join(words)}")
                chosen[name] = fits[0]
        view.filters = chosen
        view.refresh_data()

    await view.enter("Show only", fields, save)


async def _sort(view: MemoriesView) -> None:
    choices = [(order, "age" if order == "newest" else order) for order in _ORDERS]
    chosen = await view.app.choose_from("Sort by", choices)
    if chosen is not None:
        view.sort_by(chosen)


def _review(view: MemoriesView) -> None:
    """Show what came from outside and waits for somebody's word, or all again."""
    view.filters = {} if "outside" in view.filters else {"outside": "true"}
    view.refresh_data()


def _is_outside(view: MemoriesView) -> bool:
    return view.row is not None and view.row.is_outside


def _reverse(view: MemoriesView) -> None:
    view.reverse = not view.reverse
    view.refresh_data()


class MemoriesView(ResourceView):
    """The search, a line on what is shown, the table, and the memory under the cursor."""

    DEFAULT_CSS = """
    MemoriesView .detail {
        height: 8; max-height: 50%; border-top: solid $border; overflow: hidden;
    }
    Screen.-wide MemoriesView .detail { height: 11; }
    Screen.-narrow MemoriesView .detail, Screen.-low MemoriesView .detail { display: none; }
    """
    FILTER = "words, as in a question to the memory"
    WATCHES = frozenset({"memory.", "category.", "tree."})
    ACTIONS = (
        Action("slash", "Search", lambda view: view.open_filter(), display="/"),
        Action("w", "Own word", memory_actions.vouch, writes=True, row=True, when=_is_outside),
        Action("a", "Add", _add, writes=True),
        *memory_actions.ACTIONS,
        Action("f", "Filter", _filter),
        Action("v", "Review", _review),
        Action("s", "Sort", _sort),
        Action("S", "Turn the order", _reverse, show=False),
        Action("escape", "Show all", lambda view: view.leave_filter(), show=False),
    )

    def parts(self) -> Mapping[str, Part[MemoryView]]:
        self.filters: dict[str, str] = {}
        self.order, self.reverse = "newest", False
        self._answer: Recalled | None = None
        self._shape: tuple[Any, ...] = ()
        return {
            "memories": Part(
                "Memories",
                memory_text.columns_of(self),
                lambda memory: memory.id,
                "no memories yet: a adds one",
                pages=AsyncClient.list,
                copied=lambda memory: memory.text,
                detail=self._preview,
                open=OPEN,
                brief=lambda memory: memory_text.two_lines(memory, self),
                two_lines_below=70,
            )
        }

    async def show(self, key: str) -> None:
        """Open the memory with this id, or show those of `category:PATH`."""
        kind, _, path = key.partition(":")
        if kind == "category" and path:
            self.filters = {"category": path}
            self.close_filter()
            self.table.to_top()
            self.refresh_data()
            return
        memory = await self.call(AsyncClient.get, key)
        if memory is not None:
            self.app.push_screen(MemoryDetail(self, memory))

    async def update(self) -> None:
        shape = (self.app.agent, self.typed, *self.filters.items(), self.order, self.reverse)
        if shape != self._shape:
            self._shape = shape
            self.table.to_top()
        if self.typed:
            await self._search()
        else:
            order = {"order": self.order, "reverse": self.reverse}
            if not await self.read_pages("memories", **self.filters, **order):
                return
            self._answer = None
            self.table.columns = memory_text.columns_of(self)
            self.table.sorted_by = (_ORDERS[self.order], self.reverse)
            if self.filters:
                outside = "outside" in self.filters
                words = "nothing from outside waits" if outside else "nothing fits the filter"
                self.table.empty = Text(words)
        self.draw()

    async def _search(self) -> None:
        filters: dict[str, Any] = dict(self.filters)
        # A search finds what came from outside, too, and marks it.
        filters.pop("outside", None)
        for name in ("type", "tag"):
            if name in filters:
                filters[f"{name}s"] = [filters.pop(name)]
        # What is typed so far is rarely a question that anything answers.
        options: dict[str, Any] = {"min_relevance": 0.0, "limit": _MAX_HITS, "fields": "full"}
        options |= {"explain": True, "reinforce": False}
        question = self.typed[:8000]
        answer = await self.call(lambda client: client.recall(question, **filters, **options))
        if answer is None:
            return
        self._answer = answer
        self.table.columns = memory_text.columns_of(self, hits=True)
        self.table.sorted_by = ("", False)
        others = "no memory answers: `thermocline retrieve` shows what else was found"
        self.table.empty = self.shown(answer.why or others)
        self.table.fill([hit for result in answer.results if (hit := _hit_of(result))])

    def redraw(self) -> None:
        self.refresh_data()

    def leave_filter(self) -> None:
        """Leave the search first, then the filter."""
        if not self.filter_line.has_class("-open"):
            self.filters = {}
        super().leave_filter()

    def moved(self) -> None:
        """What can be done depends on the memory."""
        self.refresh_bindings()

    def line(self) -> Text:
        line, total = Text(), self.table.total
        if self._answer is not None:
            hits = (
                f"{total} or more hits" if total >= _MAX_HITS else number_of(total, "hit", "hits")
            )
            line.append(hits, "bold").append(f" in {self._answer.took_ms:.0f} ms, best first")
            if self._answer.confidence == "unsure":
                line.append(", nothing certain")
            sources = dict.fromkeys(result.source for result in self._answer.results)
            if others := ", ".join(source for source in sources if source != "memory"):
                line.append(f"; also found: {others}")
        else:
            line.append(number_of(total, "memory", "memories"), "bold")
            line.append(f" by {self.order}{', turned' if self.reverse else ''}")
        if "outside" in self.filters:
            line.append("  from outside, and nobody's word yet")
        for name, value in self.filters.items():
            if name == "outside":
                continue
            line.append("  ").append(f"{name} ", "bold").append_text(self.shown(value))
        if self.filters or self.typed:
            line.append("  esc shows all", "dim")
        return line

    def _preview(self, memory: MemoryView) -> RenderableType:
        text = self.shown(memory.text[:4000], keep="\n")
        memory_text.mark(text, memory_text.words_of(memory), self)
        grid = Table.grid(padding=(0, 2), expand=True)
        grid.add_column(ratio=1, overflow="fold")
        grid.add_column(width=42)
        if isinstance(memory, HitView):
            grid.add_row(text, memory_text.explained(memory, self, 42))
        else:
            grid.add_row(text, memory_text.lined(memory_text.facts(memory, self)))
        return grid

    def on_paged_table_head_clicked(self, event: PagedTable.HeadClicked) -> None:
        """Sort by that column, or if it is sorted by it, the other way round."""
        order = next((name for name, key in _ORDERS.items() if key == event.column), "")
        if order == self.order:
            _reverse(self)
        elif order:
            self.sort_by(order)

    def sort_by(self, order: str) -> None:
        self.order, self.reverse = order, False
        if self.typed:
            self.app.flash("what a search finds stands by relevance", "warning")
        self.refresh_data()


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
