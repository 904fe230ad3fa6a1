"""The tabs in their order; a tab named `x` is drawn by `XView` of its module `x`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple


class Tab(NamedTuple):
    """One tab; its view's module is only imported when the tab is shown."""

    key: str
    name: str  # as `--tab` and `:` take it, as the id of the view, and of its module
    about: str

    @property
    def title(self) -> str:
        return self.name.capitalize()

    def make(self) -> Any:
        module = import_module(f".{self.name}", __package__)
        return getattr(module, f"{self.title}View")(self.name)


VIEWS: Final = (
    Tab("1", "overview", "health, sizes and history at a glance"),
    Tab("2", "memories", "find, read and change memories"),
    Tab("3", "tree", "the categories"),
    Tab("4", "hot", "what is always in the agent's context"),
    Tab("5", "files", "watched files and their parts"),
    Tab("6", "sync", "the replica, devices and conflicts"),
    Tab("7", "settings", "every setting, and where it is from"),
    Tab("8", "upkeep", "schedules, runs and the model"),
    Tab("9", "log", "what happens, as it happens"),
)
TABS: Final = {tab.name: tab for tab in VIEWS}
