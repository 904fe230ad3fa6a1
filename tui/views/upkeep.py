"""Upkeep: schedules, past runs, running it now; and the model's calls and their cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Final, TypeAlias, cast

from msgspec import UNSET
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from thermocline.daemon.client import Client
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.shapes.status import ModelStatus, PurposeUsage
from thermocline.daemon.shapes.upkeep import (
    Running,
    Schedule,
    UpkeepRun,
    UpkeepStatus,
)

from ..calls import LONG_SECONDS, Done
from ..text import plain, span
from ..widgets.facts import Facts
from ..widgets.gauge import Gauge, bar
from ..widgets.paged import Column
from .parts import Part, PartsView
from .run_words import budget_of, facts_of, seconds_of, told

# What the model was used for, by the name of the purpose.
Used: TypeAlias = tuple[str, PurposeUsage]
_LABEL: Final = 8
# The runs that a person can start, with what they do.
RUNS: Final = {
    "quick": "score, archive what does not fit, write the hot state",
    "daily": "that, read the daily notes, merge duplicates, drop empty categories",
    "monthly": "that, rebuild the tree of categories",
    "full": "all of it",
    "notes": "only read the daily notes",
}


# The states of the model in words, and their colours.
_STATES: Final = {
    "off": ("○ none is configured: rules do everything", "secondary"),
    "ready": ("✓ ready", "success"),
    "failing": ("✗ FAILING: rules stand in", "error"),
    "spent": ("! today's budget is spent: rules stand in", "warning"),
    "missing": ("✗ litellm is not installed: rules stand in", "error"),
}


class UpkeepView(PartsView):
    """Schedules, runs and the model: beside each other, or one at a time."""

    DEFAULT_CSS = """
    UpkeepView #now { height: 1; }
    UpkeepView #result { height: auto; max-height: 60%; padding: 0 1; }
    Screen.-low UpkeepView Facts { max-height: 2; }
    UpkeepView.-beside #parts { grid-rows: 3fr 2fr; }
    UpkeepView.-beside #purposes { column-span: 2; }
    UpkeepView.-beside #runs PagedTable { height: auto; max-height: 60%; }
    """
    # Runs and the model's calls are seen in the status too.
    WATCHES: ClassVar[frozenset[str]] = frozenset({""})
    WRITES: ClassVar[frozenset[str]] = frozenset({"run"})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Run now"),
        Binding("t", "try", "Try without changes"),
        Binding("s", "part('schedules')", "Schedules", show=False),
        Binding("d", "part('runs')", "Runs"),
        Binding("o", "part('purposes')", "Model"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.standing: UpkeepStatus | None = None

    def compose(self) -> ComposeResult:
        """What runs now, and the three parts."""
        yield Static(id="now")
        yield self.boxes()

    def parts(self) -> Mapping[str, Part]:
        """Schedules, past runs, and the model by purpose."""
        return {
            "schedules": Part(
                "Schedules",
                [
                    Column("Job", 8, lambda one: one.name),
                    Column("When", 11, _when, least=56),
                    Column("Last", 10, lambda one: self.ago(one.last)),
                    Column("Took", 7, lambda one: seconds_of(one.seconds), least=70, right=True),
                    Column("Next", 10, self._next),
                    Column("Result", 0, self._last_result),
                ],
                lambda one: one.name,
                "nothing is scheduled: the agent has no memory yet",
                opens=True,
            ),
            "runs": Part(
                "Runs",
                [
                    Column("When", 10, lambda one: self.ago(one.at)),
                    Column("Run", 11, lambda one: "try " * _tried(one) + one.mode),
                    Column("Took", 7, lambda one: seconds_of(one.seconds), least=44, right=True),
                    Column("Result", 0, self._result),
                ],
                lambda one: one.at,
                "no run since the daemon started: r runs one",
                below=[Static(id="result")],
            ),
            # Its rows are names with what was used.
            "purposes": Part(
                "Model",
                [
                    Column("Purpose", 0, lambda row: plain(row[0])),
                    Column("Calls", 6, lambda row: f"{row[1].calls:,}", right=True),
                    Column("Cached", 6, lambda row: f"{row[1].cached:,}", least=48, right=True),
                    Column("Failed", 6, _failed, right=True),
                    Column("Tokens", 15, _tokens, least=72, right=True),
                    Column("Cost", 8, lambda row: f"${row[1].cost:.4f}", right=True),
                    Column("p50", 7, _seconds("p50_seconds"), least=76, right=True),
                    Column("p95", 7, _seconds("p95_seconds"), least=86, right=True),
                    Column("Last failure", 16, _last_error, least=104),
                ],
                lambda row: row[0],
                "",
                above=[Facts(_LABEL), Gauge("budget", label_columns=_LABEL)],
            ),
        }

    # What is shown

    async def update(self) -> None:
        """Read the schedules; the model is in the status."""
        self.standing = await self.call(Client.upkeep) or self.standing
        self.draw()

    def draw(self) -> None:
        """Draw what was read."""
        standing = self.standing
        if standing is None:
            return
        self.tick()
        # As they follow each other, what is due first at the top.
        jobs = sorted(standing.schedules, key=lambda one: (one.next is None, one.next or 0.0))
        self.rows("schedules").fill(jobs)
        self.rows("runs").fill(standing.runs)
        self._draw_model()
        self.name_parts({"schedules": f" {plain(standing.zone)}" if standing.zone else ""})
        self._draw_result()

    def tick(self) -> None:
        """Draw what runs now."""
        standing = self.standing
        if standing is None or not self.is_on_screen:
            return
        now = self.app.now()
        text = Text(no_wrap=True, overflow="ellipsis")
        if standing.running is not None:
            text.append_text(self._progress(standing.running, now))
        else:
            brief = standing.brief
            if brief.error:
                mark = self.paint("error", bold=True)
                text.append(f"✗ {brief.last} failed {self.ago(brief.last_at)}", mark)
                text.append(f": {plain(brief.error)}")
            elif brief.last is None:
                text.append("○ nothing has run yet")
            else:
                text.append("✓ ", self.paint("success"))
                text.append(f"{brief.last} ran {self.ago(brief.last_at)}")
            if brief.next is not None:
                late = (brief.next_at or now) <= now
                soon = "as soon as possible" if late else self.ago(brief.next_at)
                text.append(f"; {brief.next} runs {soon}", "dim")
        self.query_one("#now", Static).update(text)

    def _progress(self, running: Running, now: float) -> Text:
        """How far a run is, by the events of its steps."""
        text = Text(f"⟳ {plain(running.mode)} ", self.paint("accent", bold=True))
        done, steps = 0, 0
        for event in reversed(self.app.happened):
            if event.agent != self.app.agent_name or event.data.get("mode") != running.mode:
                continue
            if event.type == "upkeep.progress":
                done += 1
            elif event.type == "upkeep.started":
                steps = len(event.data.get("steps") or ())
                break
        if steps:
            full, empty = bar(done / steps, 20)
            text.append(full, self.paint("primary")).append(empty, "dim")
            text.append(f" step {min(done + 1, steps)} of {steps}")
        if running.step:
            text.append(f", {plain(running.step)} is done")
        return text.append(f", since {span(now - running.since)}")

    def _next(self, one: Schedule) -> str:
        now = self.app.now()
        if one.next is None:
            return "on request"
        return "now" if one.next <= now else self.ago(one.next)

    def _last_result(self, one: Schedule) -> Text:
        if one.error:
            return self._failure(one.error)
        return Text("-" if one.last is None else "✓ done")

    def _result(self, one: UpkeepRun) -> Text:
        if one.result is None:
            return self._failure(one.error)
        return Text("○ " if _tried(one) else "✓ ").append(told(one.result))

    def _failure(self, error: str) -> Text:
        return Text("✗ ", self.paint("error", bold=True)).append(plain(error))

    def _draw_result(self) -> None:
        one: UpkeepRun | None = self.rows("runs").here
        shown = self.query_one("#result", Static)
        shown.display = one is not None and not self.screen.has_class("-low")
        if one is not None:
            shown.update(self._detail(one))

    def _detail(self, one: UpkeepRun) -> Text:
        text = Text()
        if one.result is None:
            return text.append(f"{one.mode} failed: ", "bold").append(plain(one.error))
        done = one.result
        text.append(f"{one.mode}: ", "bold").append(", ".join(done.steps))
        for name, value in facts_of(done):
            text.append(f"\n{name:<{_LABEL + 2}}", "dim").append(value)
        for change in done.tree_changes if done.tree_changes is not UNSET else ():
            text.append("\n  ").append_text(self.shown(change))
        return text

    def _draw_model(self) -> None:
        status = self.snapshot.status
        if status is None:
            return
        model = status.llm
        self.query_one("#purposes Facts", Facts).set(self._model(model))
        budget = self.query_one("#purposes Gauge", Gauge)
        share, words = budget_of(model)
        budget.display = model.state != "off" and share is not None
        budget.set(share, words)
        asked = "" if model.state == "off" else "it was not asked since the daemon started"
        self.rows("purposes").empty = Text(asked)
        self.rows("purposes").fill([*model.purposes.items()])

    def _model(self, model: ModelStatus) -> Iterator[tuple[str, str | Text]]:
        words, color = _STATES.get(model.state, (model.state, "secondary"))
        yield "state", Text(words, self.paint(color, bold=True))
        if model.state == "off":
            return
        spent = model.today
        today = (
            f"{number_of(spent.calls, 'call', 'calls')}, {spent.tokens:,} tokens, ${spent.cost:.4f}"
        )
        if spent.unpriced:
            today += f", {spent.unpriced:,} of unknown price"
        yield "today", today
        for purpose, names in model.models.items():
            yield purpose[:_LABEL], plain(", then ".join(names))
        for name, why in model.resting.items():
            yield "resting", Text(f"! {plain(name)}: {plain(why)}", self.paint("warning"))
        cache = model.cache
        asked = cache.hits + cache.misses
        share = f"{cache.hits / asked:.0%} of {asked:,} answered".replace("%", " %")
        yield (
            "cache",
            f"{cache.entries:,} entries, {share}" if asked else f"{cache.entries:,} entries",
        )
        worker = model.worker
        running = "sleeps" if worker.pid is None else f"process {worker.pid}"
        died = f", ! {number_of(worker.deaths, 'death', 'deaths')}" if worker.deaths else ""
        yield "worker", f"{running}, {number_of(worker.starts, 'start', 'starts')}{died}"

    # Keys

    def on_paged_table_moved(self) -> None:
        """Show all of the run under the cursor."""
        if self.app.is_running:
            self._draw_result()

    def on_paged_table_chosen(self) -> None:
        """Enter on a schedule runs it."""
        if not self.app.read_only:
            self.action_run()

    @work
    async def action_run(self) -> None:
        """Choose a run, and do it now."""
        await self._choose(dry_run=False)

    @work
    async def action_try(self) -> None:
        """See what a run would do."""
        await self._choose(dry_run=True)

    async def _choose(self, *, dry_run: bool) -> None:
        title = "What would be done by" if dry_run else "Run now"
        here: Schedule | None = self.rows("schedules").here
        order = sorted(RUNS, key=lambda name: here is None or name != here.name)
        mode = await self.app.choose_from(
            title, [(name, f"{name}: {RUNS[name]}") for name in order]
        )
        if mode is None:
            return
        self.app.flash(f"{mode} runs", seconds=LONG_SECONDS)
        if mode == "notes":
            await self._read_notes(dry_run=dry_run)
        else:
            await self.do(partial(_run, mode=mode, dry_run=dry_run), LONG_SECONDS)
        if self.is_attached:
            self.rows("runs").to_top()
            self.action_part("runs")
            self.refresh_data()

    async def _read_notes(self, *, dry_run: bool) -> None:
        done = await self.call(lambda client: client.ingest(dry_run=dry_run), patience=LONG_SECONDS)
        if done is None:
            return
        notes = number_of(done.files_scanned, "note", "notes")
        words = f"{notes} read: {number_of(done.facts_stored, 'new fact', 'new facts')}"
        if done.unread:
            self.app.flash(f"{words}; {done.unread}", "warning")
        else:
            self.app.did(Done(words))

    def copied(self) -> str:
        """What is said of the run under the cursor."""
        return cast("Text", self.query_one("#result", Static).content).plain


def _run(client: Client, mode: str, *, dry_run: bool) -> Done:
    done = client.consolidate(mode, dry_run=dry_run)
    return Done(f"{mode} {'would do' if dry_run else 'did'}: {told(done)}")


def _when(one: Schedule) -> str:
    return one.cron or ("-" if one.every is None else f"each {span(one.every)}")


def _tried(one: UpkeepRun) -> bool:
    return one.result is not None and one.result.dry_run


def _failed(row: Used) -> str:
    return f"! {row[1].errors:,}" if row[1].errors else "-"


def _tokens(row: Used) -> str:
    return f"{row[1].tokens_in:,} → {row[1].tokens_out:,}"


def _seconds(name: str) -> Callable[[Used], str]:
    return lambda row: seconds_of(getattr(row[1], name))


def _last_error(row: Used) -> str:
    return plain(row[1].last_error or "-")
