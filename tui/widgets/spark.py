"""Bars over time, with their scale in words: in one line, or in a block of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from .paint import paint

_BARS: Final = " ▁▂▃▄▅▆▇█"
_STEPS: Final = (1, 2, 5, 10)


def top_of(highest: float) -> float:
    """The upper end of a scale: 1, 2 or 5 times a power of ten, at least `highest`."""
    if highest <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= highest:
        power *= 10
    while power > highest:
        power /= 10
    return next(step * power for step in _STEPS if step * power >= highest)


def fitted(values: Sequence[float | None], columns: int) -> list[float | None]:
    """As many values as there are columns, the newest last.

    Values that share a column are shown as their maximum; None is an unknown value.
    """
    count = len(values)
    shown: list[float | None] = []
    for column in range(columns):
        first, end = column * count // columns, (column + 1) * count // columns
        group = (one for one in values[first : max(end, first + 1)] if one is not None)
        shown.append(max(group, default=None))
    return shown


def bars(values: Sequence[float | None], rows: int, top: float) -> list[str]:
    """The rows of bars, the highest first; a value that is not known has none, 0 the least."""
    eighths = [
        0 if value is None else max(1, min(round(value / top * rows * 8), rows * 8))
        for value in values
    ]
    return [
        "".join(_BARS[min(max(one - row * 8, 0), 8)] for one in eighths)
        for row in reversed(range(rows))
    ]


def number(value: float) -> str:
    """A number in at most three digits, more if it is large."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


class Spark(Widget):
    """Values over time: `stores/min  ▁▁▂▅▇▂▁   3   0-10` in a line, or a title above some rows.

    Args:
        label: what is measured.
        unit: follows the numbers, such as ` ms`.
        label_columns: columns of the label in a line, so that several line up.
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
        """The label, the bars, the last value, and the upper end of the scale."""
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
