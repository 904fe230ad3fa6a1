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
from typing import Final, Literal, NamedTuple

import msgspec

from ..errors import NotFound, ShuttingDown, ThermoclineError
from ..memory.scoring import DAY
from ..runtime.problems import Problems, unforeseen
from ..shapes.upkeep import Schedule
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.transaction import Transaction
from .cron import When, believed, interval_of, next_after, spread
from .last_runs import Postponed, Run, last_run, put_runs, record, words_of

_log = logging.getLogger(__name__)
# A changed schedule, a new agent or a clock jump is noticed within this time.
_LONGEST_PAUSE: Final = 60.0
_SHORTEST_PAUSE: Final = 1.0
_JUMP_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 300.0
_MOST_TIMES: Final = 12
_POSTPONED_SECONDS: Final = 3_600.0


class Clock(msgspec.Struct, frozen=True):
    """The device's clock, a monotonic clock, and a sleep function."""

    zone: tzinfo
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A periodic job.

    Attributes:
        name: also the name of its record.
        when: returns the current schedule.
        run: called with the agent's store, or without arguments if `agents` is "none".
        agents: "all" jobs also run for closed agents, are recorded, and run once after a missed
            time; "open" jobs run for open agents; "none" jobs for the daemon.
        lane: "all" jobs of one lane run sequentially for an agent, last in the list first; jobs
            without a lane have a separate one.
        covers: the jobs of its lane that it includes.
        problem: the code of its problem reports.
        at_once: the maximum number of agents that its lane runs for at the same time.
        soon: whether it first runs when its agent is opened, not after the first interval.
    """

    name: str
    when: Callable[[], When]
    run: Callable[..., Awaitable[object]]
    agents: Literal["all", "open", "none"] = "all"
    lane: str = ""
    covers: tuple[str, ...] = ()
    problem: str = "upkeep_failed"
    at_once: int = 4
    soon: bool = False


class _Key(NamedTuple):
    """An agent and its lane or job; the agent is "" for the daemon's own jobs."""

    agent: str
    name: str


class _Retry(NamedTuple):
    """When to retry a job, and its failures in a row; 0 if it was postponed."""

    at: float
    failures: int


class Scheduler:
    """Runs jobs when they are due.

    Due times are monotonic, and recomputed whenever the device's clock jumps: a jump neither causes
    a busy loop nor postpones a job beyond its next regular time. A closed agent that was not used
    since is opened only for jobs that cover others, or once a day.

    Args:
        agents: the agents.
        jobs: all jobs, larger ones last.
        clock: the time, in the device's zone.
        device: this device's id; devices with the same memory run at different times.
        jitter: returns the seconds over which agents and devices are spread.
        problems: receives failures.
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
        self._lanes: dict[str, list[Job]] = {}
        for job in reversed(jobs):
            self._lanes.setdefault(job.lane or job.name, []).append(job)
        self._rooms = {
            name: asyncio.Semaphore(jobs[0].at_once) for name, jobs in self._lanes.items()
        }
        self._clock = clock
        self._device = device
        self._jitter = jitter
        self._problems = problems
        self._planned: list[When] = []
        self._ahead = 0.0
        self._names: list[str] = []
        self._names_until = -math.inf
        self._next: dict[_Key, float] = {}
        self._tasks: dict[_Key, asyncio.Task[None]] = {}
        self._retries: dict[_Key, _Retry] = {}
        # The number of uses of the agent at the last run of its lane, and the lanes of closed
        # agents without further uses.
        self._uses: dict[_Key, int] = {}
        self._unused: set[_Key] = set()

    @property
    def running(self) -> set[tuple[str, str]]:
        """The agents and lanes of the runs in progress."""
        return set(self._tasks)

    async def run(self) -> None:
        """Run due jobs until cancelled; then cancel running jobs and wait for them."""
        try:
            while True:
                await self._begin_due()
                intervals = [s for s in map(interval_of, self._planned) if s is not None]
                pause = min(self._next.values(), default=math.inf) - self._clock.monotonic()
                shortest = min([_SHORTEST_PAUSE, *intervals])
                longest = min([_LONGEST_PAUSE, *intervals])
                await self._clock.sleep(min(longest, max(shortest, pause)))
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def schedules(self, agent: str, db: sqlite3.Connection) -> tuple[Schedule, ...]:
        """The recorded jobs of an agent that have an expression, or have run."""
        now, found = self._clock.now(), []
        for job in self._jobs.values():
            when, run = job.when(), last_run(db, job.name)
            has_run = run is not None and run.at is not None
            if job.agents != "all" or not (isinstance(when, str) or has_run):
                continue
            last = run or Run(now)
            found.append(
                Schedule(
                    name=job.name,
                    cron=when if isinstance(when, str) else None,
                    every=interval_of(when),
                    last=last.at,
                    seconds=last.seconds,
                    error=last.error,
                    next=self._due_at(job, agent, last),
                )
            )
        return tuple(found)

    async def _begin_due(self) -> None:
        now, up = self._clock.now(), self._clock.monotonic()
        planned = [job.when() for job in self._jobs.values()]
        if planned != self._planned or abs(now - up - self._ahead) > _JUMP_SECONDS:
            self._planned, self._ahead = planned, now - up
            for key in [key for key in self._next if self._lanes[key.name][0].agents == "all"]:
                del self._next[key]
        await self._list_agents(up)
        owners = {"all": self._names, "open": list(self._agents.open_stores()), "none": [""]}
        for key in self._unused:
            if self._agents.uses(key.agent) != self._uses[key]:
                self._next[key] = up
        current = set()
        for name, (job, *_) in self._lanes.items():
            for agent in owners[job.agents] if job.agents == "all" or job.when() else ():
                key = _Key(agent, name)
                current.add(key)
                # Spreads the agents after the start of the daemon.
                first = 0.0 if job.soon else interval_of(job.when()) or 0.0
                first = self._delay(agent) if job.agents == "all" else first
                if self._next.setdefault(key, up + first) > up or key in self._tasks:
                    continue
                self._next[key] = math.inf
                task = asyncio.create_task(self._run(key), name=f"{name} of {agent or 'all'}")
                self._tasks[key] = task
        for gone in self._next.keys() - current:
            del self._next[gone]
            self._uses.pop(gone, None)
            self._unused.discard(gone)
            for job in self._lanes[gone.name]:
                self._recovered(job, gone.agent)

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

    async def _run(self, key: _Key) -> None:
        agent, job = key.agent, self._lanes[key.name][0]
        delay = interval_of(job.when()) or _LONGEST_PAUSE
        try:
            async with self._rooms[key.name]:
                if job.agents == "none":
                    await job.run()
                elif (is_open := agent in self._agents.open_stores()) or job.agents == "all":
                    async with self._agents.use(agent, create=False, quietly=True) as store:
                        if job.agents == "open":
                            await job.run(store)
                        else:
                            delay = await self._catch_up(key, store, was_open=is_open)
            if job.agents != "all":
                self._recovered(job, agent)
        except (NotFound, ShuttingDown):
            # The agent was forgotten or closed meanwhile.
            pass
        except Exception as error:  # noqa: BLE001 - a failure stops no other job
            least = _RETRY_SECONDS if job.agents == "all" else delay
            delay = self._failed(job, agent, error, least)
        finally:
            self._next[key] = self._clock.monotonic() + delay
            del self._tasks[key]

    async def _catch_up(self, key: _Key, store: AgentStore, *, was_open: bool) -> float:
        """Run the due jobs of a lane; return the seconds until the next is due."""
        jobs, agent = self._lanes[key.name], key.agent
        uses = self._agents.uses(agent)
        read = partial(self._records, jobs)
        runs = await store.read(read)
        if self._first_records(jobs, runs):
            runs = await store.write(partial(self._begin_records, jobs))
        unopened = self._retries.get(_Key(agent, jobs[0].name), _Retry(0.0, 0))
        if unopened.failures and not runs.get(jobs[0].name, Run(0.0)).error:
            self._recovered(jobs[0], agent)
        for job in jobs:
            if self._wait(job, agent, runs) > 0:
                continue
            _log.info("running '%s' for '%s'", job.name, agent, extra={"action": "job_due"})
            names = (job.name, *job.covers)
            try:
                await record(store, names, partial(job.run, store))
            except (NotFound, ShuttingDown):
                raise
            except Exception as error:  # noqa: BLE001 - a failure stops no other job
                self._failed(job, agent, error, _RETRY_SECONDS)
            else:
                for name in names:
                    self._recovered(self._jobs[name], agent)
            runs = await store.read(read)
        self._unused.discard(key)
        if not was_open and self._uses.get(key) == uses:
            self._unused.add(key)
            jobs = [job for job in jobs if job.covers]
        self._uses[key] = uses
        return min((self._wait(job, agent, runs) for job in jobs), default=DAY)

    def _records(self, jobs: Iterable[Job], db: sqlite3.Connection) -> dict[str, Run]:
        return {job.name: run for job in jobs if (run := last_run(db, job.name)) is not None}

    def _begin_records(self, jobs: Iterable[Job], tx: Transaction) -> dict[str, Run]:
        # Read again: one of them may have begun at this moment, by a call.
        runs = self._records(jobs, tx.db)
        new = self._first_records(jobs, runs)
        put_runs(tx, new)
        return runs | new

    def _first_records(self, jobs: Iterable[Job], runs: dict[str, Run]) -> dict[str, Run]:
        """Initial records for jobs without a record or with an impossible one."""
        now = self._clock.now()
        return {
            job.name: msgspec.structs.replace(run or Run(now), done=now)
            for job in jobs
            if ((run := runs.get(job.name)) is None and job.when() is not None)
            or (run is not None and run.done != believed(run.done, now))
        }

    def _wait(self, job: Job, agent: str, runs: dict[str, Run]) -> float:
        run = runs.get(job.name)
        at = None if run is None else self._due_at(job, agent, run)
        wait = DAY if at is None else at - self._clock.now()
        retry = self._retries.get(_Key(agent, job.name))
        return wait if retry is None else max(wait, retry.at - self._clock.monotonic())

    def _delay(self, agent: str) -> float:
        return spread(self._jitter(), self._device, agent)

    def _due_at(self, job: Job, agent: str, run: Run) -> float | None:
        now = self._clock.now()
        if run.error:
            return now
        at = next_after(job.when(), believed(run.done, now), self._clock.zone)
        return None if at is None else at + self._delay(agent)

    def _failed(self, job: Job, agent: str, error: Exception, least: float) -> float:
        """Report a failure; return the seconds until the retry."""
        key = _Key(agent, job.name)
        if isinstance(error, Postponed):
            self._retries[key] = _Retry(self._clock.monotonic() + _POSTPONED_SECONDS, 0)
            return _POSTPONED_SECONDS
        hint = "nothing is lost; it is tried again"
        if isinstance(error, ThermoclineError):
            hint = error.hint or hint
        elif not isinstance(error, OSError):
            kind, where = unforeseen(error)
            _log.error(
                "'%s' failed with %s:\n%s", job.name, kind, where, extra={"action": "job_failed"}
            )
        whose = f" for '{agent}'" if agent else ""
        message = f"cannot run '{job.name}'{whose}: {words_of(error)}"
        self._problems.report(job.problem, agent, message, hint)
        failures = self._retries.get(key, _Retry(0.0, 0)).failures + 1
        delay = least * min(2 ** (failures - 1), _MOST_TIMES)
        self._retries[key] = _Retry(self._clock.monotonic() + delay, failures)
        return float(delay)

    def _recovered(self, job: Job, agent: str) -> None:
        retry = self._retries.pop(_Key(agent, job.name), None)
        if retry is None or not retry.failures:
            return
        failing = [k.name for k, r in self._retries.items() if k.agent == agent and r.failures]
        if job.problem not in {self._jobs[name].problem for name in failing}:
            self._problems.clear(job.problem, agent)
