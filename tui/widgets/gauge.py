"""A bar that fills up to a limit, with the numbers beside it."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from ..text import part_of
from .paint import paint

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def bar(share: float, columns: int) -> tuple[str, str]:
    """The full and the empty part of a bar `columns` wide, to an eighth of a column."""
    eighths = round(min(max(share, 0.0), 1.0) * columns * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    filled = "█" * full + (_EIGHTHS[rest] if rest else "")
    return filled, "─" * (columns - len(filled))


class Gauge(Widget):
    """`warm  ████▌────  45 %  23 of 50 KB`, in one line of any width.

    Args:
        label: what is measured.
        label_columns: columns of the label, so that gauges below each other line up.
        detail_columns: columns of the detail, likewise.
        color: of the bar, up to the limit.
    """

    DEFAULT_CSS = """
    Gauge { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    share: reactive[float | None] = reactive(None)
    detail = reactive("")

    def __init__(
        self,
        label: str,
        *,
        label_columns: int = 0,
        detail_columns: int = 0,
        color: str = "primary",
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._detail_columns = detail_columns
        self._color = color
        self._label = label.ljust(label_columns)

    def set(self, share: float | None, detail: str) -> None:
        """Show a share of the limit (None: no limit) and its text."""
        self.share = share
        self.detail = detail

    def set_bytes(self, used: float, limit: float) -> None:
        """Show a number of bytes against its limit."""
        self.set(used / limit, part_of(used, limit))

    def set_count(self, used: int, limit: int) -> None:
        """Show a number against its limit; 0: it is not known."""
        self.set(used / limit if limit else None, f"{used} of {limit}")

    def render(self) -> Text:
        """The line."""
        line = Text(self._label + " ", no_wrap=True, overflow="ellipsis")
        if self.share is None:
            return line.append(self.detail)
        percent = f"{self.share:4.0%} ".replace("%", " %")
        room = self.size.width - line.cell_len - len(percent) - 1
        # The bar comes before the detail, which is cut where there is no room for both.
        columns = min(max(room - max(len(self.detail), self._detail_columns), 8), room, 24)
        if columns >= 4:
            full, empty = bar(self.share, columns)
            color = "error" if self.share > 1 else self._color
            line.append(full, paint(self.app, color)).append(empty, "dim").append(" ")
        return line.append(percent).append(self.detail, "dim")
