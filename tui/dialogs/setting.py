"""Changes one setting; a value is checked before it is written."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from thermocline.daemon.shapes.config import ConfigKey

from ..text import plain

_TYPES: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def value_of(typed: str) -> Any:
    """What was typed: as JSON if it is valid, else as a text."""
    try:
        return json.loads(typed)
    except ValueError:
        return typed


def fault(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value has the wrong type, is out of bounds or not among those listed.

    The daemon checks everything else before it writes.
    """
    if "enum" in schema:
        return value not in schema["enum"]
    kinds = schema.get("type")
    if kinds is None:
        return False
    names = kinds if isinstance(kinds, list) else [kinds]
    fits = any(
        isinstance(value, _TYPES.get(name, (object,)))
        and not (isinstance(value, bool) and name in {"integer", "number"})
        for name in names
    )
    if not fits:
        return True
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return not schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return False


class SettingScreen(ModalScreen[bool]):
    """The line for the value; True once it was written.

    Args:
        key: the setting.
        write: writes a value, and returns why it was refused, or "".
    """

    DEFAULT_CSS = """
    SettingScreen { align: center middle; }
    SettingScreen > VerticalScroll {
        width: 72; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    SettingScreen Input { border: none; height: 1; margin: 1 0; padding: 0 1; background: $boost; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(False)", "Leave it")]

    def __init__(self, key: ConfigKey, write: Callable[[Any], Awaitable[str]]) -> None:
        super().__init__()
        self._key = key
        self._write = write

    def compose(self) -> ComposeResult:
        """Help, the line, and what is wrong with it."""
        key = self._key
        with VerticalScroll() as box:
            box.border_title = Text(f" {plain(key.key)} ")
            box.border_subtitle = " enter writes it, escape leaves it "
            yield Static(Text(plain(key.help)))
            yield Input(value=_typed(key.value), select_on_focus=False)
            yield Static(id="fault")
            more = "in force after a restart" if key.needs_restart else "in force at once"
            default = json.dumps(key.default, ensure_ascii=False)
            yield Static(Text(f"Default {plain(default)}; {more}.", "dim"))

    def on_mount(self) -> None:
        """Focus the line."""
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check as it is typed."""
        event.stop()
        wrong = fault(value_of(event.value), self._key.schema)
        self._tell(f"{'✗' if wrong else '✓'} {self._key.expected}", wrong=wrong)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        value = value_of(event.value)
        if fault(value, self._key.schema):
            self._tell(f"✗ not written: {self._key.expected}", wrong=True)
            self.app.bell()
        else:
            self._send(value)

    @work(exclusive=True)
    async def _send(self, value: Any) -> None:
        if refused := await self._write(value):
            self._tell(f"✗ not written: {refused}", wrong=True)
        else:
            self.dismiss(True)

    def _tell(self, text: str, *, wrong: bool) -> None:
        line = self.query_one("#fault", Static)
        line.update(Text(plain(text)))
        line.styles.color = self.app.theme_variables["text-error" if wrong else "text-success"]


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
