"""The scheduler of every periodic job.

Each run is a task of its own, so that a slow one delays no other agent. Jobs are idempotent: one
that was interrupted or failed runs again from its beginning.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import tzinfo
from functools import partial
from typing import Final, Literal, NamedTuple

import msgspec

from ..errors import NotFound, ThermoclineError
from ..memory.scoring import DAY
from ..runtime.problems import Problems, unforeseen
from ..shapes.upkeep import Schedule
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from .cron import When, believed, interval_of, next_after, spread
from .last_runs import Postponed, Run, last_run, put_runs, record, words_of

_log = logging.getLogger(__name__)
# A changed schedule, a new agent and a clock that jumped are noticed within this time.
_LONGEST_PAUSE: Final = 60.0
_SHORTEST_PAUSE: Final = 1.0
_JUMP_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 300.0
_MOST_TIMES: Final = 12
_POSTPONED_SECONDS: Final = 3_600.0
# A closed agent that nobody has used since is spared a job this long, and asked this often
# whether it was used meanwhile.
_SPARED_SECONDS: Final = 0.9 * DAY
_UNUSED_SECONDS: Final = 600.0


class Clock(msgspec.Struct, frozen=True):
    """The device's clock, a clock that nobody can set, and how to wait."""

    zone: tzinfo
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happens again and again.

    Attributes:
        name: also the name of its record.
        when: gives the schedule in force.
        run: called with the agent's store, or without arguments where `agents` is "none".
        agents: "all" jobs run for closed agents too, have a record, and are caught up once when
            they were missed; "open" jobs run for open agents; "none" jobs for the daemon.
        covers: the jobs that are done whenever this one is.
        problem: the code under which a failure is reported.
        at_once: for how many agents it runs at the same time.
        soon: whether it first runs when its agent is opened, or after its first interval.
    """

    name: str
    when: Callable[[], When]
    run: Callable[..., Awaitable[object]]
    agents: Literal["all", "open", "none"] = "all"
    covers: tuple[str, ...] = ()
    problem: str = "upkeep_failed"
    at_once: int = 4
    soon: bool = False


class _Key(NamedTuple):
    """Whose run of which job; the agent is "" for the daemon's own."""

    agent: str
    job: str


class Scheduler:
    """Runs jobs when they are due.

    Times are kept on the clock that nobody can set, and computed again whenever the device's clock
    jumps: no jump causes a busy loop, or postpones a job beyond its next regular time. A closed
    agent that nobody has used since a job's last run is spared that job for most of a day.

    Args:
        agents: the memories.
        jobs: every job, the larger ones last.
        clock: the time, in the device's zone.
        device: this device's id, so that devices with one memory take turns.
        jitter: gives the seconds over which agents and devices are spread.
        problems: where failures are reported.
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
        self._jobs = jobs
        self._codes = {job.name: job.problem for job in jobs}
        self._recorded = {job.name: job for job in jobs if job.agents == "all"}
        self._clock = clock
        self._device = device
        self._jitter = jitter
        self._problems = problems
        self._planned: list[When] = []
        self._ahead = clock.now() - clock.monotonic()
        self._names: list[str] = []
        self._names_until = float("-inf")
        self._next: dict[_Key, float] = {}
        self._tasks: dict[_Key, asyncio.Task[None]] = {}
        self._failures: dict[_Key, int] = {}
        # How often the agent had been used when the job ran last, and when that was.
        self._ran: dict[_Key, tuple[int, float]] = {}
        self._rooms = {job.name: asyncio.Semaphore(job.at_once) for job in jobs}

    @property
    def running(self) -> set[tuple[str, str]]:
        """The agents and jobs of the runs in progress."""
        return set(self._tasks)

    async def run(self) -> None:
        """Run what is due until cancelled; then cancel the runs in progress, and wait for them."""
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
        for job in self._recorded.values():
            when, run = job.when(), last_run(db, job.name)
            if not isinstance(when, str) and (run is None or run.at is None):
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
        planned = [job.when() for job in self._jobs]
        if planned != self._planned or abs(now - up - self._ahead) > _JUMP_SECONDS:
            self._planned, self._ahead = planned, now - up
            for key in [key for key in self._next if key.job in self._recorded]:
                del self._next[key]
        await self._list_agents(up)
        opened = self._agents.open_stores()
        owners = {"all": self._names, "open": list(opened), "none": [""]}
        current = set()
        for job, when in zip(self._jobs, planned, strict=True):
            for agent in owners[job.agents] if when is not None or job.agents == "all" else ():
                key = _Key(agent, job.name)
                current.add(key)
                # The agents not all at once when the daemon starts.
                first = 0.0 if job.soon else interval_of(when) or 0.0
                first = self._delay(agent) if job.agents == "all" else first
                if self._next.setdefault(key, up + first) > up or key in self._tasks:
                    continue
                if agent not in opened and self._is_spared(key, up):
                    self._next[key] = up + _UNUSED_SECONDS
                else:
                    self._begin(job, key)
        for gone in self._next.keys() - current:
            self._recovered(gone)
            del self._next[gone]
            self._ran.pop(gone, None)

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

    def _is_spared(self, key: _Key, up: float) -> bool:
        uses, at = self._ran.get(key, (-1, -math.inf))
        return uses == self._agents.uses(key.agent) and up - at < _SPARED_SECONDS

    def _begin(self, job: Job, key: _Key) -> None:
        name = f"{job.name} of {key.agent or 'the daemon'}"
        self._next[key] = math.inf
        task = asyncio.get_running_loop().create_task(self._run(job, key), name=name)
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _run(self, job: Job, key: _Key) -> None:
        delay = interval_of(job.when()) or _LONGEST_PAUSE
        try:
            async with self._rooms[job.name]:
                delay = await self._run_for(job, key.agent, delay)
        except NotFound:
            # Somebody has removed the agent's folder.
            pass
        except Postponed:
            delay = _POSTPONED_SECONDS
        except Exception as error:  # noqa: BLE001 - a failure stops no other job
            delay = self._failed(job, key, error, delay)
        else:
            self._recovered(key)
        finally:
            self._next[key] = self._clock.monotonic() + delay

    async def _run_for(self, job: Job, agent: str, delay: float) -> float:
        """Run a job if it is due; the seconds until it is due again."""
        if job.agents == "none":
            await job.run()
        elif job.agents == "all" or agent in self._agents.open_stores():
            async with self._agents.use(agent, create=False, quietly=True) as store:
                if job.agents == "all":
                    return await self._catch_up(job, agent, store)
                await job.run(store)
        return delay

    async def _catch_up(self, job: Job, agent: str, store: AgentStore) -> float:
        runs = await store.read(self._records)
        if self._start(runs):
            await store.write(lambda tx: put_runs(tx, self._start(self._records(tx.db))))
            runs |= self._start(runs)
        if (wait := self._wait(job, agent, runs)) > 0:
            return wait
        larger = (one for one in self._recorded.values() if job.name in one.covers)
        if any(
            _Key(agent, one.name) in self._tasks and self._wait(one, agent, runs) <= 0
            for one in larger
        ):
            # A run in progress does this too, and records it.
            return _LONGEST_PAUSE
        _log.info("running '%s' for '%s'", job.name, agent, extra={"action": "job_due"})
        ran = self._agents.uses(agent), self._clock.monotonic()
        names = (job.name, *job.covers)
        try:
            await record(store, names, partial(job.run, store))
        except Postponed:
            self._ran[_Key(agent, job.name)] = ran
            raise
        self._ran |= {_Key(agent, name): ran for name in names}
        return self._wait(job, agent, await store.read(self._records))

    def _records(self, db: sqlite3.Connection) -> dict[str, Run]:
        found = {name: last_run(db, name) for name in self._recorded}
        return {name: run for name, run in found.items() if run is not None}

    def _start(self, runs: dict[str, Run]) -> dict[str, Run]:
        """Records for the jobs that have none, or an impossible one: their time starts now."""
        now = self._clock.now()
        return {
            name: msgspec.structs.replace(runs.get(name, Run(now)), done=now)
            for name, job in self._recorded.items()
            if (name in runs and runs[name].done != believed(runs[name].done, now))
            or (name not in runs and job.when() is not None)
        }

    def _wait(self, job: Job, agent: str, runs: dict[str, Run]) -> float:
        """The seconds until a job is due."""
        run = runs.get(job.name)
        at = None if run is None else self._due_at(job, agent, run)
        return DAY if at is None else at - self._clock.now()

    def _delay(self, agent: str) -> float:
        return spread(self._jitter(), self._device, agent)

    def _due_at(self, job: Job, agent: str, run: Run) -> float | None:
        now = self._clock.now()
        if run.error:
            return now
        at = next_after(job.when(), believed(run.done, now), self._clock.zone)
        return None if at is None else at + self._delay(agent)

    def _failed(self, job: Job, key: _Key, error: Exception, delay: float) -> float:
        """Report a failure; the seconds until the job is tried again."""
        hint = "nothing is lost; it is tried again"
        if isinstance(error, ThermoclineError):
            hint = error.hint or hint
        elif not isinstance(error, OSError):
            kind, where = unforeseen(error)
            _log.error(
                "'%s' failed with %s:\n%s", job.name, kind, where, extra={"action": "job_failed"}
            )
        whose = f" for '{key.agent}'" if key.agent else ""
        message = f"cannot run '{job.name}'{whose}: {words_of(error)}"
        self._problems.report(job.problem, key.agent, message, hint)
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        least = _RETRY_SECONDS if job.agents == "all" else delay
        return float(least * min(2 ** (failures - 1), _MOST_TIMES))

    def _recovered(self, key: _Key) -> None:
        self._failures.pop(key, None)
        code = self._codes[key.job]
        others = (self._codes[k.job] for k in self._failures if k.agent == key.agent)
        if code not in others:
            self._problems.clear(code, key.agent)
