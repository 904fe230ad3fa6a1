"""One line over the keys that says what was done or failed, for some seconds."""

from __future__ import annotations

from typing import Final, Literal

from rich.text import Text
from textual.timer import Timer
from textual.widgets import Static

Kind = Literal["note", "warning", "failure"]
_MARKS: Final[dict[Kind, str]] = {"note": "✓", "warning": "!", "failure": "✗"}
_SECONDS: Final[dict[Kind, float]] = {"note": 5.0, "warning": 8.0, "failure": 12.0}


class Flash(Static):
    """The line. It lies over the view's last row, so that nothing moves when it comes."""

    DEFAULT_CSS = """
    Flash {
        layer: flash; dock: bottom; offset-y: -1; height: 1; padding: 0 1; display: none;
        background: $panel; color: $foreground; text-overflow: ellipsis; text-wrap: nowrap;
    }
    Flash.-warning { background: $warning-muted; color: $text-warning; text-style: bold; }
    Flash.-failure { background: $error-muted; color: $text-error; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__(id="flash")
        self._timer: Timer | None = None
        self.line = ""

    def tell(self, text: str, kind: Kind = "note", seconds: float | None = None) -> None:
        """Show a text for some seconds; it must be harmless, see `plain`."""
        self.line = text
        self.update(Text(f"{_MARKS[kind]} {text}", no_wrap=True, overflow="ellipsis"))
        self.set_class(kind == "warning", "-warning")
        self.set_class(kind == "failure", "-failure")
        self.display = True
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(seconds or _SECONDS[kind], self.clear)

    def clear(self) -> None:
        """Take the line away."""
        self.line = ""
        self.display = False
