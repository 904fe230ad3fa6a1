"""A search in everything: what recall finds, categories, settings and tabs; the list of agents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final, NamedTuple, TypeVar

from rich.text import Text
from textual import getters, work
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.client.wording import number_of, size
from thermocline.daemon.schemas.recall import RecallResult
from thermocline.daemon.schemas.status import AgentView

from .dialogs import Dialog
from .feed import LONG_SECONDS, USUAL_SECONDS, Done
from .session import Session
from .table import Column, PagedTable
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


T = TypeVar("T")


class AgentsScreen(Dialog[str]):
    """The list; the agent that was chosen."""

    DEFAULT_CSS = """
    AgentsScreen PagedTable { height: auto; max-height: 16; }
    AgentsScreen Static { color: $secondary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "forget", "Forget")]
    app = getters.app(Session)

    def __init__(self, *, read_only: bool) -> None:
        forgets = "" if read_only else "x forgets it  "
        super().__init__(
            "Agents",
            PagedTable[AgentView](
                [
                    Column("Agent", 0, self._agent),
                    Column("Memories", 9, _memories, right=True),
                    Column("Size", 9, lambda agent: size(agent.size_bytes), right=True),
                    Column("State", 6, lambda agent: "open" if agent.open else "closed", least=44),
                ],
                lambda agent: agent.id,
                empty="no agent has a memory yet",
            ),
            Static(f"enter shows it  {forgets}esc leaves"),
        )

    @property
    def table(self) -> PagedTable[AgentView]:
        return self.query_one(PagedTable)

    async def on_mount(self) -> None:
        await self._read()
        self.table.select(self.app.agent_name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        del parameters
        return not (action == "forget" and self.app.read_only)

    def on_paged_table_chosen(self) -> None:
        if self.table.row is not None:
            self.dismiss(self.table.row.id)

    @work
    async def action_forget(self) -> None:
        if self.table.row is None:
            return
        agent = self.table.row.id
        would = await self._call(lambda client: client.forget_agent(agent, dry_run=True))
        if would is None:
            return
        memories = number_of(would.memories, "memory", "memories")
        pairs = number_of(would.key_values, "pair", "pairs")
        effects = [
            f"{memories}, {pairs}, {size(would.size_bytes)}.",
            "They are deleted here, and on the replica and other devices, for good.",
            "`thermocline backup` makes an archive first.",
        ]
        if would.workspace:
            effects.append(f"Its workspace {plain(would.workspace)} stays as it is.")
        if not await self.app.confirm(f"Forget {agent}", *effects, word=agent):
            return
        done = await self._call(lambda client: client.forget_agent(agent))
        if done is not None:
            behind = (
                f"; the replica does not know it: {done.why}" if done.replica == "behind" else ""
            )
            if agent == self.app.agent_name:
                self.app.show_agent("default")
            self.app.did(Done(f"forgot {agent}{behind}"))
        await self._read()

    async def _call(self, function: Callable[[Client], T]) -> T | None:
        try:
            return await self.app.calls.run(function, LONG_SECONDS)
        except ClientError as error:
            self.app.failed(error)
            return None

    async def _read(self) -> None:
        answer = await self._call(Client.agents)
        if answer is not None:
            self.table.fill(answer.results)

    def _agent(self, agent: AgentView) -> Text:
        here = agent.id == self.app.agent_name
        return Text(f"{'●' if here else ' '} {plain(agent.id)}", "bold" if here else "")


def _memories(agent: AgentView) -> str:
    return "-" if agent.memories is None else f"{agent.memories:,}"
