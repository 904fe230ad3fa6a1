"""Lines of any length to choose from, under titles."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option


class Choices(OptionList):
    """The lines; the line under the cursor has a mark and a colour."""

    DEFAULT_CSS = """
    Choices {
        border: none; padding: 0; background: transparent; scrollbar-size-vertical: 1;
    }
    Choices:focus { border: none; background-tint: $background 0%; }
    Choices > .option-list--option-highlighted {
        background: transparent; color: $foreground; text-style: none;
    }
    Choices:focus > .option-list--option-highlighted {
        background: $primary-muted; color: $foreground; text-style: bold;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._shown: list[Text] = []
        self._marked: int | None = None

    def fill(self, lines: Sequence[Text], titles: frozenset[int] = frozenset()) -> None:
        """Show these lines; those whose numbers are in `titles` cannot be chosen."""
        self._shown, self._marked = list(lines), None
        self.set_options(
            Option(line if number in titles else _line(line, here=False), disabled=number in titles)
            for number, line in enumerate(lines)
        )

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Move the mark."""
        if self._marked is not None:
            self._set(self._marked, here=False)
        self._marked = event.option_index
        self._set(self._marked, here=True)

    def on_focus(self) -> None:
        """Show the mark while the list has the focus."""
        if self.highlighted is not None:
            self._set(self.highlighted, here=True)

    def on_blur(self) -> None:
        """Hide the mark."""
        if self.highlighted is not None:
            self._set(self.highlighted, here=False)

    def _set(self, number: int, *, here: bool) -> None:
        if number < len(self._shown):
            line = _line(self._shown[number], here=here and self.has_focus)
            self.replace_option_prompt_at_index(number, line)


def _line(line: Text, *, here: bool) -> Table:
    table = Table.grid()
    table.add_column(width=2)
    table.add_column(overflow="fold")
    table.add_row("› " if here else "  ", line)
    return table
