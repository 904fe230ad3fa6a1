"""The base of all dialogs: a box over the view, which Escape leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import getters

    from ..app import ThermoclineApp

T = TypeVar("T")


class Dialog(ModalScreen[T | None]):
    """A subclass composes `self.box(...)`; the result is what it dismisses, or None if left."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > VerticalScroll {
        width: 64; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    Dialog Input, Dialog Input:focus { border: none; height: 1; padding: 0 1; background: $boost; }
    Dialog OptionList, Dialog OptionList:focus {
        border: none; padding: 0; height: auto; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave it")]
    if TYPE_CHECKING:
        app = getters.app(ThermoclineApp)

    def box(self, title: str | Text, *children: Widget) -> VerticalScroll:
        """The box; a `str` in its title is not markup."""
        box = VerticalScroll(*children, can_focus=False)
        box.border_title = Text.assemble(title)
        return box

    def action_leave(self) -> None:
        """Close it without a result."""
        self.dismiss(None)
