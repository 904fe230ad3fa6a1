"""The line after `:`, which goes to a tab or an agent by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input


class JumpScreen(ModalScreen[str]):
    """The line; the word that was entered, completed, or "".

    Args:
        words: what can be entered.
    """

    DEFAULT_CSS = """
    JumpScreen { align: left bottom; background: transparent; }
    JumpScreen Input { border: none; height: 1; padding: 0 1; background: $boost; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Leave it")]

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """The line."""
        yield Input(
            placeholder=f"go to: {', '.join(self._words[:3])} ...",
            suggester=SuggestFromList(self._words, case_sensitive=False),
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter takes the first word with this beginning."""
        event.stop()
        typed = event.value.strip().lower()
        found = (word for word in self._words if typed and word.lower().startswith(typed))
        self.dismiss(next(found, event.value.strip()))
