"""Colours of the theme as styles of single characters, in themes of 16 colours too."""

from __future__ import annotations

from typing import Any

from rich.style import Style
from textual.app import App
from textual.color import Color


def paint(app: App[Any], name: str, *, bold: bool = False, on: str | None = None) -> Style:
    """A style in a colour of the theme, such as `primary`, `success`, `warning` or `error`.

    Args:
        app: has the theme.
        name: the colour of the characters.
        bold: whether they are bold.
        on: the colour behind them.
    """
    color, back = (
        None if which is None else Color.parse(app.theme_variables[which]).rich_color
        for which in (name, on)
    )
    return Style(color=color, bgcolor=back, bold=bold or None)
