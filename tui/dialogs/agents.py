"""The list of agents, to choose or forget one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Static

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.client.wording import number_of, size
from thermocline.daemon.shapes.agents import AgentForgotten, AgentView

from ..text import plain
from ..widgets.rows import Column, Rows

if TYPE_CHECKING:
    from textual import getters

    from ..app import ThermoclineApp

_PATIENCE_SECONDS = 600.0


class AgentsScreen(ModalScreen[str | None]):
    """The list; the agent that was chosen, or None."""

    DEFAULT_CSS = """
    AgentsScreen { align: center middle; }
    AgentsScreen > Vertical {
        width: 64; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; background: $surface;
    }
    AgentsScreen Rows { height: auto; max-height: 16; }
    AgentsScreen Static { padding: 0 1; color: $secondary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Leave it"),
        Binding("enter", "choose", "Show", show=False),
        Binding("x", "forget", "Forget"),
    ]
    if TYPE_CHECKING:
        app = getters.app(ThermoclineApp)

    def compose(self) -> ComposeResult:
        """The list and its keys."""
        with Vertical() as box:
            box.border_title = " Agents "
            yield Rows(
                Column("Agent"),
                Column("Memories", 9, right=True),
                Column("Size", 9, right=True),
                Column("State", 6, least=44),
                empty="no agent has a memory yet",
            )
            forgets = "" if self.app.read_only else "x forgets it  "
            yield Static(f"enter shows it  {forgets}esc leaves")

    async def on_mount(self) -> None:
        """Read the list."""
        await self._read()
        self.query_one(Rows).select(self.app.agent_name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Forgetting is not possible with `--read-only`."""
        del parameters
        return not (action == "forget" and self.app.read_only)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter, or a click."""
        event.stop()
        if chosen := self.query_one(Rows).selected:
            self.dismiss(chosen)

    @work
    async def action_forget(self) -> None:
        """Forget an agent, once its name was typed."""
        agent = self.query_one(Rows).selected
        told = await self._ask(agent, dry_run=True) if agent else None
        if told is None:
            return
        held = f"{number_of(told.memories, 'memory', 'memories')}, "
        held += f"{number_of(told.key_values, 'pair', 'pairs')}, {size(told.size_bytes)}."
        effects = [
            Text(held),
            Text("They are deleted here, and on the replica and other devices, for good."),
            Text("`thermocline backup` makes an archive first."),
        ]
        if told.workspace:
            effects.append(Text(f"Its workspace {plain(told.workspace)} stays as it is."))
        if not await self.app.confirm(f"Forget {agent}", *effects, word=agent):
            return
        done = await self._ask(agent, dry_run=False)
        if done is not None:
            behind = f"; the replica was not told: {done.why}" if done.replica == "behind" else ""
            self.app.did(f"forgot {agent}{behind}")
            if agent == self.app.agent_name:
                self.app.show_agent("default")
        await self._read()

    async def _ask(self, agent: str, *, dry_run: bool) -> AgentForgotten | None:
        try:
            return await self.app.calls.run(
                lambda client: client.forget_agent(agent, dry_run=dry_run), _PATIENCE_SECONDS
            )
        except ClientError as error:
            self.app.failed(error)
            return None

    async def _read(self) -> None:
        try:
            found = await self.app.calls.run(Client.agents, 30.0)
        except ClientError as error:
            self.app.failed(error)
            return
        self.query_one(Rows).fill([(one.id, self._row(one)) for one in found.results])

    def _row(self, one: AgentView) -> list[Text | str]:
        here = one.id == self.app.agent_name
        name = Text(f"{'●' if here else ' '} {plain(one.id)}", "bold" if here else "")
        count = "-" if one.memories is None else f"{one.memories:,}"
        return [name, count, size(one.size_bytes), "open" if one.open else "closed"]
