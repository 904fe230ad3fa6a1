"""Consolidates and ingests agents, by schedule and on request; and the list of all periodic jobs.

Reactions to events, such as a change to replicate or a pause in a conversation, are not jobs: they
have their own loops.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from ..config.settings import Rules, Settings
from ..memory.scoring import DAY
from ..runtime.problems import Problems
from ..schemas import upkeep as schemas
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.database.transaction import Event
from ..tasks.model_or_rules import ModelOrRules
from ..tasks.similar_memories import AskNearest
from .consolidation import MODES, consolidate, covered_by, steps_of
from .daily_notes import Folder, Work, ingest, note_of
from .schedule import When, record, words_of
from .scheduler import Clock, Job

T = TypeVar("T")
_RUNS: Final = 20
_UNREAD: Final = "notes_unread"


class Upkeep:
    """Consolidates memories and ingests notes, one run at a time for each agent.

    `clock` is in the device's zone; `schedules` returns an agent's jobs for status; without `model`
    only the rules are used; `nearest` finds what is near in meaning to memories.
    """

    def __init__(
        self,
        agents: Agents,
        *,
        rules: Callable[[], Rules],
        publish: Callable[[str, Event], None],
        problems: Problems,
        clock: Clock,
        schedules: Callable[[str, sqlite3.Connection], tuple[schemas.Schedule, ...]],
        model: ModelOrRules | None = None,
        nearest: AskNearest | None = None,
    ) -> None:
        self._agents = agents
        self._rules = rules
        self._publish = publish
        self._problems = problems
        self._now = clock.now
        self._zone = clock.zone
        self._schedules = schedules
        self._model = model
        self._nearest = nearest
        self._locks: dict[str, asyncio.Lock] = {}
        self._running: dict[str, schemas.Running] = {}
        self._runs: dict[str, deque[schemas.UpkeepRun]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Cancel the runs on request."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def consolidate(
        self,
        agent: str,
        mode: schemas.ConsolidationMode,
        *,
        dry_run: bool = False,
        endpoint: str | None = None,
    ) -> schemas.Consolidated:
        """Run a mode now, or after the current run.

        It continues if the caller is cancelled. The included jobs are recorded as done.
        """

        async def run(store: AgentStore) -> schemas.Consolidated:
            work = self._work(store, mode, dry_run=dry_run, endpoint=endpoint)
            item = partial(self._run, work, steps_of(mode))
            if dry_run:
                return await item()
            return await record(store, (mode, *covered_by(mode)), item)

        return await self._detached(agent, run)

    async def run(
        self, store: AgentStore, mode: str, steps: Iterable[schemas.Step]
    ) -> schemas.Consolidated:
        """Run some steps for an open agent, after the current run."""
        async with self._lock(store.place.agent):
            return await self._run(self._work(store, mode), steps)

    async def ingest(
        self,
        agent: str,
        *,
        days: int | None = None,
        dry_run: bool = False,
        endpoint: str | None = None,
        writer: str = "daemon",
    ) -> schemas.Ingested:
        """Ingest an agent's daily notes now; `NotFound` if there is no such agent."""

        async def run(store: AgentStore) -> schemas.Ingested:
            work = self._work(store, "ingest", dry_run=dry_run, endpoint=endpoint)
            done = await ingest(work, days or work.notes.days, writer)
            if not dry_run:
                self._report_unread(agent, done.unread)
            return done

        return await self._detached(agent, run)

    def _folders(self, agent: str) -> tuple[Folder, ...]:
        place = self._agents.place(agent)
        tops = {"own": place.folder, "workspace": place.workspace}
        return tuple(Folder(label, top / "memory") for label, top in tops.items() if top)

    def todays_note(self, agent: str) -> tuple[str, str] | None:
        """The path and text of an agent's note of today, if any; errors as `note_of`. Blocking."""
        today = datetime.fromtimestamp(self._now(), self._zone).date()
        return note_of(self._folders(agent), today, self._rules().ingest.max_note_kb)

    def status(self, agent: str, db: sqlite3.Connection) -> schemas.UpkeepStatus:
        """The state of an agent's upkeep, from the records in its database."""
        running = self._running.get(agent)
        schedules = self._schedules(agent, db)
        if running is not None:
            # The record of a running job says that it was interrupted.
            schedules = tuple(
                msgspec.structs.replace(schedule, error="")
                if schedule.name == running.mode
                else schedule
                for schedule in schedules
            )
        zone = datetime.fromtimestamp(self._now(), self._zone).tzname() or ""
        return schemas.UpkeepStatus(
            agent, zone, running, schedules, tuple(self._runs.get(agent, ()))
        )

    def _work(
        self, store: AgentStore, mode: str, *, dry_run: bool = False, endpoint: str | None = None
    ) -> Work:
        return Work(
            store=store,
            mode=mode,
            dry_run=dry_run,
            folders=self._folders(store.place.agent),
            notes=self._rules().ingest,
            zone=self._zone,
            model=self._model,
            endpoint=endpoint,
            nearest=self._nearest,
        )

    async def _run(self, work: Work, steps: Iterable[schemas.Step]) -> schemas.Consolidated:
        agent, mode = work.store.place.agent, work.mode
        started, at = time.perf_counter(), self._now()
        self._running[agent] = schemas.Running(mode, at)
        error, outcome = "interrupted", None
        try:
            outcome = await consolidate(work, steps, partial(self._emit, agent))
        except Exception as failure:
            error = words_of(failure)
            raise
        finally:
            del self._running[agent]
            self._runs.setdefault(agent, deque(maxlen=_RUNS)).appendleft(
                schemas.UpkeepRun(
                    mode=mode,
                    at=at,
                    seconds=round(time.perf_counter() - started, 4),
                    result=outcome,
                    error="" if outcome is not None else error,
                )
            )
        if outcome.ingested_facts is not UNSET and not work.dry_run:
            self._report_unread(agent, outcome.ingest_error or "")
        return outcome

    def _report_unread(self, agent: str, why: str) -> None:
        text = f"of the daily notes of '{agent}': {why}" if why else None
        self._problems.set(_UNREAD, agent, text, "repair or move these files", lasting=False)

    def _emit(self, agent: str, event: Event) -> None:
        if step := event.data.get("step"):
            self._running[agent] = msgspec.structs.replace(self._running[agent], step=step)
        self._publish(agent, event)

    async def _detached(self, agent: str, run: Callable[[AgentStore], Coroutine[Any, Any, T]]) -> T:
        """Run alone for the agent; continues if the caller is cancelled."""

        async def alone() -> T:
            # In this order, since locks are kept and an unknown agent must not get one.
            async with self._agents.use(agent, create=False) as store, self._lock(agent):
                return await run(store)

        task = asyncio.get_running_loop().create_task(alone(), name=f"upkeep of {agent}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    def _lock(self, agent: str) -> asyncio.Lock:
        return self._locks.setdefault(agent, asyncio.Lock())


def jobs_of(
    settings: Callable[[], Settings],
    upkeep: Upkeep,
    *,
    keep_files: Callable[[AgentStore], Awaitable[None]],
    verify: Callable[[AgentStore], Awaitable[None]],
    close_idle: Callable[[], Awaitable[None]],
    trim_memory: Callable[[], Awaitable[None]],
    sample: Callable[[], Awaitable[None]],
) -> Sequence[Job]:
    """All jobs."""

    def often() -> When:
        return settings().store.state_file_check_seconds

    def days() -> When:
        now = settings()
        return (now.sync.verify_days * DAY or None) if now.replicates else None

    of_open = partial(Job, agents="open", problem="agent_trouble")
    return (
        # Jobs of the daemon. Closing comes first, since jobs for open agents keep them open.
        Job(name="idle", when=often, run=close_idle, agents="none", problem="agent_trouble"),
        Job(name="heap", when=lambda: 60.0, run=trim_memory, agents="none"),
        Job(name="sample", when=lambda: 60.0, run=sample, agents="none"),
        *_runs(settings, upkeep),
        Job(name="verify", when=days, run=verify, problem="verify_failed", at_once=1),
        # Jobs for open agents.
        of_open(name="check files", when=often, run=AgentStore.check_files),
        of_open(name="maintenance", when=lambda: 60.0, run=AgentStore.run_maintenance),
        of_open(
            name="files", when=lambda: 30.0, run=keep_files, problem="workspace_trouble", soon=True
        ),
    )


def _runs(settings: Callable[[], Settings], upkeep: Upkeep) -> Iterator[Job]:
    def cron(name: str) -> When:
        return getattr(settings().upkeep, name, None)

    yield Job(
        name="merging",
        when=partial(cron, "merging"),
        run=partial(upkeep.run, mode="merging", steps=("merge",)),
        lane="upkeep",
    )
    # "full" runs only on request; it is listed so that an interrupted run is repeated.
    for mode in MODES:
        yield Job(
            name=mode,
            when=partial(cron, mode),
            run=partial(upkeep.run, mode=mode, steps=steps_of(mode)),
            lane="upkeep",
            covers=covered_by(mode),
        )
