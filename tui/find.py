"""A search in everything: what recall finds, categories, settings and tabs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import getters, work
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.schemas.recall import RecallResult

from .dialogs import Dialog
from .feed import USUAL_SECONDS
from .session import Session
from .text import one_line, plain
from .views import VIEWS

# From the last letter to the question.
_PAUSE_SECONDS: Final = 0.2
_RESULTS: Final = 12
_OTHERS: Final = 5


class Result(NamedTuple):
    """One result: its `key` is its id, path or key in the tab; "" for the tab itself."""

    kind: str
    tab: str
    key: str
    text: str
    stored: bool = False


class FindScreen(Dialog[Result]):
    """The line and what it finds, best first of each kind."""

    DEFAULT_CSS = """
    FindScreen { align: center top; }
    FindScreen > VerticalScroll { width: 90; max-height: 90%; margin-top: 1; padding: 0; }
    FindScreen Input { dock: top; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "Next", show=False, priority=True),
        Binding("up", "move(-1)", "Previous", show=False, priority=True),
    ]

    app = getters.app(Session)

    def __init__(self) -> None:
        line = Input(placeholder="memories, files, categories, settings")
        super().__init__("Find", line, OptionList())
        self.results: list[Result] = []
        # All settings and categories, once they were read.
        self._known: dict[Callable[[Client], list[Result]], list[Result]] = {}

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._search(event.value.strip())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        row = self.query_one(OptionList).highlighted
        if row is not None:
            self.dismiss(self.results[row])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self.results[event.option_index])

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    @work(exclusive=True)
    async def _search(self, words: str) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        tabs = [
            Result("tab", tab.name, "", f"{tab.title}: {tab.about}")
            for tab in VIEWS
            if words and words.lower() in f"{tab.name} {tab.about}".lower()
        ]
        self._list(tabs)
        if words:
            recall = partial(Client.recall, query=words, limit=_RESULTS, reinforce=False)
            groups = await asyncio.gather(
                self._call(lambda client: [*map(_result_of, recall(client).results)]),
                self._fitting(_settings, words),
                self._fitting(_categories, words),
            )
            self._list([result for group in groups for result in group] + tabs)

    async def _call(self, function: Callable[[Client], list[Result]]) -> list[Result]:
        with suppress(ClientError):  # what cannot be searched has no results
            return await self.app.calls.run(function, USUAL_SECONDS)
        return []

    async def _fitting(self, read: Callable[[Client], list[Result]], words: str) -> list[Result]:
        if not self._known.get(read):
            self._known[read] = await self._call(read)
        wanted = words.lower().split()
        fits = [
            result for result in self._known[read] if all(w in result.text.lower() for w in wanted)
        ]
        return fits[:_OTHERS]

    def _list(self, results: list[Result]) -> None:
        self.results = results
        rows = []
        for result in results:
            text = one_line(result.text)
            shown = self.app.shown(text) if result.stored else Text(plain(text))
            rows.append(Option(Text(f"{result.kind:<11}", "dim", no_wrap=True).append_text(shown)))
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(rows)
        options.highlighted = 0 if rows else None


def _result_of(result: RecallResult) -> Result:
    """A result and where it is shown; what has no tab only leads to the memories."""
    if result.source == "memory":
        return Result("memory", "memories", result.id, result.text, stored=True)
    if result.source == "file" and isinstance(result.lines, tuple):
        key = f"{result.path}:{result.lines[0]}"
        return Result("file", "files", key, f"{result.path}: {result.text}", stored=True)
    return Result(result.source, "memories", "", result.text, stored=True)


def _settings(client: Client) -> list[Result]:
    return [
        Result("setting", "settings", key.key, f"{key.key}: {key.help}")
        for key in client.config().results
    ]


def _categories(client: Client) -> list[Result]:
    nodes = client.tree().tree
    return [
        Result("category", "tree", path, path, stored=True)
        for path, node in nodes.items()
        if path != "root" and isinstance(node, dict)
    ]
