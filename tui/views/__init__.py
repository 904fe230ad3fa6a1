"""The tabs, each with its key, its name, and the class of its view."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from .view import View


class Tab(NamedTuple):
    """One tab; its view's module is only imported when the tab is shown.

    Attributes:
        key: the digit that shows it.
        name: as `--tab` and `:` take it, and as the id of the view.
        module: in this package.
        view: the class there.
        about: what it shows, in a few words.
    """

    key: str
    name: str
    module: str
    view: str
    about: str

    @property
    def title(self) -> str:
        """Its name on the screen."""
        return self.name.capitalize()

    def make(self) -> View:
        """A new view."""
        module = import_module(f".{self.module}", __package__)
        return cast("View", getattr(module, self.view)(self.name))


VIEWS: Final = (
    Tab("1", "overview", "overview", "OverviewView", "health, sizes and history at a glance"),
    Tab("2", "memories", "memories", "MemoriesView", "find, read and change memories"),
    Tab("3", "tree", "tree", "TreeView", "the categories"),
    Tab("4", "hot", "hot", "HotView", "what is always in the agent's context"),
    Tab("5", "files", "files", "FilesView", "watched files and their parts"),
    Tab("6", "sync", "sync", "SyncView", "the replica, devices and conflicts"),
    Tab("7", "settings", "settings", "SettingsView", "every setting, and where it is from"),
    Tab("8", "upkeep", "upkeep", "UpkeepView", "schedules, runs and the model"),
    Tab("9", "log", "log", "LogView", "what happens, as it happens"),
)
TABS: Final = {tab.name: tab for tab in VIEWS}
