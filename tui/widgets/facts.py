"""Names and values below each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from rich.text import Text
from textual.widgets import Static

Rows: TypeAlias = Iterator[tuple[str, str | Text]]


class Facts(Static):
    """Rows of a name and a value; drawn again only when something changed.

    Args:
        columns: of the names.
    """

    DEFAULT_CSS = """
    Facts { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, columns: int, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._columns = columns
        self._rows: list[tuple[str, Text]] = []

    def set(self, rows: Iterable[tuple[str, str | Text]]) -> None:
        """Show these rows; a `str` is not markup."""
        made = [(name, Text(value) if isinstance(value, str) else value) for name, value in rows]
        if made == self._rows:
            return
        moved = len(made) != len(self._rows)
        self._rows = made
        lines = Text(no_wrap=True, overflow="ellipsis")
        for number, (name, value) in enumerate(made):
            lines.append("\n" * bool(number))
            lines.append(f"{name:<{self._columns}} ", "dim").append_text(value)
        self.update(lines, layout=moved)
