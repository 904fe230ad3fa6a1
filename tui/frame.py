"""The frame of every view: agent and health, tabs, keys; and the page without a daemon."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual import getters
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.events import Click
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from thermocline.daemon.client.wording import ago

from .charts import paint
from .feed import Snapshot
from .session import Session
from .text import plain
from .views import VIEWS


class Line(Widget):
    """One row of the frame."""

    DEFAULT_CSS = """
    Line { height: 1; width: 1fr; }
    """

    app = getters.app(Session)

    def paint(self, name: str, *, bold: bool = True, on: str | None = None) -> Style:
        return paint(self.app, name, bold=bold, on=on)

    async def on_click(self, event: Click) -> None:
        """Run the action under the pointer. A link of Textual's would bring its own colours."""
        action = event.style.meta.get("action")
        if action is not None:
            await self.run_action(action)


class Head(Line):
    """The agent, the verdict in words, and what is unusual about this view."""

    DEFAULT_CSS = """
    Head { background: $panel; padding: 0 1; }
    """

    def render(self) -> Text:
        """The row; the verdict is the last to be cut."""
        app = self.app
        verdict = app.snapshot.verdict
        left = Text(no_wrap=True, overflow="ellipsis")
        if self.size.width >= 60:
            left.append("thermocline ", self.paint("primary"))
        left.append(plain(app.agent_name), "bold").append("  ")
        left.append(f"{verdict.mark} {verdict.word}", self.paint(verdict.color))
        snapshot = app.snapshot
        if not snapshot.connected and snapshot.status is not None:
            left.append(f", as of {ago(snapshot.at, app.now())}")
        flags = " ".join(
            word
            for word, on in (("READ-ONLY", app.read_only), ("TEXTS HIDDEN", app.hide_texts))
            if on
        )
        room = self.size.width - left.cell_len - len(flags)
        if room < 1:
            return left.append(" ").append(flags, "reverse")
        return left.append(" " * room).append(flags, "reverse")


class TabBar(Line):
    """The tabs; in few columns only their digits and the name of the current tab."""

    DEFAULT_CSS = """
    TabBar { background: $surface; }
    """
    shown: reactive[str] = reactive("overview")

    def render(self) -> Text:
        names = sum(len(tab.title) + 3 for tab in VIEWS)
        whole = names < self.size.width
        gap = "  " if names + len(VIEWS) < self.size.width else " "
        row = Text(no_wrap=True)
        after = gap[1:]
        for tab in VIEWS:
            here = tab.name == self.shown
            label = f"{tab.key} {tab.title}" if whole or here else tab.key
            click = Style.from_meta({"action": f"app.tab('{tab.name}')"})
            if here:
                row.append(gap[1:]).append(
                    f" {label} ", click + self.paint("background", on="primary")
                )
            else:
                row.append(after).append(label, click + Style(dim=True))
            after = gap[1:] if here else gap
        return row


class Keys(Line):
    """The keys that are valid where the focus is, as many as fit, and always `?`."""

    DEFAULT_CSS = """
    Keys { background: $panel; padding: 0 1; }
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def render(self) -> Text:
        row = Text(no_wrap=True)
        last = Text(no_wrap=True)
        self._add(last, "^p", "actions", "app.command_palette")
        self._add(last, "?", "keys", "app.keys")
        last.rstrip()
        seen: set[str] = set()
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if not binding.show or not enabled or binding.action in seen:
                continue
            seen.add(binding.action)
            key = self.app.get_key_display(binding)
            if (
                row.cell_len + len(key) + len(binding.description) + 3 + last.cell_len
                > self.size.width
            ):
                continue
            # A click does what the key does, wherever its action lives.
            self._add(row, key, binding.description, f"app.simulate_key('{binding.key}')")
        return row.append_text(last)

    def _add(self, row: Text, key: str, words: str, action: str) -> None:
        click = Style.from_meta({"action": action})
        row.append(key, click + self.paint("accent"))
        row.append(f" {words}  ", click)


class Absent(VerticalScroll, can_focus=True):
    """The page shown until a daemon answers: how to start it."""

    DEFAULT_CSS = """
    Absent { align: center middle; }
    Absent > Static { width: 66; max-width: 100%; height: auto; padding: 0 2; }
    """

    def compose(self) -> ComposeResult:
        yield Static()

    def explain(self, snapshot: Snapshot) -> None:
        text = Text.assemble(
            ("No daemon answers.\n\n", "bold"),
            f"{plain(snapshot.trouble)}\n\nStart it in another terminal:\n\n",
            ("    thermocline daemon\n\n", "bold"),
            'or in a checkout with "make run". This view connects by itself as soon as it is there.'
            " A daemon with another socket: thermocline tui --socket PATH.",
        )
        self.query_one(Static).update(text)
