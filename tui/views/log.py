"""The daemon's events as they happen."""

from __future__ import annotations

import json
import time
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static

from thermocline.daemon.client.wording import moment, number_of

from ..dialogs.page import PageScreen
from ..feed import FeedEvent
from ..text import plain, text_of
from ..widgets.paint import paint
from .filtered import FilteredView

_ROWS: Final = 1000
# The oldest rows are removed in batches of this size.
_SPARE: Final = 500


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


class LogView(FilteredView):
    """The table; it follows the newest event until the cursor is moved up or it is paused."""

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
        self._following = True
        self._drawn = 0
        self._waiting = 0
        self._shown: list[FeedEvent] = []
        self._wide = True
        self._columns = self._what = 0
        self._end = 0

    def compose(self) -> ComposeResult:
        """State, filter, table."""
        yield Static(id="state")
        yield Input(placeholder="filter: part of a type, an agent, an id")
        yield DataTable(cursor_type="row", show_header=True)

    def on_mount(self) -> None:
        """The columns come with the first drawing."""
        # It would show the place before the rows that were just added.
        self._table.styles.scrollbar_size_vertical = (
            self._table.styles.scrollbar_size_horizontal
        ) = 0
        self.redraw()

    def first_focus(self) -> Widget:
        """The table."""
        return self._table

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    async def update(self) -> None:
        """Add what has happened since."""
        if not self._paused:
            self._add_new()
        self._tell()

    async def show(self, what: str) -> None:
        """Filter by a word."""
        self.action_filter()
        self.query_one(Input).value = what

    def copied(self) -> str:
        """The selected line."""
        row = self._table.cursor_row
        if not 0 <= row < len(self._shown):
            return ""
        event = self._shown[row]
        return plain(f"{_clock(event.time)}  {event.agent}  {event.type}  {line_of(event)}")

    def _add_new(self) -> None:
        seen = self.app.events_seen
        new = min(seen - self._drawn, len(self.app.happened))
        self._drawn = seen
        table = self._table
        if len(self._shown) > _ROWS + _SPARE:
            self.redraw()
            return
        words = self.words
        events = list(self.app.happened)[-new:] if new > 0 else []
        for event in events[-_ROWS:]:
            if self._fits(event, words):
                self._shown.append(event)
                table.add_row(*self._cells(event))
        if events:
            self._keep_up()

    def redraw(self) -> None:
        """Draw all rows again."""
        table = self._table
        table.clear(columns=True)
        # A column that finds its own width by its rows may be too narrow when it is drawn.
        self._columns = self.size.width
        self._wide = self._columns >= 60
        widths = {"": 1, "Time": 8, "Type": 20 if self._wide else 16}
        if self._wide:
            widths["Agent"] = 10
        taken = sum(widths.values()) + 2 * (len(widths) + 1) + 2
        widths["What"] = max(self._columns - taken, 8)
        self._what = widths["What"]
        for name, columns in widths.items():
            table.add_column(name, width=columns)
        words = self.words
        found = [event for event in self.app.happened if self._fits(event, words)]
        self._shown = found[-_ROWS:]
        self._drawn = self.app.events_seen
        for event in self._shown:
            table.add_row(*self._cells(event))
        self._keep_up()
        self._tell()

    def _keep_up(self) -> None:
        if self._following:
            # Rows that were just added have their place only after the next refresh.
            self.call_after_refresh(self._to_end)

    def _to_end(self) -> None:
        if self._shown:
            self._table.move_cursor(row=len(self._shown) - 1, animate=False)

    def _fits(self, event: FeedEvent, words: list[str]) -> bool:
        if LEVELS.index(level_of(event)) < LEVELS.index(self._least):
            return False
        text = f"{event.type} {event.agent} {line_of(event)}".lower() if words else ""
        return all(word in text for word in words)

    def _cells(self, event: FeedEvent) -> list[Text]:
        level = level_of(event)
        style = paint(self.app, level.color)
        cells = [Text(level.mark, style), Text(_clock(event.time), "dim")]
        cells.append(Text(plain(event.type), style))
        if self._wide:
            cells.append(Text(plain(event.agent), "dim"))
        what = self.shown(line_of(event))
        what.truncate(self._what, overflow="ellipsis")
        return [*cells, what]

    def _tell(self) -> None:
        seen = self.app.events_seen
        parts = [number_of(len(self._shown), "event", "events")]
        if self._least is not STEP:
            parts.append(
                f"only {self._least.word} and worse"
                if self._least is not FAILURE
                else "only failures"
            )
        if self._paused:
            parts.append(f"PAUSED, {seen - self._drawn:,} waiting")
        else:
            parts.append("following" if self._following else "not following: f")
        if not self.snapshot.connected:
            parts.append("NO DAEMON")
        self.query_one("#state", Static).update(Text("  ·  ".join(parts)))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Going up stops following, going to the end follows again."""
        event.stop()
        # This event arrives late, when there may be more rows; only a person moves the cursor up.
        last = len(self._shown) - 1
        self._following = event.cursor_row >= last or (
            self._following and event.cursor_row >= self._end
        )
        self._end = last
        self._tell()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter shows all fields of an event."""
        event.stop()
        told = self._shown[event.cursor_row]
        fields = json.dumps(dict(told.data), ensure_ascii=False, indent=2)
        text = Text(f"{moment(told.time, self.app.now())}  {plain(told.agent)}\n\n", "dim")
        text.append_text(self.shown(fields, keep="\n"))
        self.app.push_screen(PageScreen(Text(f" {plain(told.type)} "), text))

    def on_resize(self, event: Resize) -> None:
        """In few columns there is no room for the agent."""
        if event.size.width != self._columns:
            self.redraw()

    # Actions

    def action_pause(self) -> None:
        """Stop the table; events of the pause are added afterwards."""
        self._paused = not self._paused
        self.refresh_data()

    def action_follow(self) -> None:
        """Go to the newest event, and stay there."""
        self._following = True
        self._paused = False
        self._add_new()
        self._keep_up()
        self._tell()

    def action_level(self) -> None:
        """Raise the lowest level that is shown, or show all again."""
        self._least = LEVELS[(LEVELS.index(self._least) + 1) % len(LEVELS)]
        self.redraw()

    def show_all(self) -> None:
        """Events of all levels."""
        self._least = STEP


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))
