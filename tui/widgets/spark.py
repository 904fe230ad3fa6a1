"""A line of bars over time, with its scale in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from .paint import paint

_BARS: Final = "▁▂▃▄▅▆▇█"
_STEPS: Final = (1, 2, 5)


def top_of(highest: float) -> float:
    """The upper end of a scale: 1, 2 or 5 times a power of ten, at least `highest`."""
    power = 1.0
    while power * 10 <= highest:
        power *= 10
    while power > highest > 0 and power > 1e-6:
        power /= 10
    return next((step * power for step in _STEPS if step * power >= highest), 10 * power)


def bars(values: Sequence[float | None], columns: int, top: float) -> str:
    """`columns` bars, the newest on the right; a value that is not known is a blank.

    More values than columns are taken together, by the highest of them.
    """
    shown = list(values)
    if len(shown) > columns > 0:
        per = -(-len(shown) // columns)
        # Counted from the newest, so that bars do not change as they move on.
        first = len(shown) % per
        groups = [shown[:first]] if first else []
        groups += [shown[start : start + per] for start in range(first, len(shown), per)]
        shown = [max((one for one in group if one is not None), default=None) for group in groups]
    text = "".join(_bar(value, top) for value in shown[-columns:] if columns > 0)
    return text.rjust(columns)


def _bar(value: float | None, top: float) -> str:
    if value is None:
        return " "
    if value <= 0:
        return "▁"
    return _BARS[min(int(value / top * 8), 7)] if top else "▁"


class Spark(Widget):
    """`stores/min  ▁▁▂▅▇▂▁  3 now, scale 0-10`: values over time in one line.

    Args:
        label: what is measured.
        unit: follows the numbers, such as ` ms`.
        label_columns: columns of the label, so that several line up.
    """

    DEFAULT_CSS = """
    Spark { height: 1; }
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
        self._label = label.ljust(label_columns)
        self._unit = unit

    def render(self) -> Text:
        """The line: label, bars, the last value, and the upper end of the scale."""
        known = [value for value in self.values if value is not None]
        line = Text(self._label + " ", no_wrap=True, overflow="ellipsis")
        if not known:
            return line.append("no figures yet", "dim")
        top = top_of(max(known))
        last = self.values[-1]
        now = "-" if last is None else f"{number(last)}{self._unit}"
        scale = f"0-{number(top)}{self._unit}"
        columns = self.size.width - len(line) - 20
        if columns >= 6:
            line.append(bars(self.values, columns, top), paint(self.app, "primary"))
            line.append(" ")
        return line.append(now.rjust(8)).append(f" {scale.rjust(10)}", "dim")


def number(value: float) -> str:
    """A number in at most three digits, more if it is large."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"
