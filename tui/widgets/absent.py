"""The page shown until a daemon answers: how to start it."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from ..feed import Snapshot
from ..text import plain


class Absent(VerticalScroll, can_focus=True):
    """The page."""

    DEFAULT_CSS = """
    Absent { align: center middle; }
    Absent > Static { width: 66; max-width: 100%; height: auto; padding: 0 2; }
    """

    def compose(self) -> ComposeResult:
        """One text."""
        yield Static()

    def tell(self, snapshot: Snapshot) -> None:
        """Show why no daemon answers."""
        text = Text()
        text.append("No daemon answers.\n\n", "bold")
        text.append(f"{plain(snapshot.trouble)}\n\n")
        text.append("Start it in another terminal:\n\n")
        text.append("    thermocline daemon\n\n", "bold")
        text.append('or in a checkout with "make run". ')
        text.append("This view connects by itself as soon as it is there. ")
        text.append("A daemon with another socket: thermocline tui --socket PATH.")
        self.query_one(Static).update(text)
