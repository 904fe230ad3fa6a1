"""The terminal view, put together: the daemon's feed, the frame, and a view for each tab."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import ContentSwitcher

from thermocline.daemon.client import Client, ClientError

from .calls import LONG_SECONDS, Calls, Done
from .dialogs.agents import AgentsScreen
from .dialogs.find import FindScreen
from .dialogs.page import KeysScreen
from .dialogs.questions import ChooseScreen, ConfirmScreen, JumpScreen
from .feed import Feed, FeedEvent, Snapshot
from .remembered import Remembered, recalled, remember
from .text import plain, why
from .themes import DEFAULT_THEME, THEMES
from .views import TABS, VIEWS, Tab
from .views.view import View
from .widgets.absent import Absent
from .widgets.flash import Flash, Kind
from .widgets.frame import Head, Keys, TabBar

_UNDO_SECONDS: Final = 60.0


class ThermoclineApp(App[None]):
    """The memory of one daemon, live.

    Args:
        connect: makes a client for an agent's memory; None: the daemon's default agent.
        agent: whose memory is shown first.
        tab: which tab is shown first; None: the last time's.
        read_only: nothing can be changed.
        state: the file that theme and tab are remembered in; None: they are not.
        now: seconds since the epoch.

    Attributes:
        snapshot: the daemon as it was a moment ago.
        happened: the latest events.
        events_seen: how many there were.
        calls: runs calls for the agent that is shown.
        hide_texts: whether stored texts are shown as dots.
    """

    class Fed(Message):
        """The feed has a new snapshot."""

        def __init__(self, snapshot: Snapshot) -> None:
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:  # noqa: ARG002
            """Events are in one snapshot only, so none is left out."""
            return False

    TITLE = "thermocline"
    CSS = """
    Screen { layers: base flash; }
    #views { height: 1fr; }
    * {
        scrollbar-size-vertical: 1; scrollbar-color: $border; scrollbar-color-hover: $primary;
        scrollbar-color-active: $primary; scrollbar-background: $background;
        scrollbar-background-hover: $background; scrollbar-background-active: $background;
        scrollbar-corner-color: $background;
    }
    DataTable, Tree, OptionList { background: $background; }
    DataTable:focus, Tree:focus, OptionList:focus { background-tint: transparent; }
    DataTable > .datatable--header { background: $surface; color: $secondary; }
    DataTable:focus > .datatable--header { background-tint: transparent; }
    """
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-narrow"), (80, "-normal"), (120, "-wide"),
    ]  # fmt: skip
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high"), (34, "-tall")]  # noqa: RUF012 - likewise
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(tab.key, f"tab('{tab.name}')", tab.title, show=False) for tab in VIEWS),
        Binding("u", "undo", "Undo"),
        Binding("colon", "jump", "Go to", key_display=":"),
        Binding("ctrl+f", "find", "Find"),
        Binding("m", "hide_texts", "Hide texts"),
        Binding("y", "copy", "Copy"),
        Binding("ctrl+a", "choose_agent", "Agent"),
        Binding("ctrl+t", "choose_theme", "Theme"),
        Binding("question_mark", "keys", "Keys", key_display="?", show=False),
        Binding("q", "quit", "Quit"),
    ]
    hide_texts: reactive[bool] = reactive(False, init=False)

    def __init__(
        self,
        connect: Callable[[str | None], Client],
        *,
        agent: str | None = None,
        tab: str | None = None,
        read_only: bool = False,
        state: Path | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._connect = connect
        self._state = state
        self._last = recalled(state) if state is not None else Remembered()
        self._tab = next((name for name in (tab, self._last.tab) if name in TABS), VIEWS[0].name)
        # The last change that can be undone, and until when.
        self._undo: Done | None = None
        self._undo_until = 0.0
        self.agent = agent
        self.read_only = read_only
        self.now = now
        self.snapshot = Snapshot(since=now())
        self.happened: deque[FeedEvent] = deque(maxlen=5000)
        self.events_seen = 0
        self.calls = Calls(lambda: connect(self.agent))
        self.feed = Feed(lambda: connect(None), self._feed_posts, now)

    # The frame

    def compose(self) -> ComposeResult:
        """Head, tabs, the view, and the keys; views are made when they are shown."""
        yield Head()
        yield TabBar()
        with ContentSwitcher(id="views"):
            yield Absent(id="absent")
        yield Flash()
        yield Keys()

    async def on_mount(self) -> None:
        """Show the first tab, and listen to the daemon."""
        for theme in THEMES:
            self.register_theme(theme)
        usual = DEFAULT_THEME if not self._last.theme else self._last.theme
        self.theme = usual if usual in self.available_themes else DEFAULT_THEME
        await self.action_tab(self._tab)
        self.feed.start()
        # The clock of ages and countdowns; it draws the head's single row.
        self.set_interval(1.0, self._tick)

    def on_unmount(self) -> None:
        """Close the connections, remember theme and tab."""
        self.feed.stop()
        self.calls.close()
        if self._state is not None:
            remember(self._state, Remembered(theme=self.theme, tab=self.tab.name))

    @property
    def tab(self) -> Tab:
        """The tab that is shown."""
        return TABS[self._tab]

    @property
    def view(self) -> View | None:
        """Its view; None before the first."""
        found = [view for view in self.query(View) if view.id == self.tab.name]
        return found[0] if found else None

    @property
    def agent_name(self) -> str:
        """The agent's name, also where it is the daemon's default."""
        return self.agent or "default"

    @property
    def settled(self) -> bool:
        """Whether the screen shows the last snapshot."""
        view = self.view
        return self.snapshot.status is not None and view is not None and view.settled

    async def action_tab(self, name: str) -> None:
        """Show a tab."""
        switcher = self.query_one("#views", ContentSwitcher)
        self._tab = self.query_one(TabBar).shown = name
        if not switcher.query_children(f"#{name}"):
            await switcher.mount(TABS[name].make())
        self._show_view()

    def _show_view(self) -> None:
        """Show the tab's view, or before the daemon ever answered, how to start it."""
        view = self.view
        if view is None:
            return
        switcher = self.query_one("#views", ContentSwitcher)
        snapshot = self.snapshot
        absent = snapshot.status is None and bool(snapshot.trouble)
        showing = "absent" if absent else view.id
        if switcher.current != showing:
            switcher.current = showing
        if absent:
            self.query_one(Absent).tell(snapshot)
        else:
            if self.focused is None or view not in self.focused.ancestors_with_self:
                view.first_focus().focus(scroll_visible=False)
            if snapshot.status is not None:
                view.refresh_data()

    async def show_in(self, tab: str, what: str) -> None:
        """Show a tab, and in it the item with this id, path or key."""
        await self.action_tab(tab)
        view = self.view
        if view is not None and what:
            await view.show(what)

    # The daemon

    def _feed_posts(self, snapshot: Snapshot) -> None:
        self.post_message(self.Fed(snapshot))

    def on_thermocline_app_fed(self, message: Fed) -> None:
        """Draw what has changed."""
        before, self.snapshot = self.snapshot, message.snapshot
        self.happened.extend(message.snapshot.events)
        self.events_seen += len(message.snapshot.events)
        self._draw_head()
        view = self.view
        if view is None:
            return
        if message.snapshot.connected != before.connected or before.status is None:
            self._show_view()
        elif view.concerned(message.snapshot):
            view.refresh_data()

    def _draw_head(self) -> None:
        # A snapshot may still come while the screen is being taken down.
        for head in self.query(Head):
            head.refresh()

    def _tick(self) -> None:
        if not self.snapshot.connected:
            self._draw_head()
        if self._undo is not None and self.now() > self._undo_until:
            self._undo = None
            self.refresh_bindings()

    # What views call

    def flash(self, text: str, kind: Kind = "note", seconds: float | None = None) -> None:
        """Show a line for some seconds, over the last row; stored text in it is made harmless."""
        for line in self.screen_stack[0].query(Flash):
            line.tell(plain(text), kind, seconds)

    def failed(self, error: ClientError) -> None:
        """Show why a call did not succeed."""
        self.flash(why(error), "failure")

    def did(self, done: Done) -> None:
        """Say what was done; for a minute `u` undoes it, on a thread, if that is possible."""
        if done.undo is not None:
            self._undo, self._undo_until = done, self.now() + _UNDO_SECONDS
            self.flash(f"{done.text}; u undoes it", seconds=10.0)
        else:
            self._undo = None
            self.flash(done.text)
        self.refresh_bindings()
        self.feed.refresh()

    async def confirm(self, title: str | Text, *effects: str | Text, word: str = "yes") -> bool:
        """Whether the person typed `word` after having read what will happen.

        Args:
            title: what will be done.
            *effects: what that means, a line each.
            word: what is to be typed, the same as the verb where there is one.
        """
        return await self.push_screen_wait(ConfirmScreen(title, effects, word)) is True

    async def choose_from(
        self, title: str, choices: Sequence[tuple[str, str]], chosen: str | None = None
    ) -> str | None:
        """The value of the choice (value, text) that the person took, or None.

        Only from a method decorated with `@work`, as `confirm`.
        """
        return await self.push_screen_wait(ChooseScreen(title, choices, chosen))

    # Actions

    @work
    async def action_undo(self) -> None:
        """Undo the last action."""
        done, self._undo = self._undo, None
        if done is None or done.undo is None:
            return
        self.refresh_bindings()
        try:
            await self.calls.run(done.undo, LONG_SECONDS)
        except ClientError as error:
            self.failed(error)
        else:
            self.flash(f"undone: {done.text}")
        self.feed.refresh()
        if self.view is not None:
            self.view.refresh_data()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Undo is possible for a minute."""
        return self._undo is not None if action == "undo" else True

    def action_hide_texts(self) -> None:
        """Hide or show stored texts, for instance before somebody else sees the screen."""
        self.hide_texts = not self.hide_texts

    def watch_hide_texts(self, hide: bool) -> None:
        """Draw everything again."""
        self._draw_head()
        self.flash("texts are hidden; m shows them" if hide else "texts are shown")
        if self.view is not None:
            self.view.refresh_data()

    def action_copy(self) -> None:
        """Copy what is selected, over OSC 52: the terminal has to allow it."""
        text = self.screen.get_selected_text() or (self.view.copied() if self.view else "")
        if text:
            self.copy_to_clipboard(text)
            self.flash("copied")
        else:
            self.flash("nothing to copy here", "warning")

    @work
    async def action_choose_agent(self) -> None:
        """Show another agent's memory, or forget one."""
        chosen = await self.push_screen_wait(AgentsScreen())
        if chosen is not None:
            self.show_agent(chosen)

    def show_agent(self, agent: str) -> None:
        """Show an agent's memory in all tabs."""
        self.agent = agent
        self.calls.close()
        self.calls = Calls(lambda: self._connect(agent))
        self._undo = None
        self._draw_head()
        if self.view is not None:
            self.view.refresh_data()

    @work
    async def action_jump(self) -> None:
        """Go to a tab, or with `agent NAME` to an agent."""
        agents = self.snapshot.status.agents if self.snapshot.status is not None else {}
        words = [*TABS, *(f"agent {plain(name)}" for name in agents)]
        word = await self.push_screen_wait(JumpScreen(words))
        if not word:
            return
        if word in TABS:
            await self.action_tab(word)
        elif word.startswith("agent "):
            self.show_agent(word.removeprefix("agent ").strip())
        else:
            self.flash(f"nothing is called {word!r}", "warning")

    @work
    async def action_find(self) -> None:
        """Search everything, and show what was chosen in its tab."""
        found = await self.push_screen_wait(FindScreen())
        if found is not None:
            await self.show_in(found.tab, found.what)

    @work
    async def action_choose_theme(self) -> None:
        """Choose the colours; they are remembered."""
        names = sorted(self.available_themes, key=lambda name: (DEFAULT_THEME not in name, name))
        chosen = await self.choose_from("Theme", [(name, name) for name in names], self.theme)
        if chosen is not None:
            self.theme = chosen

    def action_keys(self) -> None:
        """Show every key that is valid now."""
        self.push_screen(KeysScreen(self.screen, self))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action of the palette: the view's, the app's, tabs and themes."""
        for node, binding, enabled, _ in screen.active_bindings.values():
            if enabled and isinstance(node, (View, App)) and binding.description:
                yield SystemCommand(
                    binding.description,
                    f"key {self.get_key_display(binding)}",
                    partial(self.run_action, binding.action, node),
                )
        for theme in sorted(self.available_themes):
            yield SystemCommand(f"Theme {theme}", "colours", partial(setattr, self, "theme", theme))
