"""Every setting: its value, origin and meaning; and changing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static

from thermocline.daemon.client import ApiError, Client, ClientError
from thermocline.daemon.shapes.config import ConfigKey

from ..dialogs.setting import SettingScreen
from ..text import plain, text_of
from ..widgets.paint import paint
from ..widgets.rows import Column, Rows
from .filtered import FilteredView


class SettingsView(FilteredView):
    """The table, with the setting that is selected explained beside or below it.

    A search selects a setting by its dotted key.
    """

    DEFAULT_CSS = """
    SettingsView #halves { layout: vertical; height: 1fr; }
    SettingsView #about { height: 7; padding: 0 1; border-top: solid $border-blurred; }
    Screen.-low SettingsView #about { height: 4; }
    Screen.-wide SettingsView #halves { layout: horizontal; }
    Screen.-wide SettingsView DataTable { width: 2fr; height: 1fr; }
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
        self._keys: dict[str, ConfigKey] = {}
        self._only_changed = False

    def compose(self) -> ComposeResult:
        """Filter, table, explanation."""
        yield Input(placeholder="filter: part of a key, its help or its value")
        with Container(id="halves"):
            yield Rows(
                Column("Setting"),
                Column("Value", 12),
                Column("From", 20, least=60, keep_end=True),
                empty="no setting fits",
            )
            with VerticalScroll(id="about", can_focus=False):
                yield Static()

    def first_focus(self) -> Widget:
        """The table."""
        return self._table

    @property
    def _table(self) -> Rows:
        return self.query_one(Rows)

    async def update(self) -> None:
        """Read all settings."""
        page = await self.call(Client.config)
        if page is not None:
            self._keys = {key.key: key for key in page.results}
            self._draw()

    async def show(self, what: str) -> None:
        """Select a setting by its key."""
        self.query_one(Input).value = ""
        self._only_changed = False
        if not self._keys:
            await self.update()
        self._draw(what)

    def copied(self) -> str:
        """The selected setting, as --set takes it."""
        key = self._selected()
        return "" if key is None else f"{key.key}={json.dumps(key.value, ensure_ascii=False)}"

    def redraw(self) -> None:
        """Draw the settings that fit; the selected one stays."""
        self._draw()

    def show_all(self) -> None:
        """Settings at their default too."""
        self._only_changed = False

    def _draw(self, select: str | None = None) -> None:
        words = self.words
        rows = []
        for key in self._keys.values():
            changed = key.origin != "default"
            text = f"{key.key} {key.help} {text_of(key.value)}".lower()
            if (self._only_changed and not changed) or not all(word in text for word in words):
                continue
            value = self.shown(text_of(key.value))
            if changed:
                value.stylize(paint(self.app, "accent", bold=True))
            cells = (f"{'●' if changed else ' '} {plain(key.key)}", value, _origin(key.origin))
            rows.append((key.key, cells))
        self._table.fill(rows, select=select)
        self._explain()

    def _selected(self) -> ConfigKey | None:
        return self._keys.get(self._table.selected)

    def _explain(self) -> None:
        key, about = self._selected(), self.query_one("#about Static", Static)
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

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Explain what is selected."""
        event.stop()
        self._explain()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter edits."""
        event.stop()
        if not self.app.read_only:
            self.action_edit()

    # Actions

    def action_only_changed(self) -> None:
        """Show only settings that are not at their default, or all."""
        self._only_changed = not self._only_changed
        self._draw()
        self.app.flash("only changed settings" if self._only_changed else "all settings")

    def action_refresh_data(self) -> None:
        """Read all settings again."""
        self.refresh_data()

    @work
    async def action_edit(self) -> None:
        """Change the selected setting."""
        key = self._selected()
        if key is None:
            return

        async def write(value: Any) -> str:
            try:
                done = await self.app.calls.run(lambda one: one.configure({key.key: value}), 30.0)
            except ClientError as error:
                hint = error.hint if isinstance(error, ApiError) else None
                return f"{error}; {hint}" if hint else str(error)
            self._changed(key, f"set {key.key} to {text_of(value)}", done.needs_restart)
            return ""

        await self.app.push_screen_wait(SettingScreen(key, write))

    @work
    async def action_reset(self) -> None:
        """Take the selected setting out of the file, so that its default counts."""
        key = self._selected()
        if key is None or key.origin == "default":
            self.app.flash("it is at its default", "warning")
            return
        done = await self.call(Client.configure, {}, [key.key])
        if done is not None:
            self._changed(key, f"{key.key} is at its default", done.needs_restart)

    def _changed(self, key: ConfigKey, text: str, needs_restart: tuple[str, ...]) -> None:
        def undo(client: Client) -> object:
            if key.origin == "default":
                return client.configure({}, [key.key])
            return client.configure({key.key: key.value})

        self.app.did(text + " after a restart" * bool(needs_restart), undo)
        self.refresh_data()


def _origin(origin: str) -> str:
    home = str(Path.home())
    return plain(f"~{origin.removeprefix(home)}" if origin.startswith(f"{home}/") else origin)
