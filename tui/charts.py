"""What views are drawn with: the colours of the theme, bars, gauges, sparks, names with values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.color import Color
from textual.reactive import reactive
from textual.theme import Theme
from textual.widget import Widget
from textual.widgets import Static

from .text import part_of

Rows: TypeAlias = Iterator[tuple[str, str | Text]]

DEFAULT_THEME: Final = "thermocline"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_BARS: Final = " ▁▂▃▄▅▆▇█"
# Deep water below, warm light above: the further down, the colder.
THEMES: Final = (
    Theme(
        name=DEFAULT_THEME,
        primary="#4fb3d9",
        secondary="#7d93b2",
        accent="#f2a65a",
        warning="#f2c14e",
        error="#ef6f6c",
        success="#7fc29b",
        foreground="#d8e2ee",
        background="#0c1622",
        surface="#101d2c",
        panel="#17283b",
        dark=True,
        variables={
            "border": "#2c4560",
            "border-blurred": "#22374e",
            "block-cursor-background": "#20506d",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": "#17324a",
        },
    ),
    Theme(
        name=f"{DEFAULT_THEME}-light",
        primary="#0f6f95",
        secondary="#5a6f8a",
        accent="#b35c00",
        warning="#946200",
        error="#b3261e",
        success="#2f7a4f",
        foreground="#17283b",
        background="#f4f7fa",
        surface="#e9eef4",
        panel="#d8e2ec",
        dark=False,
        variables={
            "border": "#a9bccd",
            "border-blurred": "#c3d1de",
            "block-cursor-background": "#b5d6e6",
            "block-cursor-foreground": "#0c1622",
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": "#d3e4ee",
        },
    ),
)


def paint(app: App[Any], name: str, *, bold: bool = False, on: str | None = None) -> Style:
    """A style in a colour of the theme, such as `primary`, `success`, `warning` or `error`.

    `name` is the colour of the characters ("": that of the text), `on` that behind them.
    """
    color, back = (
        None if not which else Color.parse(app.theme_variables[which]).rich_color
        for which in (name, on)
    )
    return Style(color=color, bgcolor=back, bold=bold or None)


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

    With `label_columns` and `detail_columns`, gauges below each other line up.
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
        self.set(used / limit, part_of(used, limit))

    def set_count(self, used: int, limit: int) -> None:
        """Show a number against its limit; 0: it is not known."""
        self.set(used / limit if limit else None, f"{used:,} of {limit:,}")

    def render(self) -> Text:
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


def top_of(highest: float) -> float:
    """The upper end of a scale: 1, 2 or 5 times a power of ten, at least `highest`."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= highest)


def fitted(values: Sequence[float | None], columns: int) -> list[float | None]:
    """As many values as there are columns, the newest last.

    Values that share a column are shown as their maximum; None is an unknown value.
    """
    count = len(values)
    shown: list[float | None] = []
    for column in range(columns):
        first, end = column * count // columns, (column + 1) * count // columns
        group = (value for value in values[first : max(end, first + 1)] if value is not None)
        shown.append(max(group, default=None))
    return shown


def bars(values: Sequence[float | None], rows: int, top: float) -> list[str]:
    """The rows of bars, the highest first; a value that is not known has none, 0 the least."""
    eighths = [
        0 if value is None else max(1, min(round(value / top * rows * 8), rows * 8))
        for value in values
    ]
    return [
        "".join(_BARS[min(max(eighth - row * 8, 0), 8)] for eighth in eighths)
        for row in reversed(range(rows))
    ]


def number(value: float) -> str:
    """A number in at most three digits, more if it is large."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


class Spark(Widget):
    """Values over time: `stores/min  ▁▁▂▅▇▂▁   3   0-10` in a line, or a title above some rows.

    The `unit` follows the numbers; with `label_columns` several lines line up.
    """

    DEFAULT_CSS = """
    Spark { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    values: reactive[tuple[float | None, ...]] = reactive(())

    def __init__(
        self,
        label: str,
        *,
        unit: str = "",
        label_columns: int = 0,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._label = label
        self._columns = label_columns
        self._unit = unit

    def render(self) -> Text:
        known = [value for value in self.values if value is not None]
        top = top_of(max(known, default=0.0))
        last = self.values[-1] if self.values else None
        now = "-" if last is None else f"{number(last)}{self._unit}"
        scale = f"0-{number(top)}{self._unit}"
        block = self.size.height > 2
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(self._label if block else f"{self._label:<{self._columns}} ")
        if not known:
            return line.append("  nothing yet" if block else "nothing yet", "dim")
        if block:
            return self._block(line, now, scale, top)
        columns = self.size.width - line.cell_len - 22
        if columns >= 6:
            (row,) = bars(fitted(self.values, columns), 1, top)
            line.append(row, paint(self.app, "primary")).append(" ")
        return line.append(f"{now:>9}", "bold").append(f"{scale:>12}", "dim")

    def _block(self, title: Text, now: str, scale: str, top: float) -> Text:
        title.append(f"  {now}", "bold")
        title.append(scale.rjust(max(self.size.width - title.cell_len, len(scale) + 1)), "dim")
        style = paint(self.app, "primary")
        for row in bars(fitted(self.values, self.size.width), self.size.height - 1, top):
            title.append("\n").append(row, style)
        return title


class Facts(Static):
    """Rows of a name and a value; drawn again only when something changed."""

    DEFAULT_CSS = """
    Facts { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, columns: int, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._columns = columns
        self._rows: list[tuple[str, Text]] = []

    def set(self, rows: Iterable[tuple[str, str | Text]]) -> None:
        """Show these rows; a `str` is not markup."""
        made = [(name, Text(value) if isinstance(value, str) else value) for name, value in rows]
        if made == self._rows:
            return
        moved = len(made) != len(self._rows)
        self._rows = made
        lines = Text(no_wrap=True, overflow="ellipsis")
        for number, (name, value) in enumerate(made):
            lines.append("\n" * bool(number))
            lines.append(f"{name:<{self._columns}} ", "dim").append_text(value)
        self.update(lines, layout=moved)
