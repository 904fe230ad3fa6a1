"""A table of any length that holds only the pages on the screen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

T = TypeVar("T")

PAGE: Final = 100
_GAP: Final = 2
_MARK: Final = 2
_LEAST: Final = 8


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column."""

    label: str
    width: int  # on the screen, in columns; 0: the remaining width
    cell: Callable[[T], Text | str]  # its text for a row, on one line; a `str` is not markup
    key: str = ""  # the sort key; "" if it cannot be sorted by
    # The widths of the table, in columns, at which it is shown.
    least: int = 0
    most: int = 10_000
    right: bool = False  # whether it stands to the right, as numbers do
    keep_end: bool = False  # a cell that is too long loses its beginning, as paths do


class PagedTable(ScrollView, Generic[T], can_focus=True):
    """A table of which only the rows on the screen, and a page around them, are loaded.

    The owner fills it by `put`, for the pages that `wanted` names; `Moved` says when they may have
    changed. A table of one page is filled at once by `fill`. Below `two_lines_below` columns a row
    has two lines, those of `brief`. One of the `columns` has the width 0; a row is known by its
    `key_of`, so that the cursor stays on it; `empty` is shown in place of rows; `opens`: Enter and
    a second click do something.
    """

    DEFAULT_CSS = """
    PagedTable { height: 1fr; width: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    PagedTable > .paged--head { color: $text-muted; text-style: bold; background: $panel; }
    PagedTable > .paged--cursor { background: $panel; }
    PagedTable:focus > .paged--cursor { background: $primary-muted; text-style: bold; }
    PagedTable > .paged--mark { color: $accent; text-style: bold; }
    PagedTable > .paged--dim { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("paged--head", "paged--cursor", "paged--mark", "paged--dim")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "go(0)", "First", show=False),
        Binding("end", "go(-1)", "Last", show=False),
        Binding("enter", "choose", "Open"),
    ]
    total: reactive[int] = reactive(0)
    cursor: reactive[int] = reactive(0, repaint=False)
    sorted_by: reactive[tuple[str, bool]] = reactive(("", False))

    class Moved(Message):
        """The cursor has moved, or other rows are on the screen."""

        def __init__(self, table: PagedTable[T]) -> None:
            super().__init__()
            self.table = table

        def can_replace(self, message: Message) -> bool:
            """Only the last one counts."""
            return isinstance(message, PagedTable.Moved) and message.table is self.table

    class Chosen(Message):
        """Enter or a second click."""

    class HeadClicked(Message):
        """The head of a column that can be sorted by."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(
        self,
        columns: Sequence[Column[T]],
        key_of: Callable[[T], Hashable],
        *,
        brief: Callable[[T], tuple[Text, Text]] | None = None,
        two_lines_below: int = 0,
        empty: str = "nothing here",
        opens: bool = True,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self.columns = columns
        self._opens = opens
        self._key_of = key_of
        self._brief = brief
        self._two_lines_below = two_lines_below
        self.empty = Text(empty)
        self.rows: dict[int, T] = {}

    # What it holds

    @property
    def row(self) -> T | None:
        """The row under the cursor, if it is known."""
        return self.rows.get(self.cursor)

    def wanted(self) -> list[int]:
        """The numbers of the pages that are on the screen, the cursor's first."""
        first = max(0, int(self.scroll_offset.y) // self.lines)
        last = first + max(1, self.size.height // self.lines)
        pages = {self.cursor // PAGE, first // PAGE, last // PAGE}
        return sorted(
            (page for page in pages if page * PAGE < max(self.total, 1)),
            key=lambda page: page != self.cursor // PAGE,
        )

    @property
    def lacks_page(self) -> bool:
        """Whether a row on the screen is not known yet."""
        return any(
            page * PAGE not in self.rows for page in self.wanted() if page * PAGE < self.total
        )

    def put(self, total: int, pages: Mapping[int, Sequence[T]]) -> None:
        """Show these pages of `total` rows, and drop all others.

        The cursor stays on its row where that is among them, but on the first place.
        """
        before = None if self.row is None else self._key_of(self.row)
        self.rows = {
            page * PAGE + number: row
            for page, rows in pages.items()
            for number, row in enumerate(rows)
        }
        self.total = total
        self._measure()
        at = min(self.cursor, max(0, total - 1))
        if before is not None and self.cursor:
            at = next((n for n, row in self.rows.items() if self._key_of(row) == before), at)
        moved = at != self.cursor
        self.set_reactive(PagedTable.cursor, at)
        if moved:
            self._reveal()
        self.refresh()
        self.post_message(self.Moved(self))

    def fill(self, rows: Sequence[T]) -> None:
        """Show these rows, all there are."""
        self.put(len(rows), {0: rows})

    def select(self, key: Hashable) -> bool:
        """Put the cursor on a known row."""
        at = next((n for n, row in self.rows.items() if self._key_of(row) == key), None)
        if at is not None:
            self.cursor = at
        return at is not None

    def to_top(self) -> None:
        self.set_reactive(PagedTable.cursor, 0)
        self.refresh()
        self.scroll_to(y=0, animate=False)

    # Moving

    def action_move(self, by: int) -> None:
        self.cursor = min(max(0, self.cursor + by), max(0, self.total - 1))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, (self.size.height - 1) // self.lines - 1))

    def action_go(self, to: int) -> None:
        """The first row, or with -1 the last."""
        self.cursor = 0 if to == 0 else max(0, self.total - 1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Enter has a meaning only where rows are opened; nothing scrolls sideways."""
        sideways = ("scroll_left", "scroll_right", "page_left", "page_right")
        return action not in sideways and (self._opens or action != "choose")

    def action_choose(self) -> None:
        if self.row is not None:
            self.post_message(self.Chosen())

    def watch_cursor(self, old: int, new: int) -> None:
        """Keep it on the screen, and draw the two rows that look different."""
        self._reveal()
        for at in (old, new):
            top = at * self.lines + self._head - int(self.scroll_offset.y)
            self.refresh(Region(0, top, self.size.width, self.lines))
        self.post_message(self.Moved(self))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Moved(self))

    def _on_resize(self, _: events.Resize) -> None:
        self._measure()
        self._reveal()
        self.post_message(self.Moved(self))

    def on_click(self, event: events.Click) -> None:
        """The head sorts; a row is selected, and when it already is, opened."""
        if event.y == 0 and self.lines == 1:
            start = _MARK
            for column, width in self._laid_out():
                if start <= event.x < start + width + _GAP and column.key:
                    self.post_message(self.HeadClicked(column.key))
                start += width + _GAP
            return
        at = (int(self.scroll_offset.y) + event.y - self._head) // self.lines
        if not 0 <= at < self.total:
            return
        if at == self.cursor:
            self.action_choose()
        self.cursor = at

    # Drawing

    @property
    def lines(self) -> int:
        return 2 if self._brief is not None and self.size.width < self._two_lines_below else 1

    @property
    def _head(self) -> int:
        return 1 if self.lines == 1 and self.total else 0

    def _measure(self) -> None:
        height = max(self.total * self.lines, 1) + self._head
        self.virtual_size = Size(self.size.width, height)

    def _reveal(self) -> None:
        top = self.cursor * self.lines
        room = self.size.height - self._head
        if room <= 0:
            return
        at = self.scroll_offset.y
        if top < at:
            self.scroll_to(y=top, animate=False, force=True)
        elif top + self.lines > at + room:
            self.scroll_to(y=top + self.lines - room, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        if y == 0 and self._head:
            return self._strip(self._head_text(), width, self._style("paged--head"))
        at, line = divmod(int(self.scroll_offset.y) + y - self._head, self.lines)
        if at >= self.total:
            nothing = self.total == 0 and at == 0 and line == 0
            text = Text("  ") if nothing else Text()
            if nothing:
                text.append_text(self.empty).stylize(self._style("paged--dim"))
            return self._strip(text, width, base)
        here = at == self.cursor
        text = Text().append("› " if here and line == 0 else "  ", self._style("paged--mark"))
        row = self.rows.get(at)
        if row is None:
            text.append("…", self._style("paged--dim"))
        elif self.lines == 2 and self._brief is not None:
            text.append_text(_fitted(self._brief(row)[line], width - _MARK))
        else:
            for column, room in self._laid_out():
                cell = column.cell(row)
                cell = Text(cell) if isinstance(cell, str) else cell
                keeps = {"right": column.right, "keep_end": column.keep_end}
                text.append_text(_fitted(cell, room, **keeps)).append(" " * _GAP)
        return self._strip(text, width, base + self._style("paged--cursor") if here else base)

    def _head_text(self) -> Text:
        text = Text(" " * _MARK)
        key, reverse = self.sorted_by
        for column, room in self._laid_out():
            label = column.label
            if column.key and column.key == key:
                label = f"{label}{'▴' if reverse else '▾'}"
            text.append_text(_fitted(Text(label), room, right=column.right)).append(" " * _GAP)
        return text

    def _laid_out(self) -> list[tuple[Column[T], int]]:
        width = self.size.width
        shown = [column for column in self.columns if column.least <= width <= column.most]
        fixed = sum(column.width + _GAP for column in shown if column.width)
        rest = width - _MARK - fixed - _GAP * sum(not column.width for column in shown)
        # The gap after the last column is given up first.
        rest = rest if rest >= _LEAST else max(4, rest + _GAP)
        return [(column, column.width or rest) for column in shown]

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def _strip(self, text: Text, width: int, style: Style) -> Strip:
        text.no_wrap, text.end = True, ""
        strip = Strip(text.render(self.app.console)).adjust_cell_length(width)
        return strip.apply_style(style)


def _fitted(text: Text, room: int, *, right: bool = False, keep_end: bool = False) -> Text:
    """A text padded or cut to a number of columns; the cut end has an ellipsis."""
    if room <= 0:
        return Text()
    if keep_end and cell_len(text.plain) > room:
        while cell_len(text.plain) >= room:
            text = text[1:]
        return Text("…").append_text(text)
    # The first line of a long text is cut before it is measured.
    cut = text[: room + 1] if len(text) > room + 1 else text.copy()
    cut.truncate(room, overflow="ellipsis")
    blanks = " " * max(0, room - cell_len(cut.plain))
    return Text(blanks).append_text(cut) if right else cut.append(blanks)
