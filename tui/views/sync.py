"""The replica: queued changes, past rounds, conflicts, and the devices that share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import DataTable, Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import ago, names_of, number_of
from thermocline.daemon.shapes.history import VersionView
from thermocline.daemon.shapes.sync import DeviceView, SyncRound, SyncStatus

from ..text import one_line, plain, text_of
from ..widgets.facts import Facts
from ..widgets.paint import paint
from ..widgets.rows import Column, Rows
from ..widgets.spark import Spark
from .parts import PartsView

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
    SyncView.-beside #conflicts Rows { height: auto; max-height: 60%; }
    """
    PARTS: ClassVar[Mapping[str, str]] = {
        "rounds": "Rounds",
        "conflicts": "Conflicts",
        "devices": "Devices",
    }
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
        self._conflicts: dict[str, VersionView] = {}
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
        with Container(id="parts"):
            with self.panel("rounds"):
                yield Rows(
                    Column("When", 10),
                    Column("Sent", 4, right=True),
                    Column("Came", 4, right=True),
                    Column("Lost", 4, least=64, right=True),
                    Column("Took", 8, least=50, right=True),
                    Column("Result"),
                    empty="no round since the daemon started",
                )
            with self.panel("conflicts"):
                yield Rows(
                    Column("When", 10),
                    Column("Fields", 10, least=56),
                    Column("Lost value"),
                    empty="no value was lost: no two devices changed the same field",
                )
                with VerticalScroll(id="detail", can_focus=False):
                    yield Static()
            with self.panel("devices"):
                yield Rows(
                    Column("Device"),
                    Column("Seen", 10),
                    Column("State", 14),
                    Column("Id", 12, least=64),
                    empty="no device has replicated yet",
                )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys mean something here."""
        if action == "take_back" and not (self.part == "conflicts" and self._conflicts):
            return False
        if action == "retire" and not (self.part == "devices" and self._devices):
            return False
        if action == "rejoin" and not (self.status is not None and self.status.error == "retired"):
            return False
        replicates = self.status is None or self.status.replica != "none"
        if action in ("sync", "rehearse") and not replicates:
            return False
        return super().check_action(action, parameters)

    # What is shown

    async def update(self) -> None:
        """Read the state; the devices less often."""
        if self._agent != self.app.agent:
            self._agent, self._asked, self._devices = self.app.agent, float("-inf"), []
        status = await self.call(Client.sync_status)
        if status is None:
            return
        before, self.status = self.status, status
        if before is None or before.lost_values != status.lost_values or not self._conflicts:
            await self._read_conflicts(status.lost_values)
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

    async def _read_conflicts(self, lost: int) -> None:
        if not lost:
            self._conflicts = {}
            return
        found = await self.call(
            lambda client: client.history(conflicts=True, limit=_MOST_CONFLICTS)
        )
        if found is not None:
            self._conflicts = {str(one.number): one for one in found.results}

    def draw(self) -> None:
        """Draw what was read."""
        status, now = self.status, self.app.now()
        if status is None:
            return
        self.tick()
        rounds = [(str(one.at), self._round(one, now)) for one in status.rounds]
        # Rounds move down as others come: the cursor stays at the top unless it was moved.
        table = self.rows("rounds")
        table.fill(rounds, select=rounds[0][0] if rounds and table.cursor_row <= 0 else None)
        self.rows("conflicts").fill(
            [(key, self._conflict(one, now)) for key, one in self._conflicts.items()]
        )
        self.rows("devices").fill([(one.id, self._device(one, now)) for one in self._devices])
        self.name_parts(
            {
                "conflicts": f" {len(self._conflicts)}" if self._conflicts else "",
                "devices": f" {len(self._devices)}" if self._devices else "",
            }
        )
        self._draw_detail()
        self.refresh_bindings()

    def tick(self) -> None:
        """Draw the state."""
        if self.status is not None and self.is_on_screen:
            rows = list(self._facts(self.status, self.app.now()))
            height = self.app.size.height
            # An error comes first, with its remedy.
            most = 2 if height < 16 else 4 if height < _ALL_FACTS_HEIGHT else len(rows)
            error = bool(self.status.message) + bool(self.status.hint)
            self.query_one(Facts).set(rows[: most + error])
            for spark in self.query(Spark):
                spark.display = height >= _ALL_FACTS_HEIGHT

    def _facts(self, status: SyncStatus, now: float) -> Iterator[tuple[str, str | Text]]:
        yield "state", self._phase(status, now)
        if status.message:
            yield "why", plain(status.message)
        if status.hint:
            yield "remedy", Text(f"→ {plain(status.hint)}")
        if status.replica == "none":
            return
        yield "to send", _queued(status.outbox) or "✓ nothing"
        done = f"sent {status.sent:,}, received {status.received:,} since the start"
        yield "success", f"{ago(status.last_success, now)}; {done}"
        for note in status.notes[:3]:
            yield "left out", Text(f"! {plain(note)}", paint(self.app, "warning"))
        if status.away:
            yield "away", Text(f"! not seen for 90 days: {plain(', '.join(status.away))}")
        yield "restore", self._proof(status, now)
        yield "replica", plain(f"{status.url or 'not known yet'} ({status.configured_by})")
        yield "device", plain(f"{status.device.name} ({status.device.id})")

    def _phase(self, status: SyncStatus, now: float) -> Text:
        mark, color, words = "✓", "success", "up to date"
        if status.replica == "none":
            mark, color, words = "○", "warning", "none: set sync.url to have a replica"
        elif status.phase == "waiting":
            due = ago(max(status.next_try or now, now), now)
            mark, color, words = "!", "warning", f"cannot be reached, next try {due}"
        elif status.phase == "stopped":
            mark, color, words = "✗", "error", "STOPPED until somebody fixes it"
        elif status.phase == "working":
            mark, color, words = "⟳", "accent", "sending and receiving"
        elif status.last_success is None:
            mark, color, words = "○", "secondary", "no round yet"
        elif status.queued:
            mark, color, words = (
                "○",
                "secondary",
                number_of(status.queued, "row waits", "rows wait"),
            )
        return Text(f"{mark} {words}", paint(self.app, color, bold=True))

    def _proof(self, status: SyncStatus, now: float) -> Text:
        found = status.verification
        if found is None:
            return Text("○ not rehearsed yet: v does it")
        when = f"{number_of(found.rows, 'row', 'rows')}, {ago(found.at, now)}"
        if found.verified:
            return Text(f"✓ would bring back everything: {when}", paint(self.app, "success"))
        faults = plain("; ".join(found.faults))
        return Text(f"✗ WOULD NOT WORK: {faults} ({when})", paint(self.app, "error", bold=True))

    def _round(self, one: SyncRound, now: float) -> list[Text | str]:
        result = Text()
        if one.error:
            result.append(f"✗ {one.error}", paint(self.app, "error"))
            result.append(f" {plain(one.message)}")
        else:
            nothing = not (one.sent or one.received or one.refused)
            result.append("✓ nothing new" if nothing else "✓")
            if one.refused:
                result.append(f" ! {one.refused} refused", paint(self.app, "warning"))
        if one.times > 1:
            result.append(f" ×{one.times}")
        lost = f"! {one.conflicts}" if one.conflicts else "-"
        took = f"{one.ms:,.0f} ms" if one.ms < 10_000 else f"{one.ms / 1000:,.0f} s"
        return [ago(one.at, now), _or_dash(one.sent), _or_dash(one.received), lost, took, result]

    def _conflict(self, one: VersionView, now: float) -> list[Text | str]:
        values = [_value(one.data.get(name)) for name in one.replaced]
        words = f"{one.id} = {', '.join(values)}" if one.kind != "memory" else ", ".join(values)
        return [ago(one.at, now), plain(", ".join(one.replaced)), self.shown(one_line(words))]

    def _device(self, one: DeviceView, now: float) -> list[Text | str]:
        state = "✓ in step"
        if one.retired_at is not None:
            state = "○ retired"
        elif one.behind:
            state = f"! {one.behind:,} behind"
        name = self.shown(one.name).append(" (this one)" if one.this else "", "dim")
        return [name, ago(one.last_at, now), state, plain(one.id)]

    def _draw_detail(self) -> None:
        one = self._conflicts.get(self.rows("conflicts").selected)
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
            text.append("lost      ", paint(self.app, "warning"))
            text.append_text(self.shown(_value(one.data.get(name)))).append("\n")
            text.append("in force  ", paint(self.app, "success"))
            after = _value(one.after[name]) if name in one.after else "(removed)"
            text.append_text(self.shown(after)).append("\n")
        text.rstrip()
        self.query_one("#detail Static", Static).update(text)

    # Keys

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show both values of the conflict under the cursor."""
        event.stop()
        self._draw_detail()

    @work
    async def action_sync(self) -> None:
        """Send and receive everything now."""
        self.app.flash("sending and receiving", seconds=60)
        done = await self.call_long(lambda client: client.sync())
        if done is not None:
            words = f"sent {done.sent:,}, received {done.received:,} in {done.took_ms:,.0f} ms"
            if done.conflicts:
                words += f"; {number_of(done.conflicts, 'value', 'values')} lost a conflict"
            self.app.did(words)
        self._asked = float("-inf")
        self.refresh_data()

    @work
    async def action_rehearse(self) -> None:
        """Restore into a temporary folder, and compare."""
        self.app.flash("rehearsing: restoring into a temporary folder", seconds=600)
        found = await self.call_long(Client.verify)
        if found is not None:
            rows = number_of(found.rows, "row", "rows")
            if found.verified:
                self.app.did(f"a restore would bring back {rows}; it took {found.seconds:.1f} s")
            else:
                self.app.flash(f"a restore would fail: {'; '.join(found.faults)}", "failure")
        self.refresh_data()

    @work
    async def action_take_back(self) -> None:
        """Put the value that lost into force again."""
        one = self._conflicts.get(self.rows("conflicts").selected)
        if one is None:
            return
        which = {"id": one.id, "kind": one.kind}
        if await self.call(lambda client: client.undo(**which, number=one.number)) is not None:
            self.app.did("the lost value is in force", undo=lambda client: client.undo(**which))
            self.refresh_data()

    @work
    async def action_retire(self) -> None:
        """No longer wait for a device that will not come back."""
        selected = self.rows("devices").selected
        one = next((one for one in self._devices if one.id == selected), None)
        if one is None:
            return
        if one.retired_at is not None:
            self.app.flash(f"{one.name} is retired", "warning")
            return
        effects = ["Deletions no longer wait for it. What it has sent stays."]
        if one.this:
            effects.append("It is this device: its replication stops until it is used again.")
        title = Text.assemble("Retire ", self.shown(one.name))
        if not await self.app.confirm(title, *effects, word="retire"):
            return
        if await self.call(Client.retire_device, one.id) is not None:
            this = one.this
            self.app.did(
                f"retired {one.name}", undo=(lambda client: client.rejoin()) if this else None
            )
        self._asked = float("-inf")
        self.refresh_data()

    @work
    async def action_rejoin(self) -> None:
        """Use this device again after it was retired."""
        if await self.call_long(Client.rejoin) is not None:
            self.app.did("this device is in use again")
        self._asked = float("-inf")
        self.refresh_data()

    async def show(self, what: str) -> None:
        """Show a part by its name, or a conflict by its number."""
        if what in self.PARTS:
            self.action_part(what)
        elif what:
            self.action_part("conflicts")
            self.rows("conflicts").select(what)

    def copied(self) -> str:
        """The lost value under the cursor, the device's id, or the round's error."""
        key = self.rows(self.part).selected
        if self.part == "conflicts" and (one := self._conflicts.get(key)) is not None:
            return ", ".join(_value(one.data.get(name)) for name in one.replaced)
        if self.part == "rounds" and self.status is not None:
            return next((one.message for one in self.status.rounds if str(one.at) == key), "")
        return key


def _queued(outbox: Mapping[str, int]) -> str:
    """The rows that wait, by kind, the most first."""
    kinds = sorted(outbox.items(), key=lambda pair: -pair[1])
    return ", ".join(number_of(number, *names_of(kind)) for kind, number in kinds)


def _or_dash(number: int) -> str:
    return f"{number:,}" if number else "-"


def _value(value: object) -> str:
    return "(none)" if value is None else text_of(value)
