"""Rehearsing restores while the daemon runs: when somebody asks, and now and then by itself."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ..errors import DiskFull, NotFound, ReplicaAway, ThermoclineError
from ..problems import Problems
from ..replication.account import Account
from ..replication.replicas import Replicas
from ..store.agents import Agents
from ..store.database import FILE_NAME, translate_os
from .rehearsal import Due, Job, Rehearsal, Result, due_of, note

_log = logging.getLogger(__name__)
_PREFIX: Final = ".rehearsal-"
_PROBLEM: Final = "rehearsal_failed"
_PROCESS: Final = "thermocline.daemon.restoring.rehearse"
_DAY: Final = 86_400.0
# Not at once after the start, and not on all machines of a rack at the same moment.
_FIRST_SECONDS: Final = (900.0, 3600.0)
_LOOK_SECONDS: Final = 3600.0
_BETWEEN_SECONDS: Final = 60.0
# The copy, the log beside it, and some air.
_ROOM: Final = 3


class Rehearsals:
    """Restores memories into a temporary folder and compares them with those in use.

    Each runs in a process of its own, one at a time.

    Args:
        agents: the memories.
        replicas: where they are restored from.
        state_dir: on whose disk there is room for a copy.
        device: this device's id.
        problems: where a memory that would not come back as it is is told.
        days: how often each memory is rehearsed; 0: never.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        agents: Agents,
        replicas: Replicas,
        *,
        state_dir: Path,
        device: str,
        problems: Problems,
        days: Callable[[], float],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._agents = agents
        self._replicas = replicas
        self._state_dir = state_dir
        self._device = device
        self._problems = problems
        self._days = days
        self._now = now
        self._one = asyncio.Lock()
        self._random = random.Random()  # noqa: S311 - spreads the load, hides nothing

    async def run(self) -> None:
        """Rehearse each memory when it is due, until cancelled."""
        await asyncio.sleep(self._random.uniform(*_FIRST_SECONDS))
        while True:
            for agent in await asyncio.to_thread(self._agents.names):
                if await self.is_due(agent):
                    await self._rehearse_quietly(agent)
                    await asyncio.sleep(_BETWEEN_SECONDS)
            await asyncio.sleep(_LOOK_SECONDS * self._random.uniform(0.9, 1.1))

    async def is_due(self, agent: str) -> bool:
        """Whether so much time has passed since the last one; never before the first sync."""
        days = self._days()
        folder, _ = self._agents.place(agent)
        found: Due | None = await asyncio.to_thread(due_of, folder / FILE_NAME)
        if not days or found is None or not found.followed:
            return False
        if found.last is None:
            return True
        # A clock that was set back must not hold them up for years.
        return not 0 <= self._now() - found.last.at < days * _DAY

    async def rehearse(self, agent: str) -> Rehearsal:
        """Rehearse a restore, and note in the memory what came of it.

        Raises:
            NotFound: there is no such agent, or it has no replica.
            ThermoclineError: the replica cannot be reached, or the disk refuses.
        """
        async with self._one, self._agents.use(agent, create=False, quietly=True) as store:
            account = (await self._replicas.following(agent)).account
            # What is on its way to the replica would only be left out.
            await self._replicas.sync(agent)
            self._refuse_narrow(store.place.database)
            rehearsal = await self._in_folder(agent, account, store.place.database)
            await store.write(lambda tx: note(tx, rehearsal))
        self._tell(agent, rehearsal)
        return rehearsal

    async def _rehearse_quietly(self, agent: str) -> None:
        try:
            await self.rehearse(agent)
        except (ReplicaAway, NotFound) as error:
            _log.info("did not rehearse: %s", error, extra={"action": "rehearsal_put_off"})
        except ThermoclineError as error:
            self._problems.report(
                _PROBLEM,
                agent,
                f"cannot rehearse the restore of '{agent}': {error.message}",
                error.hint or "",
            )

    async def _in_folder(self, agent: str, account: Account, live: Path) -> Rehearsal:
        try:
            name = await asyncio.to_thread(tempfile.mkdtemp, prefix=_PREFIX, dir=self._state_dir)
        except OSError as error:
            raise translate_os(error, self._state_dir) from error
        job = Job(
            agent=agent,
            url=account.url,
            token=None if account.token is None else account.token.reveal(),
            folder=str(Path(name) / agent),
            live=str(live),
            device=self._device,
        )
        try:
            return _result(await _in_process(job))
        finally:
            await asyncio.to_thread(shutil.rmtree, name, ignore_errors=True)

    def _refuse_narrow(self, database: Path) -> None:
        try:
            needed = _ROOM * database.stat().st_size
            free = shutil.disk_usage(self._state_dir).free
        except OSError as error:
            raise translate_os(error, database) from error
        if free < needed:
            raise DiskFull(
                f"cannot rehearse: a copy takes up to {needed:,} bytes, and {free:,} are free",
                hint="free some space",
            )

    def _tell(self, agent: str, rehearsal: Rehearsal) -> None:
        if rehearsal.verified:
            self._problems.clear(_PROBLEM, agent)
            return
        self._problems.report(
            _PROBLEM,
            agent,
            f"the replica would not give '{agent}' back as it is: {'; '.join(rehearsal.faults)}",
            "take a backup; `thermocline restore --verify` compares again",
        )


def remove_leftovers(state_dir: Path) -> None:
    """Remove what a daemon that was killed while it rehearsed has left. Blocking."""
    for folder in state_dir.glob(f"{_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


async def _in_process(job: Job) -> bytes:
    """Have a process do the job; it ends with this call, however that ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _PROCESS),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        with suppress(ConnectionError):
            await process.stdin.drain()
        return await process.stdout.read()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        process.stdin.close()


def _result(printed: bytes) -> Rehearsal:
    try:
        result = msgspec.json.decode(printed, type=Result)
    except msgspec.DecodeError as error:
        raise ThermoclineError("cannot rehearse: its process ended without a result") from error
    if result.rehearsal is not None:
        return result.rehearsal
    assert result.fault is not None
    fault = result.fault
    if fault.passes:
        raise ReplicaAway(fault.code.removeprefix("replica_"), fault.message, hint=fault.hint)
    failed = ThermoclineError(fault.message, hint=fault.hint)
    failed.code = fault.code
    raise failed
