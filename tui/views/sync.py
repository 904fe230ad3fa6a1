"""The replica: queued changes, past rounds, conflicts, and the devices that share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rich.text import Text
from textual.containers import Container
from textual.widget import Widget

from thermocline.daemon.client import AsyncClient, wording
from thermocline.daemon.client.wording import names_of, number_of, phase_of, proof_of, usage_of
from thermocline.daemon.schemas.memory import VersionView
from thermocline.daemon.schemas.sync import DeviceView, SyncRound, SyncStatus

from ..charts import Facts, Spark
from ..feed import LONG_SECONDS, Done, doing
from ..table import Column
from ..text import plain, text_of
from .resource import Part, ResourceView
from .view import Action

_LABEL: Final = 9
_MAX_CONFLICTS: Final = 200
# The replica is asked for its devices, which may take a second, only this often.
_DEVICES_SECONDS: Final = 60.0
_ALL_FACTS_HEIGHT: Final = 24


async def _sync(view: SyncView) -> None:
    async def change(client: AsyncClient) -> Done:
        done = await client.sync()
        words = f"sent {done.sent:,}, received {done.received:,} in {done.took_ms:,.0f} ms"
        if done.conflicts:
            words += f"; {number_of(done.conflicts, 'value', 'values')} lost a conflict"
        return Done(words)

    view.app.flash("sending and receiving", seconds=LONG_SECONDS)
    await view.do(change, LONG_SECONDS)
    view.read_devices()


async def _verify(view: SyncView) -> None:
    view.app.flash("verifying: restoring into a temporary folder", seconds=LONG_SECONDS)
    result = await view.call(AsyncClient.verify, patience=LONG_SECONDS)
    if result is not None and result.verified:
        rows = number_of(result.rows, "row", "rows")
        view.app.did(Done(f"a restore would bring back {rows}; it took {result.seconds:.1f} s"))
    elif result is not None:
        view.app.flash(f"a restore would fail: {'; '.join(result.faults)}", "failure")
    view.refresh_data()


async def _restore_lost(view: SyncView, version: VersionView) -> None:
    which: dict[str, Any] = {"id": version.id, "kind": version.kind}
    await view.do(
        doing(
            "the lost value is in force",
            lambda client: client.undo(**which, number=version.number),
            lambda client: client.undo(**which),
        )
    )


async def _leave(view: SyncView, version: VersionView) -> None:
    """Leave the value that is in force, and show the conflict no longer, on any device."""
    words = "the value in force stays; history --conflicts still has the other"
    await view.do(doing(words, lambda client: client.conflicts_seen([version.number])))


async def _retire(view: SyncView, device: DeviceView) -> None:
    if device.retired_at is not None:
        view.app.flash(f"{device.name} is retired", "warning")
        return
    effects = ["Deletions no longer wait for it. What it has sent stays."]
    if device.this:
        effects.append("It is this device: its replication stops until it is used again.")
    elif view.status is not None and view.status.seal_epoch:
        effects.append("It cannot read what is written from then on. Its token still opens the")
        effects.append("database: make a new one at the provider, and end the old one.")
    title = Text.assemble("Retire ", view.shown(device.name))
    if await view.app.confirm(title, *effects, word="retire"):
        undo = AsyncClient.rejoin if device.this else None
        change = doing(
            f"retired {device.name}", lambda client: client.retire_device(device.id), undo
        )
        await view.do(change, LONG_SECONDS)
        view.read_devices()


async def _rejoin(view: SyncView) -> None:
    await view.do(doing("this device is in use again", AsyncClient.rejoin), LONG_SECONDS)
    view.read_devices()


def _replicates(view: SyncView) -> bool:
    return view.status is None or view.status.replica != "none"


def _is_retired(view: SyncView) -> bool:
    return view.status is not None and view.status.error == "retired"


class SyncView(ResourceView):
    """The state above, and below it the parts."""

    DEFAULT_CSS = """
    SyncView { padding: 0 1; }
    SyncView #now { height: auto; max-height: 60%; }
    SyncView .detail { border-top: dashed $border-blurred; padding: 0; }
    Screen.-low SyncView #now, Screen.-low SyncView .detail { border: none; }
    SyncView.-beside #parts { grid-rows: 3fr 2fr; }
    SyncView.-beside #conflicts { row-span: 2; }
    SyncView.-beside #conflicts PagedTable { height: auto; max-height: 60%; }
    """
    # Rounds raise no event.
    WATCHES = frozenset({""})
    ACTIONS = (
        Action("s", "Sync now", _sync, writes=True, when=_replicates),
        Action("r", "Rounds", lambda view: view.show_part("rounds"), show=False),
        Action("c", "Conflicts", lambda view: view.show_part("conflicts")),
        Action("d", "Devices", lambda view: view.show_part("devices")),
        Action("b", "Take the lost value", _restore_lost, writes=True, row=True, part="conflicts"),
        Action("e", "Leave as it is", _leave, writes=True, row=True, part="conflicts"),
        Action("x", "Retire", _retire, writes=True, row=True, part="devices"),
        Action("j", "Use this device again", _rejoin, writes=True, when=_is_retired),
        Action("v", "Verify a restore", _verify, writes=True, when=_replicates),
    )

    def head(self) -> Iterable[Widget]:
        now = Container(
            Facts(_LABEL),
            Spark("to send", label_columns=_LABEL, id="to-send"),
            Spark("latency", unit=" ms", label_columns=_LABEL, id="latency"),
            id="now",
            classes="panel",
        )
        now.border_title = " Replica "
        yield now

    def parts(self) -> Mapping[str, Part[Any]]:
        return {
            "rounds": Part[SyncRound](
                "Rounds",
                [
                    Column("When", 10, lambda row: self.ago(row.at)),
                    _count("Sent", "sent"),
                    _count("Came", "received"),
                    _count("Lost", "conflicts", "! ", least=64),
                    Column("Took", 8, _duration, least=50, right=True),
                    Column("Result", 0, self._result),
                ],
                lambda row: row.at,
                "no round since the daemon started",
                rows=lambda: self.status.rounds if self.status else (),
                copied=lambda row: row.message,
            ),
            "conflicts": Part[VersionView](
                "Conflicts",
                [
                    Column("When", 10, lambda row: self.ago(row.at)),
                    Column("Fields", 10, lambda row: plain(", ".join(row.replaced)), least=56),
                    Column("Lost value", 0, self._lost_value),
                ],
                lambda row: str(row.number),
                "no conflict that nobody has looked at",
                rows=lambda: self._conflicts,
                copied=_values,
                detail=self._both_values,
                count=lambda: f" {len(self._conflicts)}" if self._conflicts else "",
            ),
            "devices": Part[DeviceView](
                "Devices",
                [
                    Column("Device", 0, self._device),
                    Column("Seen", 10, lambda row: self.ago(row.last_at)),
                    Column("State", 14, _state),
                    Column("Release", 8, lambda row: plain(row.release or "-"), least=76),
                    Column("Id", 12, lambda row: plain(row.id), least=64),
                ],
                lambda row: row.id,
                "no device has replicated yet",
                rows=lambda: self.devices,
                copied=lambda row: str(row.id),
                count=lambda: f" {len(self.devices)}" if self.devices else "",
            ),
        }

    def reset(self) -> None:
        self.status: SyncStatus | None = None
        self._conflicts: list[VersionView] = []
        self.devices: list[DeviceView] = []
        self._devices_read = float("-inf")

    def read_devices(self) -> None:
        self._devices_read = float("-inf")
        self.refresh_data()

    async def update(self) -> None:
        """Read the state; the devices less often."""
        status = await self.call(AsyncClient.sync_status)
        if status is None:
            return
        before, self.status = self.status, status
        if not status.lost_values:
            self._conflicts = []
        elif before is None or before.lost_values != status.lost_values or not self._conflicts:
            page = await self.call(
                lambda client: client.history(None, conflicts=True, limit=_MAX_CONFLICTS)
            )
            if page is not None:
                self._conflicts = [row for row in page.results if row.seen_at is None]
        now = self.app.now()
        answers = status.phase in ("idle", "working") and status.last_success is not None
        if answers and now - self._devices_read >= _DEVICES_SECONDS:
            self._devices_read = now
            devices = await self.call(AsyncClient.devices)
            self.devices = devices.results if devices is not None else self.devices
        live = await self.call(AsyncClient.live)
        if live is not None:
            # Without a replica nothing is to be sent, however much would be.
            waiting = live.outbox if status.replica != "none" else ()
            self.query_one("#to-send", Spark).values = tuple(waiting)
            self.query_one("#latency", Spark).values = tuple(live.sync_ms)
        self.draw()

    async def show(self, key: str) -> None:
        """Show a part by its name, or a conflict by its number."""
        await super().show(key if key in self._parts else "conflicts")
        self.table.select(key)

    def tick(self) -> None:
        if self.status is None:
            return
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
        kinds = sorted(status.outbox.items(), key=lambda pair: -pair[1])
        queued = ", ".join(number_of(number, *names_of(kind)) for kind, number in kinds)
        yield "to send", queued or "✓ nothing"
        done = f"sent {status.sent:,}, received {status.received:,} since the start"
        yield "success", f"{self.ago(status.last_success)}; {done}"
        for note in status.notes[:3]:
            yield "left out", Text(f"! {plain(note)}", self.paint("warning"))
        if status.away:
            yield "away", Text(f"! not seen for 90 days: {plain(', '.join(status.away))}")
        yield "restore", self._proof(status)
        if status.usage is not None:
            yield "today", usage_of(status.usage.today, status.usage.budget)
            yield "month", usage_of(status.usage.month)
        yield "replica", plain(f"{status.url or 'not known yet'} ({status.configured_by})")
        yield "device", plain(f"{status.device.name} ({status.device.id})")

    def _phase(self, status: SyncStatus) -> Text:
        current = status.last_success is not None and not status.queued
        marks = {"waiting": ("!", "warning"), "stopped": ("✗", "error"), "working": ("⟳", "accent")}
        mark, color = marks.get(status.phase, ("✓", "success") if current else ("○", "secondary"))
        words = phase_of(status, self.app.now())
        if status.replica == "none":
            mark, color, words = "○", "warning", f"{words}: set {status.configured_by} to replicate"
        elif status.queued:
            words += f", {number_of(status.queued, 'row', 'rows')} to send"
        return Text(f"{mark} {words}", self.paint(color, bold=True))

    def _proof(self, status: SyncStatus) -> Text:
        proof = status.verification
        words = plain(proof_of(proof, self.app.now()))
        if proof is None:
            return Text(f"○ {words}: v does it")
        if proof.verified:
            return Text(f"✓ {words}", self.paint("success"))
        return Text(f"✗ {words}", self.paint("error", bold=True))

    def _device(self, row: DeviceView) -> Text:
        return self.shown(row.name).append(" (this one)" * row.this, "dim")

    def _result(self, row: SyncRound) -> Text:
        result = Text()
        if row.error:
            result.append(f"✗ {row.error}", self.paint("error"))
            result.append(f" {plain(row.message)}")
        else:
            nothing = not (row.sent or row.received or row.refused)
            result.append("✓ nothing new" if nothing else "✓")
            if row.refused:
                result.append(f" ! {row.refused} refused", self.paint("warning"))
        return result.append(f" ×{row.times}" if row.times > 1 else "")

    def _lost_value(self, row: VersionView) -> Text:
        values = _values(row)
        return self.shown(
            wording.one_line(values if row.kind == "memory" else f"{row.id} = {values}")
        )

    def _both_values(self, row: VersionView) -> Text:
        names = {device.id: device.name for device in self.devices}
        text = Text()
        for name in row.replaced:
            if not self.screen.has_class("-low"):
                text.append(plain(name), "bold").append(f" of {row.kind} ", "dim")
                text.append_text(self.shown(row.id))
                text.append(f", merged on {plain(names.get(row.device, row.device))}\n", "dim")
            text.append("lost      ", self.paint("warning"))
            text.append_text(self.shown(_value(row.data.get(name)))).append("\n")
            text.append("in force  ", self.paint("success"))
            after = _value(row.after[name]) if name in row.after else "(removed)"
            text.append_text(self.shown(after)).append("\n")
        text.rstrip()
        return text


def _count(label: str, name: str, mark: str = "", *, least: int = 0) -> Column[SyncRound]:
    """A column of a number of a round's rows; `-` for none."""

    def cell(row: SyncRound) -> str:
        return f"{mark}{number:,}" if (number := getattr(row, name)) else "-"

    return Column(label, 4, cell, least=least, right=True)


def _duration(row: SyncRound) -> str:
    return f"{row.ms:,.0f} ms" if row.ms < 10_000 else f"{row.ms / 1000:,.0f} s"


def _state(row: DeviceView) -> str:
    if row.retired_at is not None:
        return "○ retired"
    if row.can_read is False:
        return f"! has key {row.epoch} only" if row.epoch else "! has no key"
    return f"! {row.behind:,} behind" if row.behind else "✓ up to date"


def _values(row: VersionView) -> str:
    return ", ".join(_value(row.data.get(name)) for name in row.replaced)


def _value(value: object) -> str:
    return "(none)" if value is None else text_of(value)
