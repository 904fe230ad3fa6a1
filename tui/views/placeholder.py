"""A tab that has no view yet."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from .view import View


class PlaceholderView(View):
    """Says that there is nothing to see."""

    def compose(self) -> ComposeResult:
        """Its line."""
        yield Static("nothing here yet")
