"""Upkeep as it happens: by the schedules, and when somebody asks for it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from ..errors import NotFound
from ..memory.note_categories import CATEGORIES
from ..problems import Problems
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.transaction import Event
from . import ledger
from .advice import Advisor
from .consolidating import consolidate, words_of
from .ingesting import Ingested, Ingestion, ingest
from .ledger import Ledger
from .notes import Folder, note_of
from .outcome import Outcome
from .plan import Plan
from .quiet import Quiet
from .schedules import Due, believed, due, spread, time_of
from .standing import Running, Standing, standing_of
from .steps import Mode, steps_of
from .work import Work

T = TypeVar("T")
_log = logging.getLogger(__name__)
# Between two looks: so soon a changed plan, a new agent or a clock that jumped is noticed.
_LONGEST_PAUSE: Final = 60.0
_SHORTEST_PAUSE: Final = 1.0
_JUMP_SECONDS: Final = 120.0
_RETRY_SECONDS: Final = 600.0
# So soon an agent that could wait has its run after all, when somebody uses it.
_QUIET_SECONDS: Final = 600.0
_TROUBLE: Final = "upkeep_failed"
_UNREAD: Final = "notes_unread"


class Clock(msgspec.Struct, frozen=True):
    """What time it is, by the device's clock and by one that nobody can set, and how to wait."""

    zone: tzinfo
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Upkeep:
    """Does what is due for every agent there is, open or not, one after the other.

    One that is closed, and that nobody has used since, is spared what is due more than once a day.

    What an agent's memory notes of it survives restarts: what was missed is done once, and what
    was broken off goes on. For one agent there are never two runs at once, whoever wants them.

    Args:
        agents: the memories.
        plan: gives what is to happen, and when.
        followed: whether a replica follows an agent.
        publish: told how far a run is, by agent.
        problems: where a run that failed is told.
        device: this device's id, so that devices with one memory take turns.
        clock: the time, in the device's zone.
        advisor: a model; without one the rules do it alone.
    """

    def __init__(
        self,
        agents: Agents,
        *,
        plan: Callable[[], Plan],
        followed: Callable[[str], bool],
        publish: Callable[[str, Event], None],
        problems: Problems,
        device: str,
        clock: Clock,
        advisor: Advisor | None = None,
    ) -> None:
        self._agents = agents
        self._plan = plan
        self._followed = followed
        self._zone = clock.zone
        self._publish = publish
        self._problems = problems
        self._device = device
        self._advisor = advisor
        self._now = clock.now
        self._monotonic = clock.monotonic
        self._sleep = clock.sleep
        self._planned: Plan | None = None
        # When an agent is looked at next, and how far the clock was ahead of the other then.
        self._next: dict[str, float] = {}
        self._quiet = Quiet(agents)
        self._ahead = clock.now() - clock.monotonic()
        self._busy: dict[str, asyncio.Lock] = {}
        self._running: dict[str, Running] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        """Go by the schedules until cancelled."""
        while True:
            await self._round()
            soonest = min(self._next.values(), default=float("inf")) - self._now()
            await self._sleep(min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, soonest)))

    async def close(self) -> None:
        """Break off what was asked for; the next run goes on with it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def consolidate(
        self, agent: str, mode: Mode, *, dry_run: bool = False, endpoint: str | None = None
    ) -> Outcome:
        """Run a mode now, or once the run that is under way is through.

        It goes on if the caller leaves. The jobs that it contains are done by it.

        Raises:
            NotFound: there is no such agent.
            ThermoclineError: a step could not be done; the next run goes on with it.
        """
        steps = steps_of(mode)
        jobs = (job.name for job in self._plan().jobs if set(job.steps) <= set(steps))
        wanted = Due(mode, tuple(dict.fromkeys((mode, *jobs))), steps)

        run = partial(self._run, wanted=wanted, dry_run=dry_run, endpoint=endpoint)
        return await self._alone(agent, run)

    async def ingest(
        self,
        agent: str,
        *,
        days: int | None = None,
        dry_run: bool = False,
        endpoint: str | None = None,
        writer: str = "daemon",
    ) -> Ingested:
        """Take in an agent's daily notes now.

        Raises:
            NotFound: there is no such agent.
            ThermoclineError: the memory cannot be read or written.
        """
        ingestion = self.ingestion(agent)

        async def run(store: AgentStore) -> Ingested:
            done = await ingest(
                store,
                ingestion,
                days=days or ingestion.days,
                zone=self._zone,
                dry_run=dry_run,
                advisor=self._advisor,
                endpoint=endpoint,
                writer=writer,
            )
            if not dry_run:
                self._tell_unread(agent, f"did not read {done.unread}" if done.unread else "")
            return done

        return await self._alone(agent, run)

    def ingestion(self, agent: str) -> Ingestion:
        """Where the notes of an agent are, and how they are read."""
        plan = self._plan()
        folder, workspace = self._agents.place(agent)
        places = [("own", folder), *([("workspace", workspace)] if workspace else [])]
        usual = {word: path for word, path in CATEGORIES.items() if word not in plan.categories}
        return Ingestion(
            folders=tuple(Folder(label, place / "memory") for label, place in places),
            categories=plan.categories | usual,
            days=plan.note_days,
            max_bytes=plan.max_note_bytes,
        )

    def todays_note(self, agent: str) -> tuple[str, str] | None:
        """The path and the text of an agent's note of today, if there is one. Blocking.

        Raises:
            InvalidInput: there is one, but it is not read.
        """
        today = datetime.fromtimestamp(self._now(), self._zone).date()
        ingestion = self.ingestion(agent)
        return note_of(ingestion.folders, today, ingestion.max_bytes)

    def standing(self, agent: str, db: sqlite3.Connection) -> Standing:
        """How an agent's upkeep stands, by what its database notes."""
        return standing_of(
            agent,
            self._plan(),
            ledger.load(db),
            self._running.get(agent),
            self._now(),
            self._zone,
            self._delay(agent),
        )

    async def _round(self) -> None:
        """Look at every agent whose time has come."""
        plan, now = self._plan(), self._now()
        if plan != self._planned or self._jumped(now):
            self._planned = plan
            self._next.clear()
            self._quiet.forget()
        names = await asyncio.to_thread(self._names) if plan.jobs else []
        for gone in self._next.keys() - set(names):
            del self._next[gone]
        for agent in names:
            # Not all at once, when the daemon starts.
            first = now + spread(plan.jitter_seconds, self._device, agent)
            if self._now() >= self._next.setdefault(agent, first):
                wait = self._spared(agent) or await self._look(agent, plan)
                self._next[agent] = self._now() + wait

    def _spared(self, agent: str) -> float:
        """The seconds until an agent is asked after again that can wait; 0: it cannot."""
        until = self._quiet.waits_until(agent)
        return 0.0 if until is None else min(_QUIET_SECONDS, max(0.0, until - self._now()))

    def _names(self) -> list[str]:
        """Every agent there is. Blocking."""
        try:
            names = self._agents.names()
        except OSError as error:
            self._problems.report(
                _TROUBLE, "", f"cannot see whose memory is to be kept up: {error}", "mend the disk"
            )
            return []
        self._problems.clear(_TROUBLE, "")
        return names

    def _jumped(self, now: float) -> bool:
        """Whether somebody has set the clock since the last round."""
        ahead = now - self._monotonic()
        jumped = abs(ahead - self._ahead) > _JUMP_SECONDS
        self._ahead = ahead
        return jumped

    async def _look(self, agent: str, plan: Plan) -> float:
        """Do what is due for an agent; return the seconds until the next look."""
        if self._lock(agent).locked():
            return _LONGEST_PAUSE
        try:
            async with (
                self._lock(agent),
                self._agents.use(agent, create=False, quietly=True) as store,
            ):
                wait, failed = await self._catch_up(store, plan)
        except NotFound:
            # Somebody has removed the agent's folder.
            return _LONGEST_PAUSE
        except Exception as error:  # noqa: BLE001 - one agent's trouble must not stop the others
            wait, failed = _RETRY_SECONDS, error
        if failed is None:
            self._problems.clear(_TROUBLE, agent)
        else:
            text = f"cannot keep up the memory of '{agent}': {words_of(failed)}"
            hint = "nothing is lost; it goes on where it was within ten minutes"
            self._problems.report(_TROUBLE, agent, text, hint)
        return wait

    async def _catch_up(self, store: AgentStore, plan: Plan) -> tuple[float, Exception | None]:
        """Do what is due; the seconds until the next look, and why a run is still broken off."""
        agent, delay = store.place.agent, self._delay(store.place.agent)
        uses = self._agents.uses(agent)
        noted = await store.read(ledger.load)
        done = {job.name: believed(noted.done.get(job.name), self._now()) for job in plan.jobs}
        if not done.items() <= noted.done.items():
            # From here on its time passes.
            done = noted.done | done
            noted = msgspec.structs.replace(noted, done=done)
            await store.write(partial(ledger.change, done=done))
        did, failed = await self._do(store, noted, plan)
        if did is not None:
            noted = await store.read(ledger.load)
        now = self._now()
        times = {
            job: time_of(job, believed(noted.done.get(job.name), now), delay(job.name), self._zone)
            for job in plan.jobs
        }
        if did is not None:
            self._quiet.ran(agent, uses, did, times, now)
        coming = [at - now for at in times.values() if at is not None]
        if failed is not None:
            # What is due already is what cannot be done.
            coming = [seconds for seconds in coming if seconds > 0] + [_RETRY_SECONDS]
        return max(0.0, min(coming, default=_RETRY_SECONDS)), failed

    async def _do(
        self, store: AgentStore, noted: Ledger, plan: Plan
    ) -> tuple[Due | None, Exception | None]:
        """Go on with what was broken off, or else do what is due.

        Returns:
            What was done, if anything, or else why what was broken off is so still.
        """
        jobs, left, failed = plan.jobs, noted.progress, None
        if left is not None:
            resumed = Due(left.mode, left.jobs, left.steps)
            try:
                await self._run(store, resumed)
            except Exception as error:  # noqa: BLE001 - what is due must not wait for its mending
                failed = error
                # What needs the same steps has just been tried.
                jobs = tuple(job for job in jobs if not set(job.steps) & set(left.left))
            else:
                return resumed, None
        agent = store.place.agent
        wanted = due(jobs, noted.done, self._now(), self._zone, self._delay(agent))
        if wanted is None:
            return None, failed
        _log.info("keeping up '%s': %s", agent, wanted.mode, extra={"action": "upkeep_due"})
        await self._run(store, wanted)
        return wanted, None

    async def _run(
        self,
        store: AgentStore,
        wanted: Due,
        *,
        dry_run: bool = False,
        endpoint: str | None = None,
    ) -> Outcome:
        agent, plan = store.place.agent, self._plan()
        work = Work(
            store=store,
            mode=wanted.mode,
            dry_run=dry_run,
            ingestion=self.ingestion(agent),
            retention_years=plan.retention_years,
            zone=self._zone,
            followed=self._followed(agent),
            advisor=self._advisor,
            endpoint=endpoint,
        )
        self._running[agent] = Running(wanted.mode, self._now())
        try:
            outcome = await consolidate(work, wanted, partial(self._tell, agent))
        finally:
            del self._running[agent]
        if outcome.ingested_facts is not UNSET and not dry_run:
            self._tell_unread(agent, outcome.ingest_error or "")
        return outcome

    def _tell_unread(self, agent: str, why: str) -> None:
        """Nobody may be there to hear of a note that was not read: let it stand in status."""
        if not why:
            self._problems.clear(_UNREAD, agent)
            return
        text = f"of the daily notes of '{agent}': {why}"
        self._problems.report(_UNREAD, agent, text, "mend or move these files", lasting=False)

    def _tell(self, agent: str, event: Event) -> None:
        if step := event.data.get("step"):
            self._running[agent] = msgspec.structs.replace(self._running[agent], step=step)
        self._publish(agent, event)

    async def _alone(self, agent: str, run: Callable[[AgentStore], Coroutine[Any, Any, T]]) -> T:
        """Run when no other run for the agent is under way, whether or not the caller stays.

        Raises:
            NotFound: there is no such agent.
        """

        async def alone() -> T:
            # In this order, for a lock is kept: none for an agent that there is not.
            async with self._agents.use(agent, create=False) as store, self._lock(agent):
                return await run(store)

        task = asyncio.get_running_loop().create_task(alone(), name=f"upkeep of {agent}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    def _lock(self, agent: str) -> asyncio.Lock:
        return self._busy.setdefault(agent, asyncio.Lock())

    def _delay(self, agent: str) -> Callable[[str], float]:
        """How long after its time a job begins, so that not all begin at once."""
        seconds = self._plan().jitter_seconds
        return lambda job: spread(seconds, self._device, agent, job)
