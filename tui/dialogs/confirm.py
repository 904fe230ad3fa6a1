"""Asks for a word before an action that cannot simply be undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class ConfirmScreen(ModalScreen[bool]):
    """The question; True once the word was typed.

    Args:
        title: what will be done, such as `Forget 3 memories`.
        effects: what that means, a line each.
        word: to be typed.
    """

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > VerticalScroll {
        width: 64; max-width: 100%; height: auto; max-height: 100%;
        border: round $error; padding: 0 1; background: $surface;
    }
    ConfirmScreen Input, ConfirmScreen Input:focus {
        border: none; height: 1; margin-top: 1; padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(False)", "Leave it")]

    def __init__(self, title: str | Text, effects: Sequence[str | Text], word: str) -> None:
        super().__init__()
        self._title = title
        self._effects = effects
        self._word = word

    def compose(self) -> ComposeResult:
        """Title, effects, and the line for the word."""
        with VerticalScroll() as box:
            box.border_title = Text.assemble(self._title)
            for effect in self._effects:
                yield Static(Text.assemble(effect))
            yield Static(f"\nType [b]{self._word}[/b] to do it, escape to leave it.")
            yield Input(placeholder=self._word)

    def on_mount(self) -> None:
        """Focus the line."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        if event.value.strip() == self._word:
            self.dismiss(True)
        else:
            event.input.value = ""
            self.app.bell()
