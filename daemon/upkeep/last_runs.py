"""The last run of each job, recorded in the agent's database."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import msgspec

from ..errors import ThermoclineError
from ..store import noted
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction

T = TypeVar("T")
INTERRUPTED: Final = "interrupted"


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last run of a job.

    Attributes:
        done: the time of the last successful run.
        at: the start of the last run; None if there was none.
        seconds: the duration of the last run.
        error: why it failed, or `INTERRUPTED` while it runs; with an error the job is due at once.
    """

    done: float
    at: float | None = None
    seconds: float | None = None
    error: str = ""


def last_run(db: sqlite3.Connection, job: str) -> Run | None:
    """The last run of a job; None if unknown or if the record is damaged."""
    return noted.read(db, f"job/{job}", Run)


def put_runs(tx: Transaction, runs: Mapping[str, Run]) -> None:
    """Replace the last runs of some jobs."""
    for job, run in runs.items():
        noted.write(tx, f"job/{job}", run)


class Postponed(Exception):
    """Raised by a job that cannot run now, for example while the device is offline."""


async def record(store: AgentStore, names: tuple[str, ...], run: Callable[[], Awaitable[T]]) -> T:
    """Run a job, and record it under its name, and on success under those that it covers.

    While it runs, its record says that it was interrupted.

    Args:
        store: the agent's memory.
        names: the job, and the jobs that it covers.
        run: runs the job.

    Raises:
        ThermoclineError: the memory cannot be written.
    """
    at, started = store.now, time.perf_counter()

    def begin(tx: Transaction) -> Run | None:
        before = last_run(tx.db, names[0])
        done = at if before is None else before.done
        put_runs(tx, {names[0]: Run(done, at, error=INTERRUPTED)})
        return before

    before = await store.write(begin) or Run(at)
    try:
        result = await run()
    except Postponed:
        await store.write(partial(put_runs, runs={names[0]: before}))
        raise
    except Exception as error:
        failed = Run(before.done, at, round(time.perf_counter() - started, 4), words_of(error))
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
    return str(error) if isinstance(error, OSError) else type(error).__name__
