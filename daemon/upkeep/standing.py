"""How an agent's upkeep stands, for status and for `GET /api/upkeep`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo

import msgspec

from .ledger import Ledger
from .plan import Plan
from .schedules import believed, time_of


class Running(msgspec.Struct, frozen=True):
    """A run under way, and the step that was done last; "" before the first."""

    mode: str
    since: float
    step: str = ""


class Schedule(msgspec.Struct, frozen=True):
    """One job: when it ran last and how that went, and when it is due next.

    Attributes:
        cron: its expression; None: it has no times of its own.
        last: when its last run began; None: never.
        error: why that did not get to its end; "": it did.
        next: when it is due; None: never. A time that has passed means as soon as can be.
    """

    name: str
    cron: str | None
    last: float | None
    seconds: float | None
    error: str
    next: float | None


class Standing(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        zone: what the device's time zone is called at the moment.
        running: the run under way, if there is one.
        unfinished: the mode of a run that was broken off, and goes on with its next.
    """

    agent: str
    zone: str
    running: Running | None
    unfinished: str | None
    schedules: tuple[Schedule, ...]

    @property
    def brief(self) -> Brief:
        """The same in a few words."""
        # Of those that a larger run was through with, the largest: it stands behind the others.
        ran = [one for one in reversed(self.schedules) if one.last is not None]
        last = max(ran, key=lambda one: one.last or 0.0, default=None)
        due = [one for one in self.schedules if one.next is not None]
        first = min(due, key=lambda one: one.next or 0.0, default=None)
        return Brief(
            running=None if self.running is None else self.running.mode,
            last=None if last is None else last.name,
            last_at=None if last is None else last.last,
            error="" if last is None else last.error,
            next=None if first is None else first.name,
            next_at=None if first is None else first.next,
        )


class Brief(msgspec.Struct, frozen=True):
    """What ran last, and how that went, what runs now, and what is due next."""

    running: str | None
    last: str | None
    last_at: float | None
    error: str
    next: str | None
    next_at: float | None


def standing_of(
    agent: str,
    plan: Plan,
    ledger: Ledger,
    running: Running | None,
    now: float,
    zone: tzinfo,
    delay: Callable[[str], float],
) -> Standing:
    """What the plan and an agent's ledger come to at `now`."""
    crons = {job.name: job.cron for job in plan.jobs}
    next_at = {
        job.name: time_of(job, believed(ledger.done.get(job.name), now), delay(job.name), zone)
        for job in plan.jobs
    }
    schedules = []
    for name in (*crons, *(name for name in ledger.runs if name not in crons)):
        run = ledger.runs.get(name)
        schedules.append(
            Schedule(
                name=name,
                cron=crons.get(name),
                last=None if run is None else run.at,
                seconds=None if run is None else run.seconds,
                error="" if run is None else run.error,
                next=next_at.get(name),
            )
        )
    broken_off = ledger.progress is not None and running is None
    return Standing(
        agent=agent,
        zone=datetime.fromtimestamp(now, zone).tzname() or "",
        running=running,
        unfinished=ledger.progress.mode if ledger.progress is not None and broken_off else None,
        schedules=tuple(schedules),
    )
