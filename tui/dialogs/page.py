"""Pages to read: all fields of an event, or the keys that are valid where the focus was."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from .dialog import Dialog


class PageScreen(Dialog[None]):
    """The page.

    Args:
        title: above it.
        content: harmless, as `View.shown` makes it.
    """

    DEFAULT_CSS = """
    PageScreen > VerticalScroll { width: 80; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,question_mark,q", "leave", "Close", key_display="esc")
    ]

    def __init__(self, title: str | Text, content: RenderableType) -> None:
        super().__init__()
        self._title = title
        self._content = content

    def compose(self) -> ComposeResult:
        """The content."""
        box = self.box(self._title, Static(self._content))
        box.can_focus = True
        yield box


class KeysScreen(PageScreen):
    """The valid keys and what they do: those of the view first, then those of the app."""

    DEFAULT_CSS = """
    KeysScreen > VerticalScroll { width: 60; }
    """

    def __init__(self, screen: Screen[Any], app: App[Any]) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for node, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.description and not binding.system:
                name = "Everywhere" if node in (app, screen) else (node.name or "").capitalize()
                groups.setdefault(name or "Here", []).append(
                    (app.get_key_display(binding), binding.description)
                )
        self.groups = sorted(groups.items(), key=lambda group: group[0] == "Everywhere")
        table = Table.grid(padding=(0, 2))
        for name, keys in self.groups:
            for key, words in [("", f"[b]{name}[/b]"), *keys, ("", "")]:
                table.add_row(key, words)
        super().__init__("Keys", table)
