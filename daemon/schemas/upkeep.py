"""Upkeep: its schedule, its runs, and reading notes. Times are seconds since the epoch."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ..memory.records import Metadata, Omission
from .common import Method

Step = Literal["ingest", "evict", "prune", "merge", "rebuild", "clean", "hot", "report"]
ConsolidationMode = Literal["quick", "daily", "monthly", "full"]


class Scores(Struct, frozen=True):
    """The number of warm memories by the tier of their scores."""

    hot: int
    warm: int
    cold: int
    frozen: int


class Consolidated(Struct, frozen=True, kw_only=True):
    """What a run did, or would do; an optional field is present if its step was part of the run.

    Attributes:
        mode, agent_id, timestamp, evicted_warm, archived_cold, hot_size_bytes, ingested_facts,
            ingest_skipped, ingest_error, pruned_nodes, tree_rebuilt: EvoClaw's. The tree was
            rebuilt by "llm", which has "failed", or had nothing to change ("counts-only").
        merged, pruned, decayed: Tiny Claw's: memories merged into other ones; those that faded and
            left, warm for the archive or the archive for good; those unused for so long that its
            preset ranks them by less than their importance.
        dry_run: nothing was changed.
        took_ms: of this run only.
        expired: memories deleted because their time has passed.
        scores: of the warm memories.
        promoted: the number of memories in the hot state.
        superseded: memories marked as contradicted.
        forgotten: memories deleted because they were frozen longer than the archive keeps them.
        tree_changes: the operations in words.
        report, report_file: the analysis of the tree, a finding each, and the file that has it.
        model_error: why the rules were used in place of a model.
    """

    mode: str
    agent_id: str
    timestamp: str
    dry_run: bool = False
    steps: tuple[Step, ...] = ()
    took_ms: float = 0.0
    merged: int = 0
    pruned: int = 0
    decayed: int = 0
    evicted_warm: int | UnsetType = UNSET
    archived_cold: int | UnsetType = UNSET
    hot_size_bytes: int | UnsetType = UNSET
    ingested_facts: int | UnsetType = UNSET
    ingest_skipped: int | UnsetType = UNSET
    ingest_error: str | UnsetType = UNSET
    notes_read: int | UnsetType = UNSET
    pruned_nodes: int | UnsetType = UNSET
    tree_rebuilt: str | UnsetType = UNSET
    tree_changes: tuple[str, ...] | UnsetType = UNSET
    expired: int | UnsetType = UNSET
    scores: Scores | UnsetType = UNSET
    promoted: int | UnsetType = UNSET
    superseded: int | UnsetType = UNSET
    forgotten: int | UnsetType = UNSET
    model_error: str | UnsetType = UNSET
    report: tuple[str, ...] | UnsetType = UNSET
    report_file: str | UnsetType = UNSET


class TakenIn(Struct, frozen=True):
    """A stored fact; in a dry run it has no id."""

    text: str
    category: str
    importance: float
    metadata: Metadata
    id: str | UnsetType = UNSET


class NoteReport(Struct, frozen=True):
    """The result for one note.

    Attributes:
        status: `unchanged` since it was last read; `refused` for the reason in `why`.
        found, stored: the number of its facts, and of the new ones.
    """

    file: str
    status: Literal["read", "unchanged", "refused"]
    found: int = 0
    stored: int = 0
    why: str | UnsetType = UNSET


class Ingested(Struct, frozen=True):
    """The stored facts: EvoClaw's fields, and a report on each file.

    Attributes:
        mode: whether a model was asked.
        facts_skipped: facts already stored, or stored and deleted before.
        llm_fallbacks: the notes read by the rules because no model answered.
        model_error: the reason, for the last of them.
    """

    files_scanned: int
    mode: Method
    facts_found: int
    facts_stored: int
    facts_skipped: int
    llm_fallbacks: int
    facts: tuple[TakenIn, ...]
    files: tuple[NoteReport, ...]
    dry_run: bool = False
    model_error: str | UnsetType = UNSET

    @property
    def unread(self) -> str:
        """A message that names the unread notes, and why; "" if all were read."""
        named = "; ".join(f"{file.file}: {file.why}" for file in self.files if file.why)
        return named and f"did not read {named}"


class Running(Struct, frozen=True):
    """A run in progress, and the step that it finished last; "" before the first."""

    mode: str
    since: float
    step: str = ""


class UpkeepRun(Struct, frozen=True, kw_only=True):
    """A finished run: its start and duration, and its result or error."""

    mode: str
    at: float
    seconds: float
    result: Consolidated | None = None
    error: str = ""


class Schedule(Struct, frozen=True):
    """One job: its last run, and when it is due next.

    Attributes:
        cron: its expression; None: it has none.
        every: seconds between two runs of a job without an expression; None: it runs on request.
        last: when its last run began; None: never.
        error: why that failed; "": it did not.
        next: when it is due; None: never. A time that has passed means as soon as possible.
    """

    name: str
    cron: str | None
    every: float | None
    last: float | None
    seconds: float | None
    error: str
    next: float | None


class UpkeepBrief(Struct, frozen=True):
    """The last run and its result, the current run, and the next one."""

    running: str | None
    last: str | None
    last_at: float | None
    error: str
    next: str | None
    next_at: float | None


class UpkeepStatus(Struct, frozen=True):
    """An agent's upkeep; `zone` is the current name of the device's time zone.

    `runs` are the last 20 since the daemon started, latest first.
    """

    agent: str
    zone: str
    running: Running | None
    schedules: tuple[Schedule, ...]
    runs: tuple[UpkeepRun, ...] = ()

    @property
    def brief(self) -> UpkeepBrief:
        """A summary."""
        # Larger runs come later in the list, and record the smaller ones that they contain.
        ran = [schedule for schedule in reversed(self.schedules) if schedule.last is not None]
        last = max(ran, key=lambda item: item.last or 0.0, default=None)
        due = [schedule for schedule in self.schedules if schedule.next is not None]
        first = min(due, key=lambda schedule: schedule.next or 0.0, default=None)
        return UpkeepBrief(
            running=None if self.running is None else self.running.mode,
            last=None if last is None else last.name,
            last_at=None if last is None else last.last,
            error="" if last is None else last.error,
            next=None if first is None else first.name,
            next_at=None if first is None else first.next,
        )


class Validated(Struct, kw_only=True):
    """EvoClaw's answer: `ok` with a message, or `warning` with a suggestion for each warning."""

    status: Literal["ok", "warning"]
    message: str | UnsetType = UNSET
    warnings_count: int | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    file: str | None
    suggestions: list[str] | UnsetType = UNSET
    omissions: list[Omission] | UnsetType = UNSET
