"""The daemon's events as they happen."""

from __future__ import annotations

import json
import time
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from thermocline.daemon.client.wording import moment, number_of

from ..dialogs.page import PageScreen
from ..feed import FeedEvent
from ..text import plain, text_of
from ..widgets.paged import Column, PagedTable
from .filtered import FilteredView

_ROWS: Final = 1000
# From this width of the table on there is room for the agent.
_WIDE: Final = 60


class Level(NamedTuple):
    """How much an event matters: its mark, its word, and the theme's colour."""

    mark: str
    word: str
    color: str


STEP: Final = Level("·", "steps", "secondary")
CHANGE: Final = Level("•", "changes", "foreground")
LOSS: Final = Level("-", "losses", "warning")
FAILURE: Final = Level("✗", "failures", "error")
LEVELS: Final = (STEP, CHANGE, LOSS, FAILURE)
_STEPS: Final = (".progress", ".started", ".synced", ".read")
_LOSSES: Final = (".deleted", ".archived", ".superseded", ".merged", ".pruned", ".undone")


def level_of(event: FeedEvent) -> Level:
    """The level of an event: failures, what took something away, other changes, steps."""
    if event.data.get("error"):
        return FAILURE
    if event.type.endswith(_LOSSES):
        return LOSS
    return STEP if event.type.endswith(_STEPS) else CHANGE


def line_of(event: FeedEvent) -> str:
    """The fields of an event in one line."""
    return "  ".join(
        f"{name}={text_of(value)}"
        for name, value in event.data.items()
        if value not in (None, "", [], {})
    )


class LogView(FilteredView[FeedEvent]):
    """The table; it follows the newest event while the cursor is on it, unless it is paused."""

    DEFAULT_CSS = """
    LogView #state { height: 1; padding: 0 1; color: $secondary; text-wrap: nowrap; }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset({""})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause"),
        Binding("f", "follow", "Follow"),
        Binding("l", "level", "Level"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "leave_filter", "All", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._least = STEP
        self._paused = False
        # How many events of all were looked at, and those of them that are shown.
        self._drawn = 0
        self._shown: list[FeedEvent] = []

    def compose(self) -> ComposeResult:
        """State, filter, table."""
        yield Static(id="state")
        yield Input(placeholder="filter: part of a type, an agent, an id")
        yield PagedTable[FeedEvent](
            [
                Column("", 1, lambda event: self._colored(event, level_of(event).mark)),
                Column("Time", 8, lambda event: Text(_clock(event.time), "dim")),
                Column("Type", 20, self._type, least=_WIDE),
                Column("Type", 16, self._type, most=_WIDE - 1),
                Column("Agent", 10, lambda event: Text(plain(event.agent), "dim"), least=_WIDE),
                Column("What", 0, lambda event: self.shown(line_of(event))),
            ],
            lambda event: event.id,
            empty="nothing yet",
        )

    @property
    def following(self) -> bool:
        """Whether the cursor is on the newest event."""
        return self.table.cursor >= self.table.total - 1

    async def update(self) -> None:
        """Add what has happened since."""
        if not self._paused:
            new = min(self.app.events_seen - self._drawn, len(self.app.happened))
            self._add([*self.app.happened][-new:] if new > 0 else [])
        self._tell()

    async def show(self, what: str) -> None:
        """Filter by a word."""
        self.action_filter()
        self.line.value = what

    def copied(self) -> str:
        """The selected line."""
        event = self.table.here
        if event is None:
            return ""
        return plain(f"{_clock(event.time)}  {event.agent}  {event.type}  {line_of(event)}")

    def _add(self, events: list[FeedEvent]) -> None:
        self._drawn = self.app.events_seen
        words = self.typed.lower().split()
        self._shown += [event for event in events if self._fits(event, words)]
        del self._shown[:-_ROWS]
        follows = self.following
        self.table.fill(self._shown)
        if follows:
            self.table.action_go(-1)

    def redraw(self) -> None:
        """Draw all rows again."""
        self._shown = []
        self._add([*self.app.happened])
        self._tell()

    def show_all(self) -> None:
        """Events of all levels."""
        self._least = STEP

    def _fits(self, event: FeedEvent, words: list[str]) -> bool:
        if LEVELS.index(level_of(event)) < LEVELS.index(self._least):
            return False
        text = f"{event.type} {event.agent} {line_of(event)}".lower() if words else ""
        return all(word in text for word in words)

    def _type(self, event: FeedEvent) -> Text:
        return self._colored(event, event.type)

    def _colored(self, event: FeedEvent, text: str) -> Text:
        return Text(plain(text), self.paint(level_of(event).color))

    def _tell(self) -> None:
        parts = [number_of(len(self._shown), "event", "events")]
        if self._least is FAILURE:
            parts.append("only failures")
        elif self._least is not STEP:
            parts.append(f"only {self._least.word} and worse")
        if self._paused:
            parts.append(f"PAUSED, {self.app.events_seen - self._drawn:,} waiting")
        else:
            parts.append("following" if self.following else "not following: f")
        if not self.snapshot.connected:
            parts.append("NO DAEMON")
        self.query_one("#state", Static).update(Text("  ·  ".join(parts)))

    def on_paged_table_moved(self) -> None:
        """Say whether it follows."""
        if self.app.is_running:
            self._tell()

    def on_paged_table_chosen(self) -> None:
        """Enter shows all fields of an event."""
        event = self.table.here
        if event is None:
            return
        fields = json.dumps(dict(event.data), ensure_ascii=False, indent=2)
        text = Text(f"{moment(event.time, self.app.now())}  {plain(event.agent)}\n\n", "dim")
        text.append_text(self.shown(fields, keep="\n"))
        self.app.push_screen(PageScreen(Text(f" {plain(event.type)} "), text))

    # Actions

    def action_pause(self) -> None:
        """Stop the table; events of the pause are added afterwards."""
        self._paused = not self._paused
        self.refresh_data()

    def action_follow(self) -> None:
        """Go to the newest event, and stay there."""
        self._paused = False
        self.table.action_go(-1)
        self.refresh_data()

    def action_level(self) -> None:
        """Raise the lowest level that is shown, or show all again."""
        self._least = LEVELS[(LEVELS.index(self._least) + 1) % len(LEVELS)]
        self.redraw()


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))
