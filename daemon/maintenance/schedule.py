"""When a job is due, and the row of its last run in the agent's database.

Cron expressions, in the device's time zone, have the meaning of Debian's cron: a fixed time that is
skipped in spring runs right after the gap, a repeated time in autumn runs once, and "every n hours"
counts elapsed hours.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec
from cronsim import CronSim

from ..errors import ThermoclineError, reason_of
from ..store.agent_store import AgentStore
from ..store.database import meta
from ..store.database.transaction import Transaction

# A cron expression, an interval in seconds, or None for never.
When: TypeAlias = str | float | None

# A recorded time further in the future than this is from a wrong clock; smaller corrections are
# normal.
_AHEAD_SECONDS: Final = 3_600.0
_NONE: Final = timedelta(0)


def due_at(when: When, run: Run, now: float, zone: tzinfo, delay: float) -> float | None:
    """When a job is due after its last run, `delay` seconds after the time of an expression.

    A time to retry that lies too far in the future is from a wrong clock, and ignored.
    """
    if run.retry_at is not None and run.retry_at <= now + _POSTPONED_SECONDS:
        return run.retry_at
    if run.error:
        return now
    at = next_after(when, believed(run.done, now), zone)
    return None if at is None else at + delay


def next_after(when: When, moment: float, zone: tzinfo) -> float | None:
    """The first due time after `moment`, or None."""
    if not isinstance(when, str):
        return None if when is None else moment + when
    for occurrence in CronSim(when, datetime.fromtimestamp(moment, zone)):
        at = occurrence.timestamp()
        # In a repeated hour the library returns times of its first occurrence.
        if at > moment:
            return at
    return None


def interval_of(when: When) -> float | None:
    """The interval in seconds; None if `when` is an expression or None."""
    return None if when is None or isinstance(when, str) else float(when)


def believed(since: float | None, now: float) -> float:
    """The recorded time, or `now` if it is missing or impossible."""
    return since if since is not None and 0 <= since <= now + _AHEAD_SECONDS else now


def spread(seconds: float, *names: str) -> float:
    """A fraction of `seconds` that is constant for the same names."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    return seconds * int.from_bytes(digest[:8], "big") / 2**64


class LocalZone(tzinfo):
    """The local time of the C library (`$TZ`, else `/etc/localtime`), at any time.

    Unlike the zone of `datetime.astimezone()` it has no fixed offset, so that midnight next spring
    is correct. For a repeated time `fold` applies; a skipped time has the offset before the gap.
    """

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """The UTC offset at `moment`, a local time."""
        if moment is None:
            return _NONE
        local = moment.replace(tzinfo=None)
        at = datetime.fromtimestamp(local.timestamp(), UTC)
        return local.replace(fold=0) - at.replace(tzinfo=None)

    def dst(self, _moment: datetime | None) -> None:
        """Unknown; only the whole offset is known."""
        return

    def tzname(self, moment: datetime | None) -> str:
        """The abbreviation of the zone at `moment`, such as `CET`."""
        at = (moment or datetime.now(UTC)).replace(tzinfo=None)
        return at.astimezone().tzname() or "local"

    def fromutc(self, moment: datetime) -> datetime:
        """The local time of `moment`, a UTC time labelled with this zone."""
        local = datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp())  # noqa: DTZ006
        return local.replace(tzinfo=self)


T = TypeVar("T")
INTERRUPTED: Final = "interrupted"
RETRY_SECONDS: Final = 300.0
_MOST_TIMES: Final = 12
_POSTPONED_SECONDS: Final = 3_600.0


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last run of a job."""

    done: float  # the time of the last successful run
    at: float | None = None  # the start of the last run; None if there was none
    seconds: float | None = None  # the duration of the last run
    error: str = ""  # why it failed, or `INTERRUPTED` while it runs
    failures: int = 0  # the failures in a row
    # When a job that failed or was postponed is due; None: an error makes it due at once.
    retry_at: float | None = None


def last_run(db: sqlite3.Connection, job: str) -> Run | None:
    """The last run of a job; None if unknown or if the record is damaged."""
    return meta.read(db, f"job/{job}", Run)


def put_runs(tx: Transaction, runs: Mapping[str, Run]) -> None:
    """Replace the last runs of some jobs."""
    for job, run in runs.items():
        meta.write(tx, f"job/{job}", run)


class Postponed(Exception):
    """Raised by a job that cannot run now, for example while the device is offline."""


def retry_seconds(least: float, failures: int) -> float:
    """The pause after this number of failures in a row: it doubles from `least`."""
    return float(least * min(2 ** (failures - 1), _MOST_TIMES))


async def record(store: AgentStore, names: tuple[str, ...], run: Callable[[], Awaitable[T]]) -> T:
    """Run a job, and record it under its name, and on success under those that it covers.

    While it runs, its record says that it was interrupted. `names` are the job, and the jobs that
    it covers.
    """
    at, started = store.now, time.perf_counter()

    def begin(tx: Transaction) -> Run:
        before = last_run(tx.db, names[0]) or Run(at)
        put_runs(tx, {names[0]: Run(before.done, at, error=INTERRUPTED)})
        return before

    before = await store.write(begin)
    try:
        result = await run()
    except Postponed:
        later = msgspec.structs.replace(before, retry_at=store.now + _POSTPONED_SECONDS)
        await store.write(partial(put_runs, runs={names[0]: later}))
        raise
    except Exception as error:
        seconds, failures = round(time.perf_counter() - started, 4), before.failures + 1
        retry_at = store.now + retry_seconds(RETRY_SECONDS, failures)
        failed = Run(before.done, at, seconds, words_of(error), failures, retry_at)
        with suppress(ThermoclineError):
            await store.write(partial(put_runs, runs={names[0]: failed}))
        raise
    done = Run(at, at, round(time.perf_counter() - started, 4))
    await store.write(partial(put_runs, runs=dict.fromkeys(names, done)))
    return result


def words_of(error: Exception) -> str:
    """The message of an error; only the type of an unknown error, which may quote a memory."""
    if isinstance(error, ThermoclineError):
        return error.message
    if isinstance(error, OSError):
        return reason_of(error) + (f": {error.filename}" if error.filename else "")
    return type(error).__name__
