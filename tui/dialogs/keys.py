"""All keys that are valid where the focus was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static


class KeysScreen(ModalScreen[None]):
    """The list.

    Args:
        groups: of each part of the view its name, and the keys with what they do.
    """

    DEFAULT_CSS = """
    KeysScreen { align: center middle; }
    KeysScreen > VerticalScroll {
        width: 60; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss(None)", "Close", key_display="esc")
    ]

    def __init__(self, groups: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        """The table."""
        table = Table.grid(padding=(0, 2))
        for name, keys in self._groups:
            table.add_row("", f"[b]{name}[/b]")
            for key, words in keys:
                table.add_row(key, words)
            table.add_row("", "")
        with VerticalScroll() as box:
            box.border_title = "Keys"
            yield Static(table)
