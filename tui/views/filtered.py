"""A view with a line above its table that leaves only what has certain words."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from textual import events
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from ..widgets.paged import PagedTable
from .view import View

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.15


class FilteredView(View, Generic[T]):
    """A subclass yields an `Input` and one table, and binds `filter` and `leave_filter`."""

    DEFAULT_CSS = """
    FilteredView Input, FilteredView Input:focus {
        border: none; height: 1; padding: 0 1; background: $boost; display: none;
    }
    FilteredView Input.-open { display: block; }
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._typing: Timer | None = None

    @property
    def table(self) -> PagedTable[T]:
        """The table."""
        return self.query_one(PagedTable)

    def first_focus(self) -> Widget:
        """The table."""
        return self.table

    @property
    def line(self) -> Input:
        """The line."""
        return self.query_one(Input)

    @property
    def typed(self) -> str:
        """What stands in it."""
        return self.line.value.strip()

    def redraw(self) -> None:
        """Show the rows that have the words, once the typing pauses."""

    def show_all(self) -> None:
        """Undo any other narrowing of the rows, without drawing."""

    def action_filter(self) -> None:
        """Open the line."""
        self.line.add_class("-open")
        self.line.focus()

    def action_leave_filter(self) -> None:
        """Show everything again."""
        self.close_line()
        self.show_all()
        self.redraw()
        self.first_focus().focus()

    def close_line(self) -> None:
        """Hide and empty the line."""
        self.line.value = ""
        self.line.remove_class("-open")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed."""
        event.stop()
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_PAUSE_SECONDS, self.redraw)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on to the table."""
        event.stop()
        self.redraw()
        self.first_focus().focus()

    def on_key(self, event: events.Key) -> None:
        """So does the arrow down."""
        if event.key == "down" and self.line.has_focus:
            event.stop()
            self.first_focus().focus()
