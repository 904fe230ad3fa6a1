"""A page of text, such as all fields of an event."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static


class PageScreen(ModalScreen[None]):
    """The text.

    Args:
        title: above it.
        text: harmless, as `View.shown` makes it.
    """

    DEFAULT_CSS = """
    PageScreen { align: center middle; }
    PageScreen > VerticalScroll {
        width: 80; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss(None)", "Close", key_display="esc")
    ]

    def __init__(self, title: Text, text: Text) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """The text."""
        with VerticalScroll() as box:
            box.border_title = self._title
            yield Static(self._text)
