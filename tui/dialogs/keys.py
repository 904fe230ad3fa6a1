"""All keys that are valid where the focus was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.table import Table
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
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


def keys_of(screen: Screen[Any], app: App[Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The valid keys and what they do: those of the view first, then those of the app."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for node, binding, enabled, _ in screen.active_bindings.values():
        if enabled and binding.description and not binding.system:
            name = "Everywhere" if node in (app, screen) else (node.name or "").capitalize()
            groups.setdefault(name or "Here", []).append(
                (app.get_key_display(binding), binding.description)
            )
    return sorted(groups.items(), key=lambda group: group[0] == "Everywhere")
