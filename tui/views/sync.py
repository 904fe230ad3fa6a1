"""The replica: queued changes, past rounds, conflicts, and the devices that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import names_of, number_of
from thermocline.daemon.shapes.history import VersionView
from thermocline.daemon.shapes.sync import DeviceView, SyncRound, SyncStatus

from ..calls import LONG_SECONDS, Done
from ..text import one_line, plain, text_of
from ..widgets.facts import Facts
from ..widgets.paged import Column
from ..widgets.spark import Spark
from .parts import Part, PartsView

_LABEL: Final = 9
_MOST_CONFLICTS: Final = 200
# The replica is asked for its devices, which may take a second, only this often.
_DEVICES_SECONDS: Final = 60.0
_ALL_FACTS_HEIGHT: Final = 24


class SyncView(PartsView):
    """The state above, and below it the parts: beside each other, or one at a time."""

    DEFAULT_CSS = """
    SyncView #now { height: auto; max-height: 60%; }
    SyncView #detail { height: auto; max-height: 60%; border-top: dashed $border-blurred; }
    SyncView #detail Static { height: auto; }
    Screen.-low SyncView #now, Screen.-low SyncView #detail { border: none; }
    SyncView.-beside #parts { grid-rows: 3fr 2fr; }
    SyncView.-beside #conflicts { row-span: 2; }
    SyncView.-beside #conflicts PagedTable { height: auto; max-height: 60%; }
    """
    # Rounds raise no event.
    WATCHES: ClassVar[frozenset[str]] = frozenset({""})
    WRITES: ClassVar[frozenset[str]] = frozenset(
        {"sync", "rehearse", "take_back", "retire", "rejoin"}
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sync", "Sync now"),
        Binding("r", "part('rounds')", "Rounds", show=False),
        Binding("c", "part('conflicts')", "Conflicts"),
        Binding("d", "part('devices')", "Devices"),
        Binding("b", "take_back", "Take the lost value"),
        Binding("x", "retire", "Retire"),
        Binding("j", "rejoin", "Use this device again"),
        Binding("v", "rehearse", "Rehearse a restore"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.status: SyncStatus | None = None
        self._conflicts: list[VersionView] = []
        self._devices: list[DeviceView] = []
        self._asked = float("-inf")
        self._agent: str | None = None

    def compose(self) -> ComposeResult:
        """State, sparks, and the three parts."""
        with Container(id="now", classes="panel") as now:
            now.border_title = " Replica "
            yield Facts(_LABEL)
            yield Spark("outbox", label_columns=_LABEL, id="outbox")
            yield Spark("latency", unit=" ms", label_columns=_LABEL, id="latency")
        yield self.boxes()

    def parts(self) -> Mapping[str, Part]:
        """Past rounds, lost values, and devices."""
        return {
            "rounds": Part(
                "Rounds",
                [
                    Column("When", 10, lambda one: self.ago(one.at)),
                    Column("Sent", 4, lambda one: _or_dash(one.sent), right=True),
                    Column("Came", 4, lambda one: _or_dash(one.received), right=True),
                    Column("Lost", 4, _lost, least=64, right=True),
                    Column("Took", 8, _took, least=50, right=True),
                    Column("Result", 0, self._result),
                ],
                lambda one: one.at,
                "no round since the daemon started",
            ),
            "conflicts": Part(
                "Conflicts",
                [
                    Column("When", 10, lambda one: self.ago(one.at)),
                    Column("Fields", 10, lambda one: plain(", ".join(one.replaced)), least=56),
                    Column("Lost value", 0, self._lost_value),
                ],
                lambda one: str(one.number),
                "no value was lost: no two devices changed the same field",
                below=[VerticalScroll(Static(), id="detail", can_focus=False)],
            ),
            "devices": Part(
                "Devices",
                [
                    Column("Device", 0, self._device),
                    Column("Seen", 10, lambda one: self.ago(one.last_at)),
                    Column("State", 14, _state),
                    Column("Id", 12, lambda one: plain(one.id), least=64),
                ],
                lambda one: one.id,
                "no device has replicated yet",
            ),
        }

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys mean something here."""
        replicates = self.status is None or self.status.replica != "none"
        possible = {
            "take_back": self.part == "conflicts" and self._conflicts,
            "retire": self.part == "devices" and self._devices,
            "rejoin": self.status is not None and self.status.error == "retired",
            "sync": replicates,
            "rehearse": replicates,
        }
        return bool(possible.get(action, True)) and super().check_action(action, parameters)

    # What is shown

    async def update(self) -> None:
        """Read the state; the devices less often."""
        if self._agent != self.app.agent:
            self._agent, self._asked, self._devices = self.app.agent, float("-inf"), []
        status = await self.call(Client.sync_status)
        if status is None:
            return
        before, self.status = self.status, status
        if not status.lost_values:
            self._conflicts = []
        elif before is None or before.lost_values != status.lost_values or not self._conflicts:
            options = {"conflicts": True, "limit": _MOST_CONFLICTS}
            found = await self.call(lambda client: client.history(None, **options))
            self._conflicts = [*found.results] if found is not None else self._conflicts
        now = self.app.now()
        answers = status.phase in ("idle", "working") and status.last_success is not None
        if answers and now - self._asked >= _DEVICES_SECONDS:
            self._asked = now
            devices = await self.call(Client.devices)
            self._devices = devices.results if devices is not None else self._devices
        live = await self.call(Client.live)
        if live is not None:
            self.query_one("#outbox", Spark).values = tuple(live.outbox)
            self.query_one("#latency", Spark).values = tuple(live.sync_ms)
        self.draw()

    def draw(self) -> None:
        """Draw what was read."""
        if self.status is None:
            return
        self.tick()
        self.rows("rounds").fill(self.status.rounds)
        self.rows("conflicts").fill(self._conflicts)
        self.rows("devices").fill(self._devices)
        counts = {"conflicts": len(self._conflicts), "devices": len(self._devices)}
        self.name_parts({part: f" {count}" for part, count in counts.items() if count})
        self._draw_detail()
        self.refresh_bindings()

    def tick(self) -> None:
        """Draw the state."""
        if self.status is not None and self.is_on_screen:
            rows = list(self._facts(self.status))
            height = self.app.size.height
            # An error comes first, with its remedy.
            most = 2 if height < 16 else 4 if height < _ALL_FACTS_HEIGHT else len(rows)
            error = bool(self.status.message) + bool(self.status.hint)
            self.query_one(Facts).set(rows[: most + error])
            for spark in self.query(Spark):
                spark.display = height >= _ALL_FACTS_HEIGHT

    def _facts(self, status: SyncStatus) -> Iterator[tuple[str, str | Text]]:
        yield "state", self._phase(status)
        if status.message:
            yield "why", plain(status.message)
        if status.hint:
            yield "remedy", Text(f"→ {plain(status.hint)}")
        if status.replica == "none":
            return
        yield "to send", _queued(status.outbox) or "✓ nothing"
        done = f"sent {status.sent:,}, received {status.received:,} since the start"
        yield "success", f"{self.ago(status.last_success)}; {done}"
        for note in status.notes[:3]:
            yield "left out", Text(f"! {plain(note)}", self.paint("warning"))
        if status.away:
            yield "away", Text(f"! not seen for 90 days: {plain(', '.join(status.away))}")
        yield "restore", self._proof(status)
        yield "replica", plain(f"{status.url or 'not known yet'} ({status.configured_by})")
        yield "device", plain(f"{status.device.name} ({status.device.id})")

    def _phase(self, status: SyncStatus) -> Text:
        mark, color, words = "✓", "success", "up to date"
        if status.replica == "none":
            mark, color, words = "○", "warning", "none: set sync.url to have a replica"
        elif status.phase == "waiting":
            words = f"cannot be reached, next try {self.due(status.next_try)}"
            mark, color = "!", "warning"
        elif status.phase == "stopped":
            mark, color, words = "✗", "error", "STOPPED until somebody fixes it"
        elif status.phase == "working":
            mark, color, words = "⟳", "accent", "sending and receiving"
        elif status.last_success is None:
            mark, color, words = "○", "secondary", "no round yet"
        elif status.queued:
            words = number_of(status.queued, "row waits", "rows wait")
            mark, color = "○", "secondary"
        return Text(f"{mark} {words}", self.paint(color, bold=True))

    def _proof(self, status: SyncStatus) -> Text:
        found = status.verification
        if found is None:
            return Text("○ not rehearsed yet: v does it")
        when = f"{number_of(found.rows, 'row', 'rows')}, {self.ago(found.at)}"
        if found.verified:
            return Text(f"✓ would bring back everything: {when}", self.paint("success"))
        faults = plain("; ".join(found.faults))
        return Text(f"✗ WOULD NOT WORK: {faults} ({when})", self.paint("error", bold=True))

    def _result(self, one: SyncRound) -> Text:
        result = Text()
        if one.error:
            result.append(f"✗ {one.error}", self.paint("error"))
            result.append(f" {plain(one.message)}")
        else:
            nothing = not (one.sent or one.received or one.refused)
            result.append("✓ nothing new" if nothing else "✓")
            if one.refused:
                result.append(f" ! {one.refused} refused", self.paint("warning"))
        return result.append(f" ×{one.times}" if one.times > 1 else "")

    def _lost_value(self, one: VersionView) -> Text:
        values = _values(one)
        return self.shown(one_line(values if one.kind == "memory" else f"{one.id} = {values}"))

    def _device(self, one: DeviceView) -> Text:
        return self.shown(one.name).append(" (this one)" if one.this else "", "dim")

    def _draw_detail(self) -> None:
        one: VersionView | None = self.rows("conflicts").here
        self.query_one("#detail").display = one is not None
        if one is None:
            return
        names = {device.id: device.name for device in self._devices}
        text = Text()
        for name in one.replaced:
            if not self.screen.has_class("-low"):
                text.append(plain(name), "bold").append(f" of {one.kind} ", "dim")
                text.append_text(self.shown(one.id))
                text.append(f", merged on {plain(names.get(one.device, one.device))}\n", "dim")
            text.append("lost      ", self.paint("warning"))
            text.append_text(self.shown(_value(one.data.get(name)))).append("\n")
            text.append("in force  ", self.paint("success"))
            after = _value(one.after[name]) if name in one.after else "(removed)"
            text.append_text(self.shown(after)).append("\n")
        text.rstrip()
        self.query_one("#detail Static", Static).update(text)

    # Keys

    def on_paged_table_moved(self) -> None:
        """Show both values of the conflict under the cursor."""
        if self.app.is_running:
            self._draw_detail()

    @work
    async def action_sync(self) -> None:
        """Send and receive everything now."""
        self.app.flash("sending and receiving", seconds=LONG_SECONDS)
        await self._do(_sync)

    @work
    async def action_rehearse(self) -> None:
        """Restore into a temporary folder, and compare."""
        self.app.flash("rehearsing: restoring into a temporary folder", seconds=LONG_SECONDS)
        found = await self.call(Client.verify, patience=LONG_SECONDS)
        if found is not None and found.verified:
            rows = number_of(found.rows, "row", "rows")
            told = f"a restore would bring back {rows}; it took {found.seconds:.1f} s"
            self.app.did(Done(told))
        elif found is not None:
            self.app.flash(f"a restore would fail: {'; '.join(found.faults)}", "failure")
        self.refresh_data()

    @work
    async def action_take_back(self) -> None:
        """Put the value that lost into force again."""
        one: VersionView | None = self.rows("conflicts").here
        if one is None:
            return

        def change(client: Client) -> Done:
            which = {"id": one.id, "kind": one.kind}
            client.undo(**which, number=one.number)
            return Done("the lost value is in force", lambda again: again.undo(**which))

        await self.do(change)

    @work
    async def action_retire(self) -> None:
        """No longer wait for a device that will not come back."""
        one: DeviceView | None = self.rows("devices").here
        if one is None:
            return
        if one.retired_at is not None:
            self.app.flash(f"{one.name} is retired", "warning")
            return
        effects = ["Deletions no longer wait for it. What it has sent stays."]
        if one.this:
            effects.append("It is this device: its replication stops until it is used again.")
        title = Text.assemble("Retire ", self.shown(one.name))

        def change(client: Client) -> Done:
            client.retire_device(one.id)
            return Done(f"retired {one.name}", Client.rejoin if one.this else None)

        if await self.app.confirm(title, *effects, word="retire"):
            await self._do(change)

    @work
    async def action_rejoin(self) -> None:
        """Use this device again after it was retired."""
        await self._do(_rejoin)

    async def _do(self, change: Callable[[Client], Done]) -> None:
        """Do what may change the devices too."""
        await self.do(change, LONG_SECONDS)
        self._asked = float("-inf")
        self.refresh_data()

    async def show(self, what: str) -> None:
        """Show a part by its name, or a conflict by its number."""
        await super().show(what if what in self._parts else "conflicts")
        self.rows("conflicts").select(what)

    def copied(self) -> str:
        """The lost value under the cursor, the device's id, or the round's error."""
        one = self.rows(self.part).here
        if isinstance(one, VersionView):
            return _values(one)
        if isinstance(one, SyncRound):
            return one.message
        return "" if one is None else str(one.id)


def _sync(client: Client) -> Done:
    done = client.sync()
    words = f"sent {done.sent:,}, received {done.received:,} in {done.took_ms:,.0f} ms"
    if done.conflicts:
        words += f"; {number_of(done.conflicts, 'value', 'values')} lost a conflict"
    return Done(words)


def _rejoin(client: Client) -> Done:
    client.rejoin()
    return Done("this device is in use again")


def _queued(outbox: Mapping[str, int]) -> str:
    """The rows that wait, by kind, the most first."""
    kinds = sorted(outbox.items(), key=lambda pair: -pair[1])
    return ", ".join(number_of(number, *names_of(kind)) for kind, number in kinds)


def _or_dash(number: int) -> str:
    return f"{number:,}" if number else "-"


def _lost(one: SyncRound) -> str:
    return f"! {one.conflicts}" if one.conflicts else "-"


def _took(one: SyncRound) -> str:
    return f"{one.ms:,.0f} ms" if one.ms < 10_000 else f"{one.ms / 1000:,.0f} s"


def _state(one: DeviceView) -> str:
    if one.retired_at is not None:
        return "○ retired"
    return f"! {one.behind:,} behind" if one.behind else "✓ in step"


def _values(one: VersionView) -> str:
    """The values that lost."""
    return ", ".join(_value(one.data.get(name)) for name in one.replaced)


def _value(value: object) -> str:
    return "(none)" if value is None else text_of(value)
