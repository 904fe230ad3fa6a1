"""The base of all views: when they are drawn, what their keys do, and how they call the daemon."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar, TypeVarTuple

from rich.style import Style
from rich.text import Text
from textual import getters
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.widget import Widget
from textual.widgets import Static

from thermocline.daemon.client import AsyncClient, ClientError
from thermocline.daemon.client.wording import ago

from ..charts import paint
from ..dialogs import Field, FormScreen
from ..feed import USUAL_SECONDS, Change, Snapshot
from ..session import Session

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True, slots=True)
class Action:
    """What a key does in a tab."""

    key: str  # as Textual names it; "" for what only Enter does
    label: str
    # A function of the view, and with `row` of the row under the cursor too. An `async` one runs in
    # a worker, and may ask: `view.app.confirm`, `view.app.choose_from`, `view.enter`.
    run: Callable[..., Any]
    writes: bool = False  # it changes something: with `--read-only` it is neither shown nor run
    row: bool = False
    part: str = ""  # it is only possible in this part of the view
    when: Callable[[Any], object] | None = None  # says whether it is possible now
    show: bool = True
    display: str | None = None  # the key's name on the screen


class View(Widget):
    """One tab. A subclass composes its widgets once, and fills them in `update`.

    A view is made when its tab is shown for the first time, and stays. It reads what it needs of
    the daemon in `update`, by `await self.call(AsyncClient.tree)`, and of `self.snapshot` (the last
    `/api/status`), and draws it. `update` runs in a worker: it may await, and is never run twice
    at once. It is called

    - when the tab is shown, when the agent changes, and when the daemon is there again (then
      `reset` is called first: everything may be another's),
    - when the texts are hidden or shown,
    - while the tab is shown: when something happened that `WATCHES` names, at most 4 times a
      second; call `self.refresh_data()` after a change of your own.

    `await self.do(change)` runs a coroutine function with a client. It returns `Done`: what was
    done, in words, and for a minute `u` runs what undoes it. `self.app` is the `Session`: its
    `now()` is the time; show times with `self.ago(when)`, never with `time.time()`.

    Everything that was stored by somebody (texts, categories, subjects, paths, messages) is shown
    as `self.shown(text)`, also in titles and cells of tables: a `str` there is markup. Words that
    are the view's own may be `str`.

    Layout: the screen has the class `-narrow` below 80 columns, `-normal` below 120, `-wide` from
    there on; and `-low` below 20 rows, `-high` below 34, `-tall` from there on. In CSS:
    `Screen.-narrow MemoriesView .detail { ... }`. No state is told by colour alone.
    """

    DEFAULT_CSS = """
    View { width: 1fr; height: 1fr; }
    """
    # Prefixes of events that change what the view shows, such as `memory` or `category.`; `""` for
    # every snapshot, also without an event.
    WATCHES: ClassVar[frozenset[str]] = frozenset()
    # Its keys. The app takes digits, `:` `?` `q` `m` `u` `y` `ctrl+p` `ctrl+f` `ctrl+a` `ctrl+t`.
    ACTIONS: ClassVar[Sequence[Action]] = ()
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "app.simulate_key('down')", "Down", show=False),
        Binding("k", "app.simulate_key('up')", "Up", show=False),
        Binding("g", "app.simulate_key('home')", "First", show=False),
        Binding("G", "app.simulate_key('end')", "Last", show=False),
    ]
    can_focus = True
    app = getters.app(Session)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Bind the keys, and let the rules of a view depend on the classes of the screen."""
        cls.SCOPED_CSS = False
        if "ACTIONS" in cls.__dict__:
            cls.BINDINGS = [
                Binding(
                    *(action.key, f"do('{action.key}')", action.label),
                    show=action.show,
                    key_display=action.display,
                )
                for action in cls.ACTIONS
            ]
        super().__init_subclass__(**kwargs)

    def __init__(self, name: str) -> None:
        super().__init__(name=name, id=name)
        self._updating = False
        self._again = False
        self._agent: str | None = None
        self.part = ""
        self.updates = 0
        self.reset()

    @property
    def snapshot(self) -> Snapshot:
        return self.app.snapshot

    @property
    def row(self) -> Any:
        """The row under the cursor; None without rows."""
        return None

    # What a subclass says

    def reset(self) -> None:
        """Begin with nothing read; again if it may be another agent's, or the daemon was away."""

    async def update(self) -> None:
        """Read the data, and draw it."""

    async def show(self, key: str) -> None:
        """Select the result of a search: an id, a path, a key."""

    def copied(self) -> str:
        """What `y` copies: the text of what is selected; "" if there is nothing."""
        return ""

    def first_focus(self) -> Widget:
        """The widget that has the keys when the tab is shown."""
        return self

    # When it is drawn

    def concerned(self, snapshot: Snapshot) -> bool:
        """Whether what is shown may have changed."""
        return "" in self.WATCHES or any(
            event.type.startswith(prefix) for prefix in self.WATCHES for event in snapshot.events
        )

    def refresh_data(self) -> None:
        """Have `update` called soon, once for however many calls of this."""
        self._again = True
        if not self._updating:
            self._updating = True
            # Not its coroutine, which would never be awaited if the program ends first.
            work: Callable[[], Awaitable[None]] = self._update
            self.run_worker(work, group="update", exit_on_error=True)

    @property
    def is_idle(self) -> bool:
        """Whether everything that was read is drawn."""
        return self.updates > 0 and not self._updating

    async def _update(self) -> None:
        try:
            while self._again and self.app.is_running:
                self._again = False
                before, self._agent = self._agent, self.app.agent
                if self.updates and before != self._agent:
                    self.reset()
                await self.update()
                self.updates += 1
        except NoMatches:
            # While the program ends, its parts go one by one.
            if self.app.is_running:
                raise
        finally:
            self._updating = False

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether an action is possible here; False hides its key."""
        actions = (item for item in self.ACTIONS if action == "do" and (item.key,) == parameters)
        return self.possible(next(actions, None))

    def possible(self, action: Action | None) -> bool:
        """Whether an action can be run now."""
        return action is None or (
            not (action.writes and self.app.read_only)
            and action.part in ("", self.part)
            and (action.when is None or bool(action.when(self)))
        )

    def action_do(self, key: str) -> None:
        self.perform(next(action for action in self.ACTIONS if action.key == key))

    def perform(self, action: Action) -> None:
        """Run an action, if it is possible and has the row that it needs."""
        row = self.row if action.row else None
        if not self.possible(action) or (action.row and row is None):
            return
        run = partial(action.run, self, row) if action.row else partial(action.run, self)
        if inspect.iscoroutinefunction(action.run):
            self.run_worker(run, exit_on_error=True)
        else:
            run()

    # The daemon

    async def call(
        self,
        method: Callable[[AsyncClient, *Ts], Awaitable[T]],
        *args: *Ts,
        patience: float = USUAL_SECONDS,
    ) -> T | None:
        """What a method of the client returns: `await self.call(AsyncClient.get, memory_id)`.

        A failure is shown in the flash line, unless another agent is shown by then, and the result
        is None.
        """
        result, failure, calls = None, None, self.app.calls
        try:
            result = await calls.run(lambda client: method(client, *args), patience)
        except ClientError as error:
            failure = error
        if not self.app.is_running:
            # The view was closed meanwhile: its widgets are gone, one after the other.
            raise asyncio.CancelledError
        # Of a daemon that is known to be away the head says so already.
        known = self._updating and not self.snapshot.connected
        if failure is not None and calls is self.app.calls and not known:
            self.app.failed(failure)
        return result

    async def change(self, change: Change, patience: float = USUAL_SECONDS) -> None:
        """Make a change, say what was done, and offer to undo it.

        `ClientError`: the daemon refuses it, or does not answer.
        """
        self.app.did(await self.app.calls.run(change, patience))

    async def do(self, change: Change, patience: float = USUAL_SECONDS) -> bool:
        """The same, but a failure is shown in the flash line; whether it was done."""
        try:
            await self.change(change, patience)
        except ClientError as error:
            self.app.failed(error)
            return False
        return True

    async def enter(
        self,
        title: str | Text,
        fields: Sequence[Field],
        save: Callable[[dict[str, str]], Awaitable[object]],
        *notes: str,
    ) -> bool:
        """Open a form, see `FormScreen`; whether its values were accepted."""
        return await self.app.push_screen_wait(FormScreen(title, fields, save, *notes)) is True

    # Texts

    def shown(self, text: str, *, keep: str = "") -> Text:
        return self.app.shown(text, keep=keep)

    def paint(self, name: str, *, bold: bool = False) -> Style:
        return paint(self.app, name, bold=bold)

    def ago(self, when: float | None) -> str:
        """A time in words, as seen from now."""
        return ago(when, self.app.now())

    def due(self, when: float | None) -> str:
        """A coming time in words: now, if it has passed or is not known."""
        now = self.app.now()
        return ago(max(when or now, now), now)


def redraw(static: Static, content: Text) -> None:
    """Draw a text again, if it has changed."""
    if static.content != content:
        static.update(content)
