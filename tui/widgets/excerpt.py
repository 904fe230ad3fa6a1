"""A part of a file around one of its chunks, with the numbers of the lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static


class Excerpt(VerticalScroll, can_focus=True):
    """The lines before a chunk, its own lines behind a bar, and the lines after it."""

    DEFAULT_CSS = """
    Excerpt {
        scrollbar-size-vertical: 1; border-top: solid $border-blurred;
        border-title-color: $secondary; border-title-style: bold;
    }
    Excerpt:focus { border-top: solid $primary; }
    Excerpt > Static { height: auto; padding-left: 1; }
    Excerpt > #chunk { padding-left: 0; border-left: thick $accent; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts = {name: Static(id=name) for name in ("before", "chunk", "after")}

    def compose(self) -> ComposeResult:
        """Three texts."""
        yield from self._parts.values()

    def show(self, lines: Sequence[Text], first: int, chunk: tuple[int, int] | None) -> None:
        """Show lines, of which the number of the first is `first`, and go to those of the chunk.

        Args:
            lines: harmless, see `plain`.
            first: the number of the first.
            chunk: the numbers of its first and last line, or None.
        """
        start, end = chunk if chunk is not None else (first + len(lines), first + len(lines))
        columns = len(str(first + len(lines)))
        parts = {
            "before": range(first, min(start, first + len(lines))),
            "chunk": range(start, end + 1) if chunk is not None else range(0),
            "after": range(end + 1, first + len(lines)),
        }
        for name, numbers in parts.items():
            table = Table.grid(padding=(0, 1))
            table.add_column(justify="right", width=columns, no_wrap=True)
            table.add_column(overflow="fold")
            for number in numbers:
                if 0 <= number - first < len(lines):
                    table.add_row(Text(str(number), "dim"), lines[number - first])
            part = self._parts[name]
            part.update(table)
            part.display = bool(numbers)
        self.call_after_refresh(self._go_to_chunk, chunk is not None)

    def say(self, text: str | Text) -> None:
        """Show a text in place of lines."""
        for name, part in self._parts.items():
            part.display = name == "after"
        self._parts["after"].update(text)
        self.border_title = None
        self.scroll_home(animate=False)

    def _go_to_chunk(self, there: bool) -> None:
        if not there:
            self.scroll_home(animate=False)
            return
        # A line or two before it show where it stands.
        top = self._parts["chunk"].virtual_region.y
        self.scroll_to(y=max(0, top - 2), animate=False, force=True)
