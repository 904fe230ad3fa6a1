"""A choice of one from a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option


class ChooseScreen(ModalScreen[str | None]):
    """The list; the value that was taken, or None.

    Args:
        title: what is chosen.
        choices: value and text of each.
        chosen: the value that the list begins with.
    """

    DEFAULT_CSS = """
    ChooseScreen { align: center middle; }
    ChooseScreen OptionList {
        width: 50; max-width: 100%; height: auto; max-height: 80%;
        border: round $primary; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Leave it")]

    def __init__(
        self, title: str, choices: Sequence[tuple[str, str]], chosen: str | None = None
    ) -> None:
        super().__init__()
        self._title = title
        self._values = [value for value, _ in choices]
        self._texts = [text for _, text in choices]
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """The list."""
        options = OptionList(*(Option(Text(text)) for text in self._texts))
        options.border_title = self._title
        if self._chosen in self._values:
            options.highlighted = self._values.index(self._chosen)
        yield options

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter, or a click."""
        event.stop()
        self.dismiss(self._values[event.option_index])
