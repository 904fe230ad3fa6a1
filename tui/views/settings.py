"""Every setting: its value, origin and meaning; and changing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from thermocline.daemon.client import AsyncClient
from thermocline.daemon.schemas.status import ConfigChanged, ConfigKey

from ..dialogs import Field
from ..feed import Done
from ..table import Column
from ..text import plain, text_of
from .resource import Part, ResourceView
from .view import Action


async def _edit(view: SettingsView, key: ConfigKey) -> None:
    """Change the setting; the daemon checks it, and says what is wrong before it writes."""

    async def save(values: dict[str, str]) -> None:
        try:
            value = json.loads(values["value"])
        except ValueError:
            value = values["value"]
        words = f"set {key.key} to {text_of(value)}"
        await view.change(partial(_set, key=key, words=words, value=value))

    default = json.dumps(key.default, ensure_ascii=False)
    more = "in force after a restart" if key.needs_restart else "in force at once"
    now = key.value if isinstance(key.value, str) else json.dumps(key.value, ensure_ascii=False)
    await view.enter(
        plain(key.key),
        [Field("value", "Value", now, meaning=lambda _: plain(key.expected))],
        save,
        *(plain(key.help), plain(f"Default {default}; {more}.")),
    )


async def _reset(view: SettingsView, key: ConfigKey) -> None:
    """Take the setting out of the file, so that its default counts."""
    if key.origin == "default":
        view.app.flash("it is at its default", "warning")
    else:
        await view.do(partial(_set, key=key, words=f"{key.key} is at its default"))


def _only_changed(view: SettingsView) -> None:
    view.only_changed = not view.only_changed
    view.draw()
    view.app.flash("only changed settings" if view.only_changed else "all settings")


_EDIT: Final = Action("e", "Edit", _edit, writes=True, row=True)


class SettingsView(ResourceView):
    """The table, with the setting that is selected explained beside or below it."""

    DEFAULT_CSS = """
    SettingsView .part { layout: vertical; }
    SettingsView .detail { height: 7; border-top: solid $border-blurred; }
    Screen.-low SettingsView .detail { height: 4; }
    Screen.-wide SettingsView .part { layout: horizontal; }
    Screen.-wide SettingsView PagedTable { width: 2fr; }
    Screen.-wide SettingsView .detail {
        width: 1fr; height: 1fr; max-height: 100%; border-top: none;
        border-left: solid $border-blurred; padding: 1 2;
    }
    """
    FILTER = "filter: part of a key, its help or its value"
    ACTIONS = (
        _EDIT,
        Action("d", "To default", _reset, writes=True, row=True),
        Action("slash", "Filter", lambda view: view.open_filter(), display="/"),
        Action("c", "Only changed", _only_changed),
        Action("r", "Read again", lambda view: view.refresh_data(), show=False),
        Action("escape", "All", lambda view: view.leave_filter(), show=False),
    )

    def parts(self) -> Mapping[str, Part[ConfigKey]]:
        self._keys: list[ConfigKey] = []
        self.only_changed = False
        return {
            "keys": Part(
                "Settings",
                [
                    Column("Setting", 0, _setting),
                    Column("Value", 12, self._value),
                    Column("From", 20, lambda key: _origin(key.origin), least=60, keep_end=True),
                ],
                lambda key: key.key,
                "no setting fits",
                rows=lambda: [key for key in self._keys if self._wanted(key)],
                # As --set takes it.
                copied=lambda key: f"{key.key}={json.dumps(key.value, ensure_ascii=False)}",
                detail=self._explained,
                open=_EDIT,
            )
        }

    async def update(self) -> None:
        page = await self.call(AsyncClient.config)
        if page is not None:
            self._keys = [*page.results]
            self.draw()

    def show_all(self) -> None:
        self.only_changed = False

    def _wanted(self, key: ConfigKey) -> bool:
        fits = self.fits(f"{key.key} {key.help} {text_of(key.value)}")
        return fits and not (self.only_changed and key.origin == "default")

    def _value(self, key: ConfigKey) -> Text:
        value = self.shown(text_of(key.value))
        if key.origin != "default":
            value.stylize(self.paint("accent", bold=True))
        return value

    def _explained(self, key: ConfigKey) -> Text:
        text = Text().append(plain(key.key), "bold").append(f"\n{plain(key.help)}\n")
        for name, value in (
            ("value", self.shown(text_of(key.value))),
            ("default", self.shown(text_of(key.default))),
            ("from", Text(_origin(key.origin))),
            ("allowed", Text(plain(key.expected))),
            ("applies", Text("after a restart" if key.needs_restart else "at once")),
        ):
            text.append(f"\n{name:<8} ", "dim").append_text(value)
        return text


async def _set(client: AsyncClient, key: ConfigKey, words: str, **value: Any) -> Done:
    """Write a `value`, or without one take the key out of the file."""
    before = {} if key.origin == "default" else {"value": key.value}

    async def write(client: AsyncClient, value: dict[str, Any]) -> ConfigChanged:
        return await client.configure(
            {key.key: value["value"]} if value else {}, [] if value else [key.key]
        )

    changed = await write(client, value)
    words += " after a restart" * bool(changed.needs_restart)
    return Done(words, lambda again: write(again, before))


def _setting(key: ConfigKey) -> str:
    return f"{' ' if key.origin == 'default' else '●'} {plain(key.key)}"


def _origin(origin: str) -> str:
    home = str(Path.home())
    return plain(f"~{origin.removeprefix(home)}" if origin.startswith(f"{home}/") else origin)
