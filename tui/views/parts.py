"""A view of several parts: beside each other where there is room, else one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget

from ..widgets.paged import PagedTable
from .view import View

_BESIDE: Final = (120, 24)


class PartsView(View):
    """Its `compose` yields a `Container(id="parts")` with a `self.panel(...)` for each part.

    Every part has one table. In few columns or rows one part is shown, its border names the
    rest, and left and right go to them. Else the view has the class `-beside`, and a layout for
    it. A subclass names its parts in `PARTS`, and its keys for them with `part('NAME')`.
    """

    DEFAULT_CSS = """
    PartsView { layout: vertical; padding: 0 1; }
    PartsView .panel {
        border-top: solid $border-blurred; border-title-color: $secondary;
        border-title-style: bold; border-title-align: left;
    }
    PartsView .panel:focus-within { border-top: solid $primary; }
    PartsView #parts { height: 1fr; layout: vertical; }
    PartsView #parts > .panel { height: 1fr; }
    PartsView.-beside #parts { layout: grid; grid-size: 2 2; grid-gutter: 0 2; }
    PartsView.-beside #parts > .panel { height: 100%; }
    """
    PARTS: ClassVar[Mapping[str, str]] = {}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "Part before", show=False),
        Binding("right", "turn(1)", "Next part", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.part = next(iter(self.PARTS))
        self._counts: Mapping[str, str] = {}

    @staticmethod
    def panel(part: str, *children: Widget) -> Container:
        """The box of a part."""
        return Container(*children, id=part, classes="panel")

    def rows(self, part: str) -> PagedTable[Any]:
        """The table of a part."""
        return self.query_one(f"#{part} PagedTable", PagedTable)

    def first_focus(self) -> Widget:
        """The part that is shown."""
        return self.rows(self.part)

    def on_mount(self) -> None:
        """Show the first part; redraw ages, countdowns and progress regularly."""
        self._arrange()
        self.set_interval(1.0, self.tick)

    def on_resize(self) -> None:
        """Put the parts beside each other where there is room."""
        self._arrange()
        self.draw()

    def draw(self) -> None:
        """Draw what was read."""

    def tick(self) -> None:
        """Draw what changes with the time."""

    def name_parts(self, counts: Mapping[str, str]) -> None:
        """Say of parts how much they have, such as ` 3`."""
        self._counts = counts
        for part in self.PARTS:
            title = Text(" ")
            for name in [part] if self.has_class("-beside") else self.PARTS:
                style = "bold" if name == part else "dim not bold"
                title.append(f"{self.PARTS[name]}{counts.get(name, '')}", style).append("  ")
            self.query_one(f"#{part}").border_title = title

    def on_descendant_focus(self) -> None:
        """The keys are those of the part that has the focus."""
        for part in self.PARTS:
            if self.rows(part).has_focus and part != self.part:
                self.part = part
                self._arrange()

    def action_part(self, part: str) -> None:
        """Show a part."""
        self.part = part
        self._arrange()
        self.rows(part).focus()

    def action_turn(self, step: int) -> None:
        """Show the part beside."""
        names = list(self.PARTS)
        self.action_part(names[(names.index(self.part) + step) % len(names)])

    def _arrange(self) -> None:
        size = self.app.size
        beside = size.width >= _BESIDE[0] and size.height >= _BESIDE[1]
        self.set_class(beside, "-beside")
        for part in self.PARTS:
            self.query_one(f"#{part}").display = beside or part == self.part
        self.name_parts(self._counts)
        self.refresh_bindings()
