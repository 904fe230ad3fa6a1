"""A view of one table, with a line above it that leaves only the rows with certain words."""

from __future__ import annotations

from textual.widgets import Input

from .view import View


class FilteredView(View):
    """A subclass yields an `Input`, and binds `filter` and `leave_filter`."""

    DEFAULT_CSS = """
    FilteredView { layout: vertical; }
    FilteredView Input { border: none; height: 1; padding: 0 1; background: $boost; display: none; }
    FilteredView Input.-open { display: block; }
    FilteredView DataTable { height: 1fr; padding: 0 1; }
    """

    @property
    def words(self) -> list[str]:
        """The words that a row must have, in lower case."""
        return self.query_one(Input).value.lower().split()

    def redraw(self) -> None:
        """Show the rows that have the words."""

    def show_all(self) -> None:
        """Undo any other narrowing of the rows, without drawing."""

    def action_filter(self) -> None:
        """Open the filter."""
        line = self.query_one(Input)
        line.add_class("-open")
        line.focus()

    def action_leave_filter(self) -> None:
        """Show everything again."""
        line = self.query_one(Input)
        line.value = ""
        line.remove_class("-open")
        self.show_all()
        self.redraw()
        self.first_focus().focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed."""
        event.stop()
        self.redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on to the table."""
        event.stop()
        self.first_focus().focus()
