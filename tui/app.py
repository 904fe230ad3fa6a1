"""The terminal view, put together: the daemon's feed, the frame, and a view for each tab."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher

from thermocline.daemon.client import AsyncClient

from .agents import AgentsScreen
from .charts import DEFAULT_THEME, THEMES
from .dialogs import KeysScreen
from .feed import Feed, Snapshot
from .frame import Absent, Head, Keys, TabBar
from .session import Flash, Remembered, Session, recalled, remember
from .views import TABS, VIEWS, Tab
from .views.view import View


class ThermoclineApp(Session):
    """The memory of one daemon, live."""

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
    Screen.-stale #views { opacity: 60%; }
    * {
        scrollbar-size-vertical: 1; scrollbar-color: $border; scrollbar-color-hover: $primary;
        scrollbar-color-active: $primary; scrollbar-background: $background;
        scrollbar-background-hover: $background; scrollbar-background-active: $background;
        scrollbar-corner-color: $background;
    }
    OptionList { background: $background; }
    OptionList:focus { background-tint: transparent; }
    """
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-narrow"), (80, "-normal"), (120, "-wide"),
    ]  # fmt: skip
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high"), (34, "-tall")]  # noqa: RUF012 - likewise
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(tab.key, f"tab('{tab.name}')", tab.title, show=False) for tab in VIEWS),
        Binding("u", "undo", "Undo"),
        Binding("m", "hide_texts", "Hide texts"),
        Binding("y", "copy", "Copy"),
        Binding("ctrl+a", "choose_agent", "Agent"),
        Binding("ctrl+t", "choose_theme", "Theme"),
        Binding("question_mark", "keys", "Keys", key_display="?", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(
        self,
        connect: Callable[[str | None], AsyncClient],  # None: for the daemon's default agent
        *,
        agent: str | None = None,  # whose memory is shown first
        tab: str | None = None,  # shown first; None: the last time's
        read_only: bool = False,
        state: Path | None = None,  # where theme and tab are remembered; None: nowhere
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(connect, agent, read_only=read_only, now=now)
        self._state = state
        self._last = recalled(state) if state is not None else Remembered()
        self._tab = next((name for name in (tab, self._last.tab) if name in TABS), VIEWS[0].name)
        self.feed = Feed(
            lambda: connect(None), lambda snapshot: self.post_message(self.Fed(snapshot)), now
        )

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
        for theme in THEMES:
            self.register_theme(theme)
        last = self._last.theme
        self.theme = last if last in self.available_themes else DEFAULT_THEME
        await self.action_tab(self._tab)
        self.run_worker(self.feed.run(), group="feed", exit_on_error=True)
        # The clock of ages and countdowns; it draws the head's single row.
        self.set_interval(1.0, self._tick)

    def on_unmount(self) -> None:
        self.feed.stop()
        self.calls.close()
        if self._state is not None:
            remember(self._state, Remembered(theme=self.theme, tab=self.tab.name))

    @property
    def tab(self) -> Tab:
        return TABS[self._tab]

    @property
    def view(self) -> View | None:
        return next((view for view in self.query(View) if view.id == self.tab.name), None)

    @property
    def is_idle(self) -> bool:
        """Whether the screen shows the last snapshot."""
        view = self.view
        return self.snapshot.status is not None and view is not None and view.is_idle

    async def action_tab(self, name: str) -> None:
        switcher = self.query_one("#views", ContentSwitcher)
        self._tab = self.query_one(TabBar).shown = name
        if not switcher.query_children(f"#{name}"):
            await switcher.mount(TABS[name].make())
        self._show_view()

    def _show_view(self) -> None:
        """Show the tab's view, or before the daemon ever answered, how to start it."""
        view, snapshot = self.view, self.snapshot
        if view is None:
            return
        switcher = self.query_one("#views", ContentSwitcher)
        absent = snapshot.status is None and bool(snapshot.trouble)
        showing = "absent" if absent else view.id
        if switcher.current != showing:
            switcher.current = showing
        if absent:
            self.query_one(Absent).explain(snapshot)
            return
        if self.focused is None or view not in self.focused.ancestors_with_self:
            view.first_focus().focus(scroll_visible=False)
        if snapshot.status is not None:
            view.refresh_data()

    async def show_in(self, tab: str, key: str) -> None:
        await self.action_tab(tab)
        if self.view is not None and key:
            await self.view.show(key)

    def refresh_view(self, *, ask: bool = True) -> None:
        if ask:
            self.feed.refresh()
        self._draw_head()
        if self.view is not None:
            self.view.refresh_data()

    # The daemon

    def on_thermocline_app_fed(self, message: Fed) -> None:
        if not self.screen_stack:
            return  # It is closing.
        before, self.snapshot = self.snapshot, message.snapshot
        self.events.extend(message.snapshot.events)
        self.events_seen += len(message.snapshot.events)
        self._draw_head()
        connected = message.snapshot.connected
        # What a daemon said that is away is dim.
        self.screen_stack[0].set_class(not connected and self.snapshot.status is not None, "-stale")
        if connected and before.trouble:
            # It may be another daemon, with another memory.
            for view in self.query(View):
                view.reset()
            if before.status is not None:
                self.flash("the daemon is there again")
        if connected != before.connected or before.status is None:
            self._show_view()
        elif self.view is not None and self.view.concerned(message.snapshot):
            self.view.refresh_data()

    def _draw_head(self) -> None:
        # A snapshot may still come while the screen is being taken down.
        for head in self.query(Head):
            head.refresh()

    def _tick(self) -> None:
        if not self.snapshot.connected:
            self._draw_head()
        self.forget_undo()

    # Actions

    def action_hide_texts(self) -> None:
        """Hide or show stored texts, for instance before somebody else sees the screen."""
        self.hide_texts = not self.hide_texts

    def watch_hide_texts(self, hide: bool) -> None:
        self.flash("texts are hidden; m shows them" if hide else "texts are shown")
        self.refresh_view(ask=False)

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
        chosen = await self.push_screen_wait(AgentsScreen(read_only=self.read_only))
        if chosen is not None:
            self.show_agent(chosen)

    @work
    async def action_choose_theme(self) -> None:
        names = sorted(self.available_themes, key=lambda name: (DEFAULT_THEME not in name, name))
        chosen = await self.choose_from("Theme", [(name, name) for name in names], self.theme)
        if chosen is not None:
            self.theme = chosen

    def action_keys(self) -> None:
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
