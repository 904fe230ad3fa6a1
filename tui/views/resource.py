"""One view for all tabs of rows: tables with their details, a filter, and a line of state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

from rich.console import RenderableType
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from ..table import PAGE, Column, PagedTable
from .view import Action, View, redraw

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.15
# Ages in tables are drawn again this often, also when nothing happens.
_AGES_SECONDS: Final = 10


@dataclass(frozen=True)
class Part(Generic[T]):
    """Rows of one sort."""

    title: str
    columns: Sequence[Column[T]]
    key_of: Callable[[T], Hashable]  # what a row is known by, so that the cursor stays on it
    empty: str  # what is shown in place of rows
    rows: Callable[[], Sequence[T]] | None = None  # all rows; None: it is filled page by page
    pages: Callable[..., Any] | None = None  # answers a page of rows, such as `AsyncClient.list`
    copied: Callable[[T], str] = str  # what `y` copies of a row
    detail: Callable[[T], RenderableType] | None = None  # all of a row, beside or below the table
    open: Action | None = None  # what Enter does
    count: Callable[[], str | Text] | None = None  # follows the title, such as ` 3`
    above: Sequence[Widget] = ()
    # A row in two lines, where the table has fewer columns than `two_lines_below`.
    brief: Callable[[T], tuple[Text, Text]] | None = None
    two_lines_below: int = 0


class ResourceView(View):
    """A subclass says its `parts`, and reads in `update` what is not only read page by page.

    Several parts are beside each other where there is room (then the view has the class
    `-beside`), else one is shown, its border names the rest, and left and right go to them.
    """

    DEFAULT_CSS = """
    ResourceView { layout: vertical; }
    ResourceView > #line { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; }
    ResourceView > Input, ResourceView > Input:focus {
        border: none; height: 1; padding: 0 1; background: $boost; display: none;
    }
    ResourceView > Input.-open { display: block; }
    ResourceView #parts { height: 1fr; width: 1fr; layout: vertical; }
    ResourceView .part { height: 1fr; width: 1fr; }
    ResourceView .detail { height: auto; max-height: 60%; padding: 0 1; }
    ResourceView .detail.-empty { display: none; }
    ResourceView .panel {
        border-top: solid $border-blurred; border-title-color: $secondary;
        border-title-style: bold; border-title-align: left;
    }
    ResourceView .panel:focus-within { border-top: solid $primary; }
    ResourceView.-beside #parts { layout: grid; grid-size: 2 2; grid-gutter: 0 2; }
    ResourceView.-beside .part { height: 100%; }
    """
    # What can be typed after `/`, shown while the line is empty; "": there is no filter.
    FILTER: ClassVar[str] = ""
    # The least columns and rows of the screen to have the parts beside each other.
    BESIDE: ClassVar[tuple[int, int]] = (120, 24)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "Part before", show=False),
        Binding("right", "turn(1)", "Next part", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._parts = self.parts()
        self.part = next(iter(self._parts))
        self._typing: Timer | None = None
        self._drawn = False

    # What a subclass says

    @abstractmethod
    def parts(self) -> Mapping[str, Part[Any]]:
        """The parts by their names."""

    def head(self) -> Iterable[Widget]:
        """Widgets over the parts."""
        return ()

    def line(self) -> Text | None:
        """The state in a line; None: there is no such line."""
        return None

    def tick(self) -> None:
        """Draw what changes with the time, such as countdowns; called each second."""

    def redraw(self) -> None:
        """Show the rows that have the words of the filter, once the typing pauses."""
        self.draw()

    def show_all(self) -> None:
        """Undo any other narrowing of the rows, without drawing."""

    # Its widgets

    def compose(self) -> ComposeResult:
        yield Static(id="line")
        yield from self.head()
        if self.FILTER:
            yield Input(placeholder=self.FILTER)
        several = len(self._parts) > 1
        boxes = []
        for name, part in self._parts.items():
            table = PagedTable(
                *(part.columns, part.key_of),
                brief=part.brief,
                two_lines_below=part.two_lines_below,
                empty="reading ...",
                opens=part.open is not None and self.possible(part.open),
            )
            detail = VerticalScroll(Static(), classes="detail -empty", can_focus=False)
            inner = [*part.above, table, *([detail] if part.detail else [])]
            boxes.append(Container(*inner, id=name, classes="part panel" if several else "part"))
        yield Container(*boxes, id="parts")

    def on_mount(self) -> None:
        self._arrange()
        self.set_interval(1.0, self._tick)

    def on_resize(self) -> None:
        self._arrange()
        if self._drawn:
            self.draw()

    @property
    def table(self) -> PagedTable[Any]:
        """The table of the part that has the focus, or is shown."""
        return self.table_of(self.part)

    def table_of(self, part: str) -> PagedTable[Any]:
        return self.query_one(f"#{part} PagedTable", PagedTable)

    @property
    def row(self) -> Any:
        return self.table.row

    def first_focus(self) -> Widget:
        return self.table

    def copied(self) -> str:
        return "" if self.row is None else self._parts[self.part].copied(self.row)

    async def show(self, key: str) -> None:
        """Show a part by its name, or select a row of the first."""
        if key in self._parts:
            self.show_part(key)
        elif key:
            self.close_filter()
            self.show_all()
            if not self.table.rows:
                await self.update()
            self.draw()
            self.table.select(key)

    # Drawing

    def draw(self) -> None:
        self._drawn = True
        for name, part in self._parts.items():
            table = self.table_of(name)
            if part.rows is not None:
                table.empty = Text(part.empty)
                table.fill(part.rows())
        self.name_parts()
        self._draw_line()
        self.tick()
        self.draw_details()
        self.refresh_bindings()

    async def update(self) -> None:
        """Read the pages on the screen, and draw them; another `update` ends with `draw`, too."""
        if all([await self.read_pages(name) for name, part in self._parts.items() if part.pages]):
            self.draw()

    async def read_pages(self, name: str, **filters: Any) -> bool:
        """Fill a part with the pages that are on the screen; whether that succeeded."""
        part, table, total = self._parts[name], self.table_of(name), 0
        assert part.pages is not None
        pages: dict[int, list[Any]] = {}
        for page in table.wanted():
            call = partial(part.pages, **filters, limit=PAGE, offset=page * PAGE)
            if (answer := await self.call(call)) is None:
                return False
            pages[page], total = answer.results, answer.total
        table.put(total, pages)
        table.empty = Text(part.empty)
        return True

    def draw_details(self) -> None:
        for name, part in self._parts.items():
            if part.detail is not None:
                row = self.table_of(name).row
                box = self.query_one(f"#{name} > .detail", VerticalScroll)
                box.set_class(row is None, "-empty")
                if row is not None:
                    box.query_one(Static).update(part.detail(row))

    def _draw_line(self) -> None:
        line, shown = self.line(), self.query_one("#line", Static)
        shown.display = line is not None
        if line is not None:
            line.no_wrap, line.overflow = True, "ellipsis"
            redraw(shown, line)

    def _tick(self) -> None:
        if self._drawn and self.is_on_screen:
            self._draw_line()
            self.tick()
            if int(self.app.now()) % _AGES_SECONDS == 0:
                for name in self._parts:
                    self.table_of(name).refresh()

    def name_parts(self) -> None:
        if len(self._parts) == 1:
            return
        for shown in self._parts:
            title = Text(" ")
            for name in [shown] if self.has_class("-beside") else self._parts:
                part = self._parts[name]
                words = Text(part.title).append(part.count() if part.count else "")
                words.stylize("bold" if name == shown else "dim not bold")
                title.append_text(words).append("  ")
            self.query_one(f"#{shown}").border_title = title

    # Parts

    def show_part(self, part: str) -> None:
        self.part = part
        self._arrange()
        self.table.focus()

    def action_turn(self, step: int) -> None:
        names = list(self._parts)
        self.show_part(names[(names.index(self.part) + step) % len(names)])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There may be nothing to turn to."""
        if action == "turn":
            return len(self._parts) > 1
        return super().check_action(action, parameters)

    def on_descendant_focus(self) -> None:
        """The keys are those of the part that has the focus."""
        for part in self._parts:
            if part != self.part and self.table_of(part).has_focus:
                self.part = part
                self._arrange()

    def _arrange(self) -> None:
        size = self.app.size
        wide, high = self.BESIDE
        beside = len(self._parts) > 1 and size.width >= wide and size.height >= high
        self.set_class(beside, "-beside")
        for part in self._parts:
            self.query_one(f"#{part}").display = beside or part == self.part
        self.name_parts()
        self.refresh_bindings()

    # The table

    @on(PagedTable.Moved)
    def _moved(self, event: PagedTable.Moved) -> None:
        if not (self.app.is_running and self._drawn):
            return
        self.draw_details()
        self.moved()
        if event.table.lacks_page:
            self.refresh_data()

    def moved(self) -> None:
        """Called when the cursor is on another row."""

    @on(PagedTable.Chosen)
    def _chosen(self) -> None:
        action = self._parts[self.part].open
        if action is not None:
            self.perform(action)

    # The filter

    @property
    def filter_line(self) -> Input:
        return self.query_one(Input)

    @property
    def typed(self) -> str:
        """What stands in it."""
        return self.filter_line.value.strip() if self.FILTER else ""

    def fits(self, text: str) -> bool:
        """Whether a text has every word that was typed."""
        low = text.lower()
        return all(word in low for word in self.typed.lower().split())

    def open_filter(self) -> None:
        self.filter_line.add_class("-open")
        self.filter_line.focus()

    def leave_filter(self) -> None:
        self.close_filter()
        self.show_all()
        self.redraw()
        self.table.focus()

    def close_filter(self) -> None:
        if self.FILTER:
            self.filter_line.value = ""
            self.filter_line.remove_class("-open")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_PAUSE_SECONDS, self.redraw)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.redraw()
        self.table.focus()

    def on_key(self, event: events.Key) -> None:
        if event.key == "down" and self.FILTER and self.filter_line.has_focus:
            event.stop()
            self.table.focus()
