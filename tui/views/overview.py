"""The health of the memory, and its numbers, on one page."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import ago, number_of, size
from thermocline.daemon.shapes.files import FilesStats
from thermocline.daemon.shapes.stats import LiveMetrics, Stats
from thermocline.daemon.shapes.status import AgentStatus, ModelStatus, Status
from thermocline.daemon.shapes.sync import SyncStatus

from ..health import verdict
from ..text import part_of, plain, span
from ..widgets.facts import Facts
from ..widgets.gauge import Gauge
from ..widgets.spark import Spark
from .view import View

# Seconds between two readings of numbers that change without an event.
_SLOW_SECONDS: Final = 30.0
_LIVE_SECONDS: Final = 15.0
_LABEL: Final = 8
_SPARKS: Final = (
    ("stores", "stores/min", ""),
    ("recalls", "recalls/min", ""),
    ("recall_p50_ms", "recall p50", " ms"),
    ("recall_p99_ms", "recall p99", " ms"),
    ("outbox", "outbox", ""),
    ("sync_ms", "sync", " ms"),
)


class OverviewView(View):
    """The page."""

    DEFAULT_CSS = """
    OverviewView #page { padding: 0 1; }
    OverviewView .panel { height: auto; padding: 0; }
    OverviewView .panel {
        border-top: solid $border-blurred; border-title-color: $secondary;
        border-title-style: bold; border-title-align: left;
    }
    OverviewView #health { border-title-color: $foreground; }
    OverviewView #numbers { layout: vertical; height: auto; }
    OverviewView #sparks { layout: vertical; height: auto; }
    Screen.-normal OverviewView #numbers {
        layout: grid; grid-size: 2; grid-gutter: 0 2; grid-rows: auto;
    }
    Screen.-wide OverviewView #numbers {
        layout: grid; grid-size: 3; grid-gutter: 0 1; grid-rows: auto;
    }
    Screen.-wide.-tall OverviewView .panel { border: round $border; padding: 0 1; }
    Screen.-wide.-tall OverviewView #numbers .panel { height: 6; }
    Screen.-wide.-tall OverviewView #sparks {
        layout: grid; grid-size: 2; grid-gutter: 1 4; grid-rows: 5;
    }
    Screen.-wide.-tall OverviewView Spark { height: 5; }
    """
    WATCHES: ClassVar[frozenset[str]] = frozenset({""})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "read_again", "Read again", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._agent: str | None = None
        self._stats: Stats | None = None
        self._files: FilesStats | None = None
        self._sync: SyncStatus | None = None
        self._read = self._read_live = float("-inf")
        self._seen = 0

    def compose(self) -> ComposeResult:
        """Health first, then numbers, then the last two hours."""
        with VerticalScroll(id="page"):
            yield _panel(Static(id="verdict"), id="health", title="Health")
            with Container(id="numbers"):
                yield _panel(
                    Gauge("hot", label_columns=5, detail_columns=13, color="accent", id="hot"),
                    Gauge("warm", label_columns=5, detail_columns=13, color="warning", id="warm"),
                    Facts(5, id="cold"),
                    Gauge("tree", label_columns=5, detail_columns=13, color="success", id="tree"),
                    title="Memory",
                )
                yield _panel(Facts(_LABEL, id="replica"), title="Replica")
                yield _panel(Facts(_LABEL, id="work"), title="Upkeep")
                yield _panel(
                    Facts(_LABEL, id="model"),
                    Gauge("budget", label_columns=_LABEL, id="budget"),
                    title="Model",
                )
                yield _panel(Facts(_LABEL, id="files"), title="Files")
                yield _panel(Facts(_LABEL, id="process"), title="Daemon")
            yield _panel(
                *(
                    Spark(label, unit=unit, label_columns=11, id=key)
                    for key, label, unit in _SPARKS
                ),
                id="sparks",
                title="Last two hours, by minute",
            )

    def on_mount(self) -> None:
        """Redraw ages and countdowns regularly."""
        self.set_interval(1.0, self._draw)

    def on_resize(self) -> None:
        """A box keeps its title apart from its corners, a line does not."""
        boxed = self.screen.has_class("-wide") and self.screen.has_class("-tall")
        for panel in self.query(".panel"):
            title = str(panel.border_title).strip()
            panel.border_title = title if boxed else f" {title} "

    def first_focus(self) -> Widget:
        """The page, which can be scrolled."""
        return self.query_one("#page")

    def copied(self) -> str:
        """The verdict with its reasons."""
        return str(self.query_one("#verdict", Static).content)

    def action_read_again(self) -> None:
        """Read all numbers again."""
        self._read = self._read_live = float("-inf")
        self.refresh_data()

    async def update(self) -> None:
        """Read what the status does not have, but not more often than it changes."""
        self._draw()
        now = self.app.now()
        happened = self.app.events_seen != self._seen
        if self._agent != self.app.agent:
            self._agent = self.app.agent
            self._read = self._read_live = float("-inf")
        if happened or now - self._read >= _SLOW_SECONDS:
            self._seen, self._read = self.app.events_seen, now
            self._stats = await self.call(Client.stats) or self._stats
            self._files = await self.call(Client.files_stats) or self._files
            self._sync = await self.call(Client.sync_status) or self._sync
        if happened or now - self._read_live >= _LIVE_SECONDS:
            self._read_live = now
            live = await self.call(Client.live)
            if live is not None:
                self._draw_live(live)
        self._draw()

    def _draw(self) -> None:
        status = self.snapshot.status
        if status is None or not self.is_on_screen:
            return
        now = self.app.now()
        self._draw_health(status, now)
        agent = status.agents.get(self.app.agent_name)
        if agent is not None:
            self._draw_memory(agent)
            self._draw_replica(agent, now)
            self._draw_work(agent, now)
            self._draw_files(agent, now)
        self._draw_model(status.llm)
        self._draw_process(status, agent, now)

    def _draw_health(self, status: Status, now: float) -> None:
        found = verdict(self.snapshot)
        text = Text()
        text.append(f"{found.mark} {found.word}", self.paint(found.color, bold=True))
        if not self.snapshot.connected:
            text.append(f"; what follows is as of {ago(self.snapshot.at, now)}\n")
            text.append(f"  {plain(self.snapshot.trouble)}; this view connects by itself")
        elif not status.problems:
            text.append("  nothing needs you", "dim")
        for problem in status.problems:
            mark = "✗" if problem.lasting else "!"
            color = "error" if problem.lasting else "warning"
            text.append(f"\n{mark} {plain(problem.code)} ", self.paint(color, bold=True))
            text.append(plain(problem.message)).append(f"  {ago(problem.since, now)}", "dim")
            if problem.hint:
                text.append(f"\n  → {plain(problem.hint)}")
        _put(self.query_one("#verdict", Static), text)

    def _draw_memory(self, agent: AgentStatus) -> None:
        hot, warm, tree = (self.query_one(f"#{name}", Gauge) for name in ("hot", "warm", "tree"))
        hot.set(
            agent.hot_bytes / agent.hot_max_bytes, part_of(agent.hot_bytes, agent.hot_max_bytes)
        )
        warm.set(
            agent.warm_bytes / agent.warm_max_bytes,
            part_of(agent.warm_bytes, agent.warm_max_bytes),
        )
        most = self._stats.tree.max_nodes if self._stats is not None else 0
        nodes = f"{agent.tree_nodes} of {most}"
        tree.set(agent.tree_nodes / most if most else None, nodes)
        self.query_one("#cold", Facts).set(
            [("cold", f"{agent.cold:,}, no cap; {agent.warm:,} are warm")]
        )

    def _draw_replica(self, agent: AgentStatus, now: float) -> None:
        sync = agent.sync
        phases = {"idle": "in step", "working": "sending and receiving", "stopped": "STOPPED"}
        state = phases.get(sync.phase, sync.phase)
        if sync.replica == "none":
            state = "none, on this device alone"
        elif sync.next_try is not None and sync.phase == "waiting":
            state = f"next try {ago(max(sync.next_try, now), now)}"
        rows: list[tuple[str, str | Text]] = [("state", Text(state, "bold"))]
        if sync.message:
            rows.append(("why", plain(sync.message)))
        if sync.hint:
            rows.append(("", f"→ {plain(sync.hint)}"))
        waiting = "nothing waits" if not agent.outbox else number_of(agent.outbox, "row", "rows")
        lost = number_of(agent.conflicts, "conflict", "conflicts")
        if sync.replica != "none":
            rows.append(("outbox", f"{waiting}, {lost}"))
            rows.append(("success", ago(sync.last_success, now)))
        elif agent.conflicts:
            rows.append(("lost", lost))
        proof = self._sync.verification if self._sync is not None else None
        if proof is not None:
            how = "✓ would work" if proof.verified else "✗ WOULD NOT WORK"
            rows.append(("restore", f"{how}, {ago(proof.at, now)}"))
        elif sync.replica != "none":
            rows.append(("restore", "not rehearsed yet"))
        self.query_one("#replica", Facts).set(rows)

    def _draw_work(self, agent: AgentStatus, now: float) -> None:
        upkeep = agent.upkeep
        last = (
            "nothing yet" if upkeep.last is None else f"{upkeep.last}, {ago(upkeep.last_at, now)}"
        )
        if upkeep.error:
            last = f"✗ {upkeep.last} FAILED {ago(upkeep.last_at, now)}"
        due = "none"
        if upkeep.next is not None and upkeep.next_at is not None:
            due = f"{upkeep.next}, {ago(max(upkeep.next_at, now), now)}"
        rows = [("now", f"{upkeep.running} runs")] if upkeep.running else []
        rows += [("last", last), ("next", due)]
        if upkeep.error:
            rows.append(("why", plain(upkeep.error)))
        self.query_one("#work", Facts).set(rows)

    def _draw_model(self, model: ModelStatus) -> None:
        names = ", ".join(dict.fromkeys(one for many in model.models.values() for one in many))
        states = {
            "failing": "FAILING, rules until it answers",
            "spent": "BUDGET SPENT, rules until tomorrow",
            "missing": "litellm IS NOT INSTALLED, rules only",
        }
        rows = [("model", plain(names) or "none: rules only")]
        if model.state != "off":
            rows.append(("state", states.get(model.state, model.state)))
        rows.append(("today", f"{model.today.calls:,} calls, {model.today.tokens:,} tokens"))
        self.query_one("#model", Facts).set(rows)
        budget = self.query_one("#budget", Gauge)
        budget.display = model.state != "off"
        spent, most = model.today.cost, model.limits.cost
        if most:
            budget.set(spent / most, f"${spent:.2f} of ${most:.2f}")
        else:
            budget.set(None, f"${spent:.2f} today, no limit")

    def _draw_files(self, agent: AgentStatus, now: float) -> None:
        index, files = agent.index, self._files
        watched = number_of(index.watched_files, "file", "files")
        if files is not None:
            watched += f", {number_of(files.chunks, 'chunk', 'chunks')}"
        rows = [("index", watched + ", BEHIND" * index.dirty)]
        if index.to_read:
            rows.append(("to read", f"{index.to_read:,}"))
        rows.append(("looked", ago(index.last_sync_at, now)))
        if not index.watching:
            rows.append(("", "changes are found by looking"))
        self.query_one("#files", Facts).set(rows)

    def _draw_process(self, status: Status, agent: AgentStatus | None, now: float) -> None:
        up = status.uptime_seconds + (now - self.snapshot.at if self.snapshot.connected else 0.0)
        disk = size(agent.database_bytes) if agent is not None else "-"
        agents = number_of(len(status.agents), "agent", "agents")
        self.query_one("#process", Facts).set(
            [
                ("up", f"{span(max(up, 0.0))}, {agents}"),
                ("memory", f"{size(status.memory_bytes)}, on disk {disk}"),
                ("version", f"{status.version}, pid {status.pid}, {status.connections} clients"),
            ]
        )

    def _draw_live(self, live: LiveMetrics) -> None:
        for key, _, _ in _SPARKS:
            self.query_one(f"#{key}", Spark).values = tuple(getattr(live, key))


def _panel(*children: Widget, title: str, id: str | None = None) -> Container:  # noqa: A002
    made = Container(*children, id=id, classes="panel")
    made.border_title = f" {title} "
    return made


def _put(where: Static, text: Text) -> None:
    if where.content != text:
        where.update(text)
