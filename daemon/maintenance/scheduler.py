"""Runs all periodic jobs when they are due.

Each run is a separate task, so that a slow run does not delay other agents. Jobs are idempotent:
an interrupted or failed job is run again from the beginning.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import tzinfo
from functools import partial
from typing import Final, Literal

import msgspec

from ..errors import NotFound, ShuttingDown, ThermoclineError
from ..memory.scoring import DAY
from ..runtime.problems import Problems, fault_of
from ..schemas.upkeep import Schedule
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from .schedule import (
    RETRY_SECONDS,
    Postponed,
    Run,
    When,
    believed,
    due_at,
    interval_of,
    last_run,
    put_runs,
    record,
    retry_seconds,
    spread,
    words_of,
)

_log = logging.getLogger(__name__)
# A changed schedule, a new agent or a clock jump is noticed within this time.
_LONGEST_PAUSE: Final = 60.0
_SHORTEST_PAUSE: Final = 1.0
_JUMP_SECONDS: Final = 10.0


class Clock(msgspec.Struct, frozen=True):
    """The device's clock, a monotonic clock, and a sleep function."""

    zone: tzinfo
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A periodic job."""

    name: str  # also the name of its record
    when: Callable[[], When]  # returns the current schedule
    # Called with the agent's store, or without arguments if `agents` is "none".
    run: Callable[..., Awaitable[object]]
    # "all" jobs also run for closed agents, are recorded, and run once after a missed time; "open"
    # jobs run for open agents; "none" jobs for the daemon.
    agents: Literal["all", "open", "none"] = "all"
    # "all" jobs of one lane run sequentially for an agent, last in the list first; jobs without a
    # lane have a separate one.
    lane: str = ""
    covers: tuple[str, ...] = ()  # the jobs of its lane that it includes
    problem: str = "upkeep_failed"  # the code of its problem reports
    at_once: int = 4  # the maximum number of agents that its lane runs for at the same time
    # Whether it first runs when its agent is opened, not after the first interval.
    soon: bool = False


class _Lane(msgspec.Struct):
    """The state of a lane of an agent."""

    due: float  # when it runs next, on the monotonic clock; infinite while it runs
    uses: int | None = None  # the number of uses of the agent at its last run
    is_idle: bool = False  # whether the agent is closed, and was not used between the last two runs
    # In a row, of what is not recorded for each job: opening the agent, and the jobs without a row.
    failures: int = 0


class Scheduler:
    """Runs jobs when they are due.

    Due times are monotonic, and recomputed whenever the device's clock jumps: a jump neither causes
    a busy loop nor postpones a job beyond its next regular time. A closed agent that was not used
    since is opened only for jobs that cover others, or once a day. Larger `jobs` come last. `clock`
    is in the device's zone; devices with the same memory run at different times, by `device`;
    `jitter` returns the seconds over which agents and devices are spread.
    """

    def __init__(
        self,
        agents: Agents,
        jobs: Sequence[Job],
        *,
        clock: Clock,
        device: str,
        jitter: Callable[[], float],
        problems: Problems,
    ) -> None:
        self._agents = agents
        self._jobs = {job.name: job for job in jobs}
        self._by_lane: dict[str, list[Job]] = {}
        for job in reversed(jobs):
            self._by_lane.setdefault(job.lane or job.name, []).append(job)
        self._rooms = {
            name: asyncio.Semaphore(jobs[0].at_once) for name, jobs in self._by_lane.items()
        }
        self._clock = clock
        self._device = device
        self._jitter = jitter
        self._problems = problems
        self._planned: list[When] = []
        self._ahead = 0.0
        self._names: list[str] = []
        self._names_until = -math.inf
        # By agent, "" for the daemon's own jobs, and lane.
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Run due jobs until cancelled; then cancel running jobs and wait for them."""
        try:
            while True:
                await self._start_due()
                intervals = [s for s in map(interval_of, self._planned) if s is not None]
                due = min((lane.due for lane in self._lanes.values()), default=math.inf)
                shortest = min([_SHORTEST_PAUSE, *intervals])
                longest = min([_LONGEST_PAUSE, *intervals])
                pause = due - self._clock.monotonic()
                await self._clock.sleep(min(longest, max(shortest, pause)))
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def schedules(self, agent: str, db: sqlite3.Connection) -> tuple[Schedule, ...]:
        """The recorded jobs of an agent that have an expression, or have run."""
        now, schedules = self._clock.now(), []
        for job in self._jobs.values():
            when, run = job.when(), last_run(db, job.name)
            has_run = run is not None and run.at is not None
            if job.agents != "all" or not (isinstance(when, str) or has_run):
                continue
            last = run or Run(now)
            due = self._due_at(job, agent, last)
            schedules.append(
                Schedule(
                    name=job.name,
                    cron=when if isinstance(when, str) else None,
                    every=interval_of(when),
                    last=last.at,
                    seconds=last.seconds,
                    error=last.error,
                    next=None if due is None else max(due, now),
                )
            )
        return tuple(schedules)

    async def _start_due(self) -> None:
        now, up = self._clock.now(), self._clock.monotonic()
        planned = [job.when() for job in self._jobs.values()]
        jumped = planned != self._planned or abs(now - up - self._ahead) > _JUMP_SECONDS
        if jumped:
            self._planned, self._ahead = planned, now - up
        await self._list_agents(up)
        owners = {"all": self._names, "open": list(self._agents.open_stores()), "none": [""]}
        current = set()
        for name, (job, *_) in self._by_lane.items():
            is_recorded, interval = job.agents == "all", interval_of(job.when())
            for agent in owners[job.agents] if is_recorded or job.when() else ():
                # Spreads the agents after the start of the daemon.
                first = 0.0 if job.soon else interval or 0.0
                first = up + (self._delay(agent) if is_recorded else first)
                key = agent, name
                current.add(key)
                lane = self._lanes.setdefault(key, _Lane(first))
                if is_recorded and jumped:
                    lane.due = first
                elif lane.is_idle and self._agents.uses(agent) != lane.uses:
                    lane.due = up
                if lane.due <= up and key not in self._tasks:
                    lane.due = math.inf
                    task = asyncio.create_task(self._run(key), name=f"{name} of {agent or 'all'}")
                    self._tasks[key] = task
        for key in self._lanes.keys() - current:
            for job in self._by_lane[key[1]]:
                self._recovered(key[0], job)
            del self._lanes[key]

    async def _list_agents(self, up: float) -> None:
        if up < self._names_until:
            return
        self._names_until = up + _LONGEST_PAUSE
        try:
            self._names = await asyncio.to_thread(self._agents.names)
        except OSError as error:
            message = f"cannot list the agents: {error}"
            self._problems.report("upkeep_failed", "", message, "repair the disk")
        else:
            self._problems.clear("upkeep_failed", "")

    async def _run(self, key: tuple[str, str]) -> None:
        (agent, name), lane = key, self._lanes[key]
        job = self._by_lane[name][0]
        delay = interval_of(job.when()) or _LONGEST_PAUSE
        try:
            async with self._rooms[name]:
                if job.agents == "none":
                    await job.run()
                elif (is_open := agent in self._agents.open_stores()) or job.agents == "all":
                    async with self._agents.use(agent, create=False, quietly=True) as store:
                        if job.agents == "open":
                            await job.run(store)
                        elif store.refused:
                            # A run could not be recorded; the refusal itself is reported.
                            delay = _LONGEST_PAUSE
                        else:
                            delay = await self._catch_up(key, store, was_open=is_open)
            if lane.failures:
                lane.failures = 0
                self._recovered(agent, job)
        except (NotFound, ShuttingDown):
            # The agent was forgotten or closed meanwhile.
            pass
        except Exception as error:  # noqa: BLE001 - a failure stops no other job
            self._report(agent, job, error)
            lane.failures += 1
            least = RETRY_SECONDS if job.agents == "all" else delay
            delay = retry_seconds(least, lane.failures)
        finally:
            lane.due = self._clock.monotonic() + delay
            del self._tasks[key]

    async def _catch_up(self, key: tuple[str, str], store: AgentStore, *, was_open: bool) -> float:
        """Run the due jobs of a lane; return the seconds until the next is due."""
        jobs, lane, uses = self._by_lane[key[1]], self._lanes[key], self._agents.uses(key[0])
        runs = await store.read(partial(_last_runs, jobs))
        if self._first_runs(jobs, runs):
            # Read again: a job may have begun at this moment, by a call.
            first = partial(self._first_runs, jobs)
            await store.write(lambda tx: put_runs(tx, first(_last_runs(jobs, tx.db))))
            runs = await store.read(partial(_last_runs, jobs))
        for job in jobs:
            if self._wait(job, key[0], runs) > 0:
                continue
            _log.info("running '%s' for '%s'", job.name, key[0], extra={"action": "job_due"})
            try:
                await record(store, (job.name, *job.covers), partial(job.run, store))
            except (NotFound, ShuttingDown):
                raise
            except Postponed:
                pass
            except Exception as error:  # noqa: BLE001 - a failure stops no other job
                self._report(key[0], job, error)
            else:
                for name in (job.name, *job.covers):
                    self._recovered(key[0], self._jobs[name])
            runs = await store.read(partial(_last_runs, jobs))
        lane.is_idle = not was_open and lane.uses == uses
        lane.uses = uses
        left = [job for job in jobs if job.covers] if lane.is_idle else jobs
        return min((self._wait(job, key[0], runs) for job in left), default=DAY)

    def _first_runs(self, jobs: Iterable[Job], runs: dict[str, Run]) -> dict[str, Run]:
        """Initial rows for jobs without a row or with an impossible time."""
        now = self._clock.now()
        return {
            job.name: Run(now)
            if run is None
            else msgspec.structs.replace(run, done=now, at=run.at and min(run.at, now))
            for job in jobs
            if ((run := runs.get(job.name)) is None and job.when() is not None)
            or (run is not None and run.done != believed(run.done, now))
        }

    def _wait(self, job: Job, agent: str, runs: dict[str, Run]) -> float:
        at = self._due_at(job, agent, runs[job.name]) if job.name in runs else None
        return DAY if at is None else at - self._clock.now()

    def _due_at(self, job: Job, agent: str, run: Run) -> float | None:
        return due_at(job.when(), run, self._clock.now(), self._clock.zone, self._delay(agent))

    def _delay(self, agent: str) -> float:
        return spread(self._jitter(), self._device, agent)

    def _report(self, agent: str, job: Job, error: Exception) -> None:
        hint = "nothing is lost; it is tried again"
        if isinstance(error, ThermoclineError):
            hint = error.hint or hint
        elif not isinstance(error, OSError):
            kind, where = fault_of(error)
            _log.error(
                "'%s' failed with %s:\n%s", job.name, kind, where, extra={"action": "job_failed"}
            )
        whose = f" for '{agent}'" if agent else ""
        message = f"cannot run '{job.name}'{whose}: {words_of(error)}"
        self._problems.report(job.problem, f"{agent}/{job.name}", message, hint)

    def _recovered(self, agent: str, job: Job) -> None:
        self._problems.clear(job.problem, f"{agent}/{job.name}")


def _last_runs(jobs: Iterable[Job], db: sqlite3.Connection) -> dict[str, Run]:
    return {job.name: run for job in jobs if (run := last_run(db, job.name)) is not None}
