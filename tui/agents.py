"""The list of agents: one is chosen, or forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import getters, work
from textual.binding import Binding, BindingType
from textual.widgets import Static

from thermocline.daemon.client import AsyncClient, ClientError
from thermocline.daemon.client.wording import number_of, size
from thermocline.daemon.schemas.status import AgentView

from .dialogs import Dialog
from .feed import LONG_SECONDS, Done
from .session import Session
from .table import Column, PagedTable
from .text import plain

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
            behind = f"; the replica is told later: {done.why}" if done.replica == "behind" else ""
            if agent == self.app.agent_name:
                self.app.show_agent("default")
            self.app.did(Done(f"forgot {agent}{behind}"))
        await self._read()

    async def _call(self, function: Callable[[AsyncClient], Awaitable[T]]) -> T | None:
        try:
            return await self.app.calls.run(function, LONG_SECONDS)
        except ClientError as error:
            self.app.failed(error)
            return None

    async def _read(self) -> None:
        answer = await self._call(AsyncClient.agents)
        if answer is not None:
            self.table.fill(answer.results)

    def _agent(self, agent: AgentView) -> Text:
        here = agent.id == self.app.agent_name
        return Text(f"{'●' if here else ' '} {plain(agent.id)}", "bold" if here else "")


def _memories(agent: AgentView) -> str:
    return "-" if agent.memories is None else f"{agent.memories:,}"
