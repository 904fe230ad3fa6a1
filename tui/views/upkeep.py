"""Upkeep: schedules, past runs, running it now; and the model's calls and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import UNSET
from rich.text import Text

from thermocline.daemon.client import AsyncClient
from thermocline.daemon.client.wording import MODEL_STATES, number_of
from thermocline.daemon.schemas import upkeep as schemas
from thermocline.daemon.schemas.status import ModelStatus, PurposeUsage

from ..charts import Facts, Gauge, bar
from ..feed import LONG_SECONDS, Done
from ..table import Column
from ..text import plain, round_span
from .resource import Part, ResourceView
from .view import Action

# What the model was used for, by the name of the purpose.
Usage: TypeAlias = tuple[str, PurposeUsage]
_LABEL: Final = 8
# The runs that a person can start, with what they do.
RUNS: Final = {
    "quick": "score, archive what does not fit, write the hot state",
    "daily": "that, read the daily notes, merge duplicates, drop empty categories",
    "monthly": "that, rebuild the tree of categories",
    "full": "all of it",
    "notes": "only read the daily notes",
}
# What is worth saying of a run, in this order: a number's field and words for one and several.
_RESULTS: Final = (
    ("ingested_facts", "fact read", "facts read"),
    ("evicted_warm", "archived", "archived"),
    ("merged", "merged", "merged"),
    ("superseded", "contradicted", "contradicted"),
    ("expired", "expired", "expired"),
    ("forgotten", "forgotten", "forgotten"),
    ("pruned_nodes", "category removed", "categories removed"),
)
# The marks of the model's states, and their colours.
_STATES: Final = {
    "off": ("○", "secondary"),
    "ready": ("✓", "success"),
    "failing": ("✗", "error"),
    "spent": ("!", "warning"),
    "missing": ("✗", "error"),
}


async def _run(view: UpkeepView, *, dry_run: bool = False) -> None:
    """Choose a run, and do it now, or with `dry_run` see what it would do."""
    title = "What would be done by" if dry_run else "Run now"
    here: schemas.Schedule | None = view.table_of("schedules").row
    order = sorted(RUNS, key=lambda name: here is None or name != here.name)
    choices = [(name, f"{name}: {RUNS[name]}") for name in order]
    mode = await view.app.choose_from(title, choices)
    if mode is None:
        return

    async def change(client: AsyncClient) -> Done:
        if mode == "notes":
            read = await client.ingest(dry_run=dry_run)
            notes = number_of(read.files_scanned, "note", "notes")
            facts = number_of(read.facts_stored, "new fact", "new facts")
            return Done(f"{notes} read: {facts}" + f"; ! {read.unread}" * bool(read.unread))
        done = await client.consolidate(mode, dry_run=dry_run)
        return Done(f"{mode} {'would do' if dry_run else 'did'}: {_summary(done)}")

    view.app.flash(f"{mode} runs", seconds=LONG_SECONDS)
    await view.do(change, LONG_SECONDS)
    if view.is_attached:
        view.table_of("runs").to_top()
        view.show_part("runs")
        view.refresh_data()


_RUN: Final = Action("r", "Run now", _run, writes=True)


class UpkeepView(ResourceView):
    """Schedules, runs and the model."""

    DEFAULT_CSS = """
    UpkeepView { padding: 0 1; }
    UpkeepView > #line { padding: 0; color: $foreground; }
    Screen.-low UpkeepView Facts { max-height: 2; }
    Screen.-low UpkeepView .detail { display: none; }
    UpkeepView.-beside #parts { grid-rows: 3fr 2fr; }
    UpkeepView.-beside #purposes { column-span: 2; }
    UpkeepView.-beside #runs PagedTable { height: auto; max-height: 60%; }
    """
    # Runs and the model's calls are seen in the status too.
    WATCHES = frozenset({""})
    ACTIONS = (
        _RUN,
        Action("t", "Try without changes", partial(_run, dry_run=True)),
        Action("s", "Schedules", lambda view: view.show_part("schedules"), show=False),
        Action("d", "Runs", lambda view: view.show_part("runs")),
        Action("o", "Model", lambda view: view.show_part("purposes")),
    )

    def parts(self) -> Mapping[str, Part[Any]]:
        return {
            "schedules": Part[schemas.Schedule](
                "Schedules",
                [
                    Column("Job", 8, lambda row: row.name),
                    Column("When", 11, _when, least=56),
                    Column("Last", 10, lambda row: self.ago(row.last)),
                    Column("Took", 7, lambda row: seconds_of(row.seconds), least=70, right=True),
                    Column("Next", 10, self._next),
                    Column("Result", 0, self._last_result),
                ],
                lambda row: row.name,
                "nothing is scheduled: the agent has no memory yet",
                rows=self._jobs,
                copied=lambda row: row.error or row.name,
                open=_RUN,
                count=lambda: f" {plain(self.status.zone)}" if self.status else "",
            ),
            "runs": Part[schemas.UpkeepRun](
                "Runs",
                [
                    Column("When", 10, lambda row: self.ago(row.at)),
                    Column("Run", 11, lambda row: "try " * _tried(row) + row.mode),
                    Column("Took", 7, lambda row: seconds_of(row.seconds), least=44, right=True),
                    Column("Result", 0, self._result),
                ],
                lambda row: row.at,
                "no run since the daemon started: r runs one",
                rows=lambda: self.status.runs if self.status else (),
                copied=lambda row: self._all_of(row).plain,
                detail=self._all_of,
            ),
            "purposes": Part[Usage](
                "Model",
                [
                    Column("Purpose", 0, lambda row: plain(row[0])),
                    Column("Calls", 6, lambda row: f"{row[1].calls:,}", right=True),
                    Column("Cached", 6, lambda row: f"{row[1].cached:,}", least=48, right=True),
                    Column("Failed", 6, _failed, right=True),
                    Column("Tokens", 15, _tokens, least=72, right=True),
                    Column("Cost", 8, lambda row: f"${row[1].cost:.4f}", right=True),
                    Column(
                        "p50", 7, lambda row: seconds_of(row[1].p50_seconds), least=76, right=True
                    ),
                    Column(
                        "p95", 7, lambda row: seconds_of(row[1].p95_seconds), least=86, right=True
                    ),
                    Column("Last failure", 16, _last_failure, least=104),
                ],
                lambda row: row[0],
                "",
                rows=lambda: (
                    [*status.llm.purposes.items()] if (status := self.snapshot.status) else []
                ),
                copied=lambda row: row[1].last_error or row[0],
                above=[Facts(_LABEL), Gauge("budget", label_columns=_LABEL)],
            ),
        }

    def reset(self) -> None:
        self.status: schemas.UpkeepStatus | None = None

    async def update(self) -> None:
        self.status = await self.call(AsyncClient.upkeep) or self.status
        if self.status is not None:
            self.draw()

    def _jobs(self) -> list[schemas.Schedule]:
        # As they follow each other, what is due first at the top.
        jobs = self.status.schedules if self.status else ()
        return sorted(jobs, key=lambda row: (row.next is None, row.next or 0.0))

    # What runs

    def line(self) -> Text:
        text = Text()
        if self.status is None:
            return text
        if self.status.running is not None:
            return self._progress(self.status.running)
        now, brief = self.app.now(), self.status.brief
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
        return text

    def _progress(self, running: schemas.Running) -> Text:
        text = Text(f"⟳ {plain(running.mode)} ", self.paint("accent", bold=True))
        done, steps = 0, 0
        for event in reversed(self.app.events):
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
        return text.append(f", since {round_span(self.app.now() - running.since)}")

    def _next(self, row: schemas.Schedule) -> str:
        if row.next is None:
            return "on request"
        return "now" if row.next <= self.app.now() else self.ago(row.next)

    def _last_result(self, row: schemas.Schedule) -> Text:
        if row.error:
            return self._failure(row.error)
        return Text("-" if row.last is None else "✓ done")

    def _result(self, row: schemas.UpkeepRun) -> Text:
        if row.result is None:
            return self._failure(row.error)
        return Text("○ " if _tried(row) else "✓ ").append(_summary(row.result))

    def _failure(self, error: str) -> Text:
        return Text("✗ ", self.paint("error", bold=True)).append(plain(error))

    def _all_of(self, row: schemas.UpkeepRun) -> Text:
        text = Text()
        if row.result is None:
            return text.append(f"{row.mode} failed: ", "bold").append(plain(row.error))
        done = row.result
        text.append(f"{row.mode}: ", "bold").append(", ".join(done.steps))
        for name, value in _facts_of(done):
            text.append(f"\n{name:<{_LABEL + 2}}", "dim").append(value)
        for change in done.tree_changes if done.tree_changes is not UNSET else ():
            text.append("\n  ").append_text(self.shown(change))
        return text

    # The model

    def tick(self) -> None:
        status = self.snapshot.status
        if status is None:
            return
        model = status.llm
        self.query_one("#purposes Facts", Facts).set(self._model(model))
        budget = self.query_one("#purposes Gauge", Gauge)
        share, words = budget_of(model)
        budget.display = model.state != "off" and share is not None
        budget.set(share, words)
        never = "" if model.state == "off" else "it was not asked since the daemon started"
        self.table_of("purposes").empty = Text(never)

    def _model(self, model: ModelStatus) -> Iterator[tuple[str, str | Text]]:
        mark, color = _STATES.get(model.state, ("○", "secondary"))
        words = MODEL_STATES.get(model.state, model.state)
        yield "state", Text(f"{mark} {words}", self.paint(color, bold=True))
        if model.state == "off":
            return
        spent = model.today
        calls = number_of(spent.calls, "call", "calls")
        unpriced = f", {spent.unpriced:,} of unknown price" if spent.unpriced else ""
        yield "today", f"{calls}, {spent.tokens:,} tokens, ${spent.cost:.4f}{unpriced}"
        for purpose, names in model.models.items():
            yield purpose[:_LABEL], plain(", then ".join(names))
        for name, why in model.resting.items():
            yield "resting", Text(f"! {plain(name)}: {plain(why)}", self.paint("warning"))
        cache, questions = model.cache, model.cache.hits + model.cache.misses
        share = (
            f", {100 * cache.hits / questions:.0f} % of {questions:,} answered" if questions else ""
        )
        yield "cache", f"{cache.entries:,} entries{share}"
        worker = model.worker
        running = "sleeps" if worker.pid is None else f"process {worker.pid}"
        died = f", ! {number_of(worker.deaths, 'death', 'deaths')}" if worker.deaths else ""
        yield "worker", f"{running}, {number_of(worker.starts, 'start', 'starts')}{died}"


def _when(row: schemas.Schedule) -> str:
    return row.cron or (f"each {round_span(row.every)}" if row.every else "-")


def _last_failure(row: Usage) -> str:
    return plain(row[1].last_error or "-")


def _failed(row: Usage) -> str:
    return f"! {row[1].errors:,}" if row[1].errors else "-"


def _tokens(row: Usage) -> str:
    return f"{row[1].tokens_in:,} → {row[1].tokens_out:,}"


def _tried(row: schemas.UpkeepRun) -> bool:
    return row.result is not None and row.result.dry_run


def _summary(done: schemas.Consolidated) -> str:
    words = [
        number_of(number, single, several)
        for name, single, several in _RESULTS
        if (number := getattr(done, name))
    ]
    if done.tree_rebuilt not in (UNSET, "", "counts-only"):
        words.append(f"tree rebuilt by {plain(str(done.tree_rebuilt))}")
    return ", ".join(words) or "nothing to do"


def _facts_of(done: schemas.Consolidated) -> Iterator[tuple[str, str]]:
    yield ("would do" if done.dry_run else "did"), _summary(done)
    if scores := done.scores:
        counts = f"{scores.hot} hot, {scores.warm} warm, {scores.cold} cold, {scores.frozen} frozen"
        yield "scores", counts
    if done.hot_size_bytes is not UNSET:
        promoted = f", {done.promoted} promoted" if done.promoted is not UNSET else ""
        yield "hot state", f"{done.hot_size_bytes:,} B{promoted}"
    if done.notes_read:
        skipped = f", {done.ingest_skipped} known facts" if done.ingest_skipped else ""
        yield "notes", f"{done.notes_read} read{skipped}"
    if done.ingest_error:
        yield "unread", plain(str(done.ingest_error))
    if done.model_error:
        yield "model", plain(str(done.model_error))
    yield "took", seconds_of(done.took_ms / 1000)


def budget_of(model: ModelStatus) -> tuple[float | None, str]:
    """The share of today's budget that is spent (None: there is no limit), and in words."""
    spent, limits = model.today, model.limits
    if limits.cost:
        return spent.cost / limits.cost, f"${spent.cost:.2f} of ${limits.cost:.2f} today"
    if limits.tokens:
        return spent.tokens / limits.tokens, f"{spent.tokens:,} of {limits.tokens:,} tokens today"
    return None, f"${spent.cost:.2f} today, no limit"


def seconds_of(seconds: float | None) -> str:
    """A length of time, however short; `-` for none."""
    if not seconds:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else round_span(seconds)
