"""A rehearsal, in a process of its own: it reads a job from standard input and prints a result.

It takes time and memory that the daemon shall not spend, and ends when the daemon does.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from thermocline.sync import Source, SyncError, TryLater, Waiting
from thermocline.sync.source import look

from ..errors import ThermoclineError
from ..replication.account import Account, Secret
from ..replication.connecting import connect
from ..replication.replicas import as_ours
from ..store.database import connect_reader, translate
from ..store.transaction import Rules
from .comparing import Comparison
from .receiving import Receiver
from .rehearsal import Fault, Job, Rehearsal, Result
from .staging import OnThread, Staging
from .verifying import verify
from .watching import Patience, Stage

_CACHE_KB: Final = 4096
_GIVE_UP_SECONDS: Final = 60.0
_WAITING: Final = Waiting(first=1.0, longest=10.0)
# What others are doing is more urgent.
_NICENESS: Final = 10


class Silent:
    """Nobody watches."""

    def stage(self, stage: Stage, agent: str) -> None:
        """Nothing."""

    def expect(self, agent: str, rows: int, known: int) -> None:
        """Nothing."""

    def came(self, rows: int) -> None:
        """Nothing."""

    def failed(self, error: TryLater, seconds: float) -> None:
        """Nothing."""

    async def pause(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


async def rehearse(job: Job) -> Rehearsal:
    """Restore into the folder of the job, and compare.

    Raises:
        SyncError: the replica cannot be reached, or refuses.
        ThermoclineError: the disk refuses.
    """
    began = time.monotonic()
    token = None if job.token is None else Secret(job.token)
    remote = await connect(Account(job.url, token, "rehearsal"))
    thread = OnThread()
    staging = Staging(Path(job.folder), device=job.device, rules=Rules(), now=time.time)
    try:
        patience = Patience(_WAITING, Silent(), _GIVE_UP_SECONDS)
        tables = await patience(lambda: look(remote))
        source = Source(remote, job.agent, tables)
        receiver = Receiver(source, job.url, staging, thread, patience, Silent())
        await receiver.run(job.agent)
        with closing(await thread(_snapshot, Path(job.live))) as live:
            # What the memory had sent until the snapshot has come after this, or is missing.
            extent = await receiver.run(job.agent)
            verdict = await thread(verify, staging, extent.counts)
            comparison = await thread(_compared, live, staging)
    finally:
        await thread(staging.close)
        thread.close()
        await remote.close()
    faults = (*verdict.faults, *verdict.lost, *comparison.faults())
    return Rehearsal(
        verified=not faults,
        rows=comparison.rows,
        missing=len(comparison.missing),
        different=len(comparison.different),
        extra=len(comparison.extra),
        seconds=round(time.monotonic() - began, 3),
        at=time.time(),
        faults=faults,
    )


def main() -> int:
    """Do the job in standard input; end when that is closed."""
    os.nice(_NICENESS)
    os.umask(0o077)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    try:
        result = Result(rehearsal=asyncio.run(rehearse(job)))
    except SyncError as error:
        result = Result(fault=_fault(as_ours(error), passes=isinstance(error, TryLater)))
    except ThermoclineError as error:
        result = Result(fault=_fault(error, passes=False))
    sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    sys.stdout.buffer.flush()
    return 0


def _fault(error: ThermoclineError, *, passes: bool) -> Fault:
    return Fault(error.code, error.message, error.hint, passes)


def _end_with_parent() -> None:
    # Nothing more is sent: this returns when the daemon has closed its end, or is gone.
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def _snapshot(path: Path) -> sqlite3.Connection:
    """The memory in use, as it is at this moment."""
    db = connect_reader(path, _CACHE_KB)
    try:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM meta").fetchone()
    except sqlite3.Error as error:
        db.close()
        raise translate(error, path) from error
    return db


def _compared(live: sqlite3.Connection, staging: Staging) -> Comparison:
    comparison = Comparison(live, staging.db)
    try:
        comparison.run()
    except sqlite3.Error as error:
        raise translate(error, staging.path) from error
    return comparison


if __name__ == "__main__":
    sys.exit(main())
