"""Consolidation and ingestion of agents, by schedule and on request."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from ..config.settings import Rules
from ..language.notes import CATEGORIES
from ..runtime.problems import Problems
from ..shapes import upkeep as shapes
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.transaction import Event
from ..thinking.model_or_rules import ModelOrRules
from .consolidation import consolidate, covered_by, steps_of
from .ingesting import Ingestion, Work, ingest
from .last_runs import record, words_of
from .notes import Folder, note_of
from .scheduler import Clock

T = TypeVar("T")
_RUNS: Final = 20
_UNREAD: Final = "notes_unread"


class Upkeep:
    """Consolidates memories and ingests notes, one run at a time for each agent.

    Args:
        agents: the agents.
        rules: returns the current settings.
        publish: receives events of a run's progress, by agent.
        problems: receives notes that cannot be read.
        clock: the time, in the device's zone.
        schedules: returns an agent's jobs for status.
        model: a model; None: only the rules.
    """

    def __init__(
        self,
        agents: Agents,
        *,
        rules: Callable[[], Rules],
        publish: Callable[[str, Event], None],
        problems: Problems,
        clock: Clock,
        schedules: Callable[[str, sqlite3.Connection], tuple[shapes.Schedule, ...]],
        model: ModelOrRules | None = None,
    ) -> None:
        self._agents = agents
        self._rules = rules
        self._publish = publish
        self._problems = problems
        self._now = clock.now
        self._zone = clock.zone
        self._schedules = schedules
        self._model = model
        self._locks: dict[str, asyncio.Lock] = {}
        self._running: dict[str, shapes.Running] = {}
        self._runs: dict[str, deque[shapes.UpkeepRun]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Cancel the runs on request."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def consolidate(
        self,
        agent: str,
        mode: shapes.ConsolidationMode,
        *,
        dry_run: bool = False,
        endpoint: str | None = None,
    ) -> shapes.Consolidated:
        """Run a mode now, or after the current run.

        It continues if the caller is cancelled. The included jobs are recorded as done.

        Raises:
            NotFound: there is no such agent.
            ThermoclineError: a step failed.
        """

        async def run(store: AgentStore) -> shapes.Consolidated:
            work = self._work(store, mode, dry_run=dry_run, endpoint=endpoint)
            one = partial(self._run, work, steps_of(mode))
            if dry_run:
                return await one()
            return await record(store, (mode, *covered_by(mode)), one)

        return await self._detached(agent, run)

    async def run(
        self, store: AgentStore, mode: str, steps: Iterable[shapes.Step]
    ) -> shapes.Consolidated:
        """Run some steps for an open agent, after the current run.

        Raises:
            ThermoclineError: a step failed.
        """
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
    ) -> shapes.Ingested:
        """Ingest an agent's daily notes now.

        Raises:
            NotFound: there is no such agent.
            ThermoclineError: the memory cannot be read or written.
        """

        async def run(store: AgentStore) -> shapes.Ingested:
            work = self._work(store, "ingest", dry_run=dry_run, endpoint=endpoint)
            done = await ingest(work, days or work.ingestion.days, writer)
            if not dry_run:
                self._report_unread(agent, done.unread)
            return done

        return await self._detached(agent, run)

    def ingestion(self, agent: str) -> Ingestion:
        """The folders of an agent's notes, and how to read them."""
        notes = self._rules().ingest
        folder, workspace = self._agents.place(agent)
        places = [("own", folder), *([("workspace", workspace)] if workspace else [])]
        usual = {word: path for word, path in CATEGORIES.items() if word not in notes.categories}
        return Ingestion(
            folders=tuple(Folder(label, place / "memory") for label, place in places),
            categories=notes.categories | usual,
            days=notes.days,
            max_bytes=notes.max_note_kb * 1_024,
        )

    def todays_note(self, agent: str) -> tuple[str, str] | None:
        """The path and the text of an agent's note of today, or None. Blocking.

        Raises:
            InvalidInput: there is one, but it is not read.
        """
        today = datetime.fromtimestamp(self._now(), self._zone).date()
        ingestion = self.ingestion(agent)
        return note_of(ingestion.folders, today, ingestion.max_bytes)

    def standing(self, agent: str, db: sqlite3.Connection) -> shapes.UpkeepStatus:
        """The state of an agent's upkeep, from the records in its database."""
        running = self._running.get(agent)
        schedules = self._schedules(agent, db)
        if running is not None:
            # The record of a running job says that it was interrupted.
            schedules = tuple(
                msgspec.structs.replace(one, error="") if one.name == running.mode else one
                for one in schedules
            )
        zone = datetime.fromtimestamp(self._now(), self._zone).tzname() or ""
        return shapes.UpkeepStatus(
            agent, zone, running, schedules, tuple(self._runs.get(agent, ()))
        )

    def _work(
        self, store: AgentStore, mode: str, *, dry_run: bool = False, endpoint: str | None = None
    ) -> Work:
        return Work(
            store=store,
            mode=mode,
            dry_run=dry_run,
            ingestion=self.ingestion(store.place.agent),
            zone=self._zone,
            model=self._model,
            endpoint=endpoint,
        )

    async def _run(self, work: Work, steps: Iterable[shapes.Step]) -> shapes.Consolidated:
        agent, mode = work.store.place.agent, work.mode
        started, at = time.perf_counter(), self._now()
        self._running[agent] = shapes.Running(mode, at)
        error, outcome = "interrupted", None
        try:
            outcome = await consolidate(work, steps, partial(self._tell, agent))
        except Exception as failure:
            error = words_of(failure)
            raise
        finally:
            del self._running[agent]
            self._runs.setdefault(agent, deque(maxlen=_RUNS)).appendleft(
                shapes.UpkeepRun(
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
        if not why:
            self._problems.clear(_UNREAD, agent)
            return
        text = f"of the daily notes of '{agent}': {why}"
        self._problems.report(_UNREAD, agent, text, "repair or move these files", lasting=False)

    def _tell(self, agent: str, event: Event) -> None:
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
