"""When upkeep is due: cron expressions, and what of them has not been done yet. Pure.

Every expression is read in a time zone, as Debian's cron does it: a fixed time that the clock
leaves out in spring comes right after the gap, one that it shows twice in autumn comes once, and
"every so many hours" goes by hours that pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Final

import msgspec
from cronsim import CronSim

from .steps import MODES, Step, in_order

# How far ahead of the clock a time on record may be, since clocks are set back a little. One
# that is further ahead was noted by a clock that was wrong.
_AHEAD_SECONDS: Final = 3_600.0


class Job(msgspec.Struct, frozen=True):
    """Some steps of upkeep, and when they are due; `name` is what its times go under."""

    name: str
    cron: str
    steps: tuple[Step, ...]


class Due(msgspec.Struct, frozen=True):
    """The jobs that are due together, and their steps, each once.

    Attributes:
        mode: the name of the largest of the jobs.
    """

    mode: str
    jobs: tuple[str, ...]
    steps: tuple[Step, ...]


def next_after(cron: str, moment: float, zone: tzinfo) -> float | None:
    """The first time after `moment` that an expression names, or None: it names none."""
    for found in CronSim(cron, datetime.fromtimestamp(moment, zone)):
        at = found.timestamp()
        # Within the second showing of an hour the library names times of the first.
        if at > moment:
            return at
    return None


def believed(since: float | None, now: float) -> float:
    """Up to when a job is done: as on record, or `now` where that is unknown or makes no sense."""
    return since if since is not None and 0 <= since <= now + _AHEAD_SECONDS else now


def time_of(job: Job, since: float, delay: float, zone: tzinfo) -> float | None:
    """When a job is due that is done up to `since`; None: never.

    Args:
        job: the job.
        since: up to when it is done.
        delay: how long after the time of the expression it is meant to begin.
        zone: the time zone that the expression is read in.
    """
    at = next_after(job.cron, since, zone)
    return None if at is None else at + delay


def due(
    jobs: Sequence[Job],
    done: Mapping[str, float],
    now: float,
    zone: tzinfo,
    delay: Callable[[str], float],
) -> Due | None:
    """What is due at `now`, however often it was missed; None: nothing is.

    Args:
        jobs: all of them, the larger ones last.
        done: up to when each is done; one that is not there is done up to now.
        now: the time.
        zone: the time zone.
        delay: by the name of a job how long after its time it begins.
    """
    ripe = []
    for job in jobs:
        at = time_of(job, believed(done.get(job.name), now), delay(job.name), zone)
        if at is not None and at <= now:
            ripe.append(job)
    if not ripe:
        return None
    largest = max(ripe, key=lambda job: (job.name in MODES, len(job.steps)))
    steps = in_order(step for job in ripe for step in job.steps)
    return Due(largest.name, tuple(job.name for job in ripe), steps)


def spread(seconds: float, *names: str) -> float:
    """A part of `seconds` that is always the same for the same names, and differs for others."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    return seconds * int.from_bytes(digest[:8], "big") / 2**64
