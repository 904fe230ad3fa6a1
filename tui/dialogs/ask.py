"""Asks for one line."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class AskScreen(ModalScreen[str]):
    """The line; what was entered, or "".

    Args:
        title: what is asked for.
        about: what becomes of it.
        example: what the empty line shows.
    """

    DEFAULT_CSS = """
    AskScreen { align: center middle; }
    AskScreen > Vertical {
        width: 64; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    AskScreen Input, AskScreen Input:focus {
        border: none; height: 1; margin-top: 1; padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Leave it")]

    def __init__(self, title: str, about: str, example: str = "") -> None:
        super().__init__()
        self._title = title
        self._about = about
        self._example = example

    def compose(self) -> ComposeResult:
        """Title, explanation, and the line."""
        with Vertical() as box:
            box.border_title = self._title
            yield Static(self._about)
            yield Input(placeholder=self._example)

    def on_mount(self) -> None:
        """It can be typed at once."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self.dismiss(event.value.strip())
