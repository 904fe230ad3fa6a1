"""Every setting: its value, origin and meaning; and changing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Input, Static

from thermocline.daemon.client import Client
from thermocline.daemon.shapes.config import ConfigKey

from ..calls import Done
from ..dialogs.form import Field
from ..text import plain, text_of
from ..widgets.paged import Column, PagedTable
from .filtered import FilteredView

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


class SettingsView(FilteredView[ConfigKey]):
    """The table, with the setting that is selected explained beside or below it.

    A search selects a setting by its dotted key.
    """

    DEFAULT_CSS = """
    SettingsView #halves { layout: vertical; height: 1fr; }
    SettingsView #about { height: 7; padding: 0 1; border-top: solid $border-blurred; }
    Screen.-low SettingsView #about { height: 4; }
    Screen.-wide SettingsView #halves { layout: horizontal; }
    Screen.-wide SettingsView PagedTable { width: 2fr; }
    Screen.-wide SettingsView #about {
        width: 1fr; height: 1fr; border-top: none; border-left: solid $border-blurred;
        padding: 1 2;
    }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset()
    WRITES: ClassVar[frozenset[str]] = frozenset({"edit", "reset"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", "Edit"),
        Binding("d", "reset", "To default"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("c", "only_changed", "Only changed"),
        Binding("r", "refresh_data", "Read again", show=False),
        Binding("escape", "leave_filter", "All", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._keys: list[ConfigKey] = []
        self._only_changed = False

    def compose(self) -> ComposeResult:
        """Filter, table, explanation."""
        yield Input(placeholder="filter: part of a key, its help or its value")
        with Container(id="halves"):
            yield PagedTable[ConfigKey](
                [
                    Column("Setting", 0, lambda key: f"{_mark(key)} {plain(key.key)}"),
                    Column("Value", 12, self._value),
                    Column("From", 20, lambda key: _origin(key.origin), least=60, keep_end=True),
                ],
                lambda key: key.key,
                empty="no setting fits",
            )
            with VerticalScroll(id="about", can_focus=False):
                yield Static()

    async def update(self) -> None:
        """Read all settings."""
        page = await self.call(Client.config)
        if page is not None:
            self._keys = [*page.results]
            self.redraw()

    async def show(self, what: str) -> None:
        """Select a setting by its key."""
        self.line.value = ""
        self._only_changed = False
        if not self._keys:
            await self.update()
        self.redraw()
        self.table.select(what)

    def copied(self) -> str:
        """The selected setting, as --set takes it."""
        key = self.table.here
        return "" if key is None else f"{key.key}={json.dumps(key.value, ensure_ascii=False)}"

    def redraw(self) -> None:
        """Draw the settings that fit; the selected one stays."""
        self.table.fill([key for key in self._keys if self._fits(key)])
        self._explain()

    def show_all(self) -> None:
        """Settings at their default too."""
        self._only_changed = False

    def _fits(self, key: ConfigKey) -> bool:
        text = f"{key.key} {key.help} {text_of(key.value)}".lower()
        wanted = not self._only_changed or key.origin != "default"
        return wanted and all(word in text for word in self.typed.lower().split())

    def _value(self, key: ConfigKey) -> Text:
        value = self.shown(text_of(key.value))
        if key.origin != "default":
            value.stylize(self.paint("accent", bold=True))
        return value

    def _explain(self) -> None:
        key, about = self.table.here, self.query_one("#about Static", Static)
        if key is None:
            about.update(Text("no setting fits", "dim"))
            return
        text = Text()
        text.append(plain(key.key), "bold").append(f"\n{plain(key.help)}\n")
        for name, value in (
            ("value", self.shown(text_of(key.value))),
            ("default", self.shown(text_of(key.default))),
            ("from", Text(_origin(key.origin))),
            ("allowed", Text(plain(key.expected))),
            ("applies", Text("after a restart" if key.needs_restart else "at once")),
        ):
            text.append(f"\n{name:<8} ", "dim").append_text(value)
        about.update(text)

    def on_paged_table_moved(self) -> None:
        """Explain what is selected."""
        self._explain()

    def on_paged_table_chosen(self) -> None:
        """Enter edits."""
        if not self.app.read_only:
            self.action_edit()

    # Actions

    def action_only_changed(self) -> None:
        """Show only settings that are not at their default, or all."""
        self._only_changed = not self._only_changed
        self.redraw()
        self.app.flash("only changed settings" if self._only_changed else "all settings")

    def action_refresh_data(self) -> None:
        """Read all settings again."""
        self.refresh_data()

    @work
    async def action_edit(self) -> None:
        """Change the selected setting; a value is checked as it is typed, and by the daemon."""
        key = self.table.here
        if key is None:
            return

        def checked(typed: str) -> str:
            return f"{'✗' if fault(value_of(typed), key.schema) else '✓'} {plain(key.expected)}"

        async def save(values: dict[str, str]) -> None:
            value = value_of(values["value"])
            if fault(value, key.schema):
                raise ValueError(f"not written: {key.expected}")
            await self.change(partial(_set, key=key, value=value))

        default = json.dumps(key.default, ensure_ascii=False)
        more = "in force after a restart" if key.needs_restart else "in force at once"
        notes = (plain(key.help), plain(f"Default {default}; {more}."))
        now = key.value if isinstance(key.value, str) else json.dumps(key.value, ensure_ascii=False)
        await self.enter(plain(key.key), [Field("value", "Value", now, told=checked)], save, *notes)

    @work
    async def action_reset(self) -> None:
        """Take the selected setting out of the file, so that its default counts."""
        key = self.table.here
        if key is None or key.origin == "default":
            self.app.flash("it is at its default", "warning")
        else:
            await self.do(partial(_reset, key=key))


def _set(client: Client, key: ConfigKey, value: Any) -> Done:
    done = client.configure({key.key: value})
    return _done(f"set {key.key} to {text_of(value)}", key, done.needs_restart)


def _reset(client: Client, key: ConfigKey) -> Done:
    done = client.configure({}, [key.key])
    return _done(f"{key.key} is at its default", key, done.needs_restart)


def _done(text: str, key: ConfigKey, needs_restart: tuple[str, ...]) -> Done:
    def undo(client: Client) -> object:
        if key.origin == "default":
            return client.configure({}, [key.key])
        return client.configure({key.key: key.value})

    return Done(text + " after a restart" * bool(needs_restart), undo)


def _mark(key: ConfigKey) -> str:
    return " " if key.origin == "default" else "●"


def _origin(origin: str) -> str:
    home = str(Path.home())
    return plain(f"~{origin.removeprefix(home)}" if origin.startswith(f"{home}/") else origin)


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
