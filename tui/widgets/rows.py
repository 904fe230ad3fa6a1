"""A table that lays itself out for its width, and keeps the row under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable

from ..text import one_line

_PADDING: Final = 2
_SCROLLBAR: Final = 1


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        title: its words in the head.
        width: its columns on the screen; 0: the remaining width, at least 8.
        least: the width of the table from which on it is there.
        right: whether numbers line up at the right.
        keep_end: a cell that is too long loses its beginning, as paths do.
    """

    title: str
    width: int = 0
    least: int = 0
    right: bool = False
    keep_end: bool = False


class Rows(DataTable[Text], inherit_bindings=False):
    """Rows with a key each. Cells are `Text`; `str` cells are words of the view's own.

    Args:
        columns: of which one has the width 0.
        empty: what is said when there is no row.

    Attributes:
        empty: the same, for the next `fill`.
    """

    DEFAULT_CSS = """
    Rows { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1;
        background: $background; }
    Rows > .datatable--header { background: $background; color: $secondary; text-style: none; }
    """

    # It never scrolls sideways: left and right are for the view.
    BINDINGS: ClassVar[list[BindingType]] = [
        one
        for one in DataTable.BINDINGS
        if not (isinstance(one, Binding) and one.key in ("left", "right"))
    ]

    def __init__(
        self,
        *columns: Column,
        empty: str = "nothing here",
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id, cursor_type="row", header_height=1)
        self._layout_of = columns
        self.empty = empty
        self._filled: list[tuple[str, Sequence[Text | str]]] = []
        self._drawn: object = None
        # Where the cursor goes once there is a width to draw for.
        self._place = 0

    @property
    def selected(self) -> str:
        """The key of the row under the cursor; "" if there is no row."""
        place = self.cursor_row if self._drawn is not None else self._place
        return self._filled[place][0] if 0 <= place < len(self._filled) else ""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._filled)

    def lay_out(self, *columns: Column, empty: str) -> None:
        """Have other columns from the next `fill` on."""
        self._layout_of, self.empty = columns, empty

    def fill(
        self, rows: Sequence[tuple[str, Sequence[Text | str]]], *, select: str | None = None
    ) -> None:
        """Show these rows; the cursor stays on its row, or goes to that of the key `select`."""
        wanted = select if select is not None else self.selected
        place = next((at for at, (key, _) in enumerate(rows) if key == wanted), None)
        self._filled = list(rows)
        self._draw(
            (self._place if self._drawn is None else self.cursor_row) if place is None else place
        )

    def select(self, key: str) -> None:
        """Put the cursor on the row with this key, if there is one."""
        place = next((at for at, (one, _) in enumerate(self._filled) if one == key), None)
        if place is not None:
            self._place = place
            self.move_cursor(row=place)

    def on_resize(self, event: Resize) -> None:
        """Lay out the columns for the new width."""
        del event
        self._draw(self._place if self._drawn is None else self.cursor_row)

    def _draw(self, cursor: int) -> None:
        self._place = cursor
        width = self.size.width
        if not width:
            return
        state = (width, self._layout_of, self.empty, self._filled)
        if state == self._drawn:
            return
        top = self.scroll_offset.y
        self._drawn = (width, self._layout_of, self.empty, list(self._filled))
        self.clear(columns=True)
        self.show_cursor = self.show_header = bool(self._filled)
        if not self._filled:
            self.add_column("", width=width - _PADDING)
            self.add_row(Text(self.empty, "dim"))
            return
        shown = [one for one in self._layout_of if width >= one.least]
        fixed = sum(one.width for one in shown) + _PADDING * len(shown) + _SCROLLBAR
        widths = [one.width or max(8, width - fixed) for one in shown]
        for one, columns in zip(shown, widths, strict=True):
            self.add_column(Text(_sized(one.title, columns, one)), width=columns)
        places = [self._layout_of.index(one) for one in shown]
        for _, cells in self._filled:
            row = [
                _cell(cells[place], columns, one)
                for place, columns, one in zip(places, widths, shown, strict=True)
            ]
            self.add_row(*row)
        self.move_cursor(row=min(cursor, len(self._filled) - 1), scroll=False)
        self.scroll_to(y=top, animate=False, force=True)
        self.call_after_refresh(self._scroll_cursor_into_view)


def _cell(given: Text | str, columns: int, layout: Column) -> Text:
    text = Text(given) if isinstance(given, str) else given
    if cell_len(text.plain) <= columns and "\n" not in text.plain and not layout.right:
        return text
    cut = Text(_sized(one_line(text.plain), columns, layout), text.style, no_wrap=True)
    if not layout.keep_end:
        cut.spans = [span for span in text.spans if span.start < len(cut)]
    return cut


def _sized(text: str, columns: int, layout: Column) -> str:
    if cell_len(text) <= columns:
        return " " * (columns - cell_len(text)) + text if layout.right else text
    if layout.keep_end:
        while cell_len(text) > columns - 1:
            text = text[1:]
        return f"…{text}"
    return f"{set_cell_size(text, columns - 1).rstrip()}…"
