"""A view of several parts: beside each other where there is room, else one at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget

from ..widgets.paged import Column, PagedTable
from .view import View

_BESIDE: Final = (120, 24)


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its title, its table, and what is above and below the table.

    Attributes:
        title: its name on the screen.
        columns, key_of, empty, opens: of the table, see `PagedTable`.
        above, below: other widgets.
    """

    title: str
    columns: Sequence[Column[Any]]
    key_of: Callable[[Any], Hashable]
    empty: str
    opens: bool = False
    above: Sequence[Widget] = ()
    below: Sequence[Widget] = ()


class PartsView(View):
    """Its `compose` yields `self.boxes()`: a box for each of its `parts`.

    In few columns or rows one part is shown, its border names the rest, and left and right go to
    them. Else the view has the class `-beside`, and a layout for it. A subclass binds its keys for
    the parts to `part('NAME')`.
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
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "Part before", show=False),
        Binding("right", "turn(1)", "Next part", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._parts = self.parts()
        self.part = next(iter(self._parts))
        self._counts: Mapping[str, str] = {}

    def parts(self) -> Mapping[str, Part]:
        """The parts by their names."""
        raise NotImplementedError

    def boxes(self) -> Container:
        """A box for each part."""
        boxes = []
        for name, part in self._parts.items():
            table: PagedTable[Any] = PagedTable(
                part.columns, part.key_of, empty=part.empty, opens=part.opens
            )
            boxes.append(Container(*part.above, table, *part.below, id=name, classes="panel"))
        return Container(*boxes, id="parts")

    async def show(self, what: str) -> None:
        """Show a part by its name."""
        if what in self._parts:
            self.action_part(what)

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
        for part in self._parts:
            title = Text(" ")
            for name in [part] if self.has_class("-beside") else self._parts:
                style = "bold" if name == part else "dim not bold"
                title.append(f"{self._parts[name].title}{counts.get(name, '')}", style).append("  ")
            self.query_one(f"#{part}").border_title = title

    def on_descendant_focus(self) -> None:
        """The keys are those of the part that has the focus."""
        for part in self._parts:
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
        names = list(self._parts)
        self.action_part(names[(names.index(self.part) + step) % len(names)])

    def _arrange(self) -> None:
        size = self.app.size
        beside = size.width >= _BESIDE[0] and size.height >= _BESIDE[1]
        self.set_class(beside, "-beside")
        for part in self._parts:
            self.query_one(f"#{part}").display = beside or part == self.part
        self.name_parts(self._counts)
        self.refresh_bindings()
