"""What the frame, the views and the dialogs share: the daemon, the flash line, questions, undo."""

from __future__ import annotations

import contextlib
import os
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from rich.text import Text
from textual import work
from textual.app import App
from textual.reactive import reactive
from textual.timer import Timer
from textual.widgets import Static

from thermocline.daemon.client import AsyncClient, ClientError

from .dialogs import ChooseScreen, ConfirmScreen
from .feed import LONG_SECONDS, Calls, Done, FeedEvent, Snapshot
from .text import hidden, masked, plain, why

Kind = Literal["note", "warning", "failure"]
_MARKS: Final[dict[Kind, str]] = {"note": "✓", "warning": "!", "failure": "✗"}
_SECONDS: Final[dict[Kind, float]] = {"note": 5.0, "warning": 8.0, "failure": 12.0}
_UNDO_SECONDS: Final = 60.0


class Remembered(msgspec.Struct, frozen=True):
    """The theme and tab of the last session, in the XDG state folder; "" for the defaults."""

    theme: str = ""
    tab: str = ""


def state_file(env: Mapping[str, str]) -> Path:
    """The file of `Remembered`, by the XDG rules."""
    base = Path(env.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".local" / "state"
    return base / "thermocline" / "tui.json"


def recalled(path: Path) -> Remembered:
    """The file's content; the defaults if it is missing or unreadable."""
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Remembered)
    return Remembered()


def remember(path: Path, what: Remembered) -> None:
    """Write the file; a failure to write is ignored."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_bytes(msgspec.json.encode(what))
        fresh.replace(path)


class Flash(Static):
    """One line that says what was done or failed, for some seconds.

    It lies over the view's last row, so that nothing moves when it comes.
    """

    DEFAULT_CSS = """
    Flash {
        layer: flash; dock: bottom; offset-y: -1; height: 1; padding: 0 1; display: none;
        background: $panel; color: $foreground; text-overflow: ellipsis; text-wrap: nowrap;
    }
    Flash.-warning { background: $warning-muted; color: $text-warning; text-style: bold; }
    Flash.-failure { background: $error-muted; color: $text-error; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__(id="flash")
        self._timer: Timer | None = None
        self.line = ""

    def show_line(self, text: str, kind: Kind = "note", seconds: float | None = None) -> None:
        """Show a text for some seconds; it must be harmless, see `plain`."""
        self.line = text
        self.update(Text(f"{_MARKS[kind]} {text}", no_wrap=True, overflow="ellipsis"))
        self.set_class(kind == "warning", "-warning")
        self.set_class(kind == "failure", "-failure")
        self.display = True
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(seconds or _SECONDS[kind], self._clear)

    def _clear(self) -> None:
        self.line = ""
        self.display = False


class Session(App[None]):
    """The program without its frame."""

    hide_texts: reactive[bool] = reactive(False, init=False)

    def __init__(
        self,
        connect: Callable[[str | None], AsyncClient],
        agent: str | None,
        *,
        read_only: bool,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._connect = connect
        self.agent = agent
        self.read_only = read_only
        self.now = now
        self.snapshot = Snapshot()  # the daemon as it was a moment ago
        self.events: deque[FeedEvent] = deque(maxlen=5000)  # the latest of all `events_seen`
        self.events_seen = 0
        self.calls = Calls(lambda: connect(self.agent))  # for the agent that is shown
        self.undoable: Done | None = None  # the last change, while it can be undone
        self._undo_until = 0.0

    # What the frame does for views and dialogs

    @abstractmethod
    async def show_in(self, tab: str, key: str) -> None:
        """Show a tab, and in it the item with this id, path or key."""

    @abstractmethod
    def refresh_view(self, *, ask: bool = True) -> None:
        """Read and draw again what is shown; with `ask` the daemon's state too."""

    # The agent

    @property
    def agent_name(self) -> str:
        """The agent's name, also where it is the daemon's default."""
        return self.agent or "default"

    def show_agent(self, agent: str) -> None:
        self.agent = agent
        self.calls.close()
        self.calls = Calls(lambda: self._connect(agent))
        self.undoable = None
        self.refresh_bindings()
        self.refresh_view(ask=False)

    # Texts

    def shown(self, text: str, *, keep: str = "") -> Text:
        """Stored text for the screen: escaped, secrets masked, dots while texts are hidden."""
        return Text(hidden(text) if self.hide_texts else plain(masked(text), keep))

    def flash(self, text: str, kind: Kind = "note", seconds: float | None = None) -> None:
        """Show a line for some seconds, over the last row; stored text in it is made harmless."""
        for line in self.screen_stack[0].query(Flash):
            line.show_line(plain(text), kind, seconds)

    def failed(self, error: ClientError) -> None:
        self.flash(why(error), "failure")

    # Questions; only from a worker

    async def confirm(self, title: str | Text, *effects: str | Text, word: str = "yes") -> bool:
        """Whether the person typed `word` after having read what will happen, a line each."""
        return await self.push_screen_wait(ConfirmScreen(title, effects, word)) is True

    async def choose_from(
        self, title: str, choices: Sequence[tuple[str, str]], chosen: str | None = None
    ) -> str | None:
        """The value of the choice (value, text) that the person took, or None."""
        return await self.push_screen_wait(ChooseScreen(title, choices, chosen))

    # Undo

    def did(self, done: Done) -> None:
        """Say what was done; for a minute `u` undoes it, if that is possible."""
        if done.undo is not None:
            self.undoable, self._undo_until = done, self.now() + _UNDO_SECONDS
            self.flash(f"{done.text}; u undoes it", seconds=10.0)
        else:
            self.undoable = None
            self.flash(done.text)
        self.refresh_bindings()
        self.refresh_view()

    def forget_undo(self) -> None:
        """Offer no undo any more once its minute is over."""
        if self.undoable is not None and self.now() > self._undo_until:
            self.undoable = None
            self.refresh_bindings()

    @work
    async def action_undo(self) -> None:
        done, self.undoable = self.undoable, None
        if done is None or done.undo is None:
            return
        self.refresh_bindings()
        try:
            await self.calls.run(done.undo, LONG_SECONDS)
        except ClientError as error:
            self.failed(error)
        else:
            self.flash(f"undone: {done.text}")
        self.refresh_view()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Undo is possible for a minute."""
        return self.undoable is not None if action == "undo" else True
