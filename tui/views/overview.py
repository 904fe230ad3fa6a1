"""The health of the memory, and its numbers, on one page."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from thermocline.daemon.client import AsyncClient, wording
from thermocline.daemon.schemas import status as schemas
from thermocline.daemon.schemas.files import FilesStats
from thermocline.daemon.schemas.stats import Stats
from thermocline.daemon.schemas.sync import SyncStatus
from thermocline.daemon.schemas.upkeep import UpkeepBrief

from ..charts import Facts, Gauge, Rows, Spark
from ..text import plain, round_span
from .upkeep import budget_of
from .view import Action, View, redraw

# Seconds between two readings of numbers that change without an event.
_SLOW_SECONDS: Final = 30.0
_LIVE_SECONDS: Final = 15.0
_LABEL: Final = 8
_SPARKS: Final = (
    ("stores", "stores/min", ""),
    ("recalls", "recalls/min", ""),
    ("recall_p50_ms", "recall p50", " ms"),
    ("recall_p99_ms", "recall p99", " ms"),
    ("outbox", "to send", ""),
    ("sync_ms", "sync", " ms"),
)


def _read_again(view: OverviewView) -> None:
    view.reset()
    view.refresh_data()


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
    Screen.-wide.-tall OverviewView #numbers.-encoder .panel { height: 8; }
    Screen.-wide.-tall OverviewView #sparks {
        layout: grid; grid-size: 2; grid-gutter: 1 4; grid-rows: 5;
    }
    Screen.-wide.-tall OverviewView Spark { height: 5; }
    """
    WATCHES = frozenset({""})
    ACTIONS = (Action("r", "Read again", _read_again, show=False),)

    def reset(self) -> None:
        self._stats: Stats | None = None
        self._files: FilesStats | None = None
        self._sync: SyncStatus | None = None
        # When they were read, and how many events there were.
        self._read = self._read_live = float("-inf")
        self._seen = 0

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield _panel(Static(id="verdict"), id="health", title="Health")
            with Container(id="numbers"):
                yield _panel(
                    Gauge("hot", label_columns=7, detail_columns=13, color="accent", id="hot"),
                    Gauge("warm", label_columns=7, detail_columns=13, color="warning", id="warm"),
                    Facts(7, id="archive"),
                    Gauge("tree", label_columns=7, detail_columns=13, color="success", id="tree"),
                    title="Memory",
                )
                yield _panel(Facts(_LABEL, id="replica"), title="Replica")
                yield _panel(Facts(_LABEL, id="work"), title="Upkeep")
                yield _panel(
                    Facts(_LABEL, id="model"),
                    Gauge("budget", label_columns=_LABEL, id="budget"),
                    Facts(_LABEL, id="encoder"),
                    Gauge("vectors", label_columns=_LABEL, detail_columns=13, id="vectors"),
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
        self.set_interval(1.0, self._draw)

    def on_resize(self) -> None:
        """A box keeps its title apart from its corners, a line does not."""
        boxed = self.screen.has_class("-wide") and self.screen.has_class("-tall")
        for panel in self.query(".panel"):
            title = str(panel.border_title).strip()
            panel.border_title = title if boxed else f" {title} "

    def first_focus(self) -> Widget:
        return self.query_one("#page")

    def copied(self) -> str:
        return str(self.query_one("#verdict", Static).content)

    async def update(self) -> None:
        """Read what the status does not have, but not more often than it changes."""
        self._draw()
        now = self.app.now()
        happened = self.app.events_seen != self._seen
        if happened or now - self._read >= _SLOW_SECONDS:
            self._seen, self._read = self.app.events_seen, now
            self._stats = await self.call(AsyncClient.stats) or self._stats
            self._files = await self.call(AsyncClient.files_stats) or self._files
            self._sync = await self.call(AsyncClient.sync_status) or self._sync
            status = self.snapshot.status
            if status is not None and self.app.agent_name not in status.agents:
                # The status has open agents only: these calls have opened it.
                self.app.refresh_view()
        if happened or now - self._read_live >= _LIVE_SECONDS:
            self._read_live = now
            live = await self.call(AsyncClient.live)
            is_alone = self._sync is not None and self._sync.replica == "none"
            for key, _, _ in _SPARKS if live is not None else ():
                # Without a replica nothing is to be sent, however much would be.
                values = () if is_alone and key == "outbox" else getattr(live, key)
                self.query_one(f"#{key}", Spark).values = tuple(values)
        self._draw()

    def _draw(self) -> None:
        status = self.snapshot.status
        if status is None or not self.is_on_screen:
            return
        self._draw_health(status)
        agent = status.agents.get(self.app.agent_name)
        facts = {"model": self._model(status.llm), "process": self._process(status, agent)}
        budget = self.query_one("#budget", Gauge)
        budget.display = status.llm.state != "off"
        budget.set(*budget_of(status.llm))
        vectors = agent.vectors if agent is not None else None
        facts["encoder"] = self._encoder(status.encoder, vectors)
        self.query_one("#encoder").display = status.encoder is not None
        self.query_one("#numbers").set_class(status.encoder is not None, "-encoder")
        progress = self.query_one("#vectors", Gauge)
        progress.display = vectors is not None and vectors.left > 0
        if vectors is not None:
            progress.set_count(vectors.encoded, vectors.encoded + vectors.left)
        if agent is not None:
            self.query_one("#hot", Gauge).set_bytes(agent.hot_bytes, agent.hot_max_bytes)
            self.query_one("#warm", Gauge).set_bytes(agent.warm_bytes, agent.warm_max_bytes)
            most = self._stats.tree.max_nodes if self._stats else 0
            self.query_one("#tree", Gauge).set_count(agent.tree_nodes, most)
            size = f"{agent.cold:,}, no cap; {agent.warm:,} are warm"
            facts["archive"] = iter([("archive", size)])
            facts["replica"] = self._replica(agent)
            facts["work"] = self._work(agent.upkeep)
            facts["files"] = self._indexed(agent)
        for name, rows in facts.items():
            self.query_one(f"#{name}", Facts).set(rows)

    def _draw_health(self, status: schemas.Status) -> None:
        verdict = self.snapshot.verdict
        text = Text()
        text.append(f"{verdict.mark} {verdict.word}", self.paint(verdict.color, bold=True))
        if not self.snapshot.connected:
            text.append(f"; what follows is as of {self.ago(self.snapshot.at)}\n")
            text.append(f"  {plain(self.snapshot.trouble)}; this view connects by itself")
        elif not status.problems:
            text.append("  nothing needs you", "dim")
        for problem in status.problems:
            mark, color = ("✗", "error") if problem.lasting else ("!", "warning")
            text.append(f"\n{mark} {plain(problem.code)} ", self.paint(color, bold=True))
            text.append(plain(problem.message)).append(f"  {self.ago(problem.since)}", "dim")
            if problem.hint:
                text.append(f"\n  → {plain(problem.hint)}")
        redraw(self.query_one("#verdict", Static), text)

    def _replica(self, agent: schemas.AgentStatus) -> Rows:
        sync = agent.sync
        alone = ", on this device alone" if sync.replica == "none" else ""
        yield "state", Text(wording.phase_of(sync, self.app.now()) + alone, "bold")
        if sync.message:
            yield "why", plain(sync.message)
        if sync.hint:
            yield "", f"→ {plain(sync.hint)}"
        waiting = "nothing" if not agent.outbox else wording.number_of(agent.outbox, "row", "rows")
        lost = wording.number_of(agent.conflicts, "conflict", "conflicts")
        if sync.replica != "none":
            yield "to send", f"{waiting}, {lost}"
            yield "success", self.ago(sync.last_success)
            proof = self._sync.verification if self._sync is not None else None
            mark = "" if proof is None else "✓ " if proof.verified else "✗ "
            yield "restore", mark + plain(wording.proof_of(proof, self.app.now()))
        elif agent.conflicts:
            yield "lost", lost

    def _work(self, upkeep: UpkeepBrief) -> Rows:
        if upkeep.running:
            yield "now", f"{upkeep.running} runs"
        if upkeep.error:
            yield "last", f"✗ {upkeep.last} FAILED {self.ago(upkeep.last_at)}"
        elif upkeep.last is None:
            yield "last", "nothing yet"
        else:
            yield "last", f"{upkeep.last}, {self.ago(upkeep.last_at)}"
        is_due = upkeep.next is not None and upkeep.next_at is not None
        yield "next", f"{upkeep.next}, {self.due(upkeep.next_at)}" if is_due else "none"
        if upkeep.error:
            yield "why", plain(upkeep.error)

    def _model(self, model: schemas.ModelStatus) -> Rows:
        names = ", ".join(dict.fromkeys(name for names in model.models.values() for name in names))
        state = wording.MODEL_STATES.get(model.state, model.state)
        yield "model", plain(names) or state
        if model.state != "off":
            yield "state", state
        yield "today", f"{model.today.calls:,} calls, {model.today.tokens:,} tokens"

    def _encoder(
        self, encoder: schemas.EncoderStatus | None, vectors: schemas.VectorStatus | None
    ) -> Rows:
        if encoder is None:
            return
        yield "encoder", plain(encoder.model)
        if encoder.why:
            yield "why", plain(encoder.why)
        if vectors is not None and vectors.answers:
            yield "until", f"{plain(vectors.answers)} answers"
        elif vectors is not None and not vectors.left:
            yield "vectors", f"{vectors.encoded:,}, of all texts"

    def _indexed(self, agent: schemas.AgentStatus) -> Rows:
        index = agent.index
        watched = wording.number_of(index.watched_files, "file", "files")
        if self._files is not None:
            watched += f", {wording.number_of(self._files.chunks, 'chunk', 'chunks')}"
        yield "index", watched + ", BEHIND" * index.dirty
        if index.to_read:
            yield "to read", f"{index.to_read:,}"
        yield "looked", self.ago(index.last_sync_at)
        if not index.watching:
            yield "", "changes are found by looking"

    def _process(self, status: schemas.Status, agent: schemas.AgentStatus | None) -> Rows:
        since = self.app.now() - self.snapshot.at if self.snapshot.connected else 0.0
        agents = wording.number_of(len(status.agents), "agent", "agents")
        yield "up", f"{round_span(max(status.uptime_seconds + since, 0.0))}, {agents}"
        disk = wording.size(agent.size_bytes) if agent is not None else "-"
        yield "memory", f"{wording.size(status.memory_bytes)}, on disk {disk}"
        clients = wording.number_of(status.connections, "client", "clients")
        yield "version", f"{status.version}, pid {status.pid}, {clients}"


def _panel(*children: Widget, title: str, id: str | None = None) -> Container:  # noqa: A002
    made = Container(*children, id=id, classes="panel")
    made.border_title = f" {title} "
    return made
