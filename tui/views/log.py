"""The daemon's events as they happen."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from rich.text import Text

from thermocline.daemon.client.wording import moment, number_of

from ..dialogs import PageScreen
from ..feed import FeedEvent
from ..table import Column
from ..text import plain, text_of
from .resource import Part, ResourceView
from .view import Action

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


def _open(view: LogView, event: FeedEvent) -> None:
    fields = json.dumps(dict(event.data), ensure_ascii=False, indent=2)
    text = Text(f"{moment(event.time, view.app.now())}  {plain(event.agent)}\n\n", "dim")
    text.append_text(view.shown(fields, keep="\n"))
    view.app.push_screen(PageScreen(Text(f" {plain(event.type)} "), text))


def _pause(view: LogView) -> None:
    """Stop the table; events of the pause are added afterwards."""
    view.paused = not view.paused
    view.refresh_data()


def _follow(view: LogView) -> None:
    view.paused = False
    view.table.action_go(-1)
    view.refresh_data()


def _raise_level(view: LogView) -> None:
    view.least = LEVELS[(LEVELS.index(view.least) + 1) % len(LEVELS)]
    view.redraw()


class LogView(ResourceView):
    """The table; it follows the newest event while the cursor is on it, unless it is paused."""

    WATCHES = frozenset({""})
    FILTER = "filter: part of a type, an agent, an id"
    ACTIONS = (
        Action("space", "Pause", _pause),
        Action("f", "Follow", _follow),
        Action("l", "Level", _raise_level),
        Action("slash", "Filter", lambda view: view.open_filter(), display="/"),
        Action("escape", "All", lambda view: view.leave_filter(), show=False),
    )

    def parts(self) -> Mapping[str, Part[FeedEvent]]:
        self.least = STEP
        self.paused = False
        # How many events of all were looked at, and those of them that are shown.
        self._seen = 0
        self._events: list[FeedEvent] = []
        return {
            "events": Part(
                "Events",
                [
                    Column("", 1, lambda event: self._colored(event, level_of(event).mark)),
                    Column("Time", 8, lambda event: Text(_clock(event.time), "dim")),
                    Column("Type", 20, self._colored, least=_WIDE),
                    Column("Type", 16, self._colored, most=_WIDE - 1),
                    Column("Agent", 10, lambda event: Text(plain(event.agent), "dim"), least=_WIDE),
                    Column("What", 0, lambda event: self.shown(line_of(event))),
                ],
                lambda event: event.id,
                "nothing yet",
                rows=lambda: self._events,
                copied=lambda event: plain(
                    f"{_clock(event.time)}  {event.agent}  {event.type}  {line_of(event)}"
                ),
                open=Action("", "Open", _open, row=True),
            )
        }

    @property
    def following(self) -> bool:
        return self.table.cursor >= self.table.total - 1

    async def update(self) -> None:
        new = min(self.app.events_seen - self._seen, len(self.app.events))
        self._add([*self.app.events][-new:] if new > 0 and not self.paused else [])

    async def show(self, key: str) -> None:
        self.open_filter()
        self.filter_line.value = key

    def redraw(self) -> None:
        self._events = []
        self._add([*self.app.events])

    def show_all(self) -> None:
        self.least = STEP

    def moved(self) -> None:
        self._draw_line()

    def _add(self, events: list[FeedEvent]) -> None:
        follows = self.following
        if not self.paused:
            self._seen = self.app.events_seen
            least = LEVELS.index(self.least)
            self._events += [
                event
                for event in events
                if LEVELS.index(level_of(event)) >= least
                and self.fits(f"{event.type} {event.agent} {line_of(event)}")
            ]
            del self._events[:-_ROWS]
        self.draw()
        if follows:
            self.table.action_go(-1)

    def _colored(self, event: FeedEvent, text: str = "") -> Text:
        return Text(plain(text or event.type), self.paint(level_of(event).color))

    def line(self) -> Text:
        parts = [number_of(len(self._events), "event", "events")]
        if self.least is FAILURE:
            parts.append("only failures")
        elif self.least is not STEP:
            parts.append(f"only {self.least.word} and worse")
        if self.paused:
            parts.append(f"PAUSED, {self.app.events_seen - self._seen:,} waiting")
        else:
            parts.append("following" if self.following else "not following: f")
        if not self.snapshot.connected:
            parts.append("NO DAEMON")
        return Text("  ·  ".join(parts))


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))
