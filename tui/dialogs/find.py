"""A search in everything: what recall finds, categories, settings and tabs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.shapes.recall import RecallResult

from ..text import one_line, plain
from ..views import VIEWS
from .dialog import Dialog

# From the last letter to the question.
_PAUSE_SECONDS: Final = 0.2
_RESULTS: Final = 12
_OTHERS: Final = 5


class Found(NamedTuple):
    """One result.

    Attributes:
        kind: what it is, in a word.
        tab: where it is shown.
        what: its id, path or key there; "" for the tab itself.
        text: how it is listed.
        stored: whether somebody stored the text.
    """

    kind: str
    tab: str
    what: str
    text: str
    stored: bool = False


class FindScreen(Dialog[Found]):
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

    def __init__(self) -> None:
        super().__init__()
        self._found: list[Found] = []
        # All settings and categories, once they were read.
        self._known: dict[Callable[[Client], list[Found]], list[Found]] = {}

    def compose(self) -> ComposeResult:
        """The line and the list."""
        line = Input(placeholder="memories, files, categories, settings")
        yield self.box("Find", line, OptionList())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search as it is typed."""
        event.stop()
        self._search(event.value.strip())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter takes what is highlighted."""
        event.stop()
        row = self.query_one(OptionList).highlighted
        if row is not None:
            self.dismiss(self._found[row])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click takes it."""
        event.stop()
        self.dismiss(self._found[event.option_index])

    def action_move(self, by: int) -> None:
        """Highlight the next or the one before."""
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    @work(exclusive=True)
    async def _search(self, words: str) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        if not words:
            self._list([])
            return
        near = [
            Found("tab", tab.name, "", f"{tab.title}: {tab.about}")
            for tab in VIEWS
            if words.lower() in f"{tab.name} {tab.about}".lower()
        ]
        self._list(near)
        found = await asyncio.gather(
            self._ask(lambda client: _stored(client, words)),
            self._fitting(_settings, words),
            self._fitting(_categories, words),
        )
        self._list([one for group in found for one in group] + near)

    async def _ask(self, function: Callable[[Client], list[Found]]) -> list[Found]:
        with suppress(ClientError):  # what could not be searched is not found
            return await self.app.calls.run(function, 30.0)
        return []

    async def _fitting(self, read: Callable[[Client], list[Found]], words: str) -> list[Found]:
        if not self._known.get(read):
            self._known[read] = await self._ask(read)
        wanted = words.lower().split()
        fits = [one for one in self._known[read] if all(w in one.text.lower() for w in wanted)]
        return fits[:_OTHERS]

    def _list(self, found: list[Found]) -> None:
        self._found = found
        view = self.app.view
        rows = []
        for one in found:
            text = one_line(one.text)
            shown = view.shown(text) if view is not None and one.stored else Text(plain(text))
            rows.append(Option(Text(f"{one.kind:<11}", "dim", no_wrap=True).append_text(shown)))
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(rows)
        options.highlighted = 0 if rows else None


def _stored(client: Client, words: str) -> list[Found]:
    results = client.recall(words, limit=_RESULTS, reinforce=False).results
    return [_found(result) for result in results]


def _found(result: RecallResult) -> Found:
    """A result and where it is shown; what has no tab only leads to the memories."""
    if result.source == "memory":
        return Found("memory", "memories", result.id, result.text, stored=True)
    if result.source == "file" and isinstance(result.lines, tuple):
        place = f"{result.path}:{result.lines[0]}"
        return Found("file", "files", place, f"{result.path}: {result.text}", stored=True)
    return Found(result.source, "memories", "", result.text, stored=True)


def _settings(client: Client) -> list[Found]:
    return [
        Found("setting", "settings", key.key, f"{key.key}: {key.help}")
        for key in client.config().results
    ]


def _categories(client: Client) -> list[Found]:
    nodes = client.tree().tree
    return [
        Found("category", "tree", path, path, stored=True)
        for path, node in nodes.items()
        if path != "root" and isinstance(node, dict)
    ]
