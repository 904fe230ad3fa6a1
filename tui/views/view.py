"""The base of all views: when they are drawn, and how they call the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, TypeVarTuple

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.widget import Widget

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.client.wording import ago

from ..calls import USUAL_SECONDS, Done
from ..dialogs.form import Field, FormScreen
from ..feed import Snapshot
from ..text import hidden, masked, plain
from ..widgets.paint import paint

if TYPE_CHECKING:
    from textual import getters

    from ..app import ThermoclineApp

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class View(Widget):
    """One tab. A subclass composes its widgets once, and fills them in `update`.

    A view is made when its tab is shown for the first time, and stays. It reads what it needs of
    the daemon in `update`, by `await self.call(Client.tree)`, and of `self.snapshot` (the last
    `/api/status`), and draws it. `update` runs in a worker: it may await, and is never run twice
    at once. It is called

    - when the tab is shown, and when the agent changes (then everything is another's),
    - when the daemon is there again, and when the texts are hidden or shown,
    - while the tab is shown: when something happened that `WATCHES` names, at most 4 times a
      second; call `self.refresh_data()` after a change of your own.

    Actions that await something long, or `self.app.confirm`, are decorated with `@work`.

    - `await self.app.confirm("Forget 3 memories", "what will happen", word="forget")` is True
      after the word was typed. Only from a method decorated with `@work`.
    - `await self.do(change)` runs a function with a client, on a thread. It returns `Done`: what
      was done, in words, and for a minute `u` runs what undoes it.
    - `await self.enter("Add", fields, save)` opens a form, whose `save` awaits `self.change`.
    - `self.app.flash("text", "warning")` shows a line for some seconds: a `note`, a `warning` or a
      `failure`.
    - `self.app.agent` is the agent's name or None for the daemon's default, `self.app.now()` the
      time; show times with `self.ago(when)`, never with `time.time()`.
    - `self.app.hide_texts` and `self.app.read_only` are what they say; the former is taken care
      of by `self.shown`, the latter by `WRITES`.

    Everything that was stored by somebody (texts, categories, subjects, paths, messages) is shown
    as `self.shown(text)`, also in titles and cells of tables: a `str` there is markup. Words that
    are the view's own may be `str`.

    Layout: the screen has the class `-narrow` below 80 columns, `-normal` below 120, `-wide` from
    there on; and `-low` below 20 rows, `-high` below 34, `-tall` from there
    on. In CSS: `Screen.-narrow MemoriesView #detail { ... }`. No state is told by colour alone.

    Attributes:
        WATCHES: prefixes of events that change what the view shows, such as `memory` or
            `category.`; `""` for every snapshot, also without an event.
        WRITES: names of the view's actions that change something; with `--read-only` they are
            neither shown in the footer nor run.
        BINDINGS: as in Textual; shown in the footer, in `?` and in the palette (ctrl+p). Taken by
            the app: `1`-`9` `:` `?` `q` `m` `u` `y` `ctrl+p` `ctrl+f` `ctrl+a` `ctrl+t`.
    """

    DEFAULT_CSS = """
    View { width: 1fr; height: 1fr; }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset()
    WRITES: ClassVar[frozenset[str]] = frozenset()
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "app.simulate_key('down')", "Down", show=False),
        Binding("k", "app.simulate_key('up')", "Up", show=False),
        Binding("g", "app.simulate_key('home')", "First", show=False),
        Binding("G", "app.simulate_key('end')", "Last", show=False),
    ]
    can_focus = True
    if TYPE_CHECKING:
        app = getters.app(ThermoclineApp)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let the rules of a view depend on the classes of the screen."""
        cls.SCOPED_CSS = False
        super().__init_subclass__(**kwargs)

    def __init__(self, name: str) -> None:
        super().__init__(name=name, id=name)
        self._updating = False
        self._again = False
        self.updates = 0

    @property
    def snapshot(self) -> Snapshot:
        """The daemon as it was a moment ago."""
        return self.app.snapshot

    async def update(self) -> None:
        """Read the data, and draw it."""

    async def show(self, what: str) -> None:
        """Select what a search found: an id, a path, a key, as the view's `TAB` says."""

    def copied(self) -> str:
        """What `y` copies: the text of what is selected; "" if there is nothing."""
        return ""

    def first_focus(self) -> Widget:
        """The widget that has the keys when the tab is shown."""
        return self

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
            self.run_worker(self._update(), group="update", exit_on_error=True)

    @property
    def settled(self) -> bool:
        """Whether everything that was read is drawn."""
        return self.updates > 0 and not self._updating

    async def call(
        self,
        method: Callable[[Client, *Ts], T],
        *args: *Ts,
        patience: float = USUAL_SECONDS,
    ) -> T | None:
        """What a method of the client returns: `await self.call(Client.get, memory_id)`.

        It runs on a thread. A failure is shown in the flash line, unless another agent is shown by
        then, and the result is None.
        """
        found, failure, calls = None, None, self.app.calls
        try:
            found = await calls.run(lambda client: method(client, *args), patience)
        except ClientError as error:
            failure = error
        if not self.app.is_running:
            # The view was closed meanwhile: its widgets are gone, one after the other.
            raise asyncio.CancelledError
        if failure is not None and calls is self.app.calls:
            self.app.failed(failure)
        return found

    async def change(
        self, change: Callable[[Client], Done], patience: float = USUAL_SECONDS
    ) -> None:
        """Run a change on a thread, say what was done, and offer to undo it.

        Raises:
            ClientError: the daemon refuses it, or does not answer.
        """
        self.app.did(await self.app.calls.run(change, patience))
        self.refresh_data()

    async def do(self, change: Callable[[Client], Done], patience: float = USUAL_SECONDS) -> bool:
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

    def paint(self, name: str, *, bold: bool = False) -> Style:
        """A colour of the theme."""
        return paint(self.app, name, bold=bold)

    def ago(self, when: float | None) -> str:
        """A time in words, as seen from now."""
        return ago(when, self.app.now())

    def due(self, when: float | None) -> str:
        """A coming time in words: now, if it has passed or is not known."""
        now = self.app.now()
        return ago(max(when or now, now), now)

    def shown(self, text: str, *, keep: str = "") -> Text:
        """Stored text for the screen: escaped, secrets masked, dots while texts are hidden."""
        return Text(hidden(text) if self.app.hide_texts else plain(masked(text), keep))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Whether an action is possible here; False hides its key."""
        return not (self.app.read_only and action in self.WRITES)

    async def _update(self) -> None:
        try:
            while self._again and self.app.is_running:
                self._again = False
                await self.update()
                self.updates += 1
        except NoMatches:
            # While the program ends, its parts go one by one.
            if self.app.is_running:
                raise
        finally:
            self._updating = False
